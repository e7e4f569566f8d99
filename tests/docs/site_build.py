"""Builds the documentation site in a folder of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT


def build_site(folder: Path) -> Path:
    """Build the site below a folder, where every warning is an error, and return where it is."""
    pytest.importorskip("zensical", reason="zensical is not installed: pip install 'clew[docs]'")
    shutil.copytree(DOCS, folder / "docs")
    for name in ("zensical.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    (folder / "src").symlink_to(ROOT / "src")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"
