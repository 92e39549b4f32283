"""Host programs of many kinds with emulators in worker processes: the processes end with the host, not before."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from optimist.envs.atari.subprocess_emulators import SUPPORTED
from tests.envs.atari.helpers import is_alive, wait_until_gone

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="worker processes need Linux")

HOST = """
import ctypes, os, pathlib, resource, signal, socket, sys, time
from optimist.envs.atari.vector import AtariVectorEnv

print("made", flush=True)
if sys.argv[1] == "many files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    files = [open("/dev/null") for _ in range(1100)]
if sys.argv[1] == "socket timeout":
    socket.setdefaulttimeout(0.01)
if sys.argv[1] == "paths":
    sys.path.append(pathlib.Path("somewhere"))
if sys.argv[1] == "ignores children":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if sys.argv[1] == "subreaper":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans become its children, as in a container
envs = AtariVectorEnv(2, game="Pong", sticky=0.0, emulator="ale", num_workers=2, worker_type="processes")
envs.reset(seed=0)
if sys.argv[1] == "forked" and os.fork() == 0:
    time.sleep(40)  # longer than the test waits for the others
    os._exit(0)
supervisor = envs.emulators.supervisor.pid
print(supervisor, open(f"/proc/{supervisor}/task/{supervisor}/children").read(), flush=True)
if sys.argv[1] == "fork":
    if os.fork() == 0:
        sys.exit()  # releases its copies of all objects
    os.wait()
    envs.step(envs.action_space.sample())
    print("stepped", flush=True)
if sys.argv[1] == "ignores children":
    os.kill(int(open(f"/proc/{supervisor}/task/{supervisor}/children").read().split()[0]), signal.SIGKILL)
    try:
        envs.step(envs.action_space.sample())
    except Exception as error:
        print(error, flush=True)
if sys.argv[1] == "subreaper":
    envs.close()
    time.sleep(0.5)
    print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
if sys.argv[1] in ("wait", "forked"):
    time.sleep(60)
"""


@pytest.fixture
def host(tmp_path):
    script = tmp_path / "host.py"  # without `if __name__ == "__main__"`: it must not run a second time
    script.write_text(HOST)

    def start(kind):
        return subprocess.Popen(
            [sys.executable, script, kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


def test_script_runs_once_and_its_processes_end_with_it(host):
    stdout, stderr = host("end").communicate(timeout=60)
    first, pids = stdout.splitlines()
    assert (first, stderr) == ("made", "")
    assert wait_until_gone(map(int, pids.split()))


@pytest.mark.parametrize("kind", ["many files", "socket timeout", "paths"])
def test_worker_processes_start_in_any_kind_of_host(host, kind):
    stdout, stderr = host(kind).communicate(timeout=60)
    assert len(stdout.splitlines()) == 2
    assert stderr == ""


def test_killed_worker_is_reported_by_a_host_that_ignores_its_children(host):
    stdout, stderr = host("ignores children").communicate(timeout=60)
    assert stdout.splitlines()[-1] == "an emulator process of Pong exited unexpectedly: killed by signal 9"
    assert stderr == ""


def test_no_zombies_are_left(host):
    stdout, _ = host("subreaper").communicate(timeout=60)
    assert stdout.splitlines()[2:] == [""]


@pytest.mark.parametrize("kind", ["wait", "forked"])
def test_processes_end_when_their_host_is_killed(host, kind):
    """Also if a fork of the host keeps the connection open."""
    process = host(kind)
    assert process.stdout.readline() == "made\n"
    pids = list(map(int, process.stdout.readline().split()))
    assert all(map(is_alive, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until_gone(pids)
    process.stdout.close(), process.stderr.close()


def test_fork_of_the_host_does_not_stop_the_processes(host):
    stdout, stderr = host("fork").communicate(timeout=60)
    assert stdout.splitlines()[-1] == "stepped"
    assert stderr == ""
