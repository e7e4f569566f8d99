"""What a home lists can be named by its path too, whatever is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.agents.source import SourceFile, open_file
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.library import Library
from clew.sources.local import at_path

PLACES = {
    "claude-code": ".claude/projects/-home-ada/aaaaaaaa-0000-4000-8000-000000000001.jsonl",
    "codex": ".codex/sessions/2026/03/02/rollout-2026-03-02T09-59-58-019f0000-0000-7000-8000-00000000000a.jsonl",
    "gemini": ".gemini/tmp/bell/chats/session-2026-10-20T09-14-0c5f8e21.json",
    "sage-agent": ".sage/sessions/tides/messages.jsonl",
    "sage-emacs": ".emacs.d/sage/projects/-home-ada/conversation.jsonl",
}
CONTENTS = [b"", b"\x00\x00\x00", b"garbage\n", b'{"session_id":"a","ts":1,"text":"b"}\n', b"[1]\n"]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("agent", PLACES)
def test_what_is_listed_is_known_by_its_path(tmp_path: Path, agent: str, content: bytes) -> None:
    path = tmp_path / PLACES[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (listed,) = Library(Host.at(tmp_path)).sources()
    for place in (path, path.parent, tmp_path):
        (found,) = at_path(place)
        assert (found.agent.id, found.source.path) == (listed.agent.id, listed.path) == (agent, path)
    (stored,) = Library(Host.at(tmp_path)).find(str(path))
    assert list(stored.units()) == list(listed.units())


@pytest.mark.parametrize("name", ["notes.jsonl", ".codex/history.jsonl", ".codex/sessions/notes.jsonl"])
def test_what_nobody_lists_is_nobodys(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENTS[3])
    with pytest.raises(SourceUnreadable, match="not a session file"):
        list(at_path(path))
    assert list(at_path(tmp_path)) == []


def test_a_configured_folder_counts_too(tmp_path: Path) -> None:
    host = Host(tmp_path, {"CODEX_HOME": str(tmp_path / "elsewhere")})
    path = tmp_path / "elsewhere" / PLACES["codex"].removeprefix(".codex/")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage\n")
    (found,) = at_path(path, [host])
    assert found.agent.id == "codex"


@pytest.mark.parametrize(
    ("value", "folder"), [("~", "/home/ada"), ("~//c/d", "/home/ada/c/d"), ("/c/~", "/c/~"), ("~nobodyhere/c",) * 2]
)
def test_a_tilde_is_the_home_of_the_host(value: str, folder: str) -> None:
    assert Host(Path("/home/ada"), {"X": value}).configured_folder("X", ".usual") == Path(folder)


@pytest.mark.parametrize("variable", ["CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_SESSION_DIR", "QWEN_HOME"])
def test_a_folder_may_be_that_of_an_unknown_user(home: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "~nobodyhere/sessions")
    assert list(Library(Host.local()).sources()) == []


@pytest.mark.parametrize("kind", ["missing", "link", "pipe"])
def test_a_side_file_that_is_no_regular_file_is_unreadable(tmp_path: Path, kind: str) -> None:
    side = tmp_path / "metadata.json"
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(b"{}")
        side.symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(side)
    source = SourceFile("sage-agent", tmp_path / "messages.jsonl", sides=(side.name,))
    with pytest.raises(SourceUnreadable, match=r"metadata\.json"):
        open_file(source, side.name)
