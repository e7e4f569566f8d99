"""A session goes from any agent to any other, whole, and comes back byte for byte."""

from __future__ import annotations

import gzip
import json
import shutil
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents import registry
from clew.agents.base import SourceFile
from clew.convert import origin
from clew.convert.conversation import safe_id
from clew.convert.history import SessionWithHistory
from clew.convert.prepare import prepare
from clew.errors import InvalidDocument, UsageError, WouldLose
from clew.host import Host
from clew.library import Library, StoredSession
from clew.sources.local import in_homes
from tests.convert.said import calls_first, only, said
from tests.receivers import RECEIVERS

AGENTS = RECEIVERS
WITH_AGENTS = "38ed9768-3187-478b-a81f-4c75a5724c22"
FORKED = "f005c7db-1dcc-4692-bc16-77f2521cfb4b"


def found(home: Path, agent: str) -> list[SourceFile]:
    return [each.source for each in in_homes([Host.at(home)], [agent])]


def test_every_agent_receives() -> None:
    for name in AGENTS:
        prepared = registry.get(name)
        assert prepared.target_profile() is not None, name


@pytest.mark.seed("S3-32")
@pytest.mark.parametrize("target", AGENTS)
@pytest.mark.parametrize("origin_of", AGENTS)
def test_any_agent_to_any_agent(demo: Path, tmp_path: Path, origin_of: str, target: str) -> None:
    agent = registry.get(origin_of)
    for number, source in enumerate(found(demo, origin_of)):
        home = tmp_path / str(number)
        written = prepare(agent, source, target, full_history=True).write(home, allow_loss=True)
        copy = only(Path(written.files[0]))
        assert copy.agent.id == target
        assert copy.agent.session_id(copy.source) == written.session_id or target == "sage-emacs"
        lost_pictures = any("picture" in loss.what for loss in written.losses)
        whole = SessionWithHistory(agent, source)
        before = [word for word in said(agent, whole.source) if not (lost_pictures and word[0] == "picture")]
        assert calls_first(said(copy.agent, copy.source)) == calls_first(before)
        assert written.session_id in " ".join(written.resume) or target == "sage-emacs"


@pytest.mark.parametrize(("origin_of", "target"), list(permutations(AGENTS, 2)))
def test_converting_back_gives_the_original_bytes(demo: Path, tmp_path: Path, origin_of: str, target: str) -> None:
    agent = registry.get(origin_of)
    for number, source in enumerate(found(demo, origin_of)):
        home = tmp_path / str(number)
        there = only(Path(prepare(agent, source, target).write(home, allow_loss=True).files[0]))
        back = prepare(there.agent, there.source, origin_of).write(home / "back")
        assert back.session_id == agent.session_id(source)
        originals = [origin.file_path(source, name) for name in origin.file_names(source)]
        files = back.files[: len(originals)]
        assert [Path(file).read_bytes() for file in files] == [file.read_bytes() for file in originals]
        assert back.losses == []


@pytest.mark.parametrize("way", [("sage-agent", "codex"), ("sage-emacs", "gemini"), ("codex", "sage-agent")])
def test_a_session_comes_back_all_the_way_it_went(demo: Path, tmp_path: Path, way: tuple[str, str]) -> None:
    source = found(demo, "claude-code")[0]
    there = only(source.path)
    for number, target in enumerate([*way, way[0], "claude-code"]):
        written = prepare(there.agent, there.source, target).write(tmp_path / str(number), allow_loss=True)
        there = only(Path(written.files[0]))
    assert there.source.path.read_bytes() == source.path.read_bytes()


@pytest.mark.parametrize("target", ["claude-code", "codex", "gemini"])
def test_sub_agents_go_with_their_session_and_come_back(demo: Path, tmp_path: Path, target: str) -> None:
    library = Library(Host.at(demo))
    session = library.get(WITH_AGENTS)
    home = tmp_path / "there"
    written = prepare(session.agent, session.source, target, find=library.subagents(session)).write(home)
    assert written.losses == []
    there = Library(Host.at(home))
    converted = {each.id: each for each in there.sources()}
    children = [each for each in converted.values() if each.is_subagent]
    assert len(children) == 2
    assert {each.header.parent_session_id for each in children} == {written.session_id}
    originals = [library.get(f"claude-code:{link.session_id}") for link in session.header.subagents or ()]
    before = sorted(said(each.agent, each.source) for each in originals)
    assert sorted(said(each.agent, each.source) for each in children) == before
    if target == "claude-code":
        return
    parent = converted[written.session_id]
    back = prepare(parent.agent, parent.source, "claude-code").write(tmp_path / "back")
    files = [
        origin.file_path(each.source, name) for each in (session, *originals) for name in origin.file_names(each.source)
    ]
    assert sorted(Path(file).read_bytes() for file in back.files) == sorted(file.read_bytes() for file in files)
    assert {Path(file).relative_to(tmp_path / "back") for file in back.files} == {f.relative_to(demo) for f in files}


def test_a_sub_agent_that_is_not_there_is_a_loss(demo: Path, tmp_path: Path) -> None:
    session = Library(Host.at(demo)).get(WITH_AGENTS)
    prepared = prepare(session.agent, session.source, "codex", find=lambda _identity: None)
    assert [loss.what for loss in prepared.describe(tmp_path).losses] == [
        f"the sub-agent {link.agent_id}" for link in session.header.subagents or ()
    ]


def test_a_session_that_went_on_is_not_brought_back_but_converted(demo: Path, tmp_path: Path) -> None:
    agent = registry.get("sage-agent")
    source = found(demo, "sage-agent")[0]
    there = Path(prepare(agent, source, "claude-code").write(tmp_path, allow_loss=True).files[0])
    record = {"type": "user", "uuid": "new", "parentUuid": None, "message": {"role": "user", "content": "And now?"}}
    with there.open("a") as stream:
        stream.write(json.dumps(record) + "\n")
    again = only(there)
    back = prepare(again.agent, again.source, "sage-agent").write(tmp_path / "back", allow_loss=True)
    assert back.session_id != agent.session_id(source)


def test_a_conversion_that_would_lose_writes_nothing(demo: Path, tmp_path: Path) -> None:
    agent = registry.get("claude-code")
    (source,) = [each for each in found(demo, "claude-code") if each.path.stem == FORKED]
    prepared = prepare(agent, source, "sage-agent")
    with pytest.raises(WouldLose):
        prepared.write(tmp_path / "home")
    assert not (tmp_path / "home").exists()
    assert [loss.what for loss in prepared.describe(tmp_path).losses] == ["2 messages on other branches"]


def test_another_branch_can_be_chosen(demo: Path, tmp_path: Path) -> None:
    agent = registry.get("claude-code")
    (source,) = [each for each in found(demo, "claude-code") if each.path.stem == FORKED]
    (fork,) = agent.facts(source).tree.graph().fork_points
    ends = set()
    for branch in fork.branches:
        home = tmp_path / str(branch.index)
        written = prepare(agent, source, "sage-agent", branch.uuid).write(home, allow_loss=True)
        copy = only(Path(written.files[0]))
        assert said(copy.agent, copy.source) == said(agent, source, str(branch.index))
        ends.add(said(copy.agent, copy.source)[-1])
    assert len(ends) == 2
    with pytest.raises(UsageError, match="no message"):
        prepare(agent, source, "sage-agent", "999")


def test_what_is_there_is_not_replaced(demo: Path, tmp_path: Path) -> None:
    agent = registry.get("claude-code")
    source = found(demo, "claude-code")[0]
    prepare(agent, source, "sage-emacs").write(tmp_path, allow_loss=True)
    with pytest.raises(WouldLose, match="exists"):
        prepare(agent, source, "sage-emacs").write(tmp_path, allow_loss=True)


def broken(path: Path, folder: Path) -> Path:
    """A transcript with a glued line, a parent that is missing and a torn tail."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].rstrip(b"\n")
    record = json.loads(lines[3])
    record["parentUuid"] = "00000000-0000-4000-8000-000000000000"
    lines[3] = json.dumps(record).encode() + b"\n"
    lines.append(b'{"type":"assistant","message":{"role":"assi')
    copy = folder / path.name
    copy.write_bytes(b"".join(lines))
    return copy


def test_a_damaged_session_written_for_its_own_agent_is_whole(tmp_path: Path) -> None:
    agent = registry.get("claude-code")
    clean = tmp_path / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    uuids = [f"aaaaaaaa-0000-4000-8000-1{number:011}" for number in range(6)]
    with clean.open("w") as stream:
        for number, uuid in enumerate(uuids):
            role = "assistant" if number % 2 else "user"
            record = {
                "parentUuid": uuids[number - 1] if number else None,
                "sessionId": clean.stem,
                "type": role,
                "message": {"role": role, "content": [{"type": "text", "text": f"word {number}"}]},
                "uuid": uuid,
                "timestamp": f"2026-05-01T08:00:0{number}.000Z",
            }
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")
    (tmp_path / "damaged").mkdir()
    damaged = only(broken(clean, tmp_path / "damaged"))
    written = prepare(damaged.agent, damaged.source, "claude-code").write(tmp_path / "home", allow_loss=True)
    assert [loss.what for loss in written.losses] == ["line 6, which may hold a message"]
    copy = only(Path(written.files[0]))
    assert said(copy.agent, copy.source) == said(agent, only(clean).source)
    assert list(StoredSession(copy.agent, copy.source).problems()) == []
    assert {json.loads(line)["sessionId"] for line in copy.source.path.read_text().splitlines()} == {written.session_id}


@given(st.text())
def test_the_id_of_a_call_is_accepted_everywhere(text: str) -> None:
    assert safe_id(text) == safe_id(text)
    assert safe_id(safe_id(text)) == safe_id(text)
    assert 1 <= len(safe_id(text)) <= 64


class TestOrigin:
    def kept(self, demo: Path, home: Path) -> origin.Original:
        source = found(demo, "sage-agent")[0]
        written = prepare(registry.get("sage-agent"), source, "claude-code").write(home, allow_loss=True)
        kept = origin.find(only(Path(written.files[0])).source)
        assert kept is not None
        return kept

    def test_W05_an_original_cannot_lead_out_of_the_home(self, demo: Path, tmp_path: Path) -> None:
        kept = self.kept(demo, tmp_path)
        text = kept.path.read_text().replace('"target":".sage', '"target":"../../.sage')
        kept.path.write_text(text)
        there = only(Path(str(kept.path).removesuffix(origin.ORIGINAL_FILE_SUFFIX)))
        with pytest.raises(InvalidDocument, match="unsafe path"):
            prepare(there.agent, there.source, "sage-agent").write(tmp_path / "back")

    @pytest.mark.parametrize("place", [".bashrc", ".ssh/authorized_keys", ".claude/settings.json"])
    def test_R02_an_original_goes_only_to_where_its_agent_keeps_sessions(
        self, demo: Path, tmp_path: Path, place: str
    ) -> None:
        kept = self.kept(demo, tmp_path)
        lines = kept.path.read_text().splitlines(keepends=True)
        value = json.loads(lines[0])
        value["origin"]["target"] = place
        kept.path.write_text(json.dumps(value, separators=(",", ":")) + "\n" + "".join(lines[1:]))
        there = only(Path(str(kept.path).removesuffix(origin.ORIGINAL_FILE_SUFFIX)))
        with pytest.raises(InvalidDocument, match="unsafe path"):
            prepare(there.agent, there.source, "sage-agent").write(tmp_path / "back")
        assert not (tmp_path / "back").exists()

    def test_what_was_changed_since_is_not_undone(self, demo: Path, tmp_path: Path) -> None:
        kept = self.kept(demo, tmp_path)
        path = Path(str(kept.path).removesuffix(origin.ORIGINAL_FILE_SUFFIX))
        path.write_bytes(path.read_bytes().replace(b"fog", b"FOG"))
        there = only(path)
        back = prepare(there.agent, there.source, "sage-agent").write(tmp_path / "back", allow_loss=True)
        assert b"fog" not in Path(back.files[0]).read_bytes()

    def test_without_its_original_a_session_is_converted_anew(self, demo: Path, tmp_path: Path) -> None:
        kept = self.kept(demo, tmp_path)
        there = only(Path(str(kept.path).removesuffix(origin.ORIGINAL_FILE_SUFFIX)))
        kept.path.unlink()
        back = prepare(there.agent, there.source, "sage-agent").write(tmp_path / "back", allow_loss=True)
        assert back.session_id != kept.origin.session


def test_a_packed_session_comes_back_packed(demo: Path, tmp_path: Path) -> None:
    source = found(demo, "claude-code")[0]
    packed = tmp_path / f"{source.path.name}.gz"
    with source.path.open("rb") as plain, gzip.open(packed, "wb") as out:
        shutil.copyfileobj(plain, out)
    written = prepare(only(packed).agent, only(packed).source, "sage-agent").write(tmp_path, allow_loss=True)
    there = only(Path(written.files[0]))
    back = prepare(there.agent, there.source, "claude-code").write(tmp_path / "back")
    assert back.files[0].endswith(".jsonl.gz")
    assert Path(back.files[0]).read_bytes() == packed.read_bytes()
