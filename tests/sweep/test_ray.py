"""Sweeps on a real Ray cluster: a node dies, the driver is stopped, and the table equals the local one."""

import functools
import json
import signal
import subprocess
import sys
import time

import pytest

from optimist.cli.main import Terminated
from optimist.errors import ClusterError, ConfigError, MissingExtra
from optimist.sweep.driver import run_sweep, warn_about_room
from optimist.sweep.folder import SweepFolder
from optimist.sweep.progress import read_states
from optimist.sweep.ray import _SigtermRecorder, connect
from tests.sweep.tiny import results, tiny_file, tiny_plan

ray = pytest.importorskip("ray")


def unfinished(folder):
    """Run folders with a checkpoint and no summary."""
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
def test_after_a_dead_node_and_a_stopped_driver_the_table_equals_the_local_one(cluster, tmp_path):
    file, out = tiny_file(tmp_path, steps=12_288, seeds=1), tmp_path / "cluster"
    command = [sys.executable, "-m", "optimist", "sweep", str(file), "-o", str(out), "--ray", cluster.address]
    lost_node = cluster.add_node(num_cpus=1)

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        wait_for(lambda: unfinished(out), driver)  # on the only node with a core
        cluster.remove_node(lost_node, allow_graceful=False)  # at once: adding a node takes longer than the run
        cluster.add_node(num_cpus=1)
        wait_for(lambda: '"retry"' in (out / "events.jsonl").read_text(), driver)
        driver.send_signal(signal.SIGTERM)
        driver.communicate(timeout=60)
    assert driver.returncode == 143
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    (lost,) = [event for event in events if event["event"] == "retry"]
    assert lost["error"].startswith(("NodeDiedError", "WorkerCrashedError"))
    assert lost["step"] > 0
    assert not SweepFolder(out).is_locked

    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    states = read_states(SweepFolder(out), SweepFolder(out).read_plan()["runs"])
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
def test_a_missing_cluster_is_reported_in_one_line(address, words, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # `auto` must not find the cluster of another test process.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", functools.cache(set))
    monkeypatch.setattr("ray._private.services.find_bootstrap_address", lambda folder: None)
    with pytest.raises(ClusterError) as error:
        connect(address)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sigterm_inside_ray_is_kept_and_its_handler_restored():
    def before(number, frame):
        raise Terminated

    kept = signal.signal(signal.SIGTERM, before)
    try:
        handler = _SigtermRecorder()
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        assert isinstance(handler.raised, Terminated)
        handler.restore()
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, kept)


def test_a_run_too_large_for_every_node_is_reported_once():
    class Small:
        def largest_node(self):
            return 2.0, 0.0

    shown = []
    warn_about_room(Small(), tiny_plan(cpus=2).runs, shown.append)
    assert shown == []
    runs = tiny_plan(cpus=4).runs
    warn_about_room(Small(), runs, shown.append)
    assert shown == [f"{runs[0].name} needs 4 cores and 0 GPUs; it waits until a node has them"]


def test_without_ray_the_error_names_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--ray needs ray: pip install '.\[ray\]'"):
        connect("auto")


def test_on_a_cluster_a_run_cannot_choose_its_gpu(tmp_path):
    with pytest.raises(ConfigError, match=r"asks for device 'cuda:1'; Ray chooses the GPU: use 'cuda'"):
        run_sweep(tiny_plan(settings={"device": "cuda:1"}), tmp_path, ray="auto")
