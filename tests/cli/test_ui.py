import re
import signal
import socket
import subprocess
import sys

import pytest

from optimist.cli.main import main

pytest.importorskip("uvicorn", reason="these tests need the extra ui")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere"], "RUNS_DIR does not exist: nowhere/"), ([".", "--host", "0.0.0.0"], "--host 0.0.0.0 needs --token"),
     ([".", "--port", "99999"], "--port must be 0 to 65535"), ([".", "--token", "short"], "at least 16 characters"),
     ([".", "--host", "no.such.host.example", "--token", "x" * 16], "cannot serve on no.such.host.example")],
)  # fmt: skip
def test_wrong_arguments_give_a_one_line_error(arguments, words, capsys):
    assert main(["ui", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_next_free_port_is_used_and_said_and_a_missing_browser_too(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = "import sys, webbrowser; webbrowser.open = lambda _: False; from optimist.cli.main import main; "
        command = [sys.executable, "-c", f"{code}sys.exit(main(['ui', {str(tmp_path)!r}, '--port', '{port}']))"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            chosen = int(re.fullmatch(rf"Port {port} is in use; serving on http://127.0.0.1:(\d+)/ .*\n", line)[1])
            assert chosen > port
            assert process.stderr.readline() == f"No browser found; open http://127.0.0.1:{chosen}/\n"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode in (0, 130)
