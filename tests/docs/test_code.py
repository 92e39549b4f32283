"""Every Python block of the pages runs, and every command on them exists with its flags."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cage2.cli import main as cage2
from optimist.cli.flags import flag_names
from optimist.cli.main import main as optimist
from optimist.presets import all_presets, get_preset

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ELSEWHERE = {
    "CONTRIBUTING.md": "tests/docs/test_recipes.py",
    "docs/integrations": "tests/docs/test_integrations.py",
    "docs/environments/cage2": "tests/envs/cage2/test_docs_page.py",
    "docs/environments/score_your_agent.md": "tests/envs/cage2/test_docs_page.py",
}
"""Pages, or folders of pages, whose Python blocks another test runs."""
SHORTER = {"README.md": [("40_000", "4_096"), ("100_000", "4_096")]}
"""Replacements that make a page's blocks take seconds."""
FAMILIES = {preset.name.split("/")[0] for preset in all_presets()}
ANY_PRESET = ["deepsea/ppo-opr-sil", "atari/fast", "gym/rainbow"]
"""Presets whose flags a command for any PRESET may have."""
SUBCOMMANDS = {
    "bench": ("atari", "cage2"),
    "cage2": ("score", "verify"),
    "demo": ("cage2", "deepsea"),
    "sweep": ("status", "table"),
}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"^<!-- source: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    """The blocks of a page in these languages, without those that are copied from a source file."""
    text = SOURCE.sub("", page.read_text("utf-8"))
    return [body for _, language, body in BLOCK.findall(text) if language in languages]


def elsewhere(page):
    return next((test for name, test in ELSEWHERE.items() if name_of(page).startswith(name)), None)


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if not elsewhere(page)], ids=name_of)
def test_python_blocks_run_in_order_and_print_what_their_comments_say(page, tmp_path):
    code = []
    for block in blocks(page, "python"):
        if file := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / file[1]).write_text(block)
        else:
            code.append(block)
    text = "\n".join(code)
    for long, short in SHORTER.get(name_of(page), []):
        text = text.replace(long, short)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    expected = re.findall(r"print\(.*\)  # ([^a-z].*)", text)  # a comment that begins with a word explains
    assert [line for line in expected if line not in result.stdout.splitlines()] == []


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if elsewhere(page)], ids=name_of)
def test_other_python_blocks_have_a_test_that_names_their_page(page):
    test = (ROOT / elsewhere(page)).read_text("utf-8")
    assert page.name in test or page.stem in test


@pytest.mark.parametrize("page", [page for page in PAGES if SOURCE.search(page.read_text("utf-8"))], ids=name_of)
def test_blocks_from_a_source_file_are_still_in_it(page):
    """In order, with `...` for what is left out; line breaks may differ."""
    for path, block in SOURCE.findall(page.read_text("utf-8")):
        source, place = dense((ROOT / path).read_text("utf-8")), 0
        for part in re.split(r"^ *\.\.\.\n", block, flags=re.MULTILINE):
            place = source.find(dense(part), place)
            assert place >= 0, f"{path} no longer has, in this order:\n{part}"


def dense(code):
    """The code without white space, and without the comma that only a call of several lines has at its end."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s", "", code))


def commands():
    """Every command in a shell block, and every whole command between backticks, with its page."""
    starts = ("optimist ", "cage2 ", "python ", "pip ", "make", "ray ", "sbatch ")
    for page in PAGES:
        text = page.read_text("utf-8")
        lines = [
            line
            for block in blocks(page, "bash", "")
            for line in re.sub(r"\\\n\s*", " ", block).splitlines()
        ]  # fmt: skip
        outside = BLOCK.sub("", text)
        inline = [code for code in re.findall(r"`([^`\n]+)`", outside) if " " in code]
        for line in [*lines, *inline]:
            command = re.sub(r"\s+#.*$", "", line).strip().removeprefix(".venv/bin/")
            if command.startswith(starts) and "│" not in command:
                yield name_of(page), command


COMMANDS = sorted(set(commands()))


@functools.cache
def help_of(*words, main=optimist):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return printed.getvalue()


@functools.cache
def flags_of_train(preset):
    """Flags of `optimist train`, of the preset's keywords and of its settings."""
    found = set(re.findall(r"--[\w-]+", help_of("train", preset)))
    found |= {f"--{parameter.name.replace('_', '-')}" for parameter in get_preset(preset).parameters}
    found |= {f"--no-{parameter.name}" for parameter in get_preset(preset).parameters}
    return found | set(flag_names(get_preset(preset)()))


def unknown_flags(words):
    """The flags of an `optimist` command that it does not have."""
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    if words[0] == "train":
        names = [words[1]] if len(words) > 1 and re.fullmatch(r"\w+/[\w-]+", words[1]) else ANY_PRESET
        if names[0].split("/")[0] not in FAMILIES:
            return []  # a preset of the reader's own package
        known = set().union(*map(flags_of_train, names)) | {"--help"}
        return [flag for flag in flags if flag not in known and not flag.startswith("--env.kwargs.")]
    path = words[: 2 if words[1:2] and words[1] in SUBCOMMANDS.get(words[0], ()) else 1]
    known = set(re.findall(r"--[\w-]+", help_of(*path)))
    return [flag for flag in flags if flag not in known]


def of_kind(word):
    return pytest.mark.parametrize(("page", "command"), [pair for pair in COMMANDS if pair[1].split()[0] == word])


@of_kind("optimist")
def test_a_command_of_the_program_exists_with_its_flags(page, command):
    words = shlex.split(command.split("|")[0])[1:]
    if words[0] in ("COMMAND", "--version", "--help"):
        return
    assert help_of(words[0]).startswith("usage: "), f"{page}: no command {words[0]}"
    assert unknown_flags(words) == [], f"{page}: {command}"
    if words[0] == "train" and re.fullmatch(rf"({'|'.join(FAMILIES)})/[\w-]+", words[1]):
        get_preset(words[1])
    for word in words:
        if re.match(r"(experiments|examples|tests|results)/", word) and "NAME" not in word:
            assert list(ROOT.glob(word)), f"{page}: {command}: no file {word}"


@of_kind("cage2")
def test_a_command_of_cage2_exists_with_its_flags(page, command):
    words = shlex.split(command)[1:]
    shown = help_of(words[0], main=cage2)
    assert shown.startswith(f"usage: cage2 {words[0]}"), f"{page}: no command {words[0]}"
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [flag for flag in flags if flag not in re.findall(r"--[\w-]+", shown)] == [], f"{page}: {command}"


@of_kind("python")
def test_a_script_or_module_exists_with_its_flags(page, command):
    words = shlex.split(command)[1:]
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]), f"{page}: no module {words[1]}"
        files = [word for word in words[2:] if word.startswith("tests/")]
        assert [word for word in files if not (ROOT / word).exists()] == []
        return
    script = ROOT / words[0]
    assert script.is_file(), f"{page}: no script {words[0]}"
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    source = script.read_text("utf-8")
    assert [flag for flag in flags if f'"{flag}"' not in source] == [], f"{page}: {command}"
    paths = [word for word in words[1:] if re.match(r"(experiments|examples)/", word)]
    assert [word for word in paths if not (ROOT / word).exists()] == []


@of_kind("make")
def test_a_target_of_make_exists(page, command):
    words = command.split()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) [?:]?=", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for word in words[1:]:
        assert word.partition("=")[0] in (variables if "=" in word else targets), f"{page}: {command}"


@of_kind("pip")
def test_an_installation_names_extras_that_exist_and_no_package_index(page, command):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert command.startswith("pip install ")
    for word in shlex.split(command)[2:]:
        assert not word.startswith("optimist"), f"{page}: {command}: expected a line that works in a clone"
        for extra in re.findall(r"^\.\[(.*)\]$", word):
            assert set(extra.split(",")) <= set(extras), f"{page}: {command}"


def test_the_job_array_trains_a_run_and_resumes_it(tmp_path):
    (script,) = (block for block in blocks(ROOT / "docs" / "scale.md", "bash") if block.startswith("#!/bin/bash"))
    (tmp_path / "optimist").write_text(f'#!/bin/sh\nexec {sys.executable} -m optimist "$@"\n')
    (tmp_path / "optimist").chmod(0o755)
    assert "--total-steps 200000" in script
    (tmp_path / "array.sh").write_text(script.replace("--total-steps 200000", "--total-steps 2048"))
    job = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "3"}
    said = []
    for _ in ("first", "again"):
        result = subprocess.run(
            ["bash", "array.sh"], cwd=tmp_path, env=job, capture_output=True, text=True, timeout=120
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        said.append(result.stdout + result.stderr)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["deepsea-opr-1"]
    assert "this run is finished" in said[1]


def test_commands_of_every_kind_are_found():
    assert len(COMMANDS) > 100
    assert {command.split()[0] for _, command in COMMANDS} >= {"optimist", "cage2", "python", "pip", "make"}


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("optimist train deepsea/opr --opr.bc-coeff 0.1", ["--opr.bc-coeff"]),
        ("optimist train deepsea/opr --opr.bc-coef 0.1 --size 8", []),
        ("optimist sweep FILE.toml --outt DIR", ["--outt"]),
        ("optimist cage2 score best --rule both", ["--rule"]),
        ("optimist bench atari --game Pong --gpu", ["--gpu"]),
    ],
)
def test_a_wrong_flag_is_found(command, unknown):
    assert unknown_flags(shlex.split(command)[1:]) == unknown
