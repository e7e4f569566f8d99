"""The part of a run that happens in the network namespace: the model and the client.

Started as `python -m tests.realclients.namespace JOB OUTCOME`; both are JSON files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.realclients.clients import CLIENTS
from tests.realclients.history import JSON
from tests.realclients.model import Model, Request, serve
from tests.realclients.script import Script
from tests.realclients.wire import Answer, Wire

_SET_INTERFACE_FLAGS = 0x8914
_UP_AND_RUNNING = 0x41
WAIT_SECONDS = 60.0


class Job(msgspec.Struct):
    """A client to run, and the script of its model."""

    client: str
    argv: list[str]
    environment: dict[str, str]
    folder: str
    script: Script
    seconds: int
    snapshots: str = ""
    """A folder for copies of the project, one before each answer of the main thread; "" for none."""
    wait_for: str = ""
    """A file that a process of the client writes after the client ended; "" for none."""


class Outcome(msgspec.Struct):
    """The exit code and the output of the client, the requests to the model, and those that it refused."""

    code: int
    output: str
    requests: list[Request]
    errors: list[str]


class SnapshotModel(Model):
    """A model that copies the project before each answer of the main thread."""

    def __init__(self, wire: Wire, script: Script, project: Path, snapshots: Path) -> None:
        super().__init__(wire, script)
        self._project, self._snapshots = project, snapshots

    def _answer_conversation(self, path: str, body: JSON) -> Answer:
        before = self.turns_left()
        answer = super()._answer_conversation(path, body)
        if self.turns_left() < before:
            number = len(list(self._snapshots.glob("*")))
            shutil.copytree(self._project, self._snapshots / str(number), ignore=shutil.ignore_patterns(".git"))
        return answer


def run(job: Job) -> Outcome:
    """Run the client until it ends or its time is up."""
    wire = CLIENTS[job.client].wire
    if job.snapshots:
        model: Model = SnapshotModel(wire, job.script, Path(job.folder), Path(job.snapshots))
    else:
        model = Model(wire, job.script)
    server = serve(model)
    try:
        code, output = _run_client(job)
    finally:
        server.shutdown()
    return Outcome(code, output, model.requests, model.errors + model.unused_turns())


def _run_client(job: Job) -> tuple[int, str]:
    # A file, since a daemon that the client leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            job.argv,
            cwd=job.folder,
            env=job.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=job.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.write(f"\n(stopped after {job.seconds} s)".encode())
            code = -1
        _wait_for_file(job.wait_for)
        _kill_daemons()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _wait_for_file(path: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while path and not Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def _kill_daemons() -> None:
    """End the processes that the client left in this network namespace."""
    own = Path("/proc/self/ns/net").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "ns/net").readlink() == own and int(folder.name) != os.getpid():
                os.kill(int(folder.name), signal.SIGKILL)


def bring_up_loopback() -> None:
    """Bring up the only interface that a new network namespace has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def main(job_path: Path, outcome_path: Path) -> None:
    """Read the job, run it, write the outcome."""
    bring_up_loopback()
    job = msgspec.json.decode(job_path.read_bytes(), type=Job)
    outcome_path.write_bytes(msgspec.json.encode(run(job)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
