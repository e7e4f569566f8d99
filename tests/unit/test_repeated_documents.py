"""Documents of records that are oddly spelled, or that repeat."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode
from clew.export.document import write_document
from clew.export.verify import verify

CLAUDE = ClaudeCode()
SESSION = "11111111-1111-4111-8111-111111111111"
TIME = "2026-01-11T22:00:00.000Z"


def said(number: int, content: Any, **more: Any) -> dict[str, Any]:
    head = {"parentUuid": f"u{number - 1}" if number else None, "isSidechain": False, "type": "user"}
    body = {"message": {"role": "user", "content": content}, "uuid": f"u{number}", "timestamp": TIME}
    return {**head, **body, "sessionId": SESSION, **more}


def transcript(folder: Path, *lines: dict[str, Any] | bytes) -> SourceFile:
    path = folder / f"{SESSION}.jsonl"
    texts = [line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines]
    path.write_bytes(b"".join(text + b"\n" for text in texts))
    return CLAUDE.locate(path)


def document(source: SourceFile) -> bytes:
    text = io.BytesIO()
    write_document(CLAUDE, source, text, timestamp=TIME)
    return text.getvalue()


def result(text: bytes) -> bytes:
    line = said(1, [{"tool_use_id": "t", "type": "tool_result", "content": "@"}])
    return json.dumps(line, separators=(",", ":")).encode().replace(b'"@"', text)


@pytest.mark.parametrize("text", [b'"caf\\u00e9"', b'"a\\/b"', b'"\\u0041"', b'[{"type":"text","text":"\\u0041"}]'])
def test_output_that_is_oddly_spelled_comes_back(tmp_path: Path, text: bytes) -> None:
    lines = [said(number, [{"tool_use_id": "t", "type": "tool_result", "content": "x"}]) for number in range(3)]
    source = transcript(tmp_path, *lines, result(text), result(text))
    assert verify(CLAUDE, source).holds


def test_a_document_does_not_tell_what_was_read_before(tmp_path: Path) -> None:
    snapshot = {"messageId": "u0", "trackedFileBackups": {}, "timestamp": TIME}
    tracked = {"a.py": {"backupFileName": None, "version": 1, "backupTime": TIME}}
    record = {"type": "file-history-snapshot", "messageId": "u0", "snapshot": snapshot, "isSnapshotUpdate": False}
    lines = [said(number, "word", slug="calm", todos=[]) for number in range(4)]
    lines += [record] * 4 + [{**record, "snapshot": {**snapshot, "trackedFileBackups": tracked}}] * 4
    lines += [said(number, [{"type": "text", "text": "a"}, {"type": "odd"}]) for number in range(4)]
    source = transcript(tmp_path, *lines)
    first = document(source)
    assert [document(source) for _ in range(3)] == [first] * 3
    assert verify(CLAUDE, source).holds
