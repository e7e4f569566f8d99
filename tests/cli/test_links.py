"""Links in a folder of sessions lead nowhere: a cloned repository may hold some that point at private files."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.cli.running import clew
from tests.convert.transcripts import spoke

SECRET = "not-for-others-4711"
CLAUDE = "aaaaaaaa-0000-4000-8000-000000000001"
CODEX = "bbbbbbbb-0000-4000-8000-000000000002"
GEMINI = "cccccccc-0000-4000-8000-000000000003"
Plant = Callable[[Path, Path], Path]
"""Makes sessions below a folder, with links to a private folder; returns what a person would name."""


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that nobody named; every file in it holds the secret."""
    folder = tmp_path / "private"
    folder.mkdir()
    names = ("key", "settings.json", f"rollout-2026-10-01T08-00-00-{CODEX}.jsonl", "other.jsonl", "conversation.jsonl")
    for name in names:
        (folder / name).write_text(json.dumps({"key": SECRET}) + "\n" + SECRET + "\n")
    return folder


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def sage_lines(session: str) -> str:
    about = {"timestamp": "2026-10-01T08:00:00Z", "sessionId": session, "version": "1", "context": {"cwd": "/w"}}
    asked = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "ring"}}
    said = {"type": "assistant", "uuid": "b", "parentUuid": "a", "message": {"role": "assistant", "content": "ding"}}
    return lines({**asked, **about}, {**said, **about})


def sage_sides(root: Path, private: Path) -> Path:
    folder = root / ".sage/sessions/one"
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_text(sage_lines("one"))
    (folder / "metadata.json").symlink_to(private / "settings.json")
    (folder / "snapshots.jsonl").symlink_to(private / "key")
    return folder / "messages.jsonl"


def sage_snapshots(root: Path, private: Path) -> Path:
    """The person names the snapshots, which lead to the log beside them."""
    folder = root / ".sage/sessions/one"
    folder.mkdir(parents=True)
    record = {"type": "file_history_snapshot", "messageId": "a", "timestamp": "2026-10-01T08:00:00Z"}
    maps: dict[str, Any] = {"trackedFiles": {}, "fileBackups": {}}
    (folder / "snapshots.jsonl").write_text(lines({**record, "isSnapshotUpdate": False, "snapshot": maps}))
    (folder / "messages.jsonl").symlink_to(private / "key")
    return folder / "snapshots.jsonl"


def sage_main(root: Path, private: Path) -> Path:
    (root / ".sage/sessions/two").mkdir(parents=True)
    (root / ".sage/sessions/two/messages.jsonl").symlink_to(private / "key")
    sage_sides(root, private)
    return root


def claude_lines(session: str = CLAUDE) -> str:
    asked = spoke("user", "ring", uuid="u1", parentUuid=None, sessionId=session)
    return lines(asked, spoke("assistant", "ding", uuid="u2", parentUuid="u1", sessionId=session))


def claude_main(root: Path, private: Path) -> Path:
    folder = root / ".claude/projects/-w"
    folder.mkdir(parents=True)
    (folder / f"{CLAUDE}.jsonl").write_text(claude_lines())
    (folder / f"{CODEX}.jsonl").symlink_to(private / "key")
    return root


def claude_side(root: Path, private: Path) -> Path:
    folder = root / f".claude/projects/-w/{CLAUDE}/subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_text(claude_lines())
    (folder / "agent-a1.meta.json").symlink_to(private / "settings.json")
    return folder / "agent-a1.jsonl"


def codex_main(root: Path, private: Path) -> Path:
    name = f"rollout-2026-10-01T08-00-00-{CODEX}.jsonl"
    folder = root / ".codex/sessions/2026/10/01"
    folder.mkdir(parents=True)
    (folder / name).symlink_to(private / name)
    return claude_main(root, private)


def emacs_side(root: Path, private: Path) -> Path:
    folder = root / ".emacs.d/sage/projects/-w"
    folder.mkdir(parents=True)
    record = {"role": "user", "content": "ring", "timestamp": "2026-10-01T08:00:00Z"}
    (folder / "conversation.jsonl").write_text(lines(record))
    (folder / "metadata.json").symlink_to(private / "settings.json")
    return folder / "conversation.jsonl"


def emacs_history(root: Path, private: Path) -> Path:
    (emacs_side(root, private).parent / "history").symlink_to(private)
    return root


def gemini_chats(root: Path, private: Path) -> Path:
    for name in ("session-2026-10-01T08-00-aaaaaaaa.json", "session-2026-10-01T08-00-bbbbbbbb.jsonl"):
        (private / name).write_text(json.dumps({"sessionId": SECRET, "messages": []}) + "\n")
    folder = root / ".gemini/tmp/w"
    folder.mkdir(parents=True)
    (folder / "chats").symlink_to(private)
    return claude_main(root, private)


PLANTS: list[Plant] = [
    sage_sides,
    sage_snapshots,
    sage_main,
    claude_main,
    claude_side,
    codex_main,
    emacs_side,
    emacs_history,
    gemini_chats,
]


def holds_secret(path: Path) -> bool:
    return any(SECRET.encode() in text for text in texts(path))


def texts(path: Path) -> Iterator[bytes]:
    """Every file below a folder, and what is packed into lines of it."""
    for file in path.rglob("*"):
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes()
            yield content
            packed = [json.loads(line)["data"] for line in content.splitlines() if b'"data":"' in line]
            if text := base64.b64decode("".join(packed)):
                yield zstandard.ZstdDecompressor().stream_reader(text).read()


@pytest.mark.parametrize("plant", PLANTS)
def test_an_export_holds_nothing_that_a_link_leads_to(plant: Plant, tmp_path: Path, private: Path) -> None:
    named = plant(tmp_path / "repo", private)
    out = tmp_path / "out"
    out.mkdir()
    done = clew("export", named, "--to", "ndjson", "-o", out / "all.ndjson")
    assert done.code in (0, 3, 4), done.err
    assert not holds_secret(out)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_archive_holds_nothing_that_a_link_leads_to(plant: Plant, tmp_path: Path, private: Path) -> None:
    plant(tmp_path / "repo", private)
    clew("--home", tmp_path / "repo", "archive")
    clew("archive", "restore", "--to", tmp_path / "out")
    assert not holds_secret(tmp_path / "out")


def test_copies_behind_a_link_do_not_travel_along(tmp_path: Path, private: Path) -> None:
    root, out = tmp_path / "repo", tmp_path / "out"
    claude_main(root, private)
    (root / f".claude/projects/-w/{CLAUDE}").mkdir()
    (root / f".claude/projects/-w/{CLAUDE}/tool-results").symlink_to(private)
    (root / ".claude/file-history").mkdir()
    (root / f".claude/file-history/{CLAUDE}").symlink_to(private)
    out.mkdir()
    for agent in ("codex", "claude-code"):
        named = root / f".claude/projects/-w/{CLAUDE}.jsonl"
        done = clew("convert", named, "--to", agent, "--home", out, "--allow-loss")
        assert done.code == 0, done.err
    assert not holds_secret(out)


@pytest.mark.parametrize("link", ["backups", "history"])
def test_a_folder_named_by_a_session_is_not_reached_by_a_link(link: str, tmp_path: Path) -> None:
    """A session called `.ssh`, and beside it a link to the home: together they would name a private folder."""
    private, root, out = tmp_path / "home/.ssh", tmp_path / "home/src/repo", tmp_path / "out"
    private.mkdir(parents=True)
    (private / "key").write_text(SECRET)
    session = root / ".sage/sessions/.ssh"
    session.mkdir(parents=True)
    (session / "messages.jsonl").write_text(sage_lines(".ssh"))
    chats = root / ".gemini/tmp/.ssh/chats"
    chats.mkdir(parents=True)
    header = {"sessionId": GEMINI, "projectHash": "0" * 64, "startTime": "2026-10-01T08:00:00Z", "messages": []}
    (chats / "session-2026-10-01T08-00-cccccccc.json").write_text(json.dumps(header))
    below = root / (".sage" if link == "backups" else ".gemini") / link
    below.symlink_to(os.path.relpath(tmp_path / "home", below.parent))
    clew("--home", root, "archive")
    clew("archive", "restore", "--to", out)
    assert not holds_secret(out)
