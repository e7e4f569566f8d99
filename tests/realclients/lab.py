"""The lab: the genuine clients, installed in a folder of their own and run offline.

`python -m tests.realclients.lab` installs them. A run has a network namespace with nothing but loopback, an empty
environment, and a home and a project folder that the caller names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.realclients.clients import Client
from tests.realclients.history import Entry
from tests.realclients.inside import Job, Outcome
from tests.realclients.script import Script

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / ".lab"
NPM = {"@openai/codex": "0.166.0", "@google/gemini-cli": "0.61.0"}
PIP = {"claude-agent-sdk": "0.2.182"}
"""The package holds Claude Code 2.1.325."""
SECONDS = 150


def install(folder: Path = LAB) -> None:
    """Fetch the clients, unless these versions are there."""
    wanted = json.dumps(NPM | PIP)
    stamp = folder / "installed.json"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ["--no-audit", "--no-fund", "--silent"]
    npm = [f"{name}@{version}" for name, version in NPM.items()]
    pip = [f"{name}=={version}" for name, version in PIP.items()]
    subprocess.run(["npm", "install", "--prefix", folder, *quiet, *npm], check=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True)
    subprocess.run([folder / "python/bin/python", "-m", "pip", "install", "-qq", *pip], check=True)
    stamp.write_text(wanted, encoding="utf-8")


def alone() -> list[str]:
    """The words before a command that give it a network of its own."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["unshare", "--net", *([] if is_root else ["--map-root-user"])]


def why_not(folder: Path = LAB) -> str | None:
    """Why no client can be run here; None where they can."""
    if shutil.which("unshare") is None or subprocess.run([*alone(), "true"], capture_output=True).returncode != 0:
        return "no network namespace can be made here: that takes Linux, and root"
    if not (folder / "installed.json").exists():
        return "the clients are not installed: `make test-real` does it"
    return None


@dataclass(frozen=True)
class Run:
    """A finished run of a client."""

    client: Client
    outcome: Outcome

    def check(self) -> Run:
        """Fail unless the client left in peace and every request fitted."""
        report = "\n".join([f"exit {self.outcome.code}", *self.outcome.misfits, self.outcome.output[-4000:]])
        assert self.outcome.code == 0 and not self.outcome.misfits, report
        return self

    @property
    def output(self) -> str:
        return self.outcome.output

    def history(self, lane: str = "") -> list[Entry]:
        """What the first request of the lane held."""
        for request in self.outcome.requests:
            if request.lane == lane:
                return self.client.wire.entries(request.body)
        raise AssertionError(f"{self.client.name} asked its model nothing in lane {lane!r}:\n{self.output}")


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
    folder: Path = LAB,
) -> Run:
    """Run a client once, on a new session or on one to resume."""
    home.mkdir(parents=True, exist_ok=True)
    client.prepare(home)
    binary = next(folder.glob(client.binary))
    job = Job(
        client=client.name,
        argv=[str(binary), *options, *client.words(prompt, session)],
        environment={"PATH": _path(), "HOME": str(home), **client.environment, **(environment or {})},
        folder=str(project),
        script=script,
        seconds=SECONDS,
    )
    return Run(client, _in_namespace(job))


def _path() -> str:
    """Where node is, and the system's own programs."""
    node = shutil.which("node")
    return os.pathsep.join([*([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"])


def _in_namespace(job: Job) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder, "job.json"), Path(folder, "outcome.json")
        asked.write_bytes(msgspec.json.encode(job))
        command = [*alone(), sys.executable, "-m", "tests.realclients.inside", str(asked), str(told)]
        subprocess.run(command, cwd=ROOT, check=True)
        return msgspec.json.decode(told.read_bytes(), type=Outcome)


if __name__ == "__main__":
    install()
