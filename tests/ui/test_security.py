import hashlib

import pytest

from optimist.ui.security import Guard, is_loopback
from tests.report.fake_runs import write_run
from tests.ui.conftest import serving

PAGES = (
    "/runs",
    "/runs/table",
    "/runs/curves",
    "/runs/new",
    "/memory?run=fake-opr-0",
    "/report",
    "/cage2?source=stored",
)


@pytest.fixture
def small(tmp_path):
    write_run(tmp_path / "fake-opr-0", "deepsea/opr", 0)
    return tmp_path


def test_addresses_of_this_machine_are_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.0.3", "example.org", "localhost.example.org")))


def test_a_foreign_host_header_is_refused_in_one_line(small):
    with serving(small) as site:
        for host in ("example.org", f"example.org:{site.port}", "127.0.0.1.example.org", "[::1", ""):
            answer = site.get("/runs", Host=host)
            assert answer.status == 421
            assert answer.text.count("\n") == 1
        assert site.get("/runs", Host=f"localhost:{site.port}").status == 200


def test_every_answer_allows_own_content_only_and_pages_have_no_inline_code(small):
    with serving(small) as site:
        for path in (*PAGES, "/nowhere", "/static/ui.js"):
            answer = site.get(path)
            assert answer.headers["content-security-policy"].startswith("default-src 'self';"), path
            assert answer.headers["x-content-type-options"] == "nosniff"
            if path != "/static/ui.js":
                text = answer.text
                assert " style=" not in text
                assert " onclick=" not in text
                assert "<style" not in text
                assert all('type="application/json"' in part or 'src="' in part for part in text.split("<script")[1:])


def test_a_post_needs_the_token_of_this_start_and_an_origin_of_our_own(small):
    with serving(small, control=True) as site:
        token, own = site.guard.form_token, site.address
        for headers in ({}, {"Origin": own}, {"X_Token": token}, {"X_Token": token, "Origin": "http://example.org"},
                        {"X_Token": "wrong", "Origin": own}, {"X_Token": token, "Origin": "null"}):  # fmt: skip
            answer = site.request("POST", "/runs/stop", "run=fake-opr-0", **headers)
            assert answer.status == 403, headers
            assert answer.text.count("\n") == 1
        answer = site.request("POST", "/runs/stop", "run=fake-opr-0", X_Token=token, Origin=own)
        assert "is not running on this machine" in answer.text


def test_posts_of_control_are_refused_without_allow_control(small):
    with serving(small) as site:
        headers = {"X_Token": site.guard.form_token, "Origin": site.address}
        for verb in ("start", "stop", "resume"):
            assert "--allow-control" in site.request("POST", f"/runs/{verb}", "run=fake-opr-0", **headers).text


def test_a_get_cannot_stop_a_run(small):
    with serving(small, control=True) as site:
        assert site.get("/runs/stop?run=fake-opr-0").status == 405


def test_another_address_asks_for_the_token_of_the_command_line(small):
    guard = Guard("0.0.0.0", "a token of sixteen letters")
    with serving(small, guard=guard) as site:
        assert site.get("/runs").headers["location"] == "/login"
        wrong = site.request("POST", "/login", "token=wrong", Origin=site.address)
        assert wrong.status == 401
        assert "token is wrong" in wrong.text
        right = site.request("POST", "/login", "token=a+token+of+sixteen+letters", Origin=site.address)
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert site.get("/runs", Cookie=cookie.split(";")[0]).status == 200
        assert site.get("/runs", Cookie="optimist-token=wrong").status == 303


@pytest.mark.parametrize(
    "name", ["../secret", "/etc", "..%2f..", "linked", "fake-opr-0/..", "fake-opr-0/checkpoints", "%00"]
)
def test_no_name_leads_out_of_the_runs_folder(small, name):
    outside = write_run(small.parent / f"{small.name}-out", "deepsea/opr", 3)
    (small / "linked").symlink_to(outside)
    with serving(small) as site:
        for path in (f"/memory?run={name}", f"/memory/film?run={name}&at=1&episode=x", f"/runs/curves?runs={name}"):
            answer = site.get(path)
            assert "Traceback" not in answer.text
            assert "no run" in answer.text or answer.text == '{"figures":[],"running":false}'
        assert site.get(f"/static/{name}").status == 404


def test_reading_every_page_changes_no_file(small):
    def state():
        return {
            path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
            for path in sorted(small.rglob("*"))
        }

    before = state()
    with serving(small, control=True) as site:
        for path in PAGES:
            site.get(path)
    assert state() == before


def test_a_request_that_is_too_large_is_refused(small):
    with serving(small) as site:
        answer = site.request("POST", "/login", "x" * 100_000, Origin=site.address)
        assert answer.status == 413
