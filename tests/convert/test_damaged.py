"""What cannot be read of a session cannot go over either: it is named, with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from clew.convert.losses import Converted
from clew.convert.prepare import prepare
from clew.errors import WouldLose
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

TARGETS = ["codex", "claude-code", "gemini", "sage-agent"]
BROKEN = b'{"type":"user","message":{{"content":"lost"}}\n'


def damaged(folder: Path, *lines: bytes) -> Path:
    """A transcript of three messages with these lines behind the second."""
    told = [spoke("user", "one", uuid="u1", parentUuid=None), spoke("assistant", "two", uuid="u2", parentUuid="u1")]
    path = transcript(folder, *told, spoke("user", "three", uuid="u3", parentUuid="u2"))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], *lines, *whole[2:]]))
    return path


def convert(path: Path, target: str, home: Path, *, allow_loss: bool = True) -> Converted:
    found = only(path)
    return prepare(found.agent, found.source, target).write(home, allow_loss=allow_loss)


def losses(path: Path, target: str, home: Path) -> list[tuple[str, str]]:
    return [(loss.what, loss.why) for loss in convert(path, target, home).losses]


@pytest.mark.parametrize("target", TARGETS)
def test_a_line_that_is_not_json_is_a_loss(tmp_path: Path, target: str) -> None:
    path = damaged(tmp_path, BROKEN)
    assert losses(path, target, tmp_path / "home") == [("line 3, which may hold a message", "the line is not JSON")]
    with pytest.raises(WouldLose):
        convert(path, target, tmp_path / "other", allow_loss=False)


@pytest.mark.parametrize("target", TARGETS)
def test_a_torn_tail_is_a_loss(tmp_path: Path, target: str) -> None:
    path = damaged(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"type":"assistant","message":{"content":"fo')
    why = "the last line ends in the middle of a record"
    assert losses(path, target, tmp_path / "home") == [("line 4, which may hold a message", why)]


@pytest.mark.parametrize("target", TARGETS)
def test_a_piece_between_glued_records_is_a_loss(tmp_path: Path, target: str) -> None:
    path = damaged(tmp_path, b'{"type":"user","mess{"type":"mode","mode":"plan"}\n')
    why = "part of a record was cut off"
    assert losses(path, target, tmp_path / "home") == [("line 3, which may hold a message", why)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_holds_nothing_is_no_loss(tmp_path: Path, target: str) -> None:
    path = damaged(tmp_path, b"\n", b"  \r\n", b"\0\0\0\n", b"\xef\xbb\xbf\n")
    assert losses(path, target, tmp_path / "home") == []


@pytest.mark.parametrize("target", TARGETS)
def test_an_archive_that_is_cut_off_is_a_loss(tmp_path: Path, target: str) -> None:
    path = damaged(tmp_path)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0)[:-8])
    path.unlink()
    found = losses(packed, target, tmp_path / "home")
    assert found == [("the rest of the file", "the compressed file is damaged or truncated")]


def test_damage_inside_a_sub_agent_is_a_loss_of_its_parent(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    child = tmp_path / path.stem / "subagents/agent-beef0001.jsonl"
    child.parent.mkdir(parents=True)
    said = path.read_bytes().replace(b'"sessionId":"s",', b'"sessionId":"s","isSidechain":true,"agentId":"beef0001",')
    child.write_bytes(said + BROKEN)
    found = only(path)
    there = only(child).source
    written = prepare(found.agent, found.source, "codex", find=lambda _name: there).write(
        tmp_path / "home", allow_loss=True
    )
    assert [loss.what for loss in written.losses] == [
        "line 4, which may hold a message, in the sub-agent beef0001",
    ]
