"""The version of an agent's installed program, found without starting it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from clew.agents.base import Agent

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_FOLDERS_ABOVE_PROGRAM = 4


def installed_version(program: str) -> str | None:
    """The version of a program on PATH: that of its npm package, or in the path behind its link."""
    found = shutil.which(program)
    if found is None:
        return None
    path = Path(found).resolve()
    for place in (path, *path.parents[:_FOLDERS_ABOVE_PROGRAM]):
        if _VERSION.fullmatch(place.name):
            return place.name
        package = place / "package.json"
        if package.is_file():
            return _package_version(package)
    return None


def _package_version(package: Path) -> str | None:
    try:
        version = json.loads(package.read_bytes())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, str) and _VERSION.match(version) else None


def untested_version(agent: Agent, installed: str | None) -> str | None:
    """A warning if the installed program is newer than every version that converted sessions were tested with."""
    tested = agent.newest_tested_version
    if not installed or not tested or _numbers(installed) <= _numbers(tested):
        return None
    return f"{agent.title} {installed} is newer than {tested}, the newest version that conversions were tested with"


def _numbers(version: str) -> list[int]:
    found = _VERSION.match(version)
    return [int(number) for number in found[0].split(".")] if found else []
