"""Trajectories of ATIF, read as sessions and given back as they were."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from clew.agents.harbor import Harbor
from clew.sources.local import at_path
from clew.testing import AgentConformance
from tests.cli.running import clew

FIXTURES = Path(__file__).parents[1] / "fixtures" / "harbor"
RUN = FIXTURES / "bell-run-7.json"


def read(path: Path = RUN) -> dict[str, Any]:
    ran = clew("export", path, "--to", "json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = ran.json
    return document


def test_steps_become_messages() -> None:
    document = read()
    assert document["agent"] == "harbor" and document["session"]["id"] == "bell-run-7"
    assert [message["role"] for message in document["messages"]] == (
        "system user assistant user assistant system user user assistant".split()
    )
    prompt, reply, results = document["messages"][1:4]
    assert [block["type"] for block in prompt["content"]] == ["text", "image"]
    assert [block["type"] for block in reply["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert reply["metadata"]["token_usage"] == {"input_tokens": 20, "output_tokens": 30, "cache_read_tokens": 100}
    assert [(block["tool_id"], block.get("is_error")) for block in results["content"]] == [
        ("call_1", None),
        ("call_2", True),
    ]


def test_subagents_are_linked_to_their_calls() -> None:
    document = read()
    (link,) = document["session"]["subagents"]
    assert link["tool_id"] == "call_1" and link["root_uuid"] == "bell-run-7:helper#1"
    beside = [message["uuid"] for message in document["messages"] if message.get("metadata", {}).get("is_sidechain")]
    assert beside == ["bell-run-7:helper#1", "bell-run-7:helper#2"]
    assert document["graph"]["is_linear"] is True


def test_a_trajectory_comes_back_byte_for_byte(tmp_path: Path) -> None:
    """Through the document, and through the export in its own format, unknown keys included."""
    value = json.loads(RUN.read_bytes())
    value["new_member"] = value["steps"][0]["new_member"] = {"kept": True}
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(value))
    assert clew("export", path, "-o", tmp_path / "document.json").code == 0
    assert clew("import", tmp_path / "document.json", "-o", tmp_path / "home").code == 0
    assert (tmp_path / "home/.harbor/trajectories/bell-run-7.json").read_bytes() == path.read_bytes()
    assert clew("export", path, "--to", "atif").raw == path.read_bytes()


def test_a_trajectory_is_imported_and_then_found(tmp_path: Path) -> None:
    ran = clew("import", RUN, "-o", tmp_path / "home")
    assert ran.code == 0 and "harbor:bell-run-7" in ran.err
    assert clew("list", "--home", tmp_path / "home", "--json").json[0]["id"] == "bell-run-7"
    again = clew("import", RUN, "-o", tmp_path / "home")
    assert again.code == 6 and "exists" in again.err
    assert clew("import", RUN, "-o", tmp_path / "home", "--force").code == 0


def test_a_trajectory_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("bell", "bell.atif", "bell.json.txt"):
        (tmp_path / name).write_bytes(RUN.read_bytes())
        ran = clew("import", tmp_path / name, "-o", tmp_path / f"home of {name}")
        assert ran.code == 0 and "harbor:bell-run-7" in ran.err
    lines = tmp_path / "bells.jsonl"
    lines.write_bytes((json.dumps(json.loads(RUN.read_bytes())) + "\n").encode() * 2)
    ran = clew("import", lines, "-o", tmp_path / "home")
    assert ran.code == 4 and "a trajectory of ATIF: name a file with one of them .json" in ran.err


def test_a_trajectory_without_a_readable_message_is_not_imported(tmp_path: Path) -> None:
    value = json.loads(RUN.read_bytes())
    text = json.dumps(value)
    for number, cut in enumerate((text[: text.index('"steps"')], text[: text.index('"steps"') + 60], text[:60])):
        path = tmp_path / f"cut{number}.json"
        path.write_text(cut)
        ran = clew("import", path, "-o", tmp_path / "home")
        assert ran.code == 4 and f"{path}: no message can be read: the last line ends in the middle" in ran.err
    path.write_text(json.dumps({**value, "steps": [], "subagent_trajectories": []}))
    ran = clew("import", path, "-o", tmp_path / "home")
    assert ran.code == 4 and ran.err == f"clew: {path}: no message can be read\n"
    assert not (tmp_path / "home").exists()


def test_a_part_of_a_trajectory_is_imported_with_a_warning(tmp_path: Path) -> None:
    torn = tmp_path / "torn.json"
    torn.write_bytes(RUN.read_bytes()[:2200])
    ran = clew("import", torn, "-o", tmp_path / "home")
    assert (
        ran.code == 1 and "cannot read line " in ran.err and "the last line ends in the middle of a record" in ran.err
    )
    assert clew("list", "--home", tmp_path / "home", "--json").json[0]["messages"] > 0


def test_the_id_is_that_of_the_trajectory_and_not_one_inside_of_it(tmp_path: Path) -> None:
    value = json.loads(RUN.read_bytes())
    del value["session_id"]
    batch = {"schema_version": value.pop("schema_version"), "extra": {"session_id": "outer-batch"}}
    folder = tmp_path / "home/.harbor/trajectories"
    for name, members in (("one", {"session_id": "run-1"}), ("two", {"session_id": "run-2"}), ("three", {})):
        (folder / name).mkdir(parents=True)
        (folder / name / f"{name}.json").write_text(json.dumps({**batch, **members, **value}))
    late = {**batch, **value, "session_id": "run-4"}
    (folder / "four.json").write_text(json.dumps(late))
    listed = clew("list", "--home", tmp_path / "home", "--json").json
    assert {each["id"] for each in listed} == {"run-1", "run-2", "three", "run-4"}
    assert read(folder / "one/one.json")["session"]["id"] == "run-1"


def test_a_masked_trajectory_is_still_one(tmp_path: Path) -> None:
    token = "glpat-" + sha256(b"bell").hexdigest()[:20]
    value = json.loads(RUN.read_bytes())
    value["steps"][1]["message"] = f"Use {token}"
    value["extra"] = {"note": token}
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(value))
    masked = clew("export", path, "--to", "atif")
    assert token not in masked.out and len(masked.json["steps"]) == len(value["steps"])
    assert token in clew("export", path, "--to", "atif", "--redact", "none").out


def test_damage_is_a_problem_with_a_place(tmp_path: Path) -> None:
    torn, odd = tmp_path / "torn.json", tmp_path / "odd.json"
    torn.write_bytes(RUN.read_bytes()[:2200])
    value = json.loads(RUN.read_bytes())
    value["steps"][1]["source"] = "oracle"
    value["steps"][3]["metrics"] = "many"
    odd.write_text(json.dumps(value))
    found = {path.name: clew("validate", path, "--json").json for path in (torn, odd)}
    assert any(each["line"] for each in found["torn.json"])
    assert {(each["code"], each["line"] is not None) for each in found["odd.json"]} >= {
        ("bad-role", True),
        ("wrong-type", True),
    }
    assert any("step 4, $.metrics" in each["message"] for each in found["odd.json"])
    assert len(read(odd)["messages"]) == 8


def test_a_trajectory_is_converted_for_another_agent(tmp_path: Path) -> None:
    ran = clew("convert", RUN, "--to", "claude-code", "--home", tmp_path / "home", "--allow-loss", "--json")
    assert ran.code == 0, ran.err
    (copy,) = at_path(Path(ran.json["files"][0]))
    assert copy.agent.id == "claude-code"


class TestHarborConforms(AgentConformance):
    agent = Harbor()
    fixtures = [RUN]
