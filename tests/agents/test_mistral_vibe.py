"""Mistral Vibe: entries of a snapshot and of the journal behind it, with the calls as the model made them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest

from clew.agents.base import Agent
from clew.agents.mistral_vibe import MistralVibe
from clew.analysis.usage import Usage
from clew.export.verify import verify
from clew.file_history.history import FileHistory
from clew.model.json import JSON
from clew.testing import AgentConformance
from tests.cli.running import clew
from tests.files.asking import known

AGENT = MistralVibe()
(META,) = (Path(__file__).parents[1] / "fixtures" / "mistral-vibe").glob("*/meta.json")
BELL = "/home/ada/tidebell/bell.py"
ROLES = "user assistant assistant assistant user assistant user assistant user user assistant user assistant".split()


class TestMistralVibe(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = [META]


def messages(meta: Path = META) -> list[dict[str, JSON]]:
    return [unit.value for unit in AGENT.units(AGENT.locate(meta)) if unit.is_message]


def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(META.parent, tmp_path / META.parent.name)) / "meta.json"


def test_the_header_comes_from_the_description() -> None:
    source = AGENT.locate(META)
    session = AGENT.session(source, AGENT.facts(source))
    assert session["id"] == META.parent.name
    assert session["workspace"] == "/home/ada/tidebell"
    assert session["title"] == "Make the bell ring."
    assert session["started_at"] == "2026-11-01T08:00:01Z"


def test_every_file_of_the_folder_belongs_to_the_session() -> None:
    files = {path for path in META.parent.rglob("*") if path.is_file()}
    for path in files:
        source = AGENT.locate(path)
        assert {source.path, *(META.parent / name for name in (*source.parts, *source.sides))} == files


def test_entries_of_the_snapshot_and_behind_it_follow_each_other() -> None:
    found = messages()
    assert [message["role"] for message in found] == ROLES
    assert [message.get("parent_uuid") for message in found] == [None, *(message["uuid"] for message in found[:-1])]
    calls = [block for message in found for block in message["content"] if block["type"] == "tool_use"]
    assert [(call["tool_id"], call["tool_name"]) for call in calls] == [
        ("c1", "write_file"),
        ("c2", "bash"),
        ("c3", "todo"),
        ("c4", "edit"),
    ]
    results = [block for message in found for block in message["content"] if block["type"] == "tool_result"]
    assert [result["is_error"] for result in results] == [False, True, False, False]
    assert [todo["content"] for todo in found[8]["metadata"]["todos"]] == ["Ring", "Paint"]


def test_without_a_snapshot_the_journal_tells_all(tmp_path: Path) -> None:
    meta = copy(tmp_path)
    (meta.parent / "CURRENT").unlink()
    own = [{**message, "source": None} for message in messages(meta)]
    assert own == [{**message, "source": None} for message in messages()]


def test_requests_count_once() -> None:
    assert AGENT.facts(AGENT.locate(META)).ledger.total() == Usage(4, 1200, 168, None, 2400)


def test_without_the_older_journal_the_total_of_the_snapshot_counts(tmp_path: Path) -> None:
    meta = copy(tmp_path)
    (meta.parent / "journal" / f"{1:016d}.jsonl").unlink()
    facts = AGENT.facts(AGENT.locate(meta))
    assert facts.ledger.total() == Usage(3, 1200, 168, None, 2400)
    assert facts.messages == len(ROLES)


def test_requests_of_the_older_journal_are_counted_by_the_snapshot(tmp_path: Path) -> None:
    meta = copy(tmp_path)
    (meta.parent / "journal" / f"{1:016d}.jsonl").unlink()
    actions = [
        {"action_id": f"aaaaaaaa-0000-5000-8000-00000000000{number}", "kind": kind, "state": state}
        for number, kind, state in (
            (3, "completion", "succeeded"),
            (1, "completion", "succeeded"),
            (2, "tool", "succeeded"),
            (9, "completion", "failed"),
        )
    ]
    (snapshot,) = meta.parent.glob("generations/*")
    (snapshot / "runtime-state.json").write_text(json.dumps({"actions": actions}), encoding="utf-8")
    ledger = AGENT.facts(AGENT.locate(meta)).ledger
    # The two behind the snapshot are in the journal.
    assert ledger.total() == Usage(4, 1200, 168, None, 2400)
    assert all(place for *_, place in ledger.each())


def test_nothing_is_wrong_or_unknown() -> None:
    assert clew("validate", META, "--level", "note").code == 0
    units = AGENT.units(AGENT.locate(META))
    assert [key for unit in units for key in AGENT.unknown_keys(unit.native)] == []


def test_tools_prove_what_they_wrote() -> None:
    history = FileHistory(AGENT, AGENT.locate(META))
    assert known(history, 5, BELL) == ("exact", b"print('dong')\n")


@pytest.mark.slow
def test_the_recorded_session_is_read_whole(shared: Path) -> None:
    (meta,) = (shared / "corpus" / "recorded" / "vibe" / "unified").glob("*/meta.json")
    source = AGENT.locate(meta)
    proof, facts = verify(AGENT, source), AGENT.facts(source)
    assert (proof.different, proof.unknown_keys, proof.unknown_types) == ([], {}, {})
    # Five requests, each with 900 tokens of input, 600 of them cached, and 42 of output.
    assert facts.ledger.total() == Usage(5, 1500, 210, None, 3000)
    assert (facts.prompts, facts.tool_calls, facts.errors) == (1, 6, 1)


def test_the_output_of_a_command_is_what_it_printed() -> None:
    results = [block for message in messages() for block in message["content"] if block["type"] == "tool_result"]
    outputs = {block["tool_name"]: block["output"] for block in results}
    assert outputs["bash"] == "no such file\n"
    assert outputs["todo"] == "Updated 2 todos"
    assert json.loads(outputs["write_file"])["bytes_written"] == 14
