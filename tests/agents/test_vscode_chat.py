"""VS Code Copilot Chat: what its log of changes and its documents become."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import pytest

from clew import Host
from clew.agents.base import Agent, Claim
from clew.agents.vscode_chat import VSCodeChat
from clew.analysis.todos import progression
from clew.convert.prepare import prepare
from clew.file_history.history import FileHistory
from clew.model.json import JSON
from clew.sources.mirror import Mirror
from clew.testing import AgentConformance, round_trip, units

STORAGE = Path(__file__).resolve().parents[1] / "fixtures" / "vscode-chat" / "workspaceStorage"
CHATS = STORAGE / "0d6f2b" / "chatSessions"
ID = "7c0b0f6e-1a55-4f0c-9c53-2b6a1d4e9f01"
LOG = CHATS / f"{ID}.jsonl"
DOCUMENT = CHATS / "old.json"
AGENT = VSCodeChat()
STATE = {"version": 3, "responderUsername": "GitHub Copilot", "requests": []}


class TestVSCodeChat(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = [LOG, DOCUMENT]


def messages(path: Path) -> list[dict[str, Any]]:
    return [unit.value for unit in units(AGENT, AGENT.locate(path)) if unit.is_message]


def session(path: Path) -> dict[str, Any]:
    source = AGENT.locate(path)
    return AGENT.session(source, AGENT.facts(source))


def texts(path: Path) -> list[tuple[str, str]]:
    found = [(message["role"], message["content"]) for message in messages(path)]
    return [(role, block["text"]) for role, blocks in found for block in blocks if block["type"] == "text"]


def active_texts(path: Path) -> list[str]:
    path_ids = AGENT.facts(AGENT.locate(path)).tree.graph().active_path
    active = [message for message in messages(path) if message["uuid"] in path_ids]
    return [block["text"] for message in active for block in message["content"] if block["type"] == "text"]


def request(name: str, **members: JSON) -> dict[str, JSON]:
    return {"requestId": name, "timestamp": 1794300000000, "message": {"text": name}, **members}


def write(folder: Path, *lines: dict[str, JSON]) -> Path:
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# Finding


def test_chats_of_workspaces_and_of_empty_windows_are_found(tmp_path: Path) -> None:
    user = tmp_path / ".config" / "Code" / "User"
    shutil.copytree(STORAGE, user / "workspaceStorage")
    (user / "workspaceStorage" / "0d6f2b" / "state.vscdb").write_bytes(b"")
    shutil.copy(LOG, user / "workspaceStorage" / "0d6f2b" / "chatSessions" / "old.jsonl")
    empty = user / "globalStorage" / "emptyWindowChatSessions"
    empty.mkdir(parents=True)
    shutil.copy(LOG, empty / "window.jsonl")
    found = [source for root in AGENT.roots(Host.at(tmp_path)) for source in AGENT.discover(root)]
    names = [source.path.relative_to(user).as_posix() for source in found]
    assert names == [
        f"workspaceStorage/0d6f2b/chatSessions/{ID}.jsonl",
        "workspaceStorage/0d6f2b/chatSessions/old.jsonl",
        "globalStorage/emptyWindowChatSessions/window.jsonl",
    ]


def test_the_folders_of_all_editors_are_read(tmp_path: Path) -> None:
    assert tmp_path / ".config/VSCodium/User/workspaceStorage" in _roots(tmp_path)
    assert tmp_path / "Library/Application Support/Code/User/workspaceStorage" in _roots(tmp_path)


def _roots(home: Path) -> list[Path]:
    return list(AGENT.roots(Host.at(home)))


def test_of_another_machine_only_chats_are_copied(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path, "box")
    is_ignored = mirror.is_ignored(mirror.host("/home/ada", {}))
    storage = "/home/ada/.config/Code/User/workspaceStorage/0d6f2b"
    assert not is_ignored(f"{storage}/chatSessions/a.jsonl")
    assert not is_ignored(f"{storage}/workspace.json")
    assert not is_ignored("/home/ada/.claude/projects/x/a.jsonl")
    assert is_ignored(f"{storage}/state.vscdb")
    assert is_ignored(f"{storage}/ms-python.python/secrets.json")
    assert list(AGENT.beside(PurePosixPath(f"{storage}/chatSessions/a.jsonl"), b"", [f"{storage}/workspace.json"]))


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("a.jsonl", b'{"kind":0,"v":{"version":3,"requests":[', Claim.YES),
        ("a.json", b'{"version":2,"responderUsername":"GitHub Copilot","requests":[', Claim.YES),
        ("a.jsonl", b'{"kind":"start","session":"first"}\n', Claim.NO),
        ("a.json", b'{"requests":[]}', Claim.NO),
    ],
)
def test_a_chat_is_known_by_its_first_line(name: str, head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path(name), head) is claim


def test_id_place_and_title() -> None:
    found = session(LOG)
    assert found["id"] == ID
    assert found["workspace"] == "/home/ada/src/tide bell"
    assert found["title"] == "A bell for the tide"
    assert found["started_at"] == "2026-11-10T08:41:00Z"
    assert session(DOCUMENT)["title"] == "Tides"


# Messages


def test_rounds_are_replies_with_their_results() -> None:
    assert [message["role"] for message in messages(LOG)][:8] == ["user", *["assistant", "user"] * 3, "assistant"]
    first = messages(LOG)[1]["content"]
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use"]
    assert first[2]["input"] == {"filePath": "/home/ada/src/tide bell/tide.py"}
    assert messages(LOG)[2]["content"][0]["output"] == "HIGH = '06:12'"


def test_pictures_of_a_prompt_are_shown() -> None:
    image = messages(LOG)[0]["content"][1]
    assert (image["type"], image["media_type"], image["image"]) == ("image", "image/png", "iVBORw0KGgo=")


def test_a_command_with_an_exit_code_has_failed() -> None:
    facts = AGENT.facts(AGENT.locate(LOG))
    assert facts.errors == 1
    assert messages(LOG)[6]["content"][0]["is_error"] is True


def test_without_rounds_a_reply_is_what_the_editor_displays() -> None:
    shown = messages(LOG)[11:]
    assert [message["role"] for message in shown] == ["assistant", "user", "assistant"]
    assert [block["type"] for block in shown[0]["content"]] == ["thinking", "text", "text", "tool_use"]
    assert shown[1]["content"][0]["output"] == "Read bell.py"
    assert shown[2]["content"] == [{"type": "text", "text": "It is soft now."}]


def test_a_failed_request_says_why() -> None:
    assert texts(DOCUMENT)[-1] == ("system", "The request failed.")


def test_tokens_and_model_are_those_of_the_request() -> None:
    used = AGENT.facts(AGENT.locate(LOG)).ledger.total()
    assert (used.calls, used.input_tokens, used.output_tokens, used.cache_read_tokens) == (1, 1200, 80, None)
    assert messages(LOG)[7]["metadata"]["model"]["name"] == "claude-sonnet-4.5"


def test_the_todo_list_comes_from_its_tool() -> None:
    (state,) = progression(messages(LOG))
    assert [(todo.content, todo.status) for todo in state.todos] == [
        ("Ring the bell", "completed"),
        ("Test it", "pending"),
    ]


def test_changed_files_are_known_from_the_calls() -> None:
    history = FileHistory(AGENT, AGENT.locate(LOG))
    answer = history.timelines["/home/ada/src/tide bell/bell.py"].at(5)
    (state,) = history.contents([answer])
    assert (answer.certainty, getattr(state, "body", None)) == ("text", b"print('ding')\n")


# The log


def test_a_request_that_was_taken_back_is_a_branch() -> None:
    facts = AGENT.facts(AGENT.locate(LOG))
    (fork,) = facts.tree.graph().fork_points
    assert [messages(LOG)[branch.index - 1]["content"][0]["text"] for branch in fork.branches] == [
        "Make it louder.",
        "Make it softer.",
    ]
    assert "DING." not in active_texts(LOG)


def test_the_last_text_of_a_part_counts() -> None:
    assert ("assistant", "I read the table") not in texts(LOG)


def test_a_request_that_is_written_again_is_the_same_request(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"kind": 0, "v": {**STATE, "requests": [request("a"), request("b")]}},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [request("b", response=[{"value": "Now with a reply."}])]},
    )
    assert active_texts(path) == ["a", "b", "Now with a reply."]
    assert len(messages(path)) == 3


def test_what_a_new_state_lacks_was_taken_back(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"kind": 0, "v": {**STATE, "requests": [request("a"), request("b")]}},
        {"kind": 0, "v": {**STATE, "requests": [request("a"), request("c")]}},
    )
    assert active_texts(path) == ["a", "c"]
    assert [text for _, text in texts(path)] == ["a", "b", "c"]


def test_one_request_can_be_replaced_by_another(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"kind": 0, "v": {**STATE, "requests": [request("a"), request("b")]}},
        {"kind": 1, "k": ["requests", 1], "v": request("c")},
        {"kind": 1, "k": ["requests", 0], "v": request("a", message={"text": "a, again"})},
    )
    assert active_texts(path) == ["a, again", "c"]
    assert [text for _, text in texts(path)] == ["a, again", "b", "c"]


def test_after_going_back_to_a_checkpoint_the_chat_ends_before_it(tmp_path: Path) -> None:
    undone = request("b", shouldBeRemovedOnSend={"afterUndoStop": "x"})
    path = write(tmp_path, {"kind": 0, "v": {**STATE, "requests": [request("a"), undone]}})
    assert active_texts(path) == ["a"]


def test_a_change_that_cannot_be_applied_is_a_problem() -> None:
    source = AGENT.locate(LOG)
    (found,) = AGENT.check(source, AGENT.facts(source))
    assert (found.code, found.line) == ("wrong-type", 15)


@pytest.mark.parametrize(
    "line",
    [
        {"kind": 1, "k": [], "v": 1},
        {"kind": 1, "k": ["requests", "x", 1], "v": 1},
        {"kind": 2, "k": ["requests"], "i": -5, "v": [3, None]},
        {"kind": 2, "k": ["version"], "v": [1]},
        {"kind": 1, "k": ["requests", 0, "response", 9], "v": 1},
        {"kind": 3, "k": ["requests", 0]},
        {"kind": True, "k": ["requests"]},
        {"kind": 7},
    ],
)
def test_odd_changes_do_no_harm(tmp_path: Path, line: dict[str, JSON]) -> None:
    path = write(tmp_path, {"kind": 0, "v": {**STATE, "requests": [request("a", response=[])]}}, line)
    assert ("user", "a") in texts(path)


def test_unknown_keys_are_named() -> None:
    line = {"kind": 2, "k": ["requests"], "v": [request("a", weather="fine")], "x": 1}
    assert list(AGENT.unknown_keys(line)) == ["line.x", "request.weather"]


# Conversion


def test_a_chat_goes_on_in_another_agent(tmp_path: Path) -> None:
    written = prepare(AGENT, AGENT.locate(LOG), "claude-code").write(tmp_path, allow_loss=True)
    text = Path(written.files[0]).read_text()
    assert "Make it softer." in text and "Make it louder." not in text
    assert AGENT.target_profile() is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copilot_session_simple.json", "copilot_session_simple.jsonl"])
def test_real_chats_are_read_whole(shared: Path, name: str) -> None:
    path = shared / "corpus" / "copilot" / "git-ai-project__git-ai" / name
    assert round_trip(AGENT, AGENT.locate(path)).different == []
    facts = AGENT.facts(AGENT.locate(path))
    assert (facts.prompts, facts.models) == (3, {"claude-sonnet-4": facts.models["claude-sonnet-4"]})
    texts_by_role = texts(path)
    assert ("user", "Search for any other mentions of Bonjour") in texts_by_role
    results = [block for message in messages(path) for block in message["content"] if block["type"] == "tool_result"]
    assert results[0]["output"].startswith("The following files were successfully edited:\n/Users/")
    assert facts.tool_calls == len(results)


@pytest.mark.parametrize("step", [{"a": 1}, [1], 7, None])
def test_a_change_at_a_path_that_is_no_path_is_a_problem(tmp_path: Path, step: JSON) -> None:
    first = {"kind": 0, "v": {**STATE, "requests": [request("a")]}}
    path = write(tmp_path, first, {"kind": 2, "k": ["inputState", step], "v": ["b"]}, {"kind": 2, "k": [step], "v": []})
    source = AGENT.locate(path)
    found = AGENT.check(source, AGENT.facts(source))
    assert [(problem.code, problem.line) for problem in found] == [("wrong-type", 2), ("wrong-type", 3)]
