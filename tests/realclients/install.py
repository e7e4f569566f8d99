"""The lab: a folder with the real clients, each in a folder of its own.

`python -m tests.realclients.install [NAME...]` installs the clients that are missing or have another version. A client
that cannot be installed leaves its reason there, and the others go on.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.realclients.client import Client
from tests.realclients.clients import CLIENTS

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / ".lab"
INSTALL_SECONDS = 600
_INSTALLED = "installed.json"
_FAILURE = "failure.txt"


def client_folder(client: Client) -> Path:
    return LAB / "clients" / client.name


def install_failure(client: Client) -> str | None:
    """Why the client cannot be run; None if this version of it is installed."""
    folder = client_folder(client)
    if (folder / _FAILURE).exists():
        return f"{client.name} could not be installed: {(folder / _FAILURE).read_text(encoding='utf-8')}"
    if not _is_installed(client):
        return f"{client.name} is not installed: `make test-real` does it"
    return None


def install(client: Client) -> str | None:
    """Install the client unless this version is there; returns why that failed."""
    folder = client_folder(client)
    with locked(LAB / "clients" / f"{client.name}.lock"):
        if _is_installed(client):
            return None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            _install_packages(client, folder)
        except (OSError, subprocess.SubprocessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()[-1000:]
            (folder / _FAILURE).write_text(reason, encoding="utf-8")
            return str(reason)
        (folder / _INSTALLED).write_text(_versions(client), encoding="utf-8")
        return None


def _versions(client: Client) -> str:
    return json.dumps({"npm": dict(client.npm), "pip": dict(client.pip)})


def _is_installed(client: Client) -> bool:
    stamp = client_folder(client) / _INSTALLED
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _versions(client)


def _install_packages(client: Client, folder: Path) -> None:
    if client.npm:
        packages = [f"{name}@{version}" for name, version in client.npm.items()]
        _run("npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error", *packages)
    if client.pip:
        packages = [f"{name}=={version}" for name, version in client.pip.items()]
        _run(_find_python(client.minimum_python), "-m", "venv", str(folder / "python"))
        _run(str(folder / "python/bin/python"), "-m", "pip", "install", "-qq", *packages)
    if next(folder.glob(client.binary), None) is None:
        raise FileNotFoundError(f"its packages have no {client.binary}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)


def _find_python(minimum: tuple[int, int]) -> str:
    """This interpreter, or one of the search path that is new enough."""
    if sys.version_info[:2] >= minimum:
        return sys.executable
    for minor in range(minimum[1], minimum[1] + 4):
        found = shutil.which(f"python3.{minor}")
        # A version manager leaves programs on the search path for versions that are not active.
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    raise FileNotFoundError(f"it needs Python {minimum[0]}.{minimum[1]} or newer")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock, and hold it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(names: list[str]) -> None:
    for name in names or CLIENTS:
        reason = install(CLIENTS[name])
        if reason is not None:
            print(f"{name} could not be installed, its tests are skipped: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
