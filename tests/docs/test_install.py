"""`make demo` installs a PyTorch without CUDA: the options of tools/torch_index.py, and what pip makes of them."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "torch_index.py"
PUBLIC = re.search(r"^TORCH_INDEX \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
CUDA = "Requires-Dist: nvidia-cublas==13.0\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment that has pip and no torch."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


@pytest.fixture
def serve(tmp_path):
    """`serve(version, requires)` starts a package index that has one torch, and returns its address."""
    servers = []

    def start(version, requires=""):
        folder = tmp_path / f"index-{len(servers)}"
        write_wheel(folder / "torch", version, requires)
        handler = functools.partial(Quiet, directory=str(folder))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def write_wheel(folder, version, requires):
    """Write a wheel of a torch without content."""
    folder.mkdir(parents=True)
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{requires}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def pip_with(url):
    """The environment of a pip whose only index is at this address."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": url, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def options_of(python, url, environment):
    result = subprocess.run(
        [python, SCRIPT, url, ROOT / "constraints.txt"], capture_output=True, text=True, env=environment, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split(), result.stderr


def version_chosen(python, options, environment):
    """The torch that pip would install with the options of the Makefile."""
    constraint = ["--constraint", str(ROOT / "constraints.txt")]
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--report", "-", *constraint]
    result = subprocess.run([*command, *options, "torch"], capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["install"][0]["metadata"]["version"]


def test_torch_is_pinned():
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()


def test_a_default_wheel_with_cuda_is_replaced_by_one_of_the_index(python, serve):
    url, environment = serve("2.13.0+cpu"), pip_with(serve("2.13.0", CUDA))
    options, said = options_of(python, url, environment)
    assert options == ["--extra-index-url", url]
    assert said == f"torch: a CPU wheel from {url}; for CUDA: make TORCH_INDEX=\n"
    assert version_chosen(python, [], environment) == "2.13.0"
    assert version_chosen(python, options, environment) == "2.13.0+cpu"


@pytest.mark.parametrize("requires", ["", "Requires-Dist: nvidia-cublas==13.0; sys_platform == 'nowhere'\n"])
def test_a_default_wheel_without_cuda_needs_no_index(requires, python, serve):
    options, said = options_of(python, "http://127.0.0.1:1", pip_with(serve("2.13.0", requires)))
    assert (options, said) == ([], "torch: 2.13.0, a CPU wheel\n")


def test_an_empty_variable_keeps_the_default_wheel(python, serve):
    options, said = options_of(python, "", pip_with(serve("2.13.0", CUDA)))
    assert options == []
    assert "TORCH_INDEX is empty" in said


def test_an_index_that_does_not_answer_costs_seconds_and_breaks_nothing(python, serve):
    environment = pip_with(serve("2.13.0", CUDA))
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        options, said = options_of(python, url, environment)
        assert time.monotonic() - began < 25  # 5 of them for the index, the rest for pip on a busy machine
    assert options == []
    assert said == f"torch: 2.13.0 with 5 GB of CUDA libraries, because {url} cannot be reached\n"


def test_an_installed_torch_stays():
    options, said = options_of(sys.executable, PUBLIC, os.environ)
    assert (options, said) == ([], "torch: is installed\n")


def test_make_passes_the_options_to_pip():
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo", "TORCH_INDEX=http://one"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    (line,) = re.findall(r"pip install .*(?:\\\n.*)*'\.\[", shown)
    assert "$(.venv/bin/python tools/torch_index.py 'http://one')" in line


def test_the_public_index_has_the_pinned_version(python, serve):
    try:
        urllib.request.urlopen(f"{PUBLIC}/torch/", timeout=5).close()
    except OSError as error:
        pytest.skip(f"{PUBLIC} cannot be reached from here: {error}")
    environment = pip_with(serve("2.13.0", CUDA))
    options, _ = options_of(python, PUBLIC, environment)
    assert version_chosen(python, options, environment) == "2.13.0+cpu"
