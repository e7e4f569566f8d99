"""The part of a run that happens in the network namespace: the model and the client, alone with each other.

Started as `python -m tests.realclients.inside JOB OUTCOME`; both are JSON files.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.realclients.clients import CLIENTS
from tests.realclients.model import Model, Request, serve
from tests.realclients.script import Script

_SET_FLAGS = 0x8914
_UP_AND_RUNNING = 0x41


class Job(msgspec.Struct):
    """A client to run, and what its model will say."""

    client: str
    argv: list[str]
    environment: dict[str, str]
    folder: str
    script: Script
    seconds: int


class Outcome(msgspec.Struct):
    """What came of it."""

    code: int
    output: str
    requests: list[Request]
    misfits: list[str]


def raise_loopback() -> None:
    """Bring up the only interface that a new network namespace has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def run(job: Job) -> Outcome:
    """Run the client to its end, or until time is up."""
    model = Model(CLIENTS[job.client].wire, job.script)
    server = serve(model)
    try:
        code, output = _run_client(job)
    finally:
        server.shutdown()
    return Outcome(code, output, model.requests, model.misfits + model.unsaid())


def _run_client(job: Job) -> tuple[int, str]:
    process = subprocess.Popen(
        job.argv,
        cwd=job.folder,
        env=job.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=job.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return -1, output.decode(errors="replace") + f"\n(stopped after {job.seconds} s)"
    return process.returncode, output.decode(errors="replace")


def main(job_path: Path, outcome_path: Path) -> None:
    """Read the job, do it, write the outcome."""
    raise_loopback()
    job = msgspec.json.decode(job_path.read_bytes(), type=Job)
    outcome_path.write_bytes(msgspec.json.encode(run(job)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
