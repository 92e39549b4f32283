"""Programs of all kinds that have games played in processes: those end with them, and not before."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from optimist.envs.atari.apart import CAN_SHARE
from tests.envs.atari.playing import is_alive, wait_until_gone

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="memory that processes share is Linux's")

HOST = """
import ctypes, os, pathlib, resource, signal, socket, sys, time
from optimist.envs.atari import AtariVectorEnv

print("made", flush=True)
if sys.argv[1] == "many files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    files = [open("/dev/null") for _ in range(1100)]
if sys.argv[1] == "impatient":
    socket.setdefaulttimeout(0.01)
if sys.argv[1] == "paths":
    sys.path.append(pathlib.Path("somewhere"))
if sys.argv[1] == "careless":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if sys.argv[1] == "buries nobody":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans come here, as to the first of a container
envs = AtariVectorEnv(2, game="Pong", sticky=0.0, lanes=2, workers="processes")
envs.reset(seed=0)
if sys.argv[1] == "forked" and os.fork() == 0:
    time.sleep(40)  # longer than anybody waits for the others to go
    os._exit(0)
leader = envs.players.leader.pid
print(leader, open(f"/proc/{leader}/task/{leader}/children").read(), flush=True)
if sys.argv[1] == "fork":
    if os.fork() == 0:
        sys.exit()  # its own copies of everything are let go of here
    os.wait()
    envs.step(envs.action_space.sample())
    print("played", flush=True)
if sys.argv[1] == "careless":
    os.kill(int(open(f"/proc/{leader}/task/{leader}/children").read().split()[0]), signal.SIGKILL)
    try:
        envs.step(envs.action_space.sample())
    except Exception as error:
        print(error, flush=True)
if sys.argv[1] == "buries nobody":
    envs.close()
    time.sleep(0.5)
    print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
if sys.argv[1] in ("wait", "forked"):
    time.sleep(60)
"""


@pytest.fixture
def host(tmp_path):
    script = tmp_path / "host.py"  # no `if __name__ == "__main__"`: it must not be run a second time
    script.write_text(HOST)

    def begin(how):
        return subprocess.Popen(
            [sys.executable, script, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return begin


def test_a_script_is_run_once_and_its_processes_end_with_it(host):
    said, complained = host("end").communicate(timeout=60)
    first, pids = said.splitlines()
    assert (first, complained) == ("made", "")
    assert wait_until_gone(map(int, pids.split()))


@pytest.mark.parametrize("kind", ["many files", "impatient", "paths"])
def test_any_kind_of_host_can_have_games_played(host, kind):
    said, complained = host(kind).communicate(timeout=60)
    assert len(said.splitlines()) == 2
    assert complained == ""


def test_a_player_that_is_killed_is_missed_by_a_host_that_ignores_its_children(host):
    said, complained = host("careless").communicate(timeout=60)
    assert said.splitlines()[-1] == "the process that plays Pong ended: killed by signal 9"
    assert complained == ""


def test_nobody_is_left_unburied(host):
    said, _ = host("buries nobody").communicate(timeout=60)
    assert said.splitlines()[2:] == [""]


@pytest.mark.parametrize("how", ["wait", "forked"])
def test_a_host_that_is_killed_takes_its_processes_along(host, how):
    """Also where a fork of it lives on, and with it the line."""
    process = host(how)
    assert process.stdout.readline() == "made\n"
    pids = list(map(int, process.stdout.readline().split()))
    assert all(map(is_alive, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until_gone(pids)
    process.stdout.close(), process.stderr.close()


def test_a_fork_of_the_host_does_not_end_what_is_not_its_own(host):
    said, complained = host("fork").communicate(timeout=60)
    assert said.splitlines()[-1] == "played"
    assert complained == ""
