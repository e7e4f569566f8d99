"""Who writes: a random name for each data folder, and how rules and prices followed each other there.

The name says nothing of the person or the machine. Versions of rules have no order of their own, so their place in the
order in which this folder met them is written before them.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.base import SourceFile
from clew.analysis.pricing import prices
from clew.datadir import private_folder
from clew.errors import SourceUnreadable
from clew.host import config_dir, data_dir
from clew.io.atomic import write_atomic
from clew.redact.settings import marker_key
from clew.warehouse.ingest import Meta
from clew.warehouse.privacy import Policy, check, own_rules

FILE = "origin.json"
"""In clew's data folder."""


class Writer(NamedTuple):
    """Who writes, and by which rules: all that a source's meta is made with."""

    origin: str
    policy: Policy
    redact_version: str
    price_version: str

    def meta(self, source: SourceFile) -> Meta:
        """What goes with a source on its way; it is as the source looks now."""
        mtime_ns, size = state_of(source)
        return Meta(
            source.agent,
            str(source.path),
            self.source_id(source.agent, str(source.path)),
            self.origin,
            mtime_ns,
            size,
            self.policy,
            self.redact_version,
            self.price_version,
            source.parts,
            source.sides,
            source.origin,
        )

    def source_id(self, agent: str, path: str) -> str:
        """The name of a source: a keyed hash, so that nobody can test a guess at the path."""
        named = f"{self.origin}\0{agent}\0{path}".encode("utf-8", "surrogateescape")
        return blake2b(named, digest_size=16, key=self.policy.key[:64]).hexdigest()


def writer(level: str = "metrics", *, profile: str = "paths", folder: Path | None = None) -> Writer:
    """Who writes from this data folder, at a level and with the person's own rules. Makes what is missing."""
    folder = folder or data_dir()
    policy = check(Policy(level, marker_key(folder), profile, own_rules(config_dir())))
    noted = _noted(folder, {"rules": policy.version, "prices": prices().version})
    return Writer(noted["origin"], policy, _place(noted["rules"]), _place(noted["prices"]))


def _place(versions: list[str]) -> str:
    return f"{len(versions):06} {versions[-1]}"


def _noted(folder: Path, versions: dict[str, str]) -> dict[str, Any]:
    """What is known of the folder; versions that are new to it are noted."""
    path = folder / FILE
    try:
        if not path.exists():
            _make(path)
        noted: dict[str, Any] = json.loads(path.read_bytes())
        before = json.dumps(noted)
        for name, version in versions.items():
            if noted[name][-1:] != [version]:
                noted[name].append(version)
        if json.dumps(noted) != before:
            write_atomic(path, json.dumps(noted).encode())
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SourceUnreadable(f"{path}: is damaged; remove it, and this folder gets a new name") from None
    return noted


def _make(path: Path) -> None:
    """Give the folder a name, once, whoever else does so at the same time."""
    private_folder(str(path.parent))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w") as handle:
            json.dump({"origin": secrets.token_hex(16), "rules": [], "prices": []}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()


def state_of(source: SourceFile) -> tuple[int, int]:
    """When the files of a source were last written to, and how long they are together."""
    files = [source.path, *(source.path.parent / name for name in (*source.parts, *source.sides))]
    found = []
    for file in files:
        with suppress(OSError):
            found.append(file.stat())
    return max((one.st_mtime_ns for one in found), default=0), sum(one.st_size for one in found)
