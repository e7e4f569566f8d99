"""Rare things that must not be lost or misnamed: names spelled alike, full disks, text that is no Unicode."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.io.filesystem import replace_file
from clew.store import Store
from clew.store.blobs import Blobs
from clew.store.message_context import ContextReader
from clew.store.message_input import parse_message
from tests.store.support import Faulty, Quick, log_of


@pytest.mark.parametrize("watched", ["whole", "named"])
def test_two_names_that_are_spelled_alike_both_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    names = [os.fsdecode(b"a\xff"), "a\\xff", "a\\xff\\"]
    for name in names:
        (work / name).write_text(f"{name!r} before\n")
    session = Store(tmp_path, system=Quick()).session("s")
    message = session.assistant("x")
    watch = session.watch(message, root=work) if watched == "whole" else None
    if watch is None:
        names = names[:1]
        watch = session.watch(message, names)
    with watch:
        for name in names:
            (work / name).write_text("behind\n")
    steps = session.undo(dry_run=True).steps
    assert sorted(step.path for step in steps) == sorted(names)
    session.undo()
    assert [(work / name).read_text() for name in names] == [f"{name!r} before\n" for name in names]


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    def full() -> Faulty:
        return Faulty(1, errno.ENOSPC, only="write")

    with pytest.raises(OSError, match="injected") as failed:
        replace_file(full(), tmp_path / "x.json", b"words")
    assert failed.value.filename == str(tmp_path / "x.json")
    with pytest.raises(OSError, match="injected") as failed:
        Blobs(tmp_path / "backups", full()).put([b"words"])
    assert failed.value.filename == str(tmp_path / "backups")
    Store(tmp_path, system=Quick()).session("s").user("hi")
    with pytest.raises(OSError, match="injected") as failed:
        Store(tmp_path, system=full()).session("s").user("more")
    assert failed.value.filename == str(log_of(tmp_path))


@pytest.mark.parametrize(
    ("text", "half"), [(rb"a \ud800 b", "d800"), (rb"\udc00", "dc00"), (rb"\ud83d\ude00 \uD83D", "d83d")]
)
def test_half_a_surrogate_pair_is_called_so(text: bytes, half: str) -> None:
    with pytest.raises(UsageError, match=rf"half of a surrogate pair, \\u{half}"):
        parse_message(b'{"role":"user","content":"' + text + b'"}', ContextReader())


@pytest.mark.parametrize("line", [b'{"role":', b'{"role":"user","content":"\\\\ud800"', b"[" * 5000])
def test_other_lines_keep_their_reason(line: bytes) -> None:
    with pytest.raises(UsageError, match=r"is not JSON: (?!a text)"):
        parse_message(line, ContextReader())


@pytest.mark.parametrize("content", [b"", b',"content":null'])
def test_a_tool_result_without_content_is_empty(content: bytes) -> None:
    draft = parse_message(b'{"role":"tool","tool_call_id":"c"' + content + b"}", ContextReader())
    assert [result.content for result in draft.record.tool_results or ()] == [""]
