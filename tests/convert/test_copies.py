"""The copies of files that an agent keeps for undo go with a session to the same agent, and come back from others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.convert import copies, origin
from clew.convert.prepare import Prepared, prepare
from clew.errors import InvalidDocument, WouldLose
from clew.host import Host
from clew.library import Library
from clew.store import Store
from tests.convert.said import only
from tests.convert.transcripts import spoke

LOSS = "the agent's backup copies of files"
CLAUDE = "aaaaaaaa-0000-4000-8000-000000000001"


def claude(home: Path) -> str:
    """A session of Claude Code with a copy of a file and a long output."""
    project = home / ".claude/projects/-home-ada"
    project.mkdir(parents=True)
    records = [
        spoke("user", "ring", uuid="u1", parentUuid=None, sessionId=CLAUDE),
        spoke("assistant", "ding", uuid="u2", parentUuid="u1", sessionId=CLAUDE),
    ]
    (project / f"{CLAUDE}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in (f"file-history/{CLAUDE}/abc@v1", f"projects/-home-ada/{CLAUDE}/tool-results/t1.txt"):
        path = home / ".claude" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"what {path.name} held")
    return CLAUDE


def sage(home: Path) -> str:
    """A session of the store that changed a file."""
    work = home.parent / "work"
    work.mkdir(parents=True)
    (work / "a.txt").write_text("1\n")
    with Store(home, version="x 0.3").session("und") as session:
        session.user("go")
        reply = session.assistant("raise")
        with session.watch(reply, ["a.txt"], root=work):
            (work / "a.txt").write_text("2\n")
    return "und"


BOTH = pytest.mark.parametrize("make", [claude, sage])


def way(home: Path, session: str, target: str | None = None, **more: Any) -> Prepared:
    found = Library(Host.at(home)).get(session)
    return prepare(found.agent, found.source, target or found.agent.id, **more)


def kept(home: Path, session: str) -> dict[str, bytes]:
    found = Library(Host.at(home)).get(session)
    return {name: path.read_bytes() for name, path in copies.copies_of(found.source)}


@BOTH
def test_they_go_to_the_same_agent(tmp_path: Path, make: Callable[[Path], str]) -> None:
    session = make(tmp_path / "home")
    before = kept(tmp_path / "home", session)
    assert before
    for home in (tmp_path / "home", tmp_path / "other"):
        written = way(tmp_path / "home", session).write(home)
        assert kept(home, written.session_id) == before
        assert len(written.files) > len(before)
    assert kept(tmp_path / "home", session) == before


@BOTH
@pytest.mark.parametrize("place", ["codex", "sage-emacs"])
def test_they_come_back(tmp_path: Path, make: Callable[[Path], str], place: str) -> None:
    session = make(tmp_path / "home")
    converted = way(tmp_path / "home", session, place).write(tmp_path / "there", allow_loss=True)
    there = only(Path(converted.files[0]))
    agent = Library(Host.at(tmp_path / "home")).get(session).agent.id
    back = prepare(there.agent, there.source, agent).write(tmp_path / "back")
    assert back.session_id == session
    assert kept(tmp_path / "back", session) == kept(tmp_path / "home", session)


def test_one_that_is_there_stays(tmp_path: Path) -> None:
    session = claude(tmp_path / "home")
    converted = way(tmp_path / "home", session, "codex").write(tmp_path / "there", allow_loss=True)
    path = tmp_path / f"back/.claude/file-history/{session}/abc@v1"
    path.parent.mkdir(parents=True)
    path.write_text("another")
    there = only(Path(converted.files[0]))
    prepare(there.agent, there.source, "claude-code").write(tmp_path / "back")
    assert path.read_text() == "another"
    assert len(kept(tmp_path / "back", session)) == 2


def test_too_many_are_a_loss(tmp_path: Path) -> None:
    session = claude(tmp_path / "home")
    big = tmp_path / f"home/.claude/file-history/{session}/big@v1"
    with big.open("wb") as stream:
        stream.truncate(copies.MAX_COPIES_BYTES + 1)
    prepared = way(tmp_path / "home", session, "codex")
    assert LOSS in [loss.what for loss in prepared.describe(tmp_path).losses]
    with pytest.raises(WouldLose):
        prepared.write(tmp_path / "there")
    prepared.write(tmp_path / "there", allow_loss=True)


def test_they_are_not_given_away_unmasked(tmp_path: Path) -> None:
    session = claude(tmp_path / "home")
    prepared = way(tmp_path / "home", session, with_original=False)
    assert [loss.what for loss in prepared.describe(tmp_path).losses] == [LOSS]
    written = prepared.write(tmp_path / "other", allow_loss=True)
    assert kept(tmp_path / "other", written.session_id) == {}


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Prepared:
    """The way back from Codex, where something else is said of the original."""
    converted = way(tmp_path / "home", claude(tmp_path / "home"), "codex").write(tmp_path / "there", allow_loss=True)
    path = Path(converted.files[0])
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith(origin.MARK))
    value = json.loads(lines[at])
    edit(value["origin"])
    lines[at] = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    there = only(path)
    return prepare(there.agent, there.source, "claude-code")


@pytest.mark.parametrize("name", ["0/../../../.bashrc", "9/x", "x", "0//x", "-1/x", "0/a\0b"])
def test_W05_a_copy_cannot_lead_out_of_its_place(tmp_path: Path, name: str) -> None:
    prepared = edited(tmp_path, lambda value: value["copies"][0].update(name=name))
    losses = prepared.describe(tmp_path / "back").losses
    assert "the included original" in [loss.what for loss in losses]


@pytest.mark.parametrize("target", ["../../x.jsonl", "/x.jsonl", ".ssh/authorized_keys"])
def test_W05_an_original_with_copies_cannot_lead_out_either(tmp_path: Path, target: str) -> None:
    with pytest.raises(InvalidDocument, match="unsafe path"):
        edited(tmp_path, lambda value: value.update(target=target))
    assert not (tmp_path / "back").exists()


def test_what_a_project_shares_stays(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini/tmp/bell/chats"
    chats.mkdir(parents=True)
    chat = chats / "session-2026-10-20T09-14-0c5f8e21.jsonl"
    chat.write_text('{"sessionId":"0c5f8e21-7b3a-4d96-a1e4-52d7c9f08b63"}\n')
    (chats.parent / "logs.json").write_text("[]")
    assert list(copies.copies_of(registry.get("gemini").locate(chat))) == []
