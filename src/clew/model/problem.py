"""A problem: something found in a source that does not stop the reading of it."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "note"]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One finding, with its place and what to do about it. The codes are listed in clew.model.codes."""

    code: str
    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None
    start: int | None = None
    """Byte offset of the first byte concerned."""
    end: int | None = None
    """Byte offset behind the last byte concerned."""
    index: int | None = None
    """Index of the message concerned."""
    path: str | None = None
    """Place inside the record, as a JSON path."""
    hint: str | None = None
