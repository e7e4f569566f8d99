"""Commands that are ended by a signal while they start or write."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clew.io.signals import exit_on_signal

# Waits once a file below the folder of the first argument is complete but has not got its name yet.
PROGRAM = """
import os, sys, time
from clew.cli.main import run

folder, replace = sys.argv.pop(1), os.replace

def wait(old, new):
    if os.fspath(new).startswith(folder):
        print("waits", flush=True)
        for _ in range(600):
            time.sleep(0.1)
    replace(old, new)

os.replace = wait
run()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "words",
    [
        ["bundle", "create", "@last", "-o", "x.tar"],
        ["export", "@last", "-o", "x.html"],
        ["export", "@last", "-o", "x.json"],
        ["export", "@last", "--format", "atif", "-o", "x.json"],
        ["export", "@last", "--format", "otel", "-o", "x.jsonl"],
        ["export", "--format", "hf", "-o", "x"],
        ["export", "--format", "markdown", "-o", "x"],
        ["export", "--site", "x", "--agent", "gemini"],
    ],
    ids=" ".join,
)
def test_no_file_is_left(words: list[str], number: signal.Signals, synced_demo: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "--home", str(synced_demo), *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"waits\n", process.stderr.read()
        assert list(tmp_path.rglob(".*"))
        if number == signal.SIGHUP:
            os.killpg(process.pid, number)  # as a closed terminal does: to all processes
        else:
            process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert b"Traceback" not in process.stderr.read()
    # Pages of a site that are complete may stay.
    assert list(tmp_path.rglob(".*")) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_second_signal_ends_a_process_that_went_on_but_does_not_interrupt_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with exit_on_signal():
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGHUP)
        assert ended.value.code == 128 + signal.SIGHUP
        signal.raise_signal(signal.SIGHUP)
        now += 3
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# Interrupts itself while the first module of another package is loaded.
STARTING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from clew.__main__ import run
run()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_an_interrupt_at_the_start_prints_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", STARTING, "--version"], capture_output=True, timeout=60, check=False)
    # The shell calls this exit code 130.
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")
