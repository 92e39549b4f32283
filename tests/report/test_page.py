"""The page's list of problems, by kind and with their numbers."""

from optimist.report.page import MAX_OPEN, render_page
from optimist.report.runs import Problem
from optimist.report.study import Study


def missing_part(problems):
    study = Study([], problems)
    page = render_page("t", [], problems, study=study, meaning="", facts={}, version="1", time="now", command="")
    return page.split('<section id="missing">')[1].split("</section>")[0]


def test_page_without_problems_says_so():
    assert "the report uses everything it found" in missing_part([])


def test_every_problem_is_listed_and_counted_and_long_lists_are_collapsed():
    problems = [Problem(f"r{number}", "b is used", "repeated") for number in range(MAX_OPEN + 1)]
    page = missing_part([*problems, Problem("<d>", "damaged")])
    assert page.count("<li>") == MAX_OPEN + 2
    assert "<code>&lt;d&gt;</code>: damaged" in page
    assert page.count("<details>") == page.count("<details open>") == 1
    assert f"<details><summary><b>Repeated runs: {MAX_OPEN + 1}</b>" in page
    assert "<b>Other: 1</b>" in page
