"""Start, stop and resume runs as processes of their own; only with `--allow-control`."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from optimist.config import RunConfig
from optimist.config.toml import merge
from optimist.core.settings import meanings
from optimist.errors import ConfigError, RunFolderError
from optimist.presets import Preset, all_presets, get_preset
from optimist.tracking.run_dir import default_path
from optimist.ui.folders import ERROR

if TYPE_CHECKING:
    from optimist.ui.app import Site

LOGS: Final = ".optimist-ui"
"""Folder below the runs folder with what the started processes printed."""
RUN_SETTINGS: Final = ("seed", "total_steps", "checkpoint_every", "evaluate_every", "device")
USUAL: Final = "deepsea/opr"
POST_ONLY: Final = "Start the server with --allow-control to start, stop and resume runs."


class Setting(NamedTuple):
    """A field of the form: a keyword of the preset or a setting of the run, with its sentence and default."""

    name: str
    meaning: str
    default: Any
    value: str


class Control:
    """The form that starts a run, and the three requests that change something."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.posts: dict[str, Callable[[Site, Request], Response]] = {
            "start": self.start, "stop": self.stop, "resume": self.resume,
        }  # fmt: skip

    def form(self, site: Site, request: Request) -> Response:
        """The form for a preset, with the command line of the same run below it."""
        query = request.query_params
        preset = get_preset(query.get("preset") or USUAL)
        groups = {name: list(found) for name, found in settings_of(preset, query)}
        error = ""
        try:
            config_of(preset, query)
        except ConfigError as wrong:
            error = str(wrong)
        command = shlex.join(["optimist", *arguments_of(preset, query)])
        return site.page(
            "start.html", request, view="runs", preset=preset, presets=[one.name for one in all_presets()],
            groups=groups, command=command, error=error,
        )  # fmt: skip

    def start(self, site: Site, request: Request) -> Response:
        """Start a run with the form's settings, in a new folder."""
        self._require()
        form: dict[str, str] = request.state.form
        preset = get_preset(form.get("preset", ""))
        config = config_of(preset, form)
        out = default_path(config, site.folder.root)
        self._spawn([*arguments_of(preset, form), "--out", str(out)], out)
        return RedirectResponse("/runs", 303)

    def stop(self, site: Site, request: Request) -> Response:
        """Send SIGINT to the process that trains a run: it saves where it can, and stops."""
        self._require()
        run = site.folder.get(request.state.form.get("run", ""))
        if run.pid is None or not _is_training(run.pid):
            raise RunFolderError(f"{run.name} is not running on this machine")
        os.kill(run.pid, signal.SIGINT)
        site.folder.forget()
        return JSONResponse({"message": f"{run.name} stops after its current update."})

    def resume(self, site: Site, request: Request) -> Response:
        """Continue a stopped run from its newest checkpoint."""
        self._require()
        run = site.folder.get(request.state.form.get("run", ""))
        if run.status not in ("stopped", "failed"):
            raise RunFolderError(f"{run.name} is {run.status}; only stopped and failed runs can be resumed")
        self._spawn(["resume", str(run.path)], run.path)
        return JSONResponse({"message": f"{run.name} continues from its newest checkpoint."})

    def _require(self) -> None:
        if not self.site.control:
            raise RunFolderError(POST_ONLY)

    def _spawn(self, arguments: list[str], out: Path) -> None:
        """Run an `optimist` command that outlives the server; its output goes to a file."""
        logs = self.site.folder.root / LOGS
        logs.mkdir(exist_ok=True)
        log = logs / f"{out.name}.txt"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "optimist", *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True,
            )  # fmt: skip
        (out / ERROR).unlink(missing_ok=True)
        threading.Thread(target=_note_failure, args=(process, log, out), daemon=True).start()
        self.site.folder.forget()


def settings_of(preset: Preset, given: Mapping[str, str]) -> Iterator[tuple[str, Iterator[Setting]]]:
    """The fields of the form by group: the preset's keywords, the run, and the parts that this preset uses."""
    config = preset()
    own = [Setting(p.name, p.meaning, p.default, given.get(p.name, "")) for p in preset.parameters]
    yield "preset", iter(own)
    cls = type(config)
    texts = _meanings(cls)
    yield (
        "run",
        (Setting(name, texts.get(name, ""), getattr(config, name), given.get(name, "")) for name in RUN_SETTINGS),
    )
    for part in ("algorithm", "opr", "sil"):
        value = getattr(config, part)
        if is_dataclass(value) and getattr(value, "enabled", True):
            yield part, _of_part(part, value, given)


def config_of(preset: Preset, given: Mapping[str, str]) -> RunConfig:
    """The settings of the run; raises ConfigError for one that does not fit."""
    keywords = {p.name: _typed(given[p.name], p.default, p.name) for p in preset.parameters if given.get(p.name)}
    config = preset(**keywords)
    for name, value in _changed(preset, given):
        nested: Any = _typed(value, _value_at(config, name), name)
        for part in reversed(name.split(".")):
            nested = {part: nested}
        config = merge(config, nested)
    return config


def arguments_of(preset: Preset, given: Mapping[str, str]) -> list[str]:
    """The arguments of `optimist` that train this run."""
    words = ["train", preset.name]
    names = [p.name for p in preset.parameters if given.get(p.name)]
    for name, value in [*((name, given[name]) for name in names), *_changed(preset, given)]:
        flag = name.replace("_", "-")
        if value.lower() in ("true", "false"):
            start, dot, last = flag.rpartition(".")
            words.append(f"--{start}{dot}{'' if value.lower() == 'true' else 'no-'}{last}")
        else:
            words += [f"--{flag}", value]
    return words


def _changed(preset: Preset, given: Mapping[str, str]) -> list[tuple[str, str]]:
    known = {setting.name for name, found in settings_of(preset, given) if name != "preset" for setting in found}
    return [(name, value) for name, value in given.items() if name in known and value]


def _of_part(part: str, value: Any, given: Mapping[str, str]) -> Iterator[Setting]:
    for name, text in _meanings(type(value)).items():
        default = getattr(value, name)
        if name not in ("enabled", "name") and isinstance(default, bool | int | float | str | None):
            yield Setting(f"{part}.{name}", text, default, given.get(f"{part}.{name}", ""))


def _meanings(cls: Any) -> dict[str, str]:
    return meanings(cls)


def _value_at(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _typed(text: str, default: Any, name: str) -> Any:
    """The text as a value of the default's type."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name} must be true or false, got {text[:40]!r}")
        return text.lower() == "true"
    for kind in (int, float) if isinstance(default, int | float) or default is None else ():
        try:
            return kind(text)
        except ValueError:
            continue
    if isinstance(default, int | float):
        raise ConfigError(f"{name} must be a number, got {text[:40]!r}")
    return text


def _is_training(pid: int) -> bool:
    """Whether a process is one of `optimist`: its number may have been used again."""
    try:
        return b"optimist" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _note_failure(process: subprocess.Popen[bytes], log: Path, out: Path) -> None:
    """Keep the last line of a process that failed where the table shows it."""
    code = process.wait()
    if code not in (0, 130, 143, -signal.SIGINT, -signal.SIGTERM) and out.is_dir():
        lines = log.read_text(errors="replace").strip().splitlines() or [f"exit code {code}"]
        (out / ERROR).write_text(lines[-1].removeprefix("optimist: error: ") + "\n", encoding="utf-8")
