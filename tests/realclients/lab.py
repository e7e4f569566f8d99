"""Runs the real clients offline.

A run has a network namespace with nothing but loopback, an empty environment, and a home and a project folder that the
caller names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.realclients.client import Client
from tests.realclients.history import Entry
from tests.realclients.install import ROOT, client_folder, install_failure
from tests.realclients.namespace import Job, Outcome
from tests.realclients.script import Script

RUN_SECONDS = 150


@dataclass(frozen=True)
class Run:
    """A finished run of a client."""

    client: Client
    outcome: Outcome

    def check(self) -> Run:
        """Fail unless the client ended with exit code 0 and the model accepted every request."""
        report = "\n".join([f"exit {self.outcome.code}", *self.outcome.errors, self.outcome.output[-4000:]])
        assert self.outcome.code == 0 and not self.outcome.errors, report
        return self

    @property
    def output(self) -> str:
        return self.outcome.output

    def history(self, thread: str = "") -> list[Entry]:
        """The history in the first request of a thread: "" for the main one, or the task of a sub-agent."""
        for request in self.outcome.requests:
            if request.thread == thread:
                return self.client.wire.decode_history(request.body)
        raise AssertionError(f"{self.client.name} sent no request in thread {thread!r}:\n{self.output}")


def run(
    client: Client,
    home: Path,
    project: Path,
    prompt: str,
    script: Script,
    *,
    session: str | None = None,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    snapshots: Path | None = None,
    arguments: Sequence[str] = (),
    wait_for: Path | None = None,
) -> Run:
    """Run a client once, on a new session or on one to resume. Skip the test where the client cannot be run.

    With `arguments` it is run with these, instead of those for the prompt and the session. With `snapshots` the project
    is copied there before each answer of the model. With `wait_for` the run ends when that file exists; then
    all processes that the client left behind are ended.
    """
    require(client)
    home.mkdir(parents=True, exist_ok=True)
    client.write_settings(home)
    binary = next(client_folder(client).glob(client.binary))
    job = Job(
        client=client.name,
        argv=[str(binary), *options, *(arguments or client.arguments(prompt, session, home))],
        environment={"PATH": _search_path(client), "HOME": str(home), **client.environment, **(environment or {})},
        folder=str(project),
        script=script,
        seconds=RUN_SECONDS,
        snapshots=str(snapshots or ""),
        wait_for=str(wait_for or ""),
    )
    return Run(client, _run_in_namespace(job))


def run_command(client: Client, home: Path, folder: Path, arguments: Sequence[str]) -> None:
    """Run a command of a client that asks no model, and fail unless it ends with exit code 0."""
    run(client, home, folder, "", Script(), arguments=arguments).check()


def require(client: Client) -> None:
    """Skip the test where the client cannot be run."""
    reason = _namespace_failure() or install_failure(client)
    if reason is not None:
        pytest.skip(reason)


@cache
def _namespace_failure() -> str | None:
    if (
        shutil.which("unshare") is None
        or subprocess.run([*offline_command(), "true"], capture_output=True).returncode != 0
    ):
        return "network namespaces cannot be created here: they need Linux and root"
    return None


def offline_command() -> list[str]:
    """How a command is run with nothing but loopback."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["unshare", "--net", *([] if is_root else ["--map-root-user"])]


def _search_path(client: Client) -> str:
    """The folders of node and of the system's programs."""
    node = shutil.which("node")
    own = client_folder(client) / "node_modules/.bin"
    folders = [str(own)] if "node" in client.npm else [str(Path(node).parent)] if node else []
    return os.pathsep.join([*folders, "/usr/local/bin", "/usr/bin", "/bin"])


def _run_in_namespace(job: Job) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        job_path, outcome_path = Path(folder, "job.json"), Path(folder, "outcome.json")
        job_path.write_bytes(msgspec.json.encode(job))
        command = [
            *offline_command(),
            sys.executable,
            "-m",
            "tests.realclients.namespace",
            str(job_path),
            str(outcome_path),
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        return msgspec.json.decode(outcome_path.read_bytes(), type=Outcome)
