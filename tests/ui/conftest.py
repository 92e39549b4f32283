"""Run folders of every kind, and a server of them, for the tests of the page."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="these tests need the extra ui")
pytest.importorskip("uvicorn", reason="these tests need the extra ui")

import uvicorn

from optimist import train
from optimist.ui.app import make_app
from optimist.ui.folders import RunsFolder
from optimist.ui.security import Guard
from tests.report.fake_runs import write_run


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Short real trainings with memories: DeepSea, CartPole and CAGE 2."""
    folder = tmp_path_factory.mktemp("trained")
    small = {"progress": False, "tensorboard": False, "final_episodes": 0}
    train("deepsea/opr", size=4, seed=1, total_steps=4_096, checkpoint_every=2_048, out=folder / "deepsea-opr", **small)
    train("gym/opr", seed=1, total_steps=2_048, out=folder / "cartpole-opr", **small)
    train("cage2/cardiff-opr", seed=1, total_steps=6_000, out=folder / "cage2-opr", **small)
    return folder


@pytest.fixture
def runs(tmp_path, trained):
    """A folder with runs of every status, the trained ones included."""
    for name in ("deepsea-opr", "cartpole-opr", "cage2-opr"):
        shutil.copytree(trained / name, tmp_path / name)
    for seed in range(6):
        for method in ("ppo", "opr"):
            score = (0.99 if method == "opr" else 0.2) - 0.01 * seed
            write_run(tmp_path / f"fake-{method}-{seed}", f"deepsea/{method}", seed, score, size=12)
    write_run(tmp_path / "unfinished", "deepsea/opr", 9, finished=False, size=12)
    broken = write_run(tmp_path / "broken", "deepsea/opr", 8)
    (broken / "config.toml").write_text("seed = [")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    write_run(outside, "deepsea/opr", 7)
    os.symlink(outside, tmp_path / "linked")
    return tmp_path


@contextmanager
def serving(folder, *, control=False, guard=None):
    """A server of a folder on a free port: `address`, `port`, `guard`, and `get` and `post`."""
    guard = guard or Guard()
    listener = socket.create_server(("127.0.0.1", 0))
    app = make_app(RunsFolder(folder), guard, control=control)
    config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = listener.getsockname()[1]

    def request(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return SimpleNamespace(status=answer.status, headers=answer.headers, text=text.decode("utf-8", "replace"))

    yield SimpleNamespace(
        address=f"http://127.0.0.1:{port}", port=port, guard=guard, folder=folder, request=request,
        get=lambda path, **headers: request("GET", path, **headers),
    )  # fmt: skip
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture
def site(runs):
    """A read-only server of the runs."""
    with serving(runs) as found:
        yield found
