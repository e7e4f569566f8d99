"""Which sessions are read for `clew blame`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from clew.agents.base import SourceFile
from clew.file_history import blame


class _ShortReads(io.BytesIO):
    """Returns at most two bytes at a time, as a decompressor may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(2)


def test_a_name_that_spans_several_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "open_file", lambda _source, _name: _ShortReads(b'{"path": "/srv/moon_phase.py"}\n'))
    source = SourceFile("claude-code", Path("session.jsonl"))
    assert blame.mentions(source, "/srv/moon_phase.py")
    assert not blame.mentions(source, "/srv/sun_phase.py")
