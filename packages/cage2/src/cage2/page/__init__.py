"""The page of a replay: `map.svg`, `replay.css` and `replay.js`, fed with JSON, inlined into one HTML file.

Another page can serve the same three files (`FILES`, read by `read_file`): it loads the style and the script, and calls
`cage2Replay(element, data, map, {step, show, onChange, keys})`. `data` is the JSON of `data_of`, `map` the text of
map.svg. The handle has `go(step)`, `look("true" or "saw")`, `stop()` and `remove()`. `onChange(step, show)` follows
every step; `keys` is the element whose keys step (default: the document). The style touches only `.replay`, `.map`
and `.chart`; tokens that the page defines on `:root` win over those of the style.

`data`:

| field | value |
|---|---|
| `about` | one line: agents, attacker, rules, table, seed, green, number of steps, sums |
| `red`, `rules`, `table`, `seed`, `green` | the settings of the games |
| `hosts` | names of the 13 hosts; every list of hosts below has this order |
| `games` | one or two: `{"agent": name, "steps": [step 0, step 1, …]}`; step 0 is the state before the first action |

A step:

| field | value |
|---|---|
| `action` | blue's action 0..144; 0 in step 0 |
| `blue`, `green`, `red` | what each does, an object with the fields of the table below |
| `reward`, `sum` | of the step; up to and including the step |
| `activity` | of each host as blue sees it: 0 none, 1 scan, 2 exploit |
| `status` | of each host in blue's record: 0 none, 1 unknown, 2 user, 3 privileged |
| `held` | true access of red to each host: 0 none, 1 ports known, 2 user, 3 privileged |
| `decoys` | names of the decoys on each host, in the order of placement |
| `open` | whether red reaches the operational subnet |
| `ot` | whether the OT service runs |

What an agent does:

| field | value |
|---|---|
| `words`, `note` | the action and its result, a sentence each; may be empty |
| `host`, `zone` | index of the host, of the subnet of a sweep (0 Enterprise, 1 Operational, 2 User), or -1 |
| `tag` | a verb shown at the host, or empty |
| `ok` | false for a refused decoy and a failed action of red |
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from cage2.game import Game, Step, bits_of
from cage2.rules.scenario import (
    ANALYSE,
    DECOY,
    DECOYS,
    ESCALATE,
    EXPLOIT,
    GATEWAYS,
    GENUINE_ANSWER,
    HOST_OF,
    HOSTS,
    IMPACT,
    MONITOR,
    NO_EXPLOIT,
    NOWHERE,
    PORTS,
    RED_SLEEP,
    REMOVE,
    RESTORE,
    SCAN,
    SUBNETS,
    SWEEP,
    VERB_OF,
)
from cage2.words import EXPLOIT_WORDS, RED_TAGS

FILES: Final = ("map.svg", "replay.css", "replay.js")


def read_file(name: str) -> str:
    """The text of one of `FILES`."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page_of(games: Sequence[Game]) -> str:
    """One game, or two on the same random numbers, as a self-contained HTML page."""
    svg, css, script = map(read_file, FILES)
    title = f"{' and '.join(game.agent for game in games)} against {games[0].red}, seed {games[0].seed}"
    data = data_of(games)
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} · CAGE 2 replay</title>
<style>
{css}</style>
</head>
<body class="replay-page">
<main>
<h1>CAGE 2 replay</h1>
<p>{html.escape(data["about"])}</p>
<div id="replay"></div>
</main>
<template id="replay-map">
{svg}</template>
<script type="application/json" id="replay-data">{text}</script>
<script>
{script}</script>
</body>
</html>
"""


def data_of(games: Sequence[Game]) -> dict[str, Any]:
    """What the page shows, as JSON values."""
    first = games[0]
    return {
        "about": _about(games),
        "red": first.red,
        "rules": first.rules,
        "table": first.table,
        "seed": first.seed,
        "green": first.green,
        "hosts": HOSTS,
        "games": [
            {
                "agent": game.agent,
                "steps": [_step(step, game.steps[max(step.number - 1, 0)]) for step in game.steps],
            }
            for game in games
        ],
    }


def _about(games: Sequence[Game]) -> str:
    first, agents = games[0], " and ".join(game.agent for game in games)
    sums = " and ".join(f"{game.total:z.1f}".replace("-", "−") for game in games)
    green = "green sleeps" if first.green == "Sleep" else "green user active"
    return (
        f"{agents} against {first.red} · rules {first.rules} · table {first.table} · "
        f"seed {first.seed} · {green} · {len(first.steps) - 1} steps · sum {sums}"
    )


def _step(step: Step, before: Step) -> dict[str, Any]:
    seen = bits_of(step)
    held = sum(1 << h for h, access in enumerate(step.access) if access)
    return {
        "action": step.action,
        "blue": _blue(step, before),
        "green": _green(step),
        "red": _red(step, before),
        "reward": step.reward,
        "sum": step.total,
        "activity": [a[0] + a[1] for a, _ in seen],  # 0 none, 1 scan, 2 exploit
        "status": [{(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}[status] for _, status in seen],
        "held": [access + 1 if access else int(ports) for access, ports in zip(step.access, step.seen, strict=True)],
        "decoys": [step.decoys.get(host, []) for host in HOSTS],
        "open": bool(held & GATEWAYS),
        "ot": step.ot_running,
    }


def _acted(
    words: str, note: str, host: int = NOWHERE, tag: str = "", zone: int = -1, ok: bool = True
) -> dict[str, Any]:
    return {"words": words, "note": note, "host": -1 if host == NOWHERE else host, "tag": tag, "zone": zone, "ok": ok}


def _blue(step: Step, before: Step) -> dict[str, Any]:
    if step.number == 0:
        return _acted("No action yet.", "The game starts without alarms.")
    verb, host = int(VERB_OF[step.action]), int(HOST_OF[step.action])
    if verb <= MONITOR:
        return _acted("Monitors." if verb == MONITOR else "Sleeps.", "Changes nothing.")
    name, held = HOSTS[host], step.access[host] < before.access[host]
    if verb == ANALYSE:
        found = bits_of(step)[host][1] == (1, 1)
        return _acted(f"Analyses {name}.", "Record: privileged." if found else "Finds no file.", host, "analyse")
    if verb == REMOVE:
        return _acted(f"Removes user sessions on {name}.", "Access ended." if held else "", host, "remove")
    if verb == RESTORE:
        wiped = len(before.decoys.get(name, []))
        note = f"Costs 1.0.{' Access ended.' * held}{f' Wipes {wiped} of its decoys.' if wiped else ''}"
        return _acted(f"Restores {name}.", note, host, "restore")
    decoy = DECOYS[verb - DECOY].name
    article = "an" if decoy in ("Apache", "SSHD") else "a"
    note = "Accepted." if step.accepted else "Refused: its port is taken, or the system does not run it."
    return _acted(f"Puts {article} {decoy} decoy on {name}.", note, host, "decoy", ok=step.accepted)


def _green(step: Step) -> dict[str, Any]:
    if step.green == NOWHERE:
        return _acted("Does nothing." if step.number else "No action yet.", "")
    return _acted(f"Scans the ports of {HOSTS[step.green]}.", "An ordinary user at work.", step.green, "scan")


def _red(step: Step, before: Step) -> dict[str, Any]:
    verb, target, exploit, success = step.red
    if step.number == 0:
        return _acted("Holds User0.", "A privileged session that cannot be removed.")
    if verb == RED_SLEEP or target == NOWHERE:
        return _acted("Does nothing.", "")
    result = "Succeeds." if success == 1 else f"Fails. {_why(step, before)}".rstrip()
    if verb == SWEEP:
        return _acted(f"Discovers the hosts of {SUBNETS[target]}.", result, zone=target, ok=success == 1)
    name = HOSTS[target]
    words = {
        SCAN: f"Scans the ports of {name}.",
        EXPLOIT: f"Exploits {name}{'' if exploit == NO_EXPLOIT else f' ({EXPLOIT_WORDS[exploit]})'}.",
        ESCALATE: f"Escalates on {name}.",
        IMPACT: f"Stops the OT service on {name}.",
    }[verb]
    return _acted(words, result, target, RED_TAGS[verb], ok=success == 1)


def _why(step: Step, before: Step) -> str:
    verb, target, exploit, _ = step.red
    if verb != EXPLOIT:
        return "Red has no session there." if verb in (ESCALATE, IMPACT) and not step.access[target] else ""
    if exploit == NO_EXPLOIT:
        return "Red knows no open port."
    if not GENUINE_ANSWER[target][exploit]:
        for name in step.decoys.get(HOSTS[target], []):
            if next(decoy.port for decoy in DECOYS if decoy.name == name) == PORTS[exploit]:
                return f"Hits blue’s {name} decoy."
        return "No such service answers."
    return ""
