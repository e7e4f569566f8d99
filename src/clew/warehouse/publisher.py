"""Who publishes: a random id for each data folder, and the versions of rules and prices that were used there.

The id says nothing about the person or the machine. Versions of rules and prices have no order of their own, so each
is prefixed with its position in the order in which this data folder used them.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.source import SourceFile, SourceState, source_state
from clew.analysis.pricing import prices
from clew.datadir import private_folder
from clew.errors import SourceUnreadable
from clew.host import config_dir, data_dir
from clew.io.atomic import write_atomic
from clew.redact.settings import marker_key
from clew.warehouse.ingest import SourceMeta, SourceTask
from clew.warehouse.privacy import Policy, check_policy, read_user_rules

ORIGIN_FILE = "origin.json"
"""In clew's data folder."""


class Publisher(NamedTuple):
    """The origin of sources, and the rules that they are read with."""

    origin: str
    policy: Policy
    redact_version: str
    price_version: str

    def meta(self, source: SourceFile) -> SourceMeta:
        """The metadata of a source in its present state."""
        mtime_ns, size = stat_source(source)
        return SourceMeta(
            agent=source.agent,
            path=str(source.path),
            source_id=self.source_id(source.agent, str(source.path)),
            origin=self.origin,
            mtime_ns=mtime_ns,
            size=size,
            policy=self.policy,
            redact_version=self.redact_version,
            price_version=self.price_version,
            parts=source.parts,
            sides=source.sides,
            machine=source.origin,
        )

    def tasks(self, sources: Iterable[SourceFile]) -> list[SourceTask]:
        """The sources in their present state, to be read."""
        return [SourceTask(source, self.meta(source)) for source in sources]

    def source_id(self, agent: str, path: str) -> str:
        """The id of a source: a keyed hash, so that a guess at the path cannot be tested."""
        content = f"{self.origin}\0{agent}\0{path}".encode("utf-8", "surrogateescape")
        return blake2b(content, digest_size=16, key=self.policy.key[:64]).hexdigest()


def load_publisher(level: str = "metrics", *, folder: Path | None = None) -> Publisher:
    """The publisher of this data folder, with the user's own rules. Creates its id if there is none."""
    folder = folder or data_dir()
    policy = check_policy(Policy(level, marker_key(folder), rules=read_user_rules(config_dir())))
    known = _record_versions(folder, {"rules": policy.version, "prices": prices().version})
    return Publisher(known["origin"], policy, _ordered(known["rules"]), _ordered(known["prices"]))


def _ordered(versions: list[str]) -> str:
    """The newest version, with a prefix that makes later versions greater."""
    return f"{len(versions):06} {versions[-1]}"


def _record_versions(folder: Path, versions: dict[str, str]) -> dict[str, Any]:
    """The content of the origin file, after versions that are new were added."""
    path = folder / ORIGIN_FILE
    try:
        if not path.exists():
            _create(path)
        known: dict[str, Any] = json.loads(path.read_bytes())
        before = json.dumps(known)
        for name, version in versions.items():
            if known[name][-1:] != [version]:
                known[name].append(version)
        if json.dumps(known) != before:
            write_atomic(path, json.dumps(known).encode())
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SourceUnreadable(f"{path}: is damaged; remove it to get a new id for this data folder") from None
    return known


def _create(path: Path) -> None:
    """Create the origin file once, even if several processes try at the same time."""
    private_folder(str(path.parent))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "w") as handle:
            json.dump({"origin": secrets.token_hex(16), "rules": [], "prices": []}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()


def stat_source(source: SourceFile) -> tuple[int, int]:
    """The latest mtime of a source's files, and the sum of their sizes."""
    found: list[SourceState | os.stat_result] = []
    for name in ("", *source.parts, *source.sides):
        with suppress(OSError):
            found.append((source.path.parent / name).stat() if name else source_state(source))
    return max((one.st_mtime_ns for one in found), default=0), sum(one.st_size for one in found)
