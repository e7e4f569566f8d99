"""The version of the unified document, apart from the version of the package."""

from __future__ import annotations

import re

from clew.errors import InvalidDocument
from clew.model.json import JSON

SCHEMA_VERSION = "1.2"
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")


def check_version(version: JSON) -> tuple[int, int]:
    """Major and minor version of a document; refuses another major version."""
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise InvalidDocument(f"schema_version {version!r} is no version")
    major, minor = int(match[1]), int(match[2])
    if major != int(SCHEMA_VERSION.partition(".")[0]):
        raise InvalidDocument(f"schema_version {version} cannot be read: this is clew for schema {SCHEMA_VERSION}")
    return major, minor
