"""Sweeps on a real Ray cluster of two nodes: one node dies, the driver is stopped, and the table is the local one."""

import functools
import json
import signal
import subprocess
import sys
import time

import pytest

from optimist.cli.main import Terminated
from optimist.errors import ClusterError, ConfigError, MissingExtra
from optimist.sweep.folder import WorkFolder
from optimist.sweep.ray import _Sigterm, connect
from optimist.sweep.run import run_sweep, watch_room
from optimist.sweep.status import read_states
from tests.sweep.tiny import results, tiny_file, tiny_plan

ray = pytest.importorskip("ray")


def half_done(folder):
    """Run folders with a checkpoint and without an end."""
    saved = {path.parents[1] for path in folder.glob("runs/*/*/checkpoints/step-*")}
    return [path for path in saved if not (path / "summary.json").exists()]


def wait_for(what, driver, seconds=90.0):
    until = time.monotonic() + seconds
    while not what():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        yield cluster
    finally:
        cluster.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_node_dies_and_the_driver_is_stopped_and_the_table_is_the_local_one(cluster, tmp_path):
    file, out = tiny_file(tmp_path, steps=12_288, seeds=1), tmp_path / "cluster"
    command = [sys.executable, "-m", "optimist", "sweep", str(file), "-o", str(out), "--ray", cluster.address]
    doomed = cluster.add_node(num_cpus=1)

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        wait_for(lambda: half_done(out), driver)  # on the only node with a core
        cluster.remove_node(doomed, allow_graceful=False)  # at once: adding a node takes longer than the run
        cluster.add_node(num_cpus=1)
        wait_for(lambda: '"retry"' in (out / "events.jsonl").read_text(), driver)
        driver.send_signal(signal.SIGTERM)
        driver.communicate(timeout=60)
    assert driver.returncode == 143
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    (lost,) = [event for event in events if event["event"] == "retry"]
    assert lost["error"].startswith(("NodeDiedError", "WorkerCrashedError"))
    assert lost["step"] > 0
    assert not WorkFolder(out).driven

    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    states = read_states(WorkFolder(out), WorkFolder(out).read_plan("plan.json")["runs"])
    assert {state.state for state in states.values()} == {"finished"}

    local = [sys.executable, "-m", "optimist", "sweep", str(file), "-o", str(tmp_path / "local"), "--quiet"]
    assert subprocess.run(local, timeout=200).returncode == 0
    assert results(out) == results(tmp_path / "local")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1 ([Errno 111] Connection refused); start one with"),
        ("ray://127.0.0.1:1", "Connection refused"),
        ("nowhere", "--ray takes auto, HOST:PORT or ray://HOST:PORT, got 'nowhere'"),
        ("auto", "no Ray cluster on this machine; start one with `ray start --head`"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line(address, words, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # Whatever cluster this machine has, perhaps that of the test above in another process, `auto` does not find it.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", functools.cache(set))
    monkeypatch.setattr("ray._private.services.find_bootstrap_address", lambda folder: None)
    with pytest.raises(ClusterError) as error:
        connect(address)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sigterm_inside_ray_stays_one_and_its_handler_is_put_back():
    def before(number, frame):
        raise Terminated

    kept = signal.signal(signal.SIGTERM, before)
    try:
        handler = _Sigterm()
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        assert isinstance(handler.raised, Terminated)
        handler.put_back()
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, kept)


def test_a_run_that_no_node_has_room_for_is_told_of_once():
    class Small:
        def largest_node(self):
            return 2.0, 0.0

    said = []
    watch_room(Small(), tiny_plan(cpus=2).runs, said.append)
    assert said == []
    runs = tiny_plan(cpus=4).runs
    watch_room(Small(), runs, said.append)
    assert said == [f"{runs[0].name} needs 4 cores and 0 GPUs; no node has them yet, it will wait for one"]


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--ray needs ray: pip install 'optimist\[ray\]'"):
        connect("auto")


def test_on_a_cluster_a_run_does_not_choose_its_gpu(tmp_path):
    with pytest.raises(ConfigError, match=r"asks for device 'cuda:1'; on a cluster Ray chooses: use 'cuda'"):
        run_sweep(tiny_plan(settings={"device": "cuda:1"}), tmp_path, ray="auto")
