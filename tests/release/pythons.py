"""The Python interpreters of this machine that clew supports."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

MINOR_VERSIONS = (11, 12, 13, 14)


def find_pythons() -> dict[str, str]:
    """The first working interpreter of each minor version, such as `{"3.11": "/usr/bin/python3.11"}`."""
    return {
        version: path
        for version in (f"3.{minor}" for minor in MINOR_VERSIONS)
        if (path := next(filter(_can_create_environments, _candidates(version)), None))
    }


def _candidates(version: str) -> list[str]:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [sys.executable] if version == running else []
    if path := shutil.which(f"python{version}"):
        found.append(path)
    if folder := os.environ.get("PYENV_ROOT"):
        found += map(str, sorted(Path(folder, "versions").glob(f"{version}.*/bin/python")))
    return found


def _can_create_environments(python: str) -> bool:
    # A version manager's shim is on the PATH also where its interpreter is not enabled.
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0
