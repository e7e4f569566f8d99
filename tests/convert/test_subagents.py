"""Sub-agents that went with a session are found again where it went, and go on with it from there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.convert.losses import Converted
from clew.convert.prepare import prepare
from clew.host import Host
from clew.library import Library, StoredSession
from tests.agents import rollouts as codex
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

PARENT = "38ed"
TARGETS = ["codex", "gemini", "claude-code"]


def convert(home: Path, reference: str, target: str, into: Path) -> Converted:
    library = Library(Host.at(home))
    session = library.get(reference)
    prepared = prepare(session.agent, session.source, target, find=library.subagents(session))
    return prepared.write(into, allow_loss=True)


def children(home: Path, written: Converted) -> list[StoredSession]:
    """The sub-agents of a converted session, as it names them itself."""
    there = {each.id: each for each in Library(Host.at(home)).sources()}
    return [there[str(link.session_id)] for link in there[written.session_id].header.subagents or ()]


def words(session: StoredSession) -> list[str]:
    blocks = [block for message in session.messages for block in message.content]
    return sorted(text for block in blocks if (text := getattr(block, "text", None)))


def said(sessions: list[StoredSession]) -> list[list[str]]:
    return sorted(words(session) for session in sessions)


@pytest.fixture
def original(demo: Path) -> list[StoredSession]:
    library = Library(Host.at(demo))
    found = [library.get(str(link.session_id)) for link in library.get(PARENT).header.subagents or ()]
    assert len(found) == 2
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_the_converted_session_names_them(
    demo: Path, original: list[StoredSession], tmp_path: Path, target: str
) -> None:
    written = convert(demo, PARENT, target, tmp_path)
    assert said(children(tmp_path, written)) == said(original)


@pytest.mark.parametrize("target", ["claude-code", "gemini", "codex"])
def test_they_go_on_with_a_session_that_has_grown(
    demo: Path, original: list[StoredSession], tmp_path: Path, target: str
) -> None:
    between, end = tmp_path / "between", tmp_path / "end"
    written = convert(demo, PARENT, "codex", between)
    content = [{"type": "input_text", "text": "and now?"}]
    item = {"type": "message", "role": "user", "content": content}
    line = {"timestamp": "2026-11-15T10:00:00.000Z", "type": "response_item", "payload": item}
    with Path(written.files[0]).open("a") as stream:
        stream.write(json.dumps(line, separators=(",", ":")) + "\n")
    again = convert(between, written.session_id, target, end)
    assert [loss.what for loss in again.losses if "sub-agent" in loss.what] == []
    assert said(children(end, again)) == said(original)


def test_codex_is_told_of_them_as_it_tells_itself(demo: Path, tmp_path: Path) -> None:
    """Its own reader refuses a path of other letters, and with it the line it stands in."""
    written = convert(demo, PARENT, "codex", tmp_path)
    lines = [json.loads(line) for line in Path(written.files[0]).read_text().splitlines()]
    events = [line["payload"] for line in lines if line.get("payload", {}).get("type") == "sub_agent_activity"]
    calls = {line["payload"]["call_id"] for line in lines if line.get("payload", {}).get("type") == "function_call"}
    assert len(events) == 2 and {event["event_id"] for event in events} <= calls
    for event in events:
        assert set(event) == {"type", "event_id", "occurred_at_ms", "agent_thread_id", "agent_path", "kind"}
        (file,) = tmp_path.rglob(f"*{event['agent_thread_id']}.jsonl")
        head = json.loads(file.read_text().partition("\n")[0])["payload"]
        spawn = head["source"]["subagent"]["thread_spawn"]
        assert spawn["agent_path"] == event["agent_path"]
        _, root, name = event["agent_path"].split("/")
        assert root == "root" and name == name.lower() and name.replace("_", "").isalnum()
        assert spawn["parent_thread_id"] == written.session_id


class TestTheFolderOfTheParent:
    """Claude Code and Gemini CLI look for sub-agents below the folder of their session, wherever they worked."""

    @pytest.fixture
    def parent(self, tmp_path: Path) -> Path:
        folder = tmp_path / "backup"
        folder.mkdir()
        path = transcript(folder, spoke("user", "one", uuid="u1", parentUuid=None))
        child = folder / path.stem / "subagents/agent-beef0001.jsonl"
        child.parent.mkdir(parents=True)
        inside = {"isSidechain": True, "agentId": "beef0001", "cwd": "/home/ada/sub"}
        child.write_text(json.dumps(spoke("user", "aside", uuid="s1", parentUuid=None, **inside)) + "\n")
        return path

    @pytest.mark.parametrize("target", TARGETS)
    def test_a_sub_agent_of_another_working_folder_is_found(self, parent: Path, tmp_path: Path, target: str) -> None:
        found = only(parent)
        finds = Library(Host.at(tmp_path)).subagents(StoredSession(*found))
        written = prepare(found.agent, found.source, target, find=finds).write(tmp_path / "home")
        assert said(children(tmp_path / "home", written)) == [["aside"]]


@pytest.mark.parametrize("target", TARGETS)
def test_the_newest_is_the_session_and_none_of_them(demo: Path, tmp_path: Path, target: str) -> None:
    """Clients that go on with the last look at seconds, some of them."""
    written = convert(demo, PARENT, target, tmp_path)
    main = Library(Host.at(tmp_path)).get(written.session_id).source.path
    for child in children(tmp_path, written):
        assert int(child.source.path.stat().st_mtime) < int(main.stat().st_mtime)


def test_sub_agents_of_a_session_in_a_home_are_found_without_a_walk(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(Host.at(demo))
    session = library.get(PARENT)
    monkeypatch.setattr("clew.library.at_path", lambda *_: pytest.fail("a folder was searched"))
    monkeypatch.setattr("clew.library.in_homes", lambda *_: pytest.fail("the homes were searched"))
    find = library.subagents(session)
    links = [str(link.session_id) for link in session.header.subagents or ()]
    assert len(links) == 2
    assert [source.path.stem for link in links if (source := find(link))] == links


class TestSubAgentsOfSubAgents:
    """Codex lets a sub-agent start others; elsewhere all of them lie in one folder, that of the session itself."""

    NAMES = (codex.THREAD, codex.OTHER, codex.THIRD)

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        """A session that started a sub-agent, which started another, which claims to have started the first."""
        for depth, name in enumerate(self.NAMES):
            spawned = {"parent_thread_id": self.NAMES[depth - 1], "depth": depth, "agent_nickname": f"k{depth}"}
            whence = {"source": {"subagent": {"thread_spawn": spawned}}} if depth else {}
            answer = json.dumps({"agent_id": self.NAMES[(depth + 1) % 3], "nickname": f"k{depth + 1}"})
            codex.write(
                tmp_path / "home",
                codex.meta(name, session_id=codex.THREAD, **whence),
                *codex.asked(f"go {depth}"),
                codex.item("function_call", name="spawn_agent", arguments='{"message":"look"}', call_id=f"c{depth}"),
                codex.item("function_call_output", call_id=f"c{depth}", output=answer),
                *codex.answered(f"done {depth}"),
                thread=name,
            )
        return tmp_path / "home"

    @pytest.mark.parametrize("target", TARGETS)
    def test_all_of_them_go_over_and_come_back(self, home: Path, tmp_path: Path, target: str) -> None:
        there, back = tmp_path / "there", tmp_path / "back"
        written = convert(home, codex.THREAD, target, there)
        assert [loss for loss in written.losses if "sub-agent" in loss.what] == []
        sessions = Library(Host.at(there)).sources()
        told = sorted(text for each in sessions for text in words(each))
        assert [text for text in told if text.startswith(("go", "done"))] == [
            *("done 0", "done 1", "done 2"),
            *("go 0", "go 1", "go 2"),
        ]
        if target != "codex":
            convert(there, written.session_id, "codex", back)
            for name in self.NAMES:
                (path,), (again,) = home.rglob(f"*{name}.jsonl"), back.rglob(f"*{name}.jsonl")
                assert again.read_bytes() == path.read_bytes()

    def test_written_anew_each_names_the_new_ones(self, home: Path, tmp_path: Path) -> None:
        written = convert(home, codex.THREAD, "codex", tmp_path / "there")
        there = {each.id: each for each in Library(Host.at(tmp_path / "there")).sources()}
        assert len(there) == 3 and not {*self.NAMES} & {*there}
        one = there[written.session_id]
        for depth in (1, 2):
            (link,) = one.header.subagents or []
            parent, one = one, there[str(link.session_id)]
            assert one.header.parent_session_id == parent.id
            head = json.loads(one.source.path.read_text().partition("\n")[0])["payload"]
            assert head["session_id"] == written.session_id
            assert head["source"]["subagent"]["thread_spawn"]["depth"] == depth

    def test_what_changes_below_makes_another_session(self, home: Path, tmp_path: Path) -> None:
        before = convert(home, codex.THREAD, "gemini", tmp_path / "there")
        (path,) = home.rglob(f"*{codex.THIRD}.jsonl")
        with path.open("a") as stream:
            stream.write(json.dumps(codex.asked("and on")[0]) + "\n")
        after = convert(home, codex.THREAD, "gemini", tmp_path / "there")
        assert after.session_id != before.session_id


class TestPlaces:
    """Sub-agents come back to where they were, seen from their session."""

    AGENT = "a1b2c3d4e5f60718a"
    UUID = "aaaaaaaa-0000-4000-8000-000000000001"

    def session(self, folder: Path, place: str, **more: str) -> Path:
        """A session with a sub-agent that lies somewhere below it."""
        call = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "done"}]}
        folder.mkdir(parents=True)
        main = transcript(
            folder,
            spoke("user", "hi", uuid="u1", parentUuid=None, sessionId=self.UUID),
            spoke("assistant", [call], uuid="u2", parentUuid="u1", sessionId=self.UUID),
            spoke(
                "user", [result], uuid="u3", parentUuid="u2", sessionId=self.UUID, toolUseResult={"agentId": self.AGENT}
            ),
        )
        below = folder / self.UUID / place / f"agent-{self.AGENT}.jsonl"
        below.parent.mkdir(parents=True)
        own = {"sessionId": self.UUID, "isSidechain": True, "agentId": self.AGENT, **more}
        records = [
            spoke("user", "look", uuid="s1", **own),
            spoke("assistant", "found", uuid="s2", parentUuid="s1", **own),
        ]
        below.write_text("".join(json.dumps(record) + "\n" for record in records))
        return main

    @pytest.mark.parametrize(
        ("place", "more"),
        [
            ("subagents", {}),
            ("subagents", {"cwd": "/home/ada/elsewhere"}),
            ("subagents/workflows/wf_1", {}),
            ("subagents/workflows/wf_1", {"sessionId": "bbbbbbbb-0000-4000-8000-000000000002"}),
        ],
    )
    def test_they_come_back_to_it(self, tmp_path: Path, place: str, more: dict[str, str]) -> None:
        folder = ".claude/projects/-home-ada"
        main = self.session(tmp_path / "home" / folder, place, **more)
        there = convert(tmp_path / "home", str(main), "codex", tmp_path / "there")
        assert children(tmp_path / "there", there)
        back = convert(tmp_path / "there", there.session_id, "claude-code", tmp_path / "back")
        before = sorted((tmp_path / "home").rglob("*.jsonl"))
        after = sorted((tmp_path / "back").rglob("*.jsonl"))
        assert [path.relative_to(tmp_path / "back") for path in after] == [
            path.relative_to(tmp_path / "home") for path in before
        ]
        assert [path.read_bytes() for path in after] == [path.read_bytes() for path in before]
        assert back.losses == []

    def test_a_session_with_the_name_of_another_agents_comes_back(self, tmp_path: Path) -> None:
        path = tmp_path / "conversation.jsonl"
        path.write_text(json.dumps(spoke("user", "hi", uuid="u1", parentUuid=None)) + "\n")
        found = only(path)
        there = only(Path(prepare(found.agent, found.source, "codex").write(tmp_path / "there").files[0]))
        back = prepare(there.agent, there.source, "claude-code").write(tmp_path / "back")
        assert Path(back.files[0]).read_bytes() == path.read_bytes()


def test_what_describes_a_sub_agent_goes_with_it_to_a_session_of_its_own_agent(demo: Path, tmp_path: Path) -> None:
    convert(demo, PARENT, "claude-code", tmp_path)
    described = {path.name: path.read_bytes() for path in demo.rglob("agent-*.meta.json")}
    assert len(described) == 2
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("agent-*.meta.json")} == described
