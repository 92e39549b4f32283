"""What is missing is listed by kind, and counted from the lists."""

from optimist.report.missing import SHORT, callout, missing_section
from optimist.report.runs import Problem


def test_nothing_missing_is_said_once():
    assert callout([]) == ""
    assert "everything found could be used" in missing_section([])


def test_every_problem_is_listed_and_counted_and_long_lists_are_folded_up():
    problems = [Problem(f"r{number}", "b is taken", "repeated") for number in range(SHORT + 1)]
    problems.append(Problem("<d>", "damaged"))
    page = missing_section(problems)
    assert callout(problems).endswith(f"repeated runs: {SHORT + 1}, other: 1.</p>")
    assert page.count("<li>") == SHORT + 2
    assert "<code>&lt;d&gt;</code>: damaged" in page
    assert page.count("<details>") == page.count("<details open>") == 1
    assert f"<details><summary><b>Repeated runs: {SHORT + 1}</b>" in page
