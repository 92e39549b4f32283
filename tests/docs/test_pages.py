"""Pages are short and on the site, results have verdict, command and duration, and README is one click from answers."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
import yaml

from optimist.sweep.plan import read_plan

ROOT = Path(__file__).parents[2]
SITE = (ROOT / "mkdocs.yml").read_text("utf-8")
NAV = re.findall(r"(\S+\.md)$", SITE.split("\nnav:\n")[1], re.MULTILINE)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RESULTS = [page for page in PAGES if page.parent.name == "results" and page.stem != "index"]
README = (ROOT / "README.md").read_text("utf-8")
LONGEST = {"README.md": 70, "CHANGELOG.md": 40, "CONTRIBUTING.md": 400}
"""Page → most lines, where they are not 200; CONTRIBUTING.md holds the files of three recipes."""
COMMAND = re.compile(r"\*\*Command\*\*[^(]*\(([^)]+)\):\s+`([^`]+)`")
SPEC = importlib.util.spec_from_file_location("stage_site", ROOT / "tools" / "stage_site.py")
stage_site = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stage_site)


def name_of(page):
    return str(page.relative_to(ROOT))


def test_the_list_of_the_site_names_every_page_once():
    assert sorted(NAV) == sorted([*map(name_of, PAGES), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])


@pytest.mark.parametrize("name", [*map(name_of, PAGES), "README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_a_page_is_short(name):
    assert len((ROOT / name).read_text("utf-8").splitlines()) <= LONGEST.get(name, 200)


@pytest.mark.parametrize("page", RESULTS, ids=name_of)
def test_a_result_begins_with_its_verdict_and_has_a_table_a_command_and_a_duration(page):
    text = page.read_text("utf-8")
    assert re.match(r"# .+\n\n\*\*Verdict\.\*\* ", text)
    assert re.search(r"^\|---", text, re.MULTILINE)
    assert COMMAND.search(text), "expected **Command** (how long): `command`"
    durations = [about for about, _ in COMMAND.findall(text)]
    assert [about for about in durations if not re.search(r"\d+ (s|seconds|minutes?|hours?)\b", about)] == []


SWEEPS = sorted(
    (name_of(page), about, path)
    for page in [*RESULTS, ROOT / "README.md"]
    for about, command in COMMAND.findall(page.read_text("utf-8"))
    for path in re.findall(r"^optimist sweep (\S+) --out DIR$", command)
)


@pytest.mark.parametrize(("page", "about", "path"), SWEEPS)
def test_runs_and_duration_of_a_sweep_are_those_of_its_file(page, about, path):
    comment = " ".join(re.findall(r"^# ?(.*)$", (ROOT / path).read_text("utf-8"), re.MULTILINE))
    runs = len(read_plan(ROOT / path).runs)
    assert about.startswith(f"{runs} runs, "), f"{page}: {path} has {runs} runs"
    assert about.partition(", ")[2] in comment, f"{page}: the comment of {path} says another duration"


def test_many_sweeps_are_checked():
    assert len({path for _, _, path in SWEEPS}) >= 18


@pytest.mark.parametrize(
    ("question", "target"),
    [
        ("your own loop", "docs/integrations/own_loop.md"),
        ("What `percentile` and every other setting do", "docs/settings.md#opr"),
        ("Is OPR better than PPO? All results", "docs/results/index.md"),
        ("your own environment", "docs/your_environment.md"),
        ("on your cluster", "docs/scale.md"),
        ("DeepSea-12", "docs/results/deepsea.md"),  # which command made this table
    ],
)
def test_readme_answers_in_one_click(question, target):
    assert f"[{question}]({target})" in README
    answers = {
        "docs/settings.md#opr": "`opr.percentile`",
        "docs/results/index.md": "PPO 2 of 6",
        "docs/results/deepsea.md": "`optimist sweep experiments/deepsea.toml --out DIR`",
        "docs/scale.md": "#SBATCH --array",
        "docs/integrations/own_loop.md": "opr.observe(",
        "docs/your_environment.md": "gymnasium.register(",
    }
    assert answers[target] in (ROOT / target.partition("#")[0]).read_text("utf-8")


def test_staging_copies_pages_with_what_they_link_to(tmp_path):
    number = stage_site.stage(tmp_path / "pages")
    copied = {str(path.relative_to(tmp_path / "pages")) for path in (tmp_path / "pages").rglob("*") if path.is_file()}
    assert len(copied) == number
    assert copied >= {*NAV, "results/deepsea/runs.jsonl", "results/deepsea/table.md", "examples/own_loop.py"}
    assert not {path for path in copied if path.startswith(("tests/", "tools/"))}


def test_citation_names_the_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert citation["version"] == version
    assert "2603.06793" in json.dumps(citation["references"])
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


@pytest.mark.parametrize(
    "template", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem
)
def test_a_template_of_issues_has_a_name_and_a_purpose(template):
    _, head, body = template.read_text("utf-8").split("---\n", 2)
    assert {"name", "about", "labels"} <= yaml.safe_load(head).keys()
    assert len(body.strip().splitlines()) > 3
