"""Trajectories checked by Harbor's own models, in the environment that `make harbor` makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[2] / ".lab/harbor/bin/python"
_CHECK = """
import json, sys
from harbor.models.trajectories import Trajectory

found = {}
for path in sys.stdin.read().splitlines():
    try:
        Trajectory.model_validate_json(open(path, "rb").read())
    except ValueError as error:
        found[path] = str(error)
print(json.dumps(found))
"""


def validation_errors(files: Iterable[Path]) -> dict[str, str]:
    """What Harbor says about files that are no valid trajectories, by their paths; skips where it is not installed."""
    if not PYTHON.exists():
        pytest.skip("Harbor is not installed; `make harbor` installs it")
    names = "\n".join(map(str, files))
    done = subprocess.run([PYTHON, "-c", _CHECK], input=names, capture_output=True, text=True, timeout=120, check=True)
    errors: dict[str, str] = json.loads(done.stdout)
    return errors
