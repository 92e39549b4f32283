"""The constants equal the tables of the original."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted_game import ScriptedGame

from cage2.cardiff_rules import DECOY_HOSTS, DECOY_ORDER, DIRECT_OUTPUTS, SCAN_HOSTS
from cage2.rules import scenario as network
from cage2.rules.red_agents import JUMPS
from cage2.rules.scenario import ACTION_NAMES, DECOY, HOST_OF, NUM_ACTIONS, VERB_OF, YES, flat_action

TABLES = json.loads((Path(__file__).parents[1] / "data" / "tables.json").read_text())


@pytest.mark.parametrize("host", TABLES["hosts"], ids=lambda host: host["name"])
def test_hosts_equal_the_original(host: dict) -> None:
    h = host["index"]
    assert network.HOSTS[h] == host["name"]
    assert network.SUBNETS[network.SUBNET_OF[h]] == host["subnet"]
    assert bool(network.WINDOWS >> h & 1) == (host["os"] == "Windows")
    assert bool(network.BRUTE_FORCEABLE >> h & 1) == host["ssh_bruteforce_account"]
    services = [(s["port"], s["type"], bool(s["privileged"])) for s in host["services"]]
    assert [tuple(service) for service in network.SERVICES[h]] == services
    value = 1.0 * (network.WORTH_ONE >> h & 1) + 0.1 * (network.WORTH_A_TENTH >> h & 1)
    assert value == host["value"]
    reveals = [name for i, name in enumerate(network.HOSTS) if network.REVEALED_BY[h] >> i & 1]
    assert reveals == host["escalation_reveals"]


@pytest.mark.parametrize("host", TABLES["hosts"], ids=lambda host: host["name"])
def test_new_host_accepts_the_decoys_of_the_original(host: dict) -> None:
    accepted = [
        decoy.name
        for d, decoy in enumerate(network.DECOYS)
        if ScriptedGame().do(DECOY + d, host["index"]).blue_success == YES
    ]
    assert accepted == host["decoys_accepted_when_clean"]


def test_decoys_and_exploits_equal_the_original() -> None:
    for decoy in network.DECOYS:
        row = TABLES["decoys"][decoy.name]
        assert (decoy.port, decoy.checked) == (row["port"], row["port_checked"])
    assert len(network.DECOYS) == len(TABLES["decoys"])
    by_weight = sorted(TABLES["exploits"].items(), key=lambda item: item[1]["weight"])
    assert [name for name, _ in by_weight] == list(network.EXPLOITS)
    assert [row["port"] for _, row in by_weight] == list(network.PORTS[: len(network.EXPLOITS)])
    assert [row["type"] for _, row in by_weight] == list(network.EXPLOIT_TYPES)


def test_actions_and_b_line_jumps_equal_the_original() -> None:
    assert list(ACTION_NAMES) == TABLES["flat_actions"]
    assert JUMPS.tolist() == TABLES["bline_jumps"]
    assert [flat_action(VERB_OF[a], HOST_OF[a]) for a in range(NUM_ACTIONS)] == list(range(NUM_ACTIONS))


def test_cardiff_tables_equal_the_original() -> None:
    assert list(DIRECT_OUTPUTS) == TABLES["cardiff_outputs"]
    ours = [[network.HOSTS[host], list(order)] for host, order in zip(DECOY_HOSTS, DECOY_ORDER, strict=True)]
    assert ours == TABLES["cardiff_decoys"]
    assert [4 * host for host in SCAN_HOSTS] == TABLES["cardiff_scan_offsets"]
