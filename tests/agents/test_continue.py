"""Continue: documents without ids and times, with results inside the elements that call for them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew.agents.base import Agent, Header, Unit
from clew.agents.continue_dev import Continue, created_at
from clew.analysis.usage import Usage
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.file_history.history import FileHistory
from clew.model.json import JSON
from clew.testing import AgentConformance
from tests.cli.running import clew
from tests.files.asking import known

FIXTURES = Path(__file__).parents[1] / "fixtures" / "continue"
(SESSION,) = (path for path in FIXTURES.glob("*.json") if path.name != "sessions.json")
AGENT = Continue()
BELL = "/home/ada/tidebell/bell.py"


class TestContinue(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = [SESSION]


def messages() -> list[dict[str, JSON]]:
    return [unit.value for unit in AGENT.units(AGENT.locate(SESSION)) if unit.is_message]


def test_the_header_takes_the_time_from_the_list_of_sessions() -> None:
    source = AGENT.locate(SESSION)
    session = AGENT.session(source, AGENT.facts(source))
    assert session["id"] == "c0111111-0000-4000-8000-000000000001"
    assert session["workspace"] == "/home/ada/tidebell"
    assert session["title"] == "Make the bell ring."
    assert session["started_at"] == "2026-11-01T08:00:00Z"


def test_a_time_of_very_many_digits_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / SESSION.name
    path.write_bytes(SESSION.read_bytes())
    (tmp_path / "sessions.json").write_text(json.dumps([{"sessionId": path.stem, "dateCreated": "1" * 5000}]))
    assert created_at(path) is None


def test_messages_and_results_follow_each_other() -> None:
    found = messages()
    roles = "system user assistant assistant user assistant user assistant assistant user"
    assert [message["role"] for message in found] == roles.split()
    assert [message.get("parent_uuid") for message in found] == [None, *(message["uuid"] for message in found[:-1])]
    assert [block["type"] for block in found[1]["content"]] == ["document", "text", "image"]
    assert found[2]["content"] == [{"type": "thinking", "thinking": "First the file.", "signature": "sig-1"}]
    assert found[8]["metadata"]["is_compact_summary"] is True


def test_failed_and_cancelled_calls_are_errors() -> None:
    results = [block for block in messages()[6]["content"] if block["type"] == "tool_result"]
    assert [(block["tool_id"], block["tool_name"], block["is_error"]) for block in results] == [
        ("c2", "Edit", False),
        ("c3", "Bash", True),
        ("c4", "Checklist", False),
        ("c5", "Read", True),
    ]


def test_the_checklist_is_the_todo_list() -> None:
    assert messages()[6]["metadata"]["todos"] == [
        {"content": "Ring", "status": "completed"},
        {"content": "Paint", "status": "pending"},
    ]


def test_cached_input_is_not_counted_twice() -> None:
    assert AGENT.facts(AGENT.locate(SESSION)).ledger.total() == Usage(4, 550, 71, None, 2500, None, None, 10)


def test_what_a_fork_copies_is_the_same_call(tmp_path: Path) -> None:
    fork = tmp_path / "c0222222-0000-4000-8000-000000000002.json"
    fork.write_bytes(SESSION.read_bytes().replace(b"c0111111-0000-4000-8000-000000000001", fork.stem.encode()))
    first, second = ({call for call, *_ in AGENT.facts(AGENT.locate(path)).ledger.each()} for path in (SESSION, fork))
    assert first == second
    assert len(first) == 4


def test_missing_times_are_no_problem(tmp_path: Path) -> None:
    assert clew("validate", SESSION, "--level", "note").code == 0


def test_tools_prove_what_they_wrote() -> None:
    history = FileHistory(AGENT, AGENT.locate(SESSION))
    assert known(history, 5, BELL) == ("exact", b"print('dong')\n")
    assert known(history, 7, BELL)[1] == b"print('ding dong')\n"


def test_only_new_keys_are_unknown() -> None:
    units = AGENT.units(AGENT.locate(SESSION))
    assert [key for unit in units for key in AGENT.unknown_keys(unit.native)] == []
    assert list(AGENT.unknown_keys({"message": {"role": "user", "mood": 1}})) == ["message.mood"]


def encoded(*said: tuple[str, list[dict[str, JSON]]]) -> dict[str, Any]:
    session: dict[str, JSON] = {"id": "s1", "workspace": "/home/ada", "title": "Bell"}
    units = [
        Unit(True, {"index": index, "uuid": str(index), "role": role, "content": content}, 0, 0, 0, ())
        for index, (role, content) in enumerate(said, 1)
    ]
    ((_, content),) = AGENT.encode(Header("", "", AGENT.id, session, {}), units)
    document: dict[str, Any] = json.loads(content)
    return document


def test_results_stand_with_the_calls_of_a_reply() -> None:
    calls: list[dict[str, JSON]]
    calls = [{"type": "tool_use", "tool_id": name, "tool_name": "Bash", "input": {}} for name in ("c1", "c2")]
    results = [{"type": "tool_result", "tool_id": name, "output": name} for name in ("c1", "c2", "c3")]
    document = encoded(
        ("user", [{"type": "text", "text": "Go."}]),
        ("assistant", [{"type": "text", "text": "I go."}]),
        ("assistant", calls),
        ("user", results),
        ("assistant", [{"type": "text", "text": "Done."}]),
    )
    assert [item["message"]["role"] for item in document["history"]] == ["user", "assistant", "user", "assistant"]
    states = document["history"][1]["toolCallStates"]
    assert [(state["status"], state["output"][0]["content"]) for state in states] == [("done", "c1"), ("done", "c2")]
    assert document["history"][2]["message"]["content"] == "c3"


def test_a_copy_has_every_element_under_a_new_id(tmp_path: Path) -> None:
    written = prepare(AGENT, AGENT.locate(SESSION), "continue").write(tmp_path)
    copy, original = (json.loads(path.read_bytes()) for path in (Path(written.files[0]), SESSION))
    assert copy == {**original, "sessionId": written.session_id}
    index = json.loads((tmp_path / ".continue/sessions/sessions.json").read_bytes())
    assert [entry["sessionId"] for entry in index] == [written.session_id]


@pytest.mark.slow
def test_the_recorded_session_is_read_whole(shared: Path) -> None:
    folder = shared / "corpus" / "recorded" / "continue" / "sessions"
    (path,) = (path for path in folder.glob("*.json") if path.name != "sessions.json")
    source = AGENT.locate(path)
    proof, facts = verify(AGENT, source), AGENT.facts(source)
    assert (proof.different, proof.unknown_keys, proof.unknown_types) == ([], {}, {})
    # Seven requests, each with 900 tokens of input, 600 of them cached, and 42 of output, 10 of them reasoning.
    assert facts.ledger.total() == Usage(7, 2100, 294, None, 4200, None, None, 70)
    assert (facts.prompts, facts.tool_calls) == (2, 7)


def test_messages_count_at_the_end_of_the_session(tmp_path: Path) -> None:
    """Messages have no times: without one, they would be in no month and in no chart."""
    sessions = tmp_path / ".continue" / "sessions"
    sessions.mkdir(parents=True)
    path = sessions / SESSION.name
    path.write_bytes(SESSION.read_bytes())
    os.utime(path, (1793520060, 1793520060))
    counts = clew("--home", tmp_path, "stats", "--since", "2026-11-01", "--until", "2026-11-30", "--json").json[
        "totals"
    ]
    assert (counts["output_tokens"], counts["turns"], counts["tool_calls"]) == (71, 2, 5)
    assert clew("--home", tmp_path, "stats", "--until", "2026-10-01", "--json").json["totals"]["sessions"] == 0
