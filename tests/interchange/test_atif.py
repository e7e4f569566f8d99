"""clew export --format atif: trajectories that Harbor's models accept, with what other converters drop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.agents.source import SourceFile
from clew.convert.losses import Loss
from clew.interchange.atif import ATIF_VERSION, write
from clew.interchange.thread import Thread
from clew.sources.local import at_path
from tests.cli.running import FORKED, WITH_AGENTS, clew
from tests.interchange.harbor import validation_errors

FIXTURES = Path(__file__).parents[1] / "fixtures"


class Transcript:
    """A session of Claude Code, line by line."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "0a0a0a0a-0000-4000-8000-000000000001.jsonl"
        self._last: str | None = None
        self._count = count(1)

    def add(self, role: str, content: Any, **fields: Any) -> Transcript:
        number = next(self._count)
        uuid = f"00000000-0000-4000-8000-{number:012}"
        message = {"role": role, "content": content} | {
            name: fields.pop(name) for name in ("id", "model", "usage") if name in fields
        }
        record = {"type": role, "uuid": uuid, "parentUuid": self._last, "sessionId": self.path.stem, "version": "2.1.0"}
        time = {"timestamp": f"2026-10-01T08:00:{number:02}.000Z"}
        with self.path.open("a") as file:
            file.write(json.dumps({**record, **time, "message": message, **fields}) + "\n")
        self._last = uuid
        return self

    def call(self, *names: str, **fields: Any) -> Transcript:
        calls = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}} for name in names]
        return self.add("assistant", calls, model="claude-opus-4-5", **fields)

    def result(self, *names: str) -> Transcript:
        blocks = [{"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"} for name in names]
        return self.add("user", blocks)

    def export(self) -> tuple[dict[str, Any], list[Loss]]:
        agent = registry.get("claude-code")
        out = BytesIO()
        losses = write(Thread(agent, agent.locate(self.path)), out)
        return json.loads(out.getvalue()), losses


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path)


def exported(*words: str) -> dict[str, Any]:
    ran = clew("export", *words, "--to", "atif")
    assert ran.code == 0, ran.err
    trajectory: dict[str, Any] = ran.json
    return trajectory


def results(step: dict[str, Any]) -> list[tuple[str | None, Any]]:
    return [(each["source_call_id"], each["content"]) for each in step["observation"]["results"]]


def test_results_stand_on_the_step_of_their_call(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", "b", id="m1").result("b").result("a").add("assistant", "Done.")
    trajectory, losses = transcript.export()
    assert [step["source"] for step in trajectory["steps"]] == ["user", "agent", "agent"]
    assert results(trajectory["steps"][1]) == [("b", "result of b"), ("a", "result of a")]
    assert losses == []


def test_the_lines_of_one_reply_are_one_step(transcript: Transcript) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7}
    transcript.add("user", "Ring.")
    thought = [{"type": "thinking", "thinking": "First a.", "signature": "c2ln"}]
    transcript.add("assistant", thought, id="m1", model="claude-opus-4-5", usage=usage)
    transcript.call("a", id="m1", usage=usage).result("a").call("b", id="m1", usage=usage).result("b")
    trajectory, _ = transcript.export()
    _, step = trajectory["steps"]
    assert step["reasoning_content"] == "First a." and step["extra"]["thinking_signatures"] == ["c2ln"]
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["a", "b"]
    assert step["llm_call_count"] == 1
    counts = {name: step["metrics"][name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")}
    assert counts == {"prompt_tokens": 30, "completion_tokens": 5, "cached_tokens": 20}
    assert trajectory["final_metrics"]["total_prompt_tokens"] == 30


def test_results_that_come_late_or_without_a_call_name_none(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", "b", id="m1").result("a").add("assistant", "More.", id="m2")
    transcript.result("b").result("nowhere")
    trajectory, losses = transcript.export()
    assert results(trajectory["steps"][1]) == [("a", "result of a")]
    late, orphan = trajectory["steps"][3:]
    assert late["source"] == "system" and results(late) == [(None, "result of b")]
    assert late["observation"]["results"][0]["extra"]["tool_call_id"] == "b"
    assert results(orphan) == [(None, "result of nowhere")]
    assert [loss.what for loss in losses] == ["2 x which call a result answers"]


def test_copied_messages_and_summaries_are_marked(transcript: Transcript) -> None:
    transcript.add("user", "Earlier.", sessionId="0a0a0a0a-0000-4000-8000-000000000000")
    transcript.add("user", "The summary.", isCompactSummary=True).add("user", "Now.")
    trajectory, _ = transcript.export()
    assert [step.get("is_copied_context") for step in trajectory["steps"]] == [True, True, None]


def test_arguments_that_are_no_object_are_wrapped(transcript: Transcript) -> None:
    transcript.add("assistant", [{"type": "tool_use", "id": "a", "name": "Bash", "input": ["ls"]}], id="m1")
    (call,) = transcript.export()[0]["steps"][0]["tool_calls"]
    assert call["arguments"] == {"input": ["ls"]} and call["extra"] == {"input_was_no_object": True}


def test_pictures_are_data_urls_and_other_attachments_are_lost(transcript: Transcript) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    transcript.add("user", [{"type": "text", "text": "See."}, picture, document])
    trajectory, losses = transcript.export()
    text, image, note = trajectory["steps"][0]["message"]
    assert text == {"type": "text", "text": "See."}
    assert image["source"] == {"media_type": "image/png", "path": "data:image/png;base64,iVBORw0KGgo="}
    assert note["text"] == "[document: application/pdf]"
    assert [(loss.message, loss.what) for loss in losses] == [(1, "an attached document")]


def test_a_session_without_messages_has_an_empty_step(transcript: Transcript) -> None:
    transcript.path.write_text(json.dumps({"type": "summary", "summary": "Bells", "leafUuid": "x"}) + "\n")
    trajectory, losses = transcript.export()
    assert [(step["source"], step["message"]) for step in trajectory["steps"]] == [("system", "")]
    assert losses[0].what == "an empty session"


def test_subagents_are_embedded_and_referred_to(synced_demo: Path) -> None:
    trajectory = exported("--home", str(synced_demo), WITH_AGENTS)
    children = {child["trajectory_id"]: child for child in trajectory["subagent_trajectories"]}
    step = next(step for step in trajectory["steps"] if step.get("tool_calls"))
    references = [result["subagent_trajectory_ref"][0] for result in step["observation"]["results"]]
    assert [reference["trajectory_id"] for reference in references] == list(children)
    assert all(child["steps"] and child["schema_version"] == ATIF_VERSION for child in children.values())


def test_subagents_have_no_files_of_their_own(synced_demo: Path, tmp_path: Path) -> None:
    ran = clew("export", "--home", synced_demo, "--agent", "claude-code", "--to", "atif", "-o", tmp_path / "out")
    assert ran.code == 0 and "each file lists what it cannot hold" in ran.err
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert f"claude-code-{WITH_AGENTS}.atif.json" in names
    embedded = exported("--home", str(synced_demo), WITH_AGENTS)["subagent_trajectories"]
    assert embedded and not {f"claude-code-{each['session_id']}.atif.json" for each in embedded} & set(names)


def test_messages_on_other_branches_are_a_loss(synced_demo: Path) -> None:
    ran = clew("export", "--home", synced_demo, FORKED, "--to", "atif")
    assert "lost: " in ran.err and "on other branches: the format has one line of messages" in ran.err
    trajectory = ran.json
    assert any("on other branches" in loss["what"] for loss in trajectory["extra"]["clew"]["losses"])
    assert "on other branches" in trajectory["notes"]


@pytest.mark.parametrize(
    ("agent", "prompt", "tools"),
    [
        ("codex", "You are a coding agent running in a terminal.", []),
        ("cline", "You help.", []),
        ("copilot-cli", "(the client's instructions)", []),
        ("kimi-code", "You keep a lighthouse.", []),
        ("pi", None, ["read"]),
    ],
)
def test_system_prompts_and_tools_are_included(agent: str, prompt: str | None, tools: list[str]) -> None:
    prompts, names = set[str | None](), set[str]()
    for found in at_path(FIXTURES / agent):
        out = BytesIO()
        write(Thread(found.agent, found.source), out)
        trajectory = json.loads(out.getvalue())
        first = trajectory["steps"][0]
        prompts |= {step["message"] for step in trajectory["steps"] if step.get("extra", {}).get("is_system_prompt")}
        if first.get("extra", {}).get("is_system_prompt"):
            assert first["source"] == "system"
        definitions = trajectory["agent"].get("tool_definitions", [])
        assert all(each["type"] == "function" for each in definitions)
        names |= {each["function"]["name"] for each in definitions}
    assert prompt is None or prompt in prompts
    assert set(tools) <= names


def test_secrets_are_masked_unless_told_otherwise(transcript: Transcript) -> None:
    token = "glpat-" + sha256(b"bell").hexdigest()[:20]
    transcript.add("user", f"Use {token}").add("assistant", "Done.", id="m1")
    masked, plain = (clew("export", transcript.path, "--to", "atif", *words) for words in ((), ("--redact", "none")))
    assert token.encode() not in masked.raw and masked.json["extra"]["clew"]["redacted"]
    assert token.encode() in plain.raw and "redacted" not in plain.json["extra"]["clew"]


def test_the_format_follows_from_the_suffix(transcript: Transcript, tmp_path: Path) -> None:
    transcript.add("user", "Ring.")
    target = tmp_path / "bell.atif.json"
    assert clew("export", transcript.path, "-o", target).code == 0
    assert json.loads(target.read_bytes())["schema_version"] == ATIF_VERSION
    assert clew("export", transcript.path, "--to", "atif", "-o", tmp_path / "bell.json").code == 0
    refused = clew("export", transcript.path, "--to", "atif", "-o", tmp_path / "bell.md")
    assert refused.code == 2 and "cannot be combined" in refused.err


def _find(sources: dict[tuple[str, str], SourceFile], agent: str, identity: str) -> SourceFile | None:
    return sources.get((agent, identity))


def _exports(folder: Path, target: Path) -> Iterator[Path]:
    """Every session below a folder as a file, with its sub-agents."""
    found = list(at_path(folder))
    sources = {(one.agent.id, one.agent.session_id(one.source)): one.source for one in found}
    target.mkdir()
    for number, one in enumerate(found):
        path = target / f"{number}.json"
        with path.open("wb") as out:
            write(Thread(one.agent, one.source, partial(_find, sources, one.agent.id)), out)
        yield path


def test_trajectories_are_read_back(demo: Path, tmp_path: Path) -> None:
    """Each step is a message again, each call a call, with the same tokens, and nothing is wrong with the format."""
    agent = registry.get("harbor")
    for path in _exports(demo, tmp_path / "demo"):
        trajectory = json.loads(path.read_bytes())
        source = agent.locate(path)
        facts = agent.facts(source)
        steps = list(_all_steps(trajectory))
        with_results = sum("observation" in step for step in steps)
        assert facts.messages == len(steps) + with_results
        assert facts.tool_calls == sum(len(step.get("tool_calls", ())) for step in steps)
        completions = [step.get("metrics", {}).get("completion_tokens") for step in steps]
        assert (facts.ledger.total().output_tokens or 0) == sum(filter(None, completions))
        assert list(agent.check(source, facts)) == []


def test_tokens_and_costs_are_kept(synced_demo: Path, tmp_path: Path) -> None:
    """Of every session that is exported and imported again, unless a loss says otherwise."""
    out, home = tmp_path / "out", tmp_path / "home"
    assert clew("export", "--home", synced_demo, "--to", "atif", "-o", out).code == 0
    files = sorted(out.iterdir())
    assert clew("import", *files, "-o", home).code == 0
    before, after = (_counts_by_session(folder) for folder in (synced_demo, home))
    incomplete = 0
    for path in files:
        trajectory = json.loads(path.read_bytes())
        session = trajectory["session_id"]
        expected = sum((before[each] for each in _all_session_ids(trajectory)), Counter[str]())
        losses = "\n".join(loss["what"] for loss in trajectory["extra"]["clew"]["losses"])
        if "the tokens of" in losses:
            incomplete += 1
            assert after[session] < expected and "on other branches" in losses
        else:
            assert after[session] == expected, path
    assert 0 < incomplete < len(files) / 4


def test_a_reply_of_an_unknown_model_stays_one(transcript: Transcript, tmp_path: Path) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5}
    transcript.add("assistant", "Ding.", id="m1", model="claude-opus-4-5", usage=usage)
    transcript.add("assistant", "Dong.", id="m2", usage=usage)
    path = tmp_path / "bell.json"
    assert clew("export", transcript.path, "--to", "atif", "-o", path).code == 0
    rows = [clew("list", each, "--json").json[0] for each in (transcript.path, path)]
    assert rows[0]["cost"] == rows[1]["cost"] and rows[0]["cost_is_at_least"] and rows[1]["cost_is_at_least"]


def _counts_by_session(home: Path) -> dict[str, Counter[str]]:
    """Tokens and nano-dollars that are known; each session by itself, because a call in two sessions counts once."""
    counts = {}
    for session in clew("list", "--home", home, "--subagents", "-n", "1000", "--json").json:
        (row,) = clew("list", session["path"], "--subagents", "--json").json
        counts[row["id"]] = Counter({name: count or 0 for name, count in row["tokens"].items() if name != "calls"})
        counts[row["id"]]["cost"] = round((row["cost"] or 0) * 10**9)
    return {session: +each for session, each in counts.items()}


def _all_session_ids(trajectory: dict[str, Any]) -> set[str]:
    """The ids of the sessions of a trajectory and its sub-agents."""
    children = trajectory.get("subagent_trajectories", ())
    return {trajectory["session_id"]}.union(*map(_all_session_ids, children))


def test_counts_in_extra_of_other_tools_are_not_read(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 30, "completion_tokens": 5, "extra": {"input_tokens": 3, "cache_creation_tokens": 9}}
    step = {"step_id": 1, "source": "agent", "message": "Done.", "metrics": metrics}
    trajectory = {"schema_version": ATIF_VERSION, "session_id": "bell", "steps": [step]}
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(trajectory))
    assert clew("list", path, "--json").json[0]["tokens"]["input_tokens"] == 30


def _all_steps(trajectory: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a trajectory and of its sub-agents."""
    yield from trajectory["steps"]
    for child in trajectory.get("subagent_trajectories", ()):
        yield from _all_steps(child)


@pytest.mark.slow
def test_harbor_accepts_every_session_of_fixtures_and_demo(demo: Path, tmp_path: Path) -> None:
    files = [*_exports(FIXTURES, tmp_path / "fixtures"), *_exports(demo, tmp_path / "demo")]
    assert len(files) > 50
    assert validation_errors(files) == {}


def test_harbor_accepts_every_session_of_the_corpus(shared: Path, tmp_path: Path) -> None:
    assert validation_errors(_exports(shared / "corpus", tmp_path / "corpus")) == {}


@pytest.mark.slow
def test_harbor_refuses_what_is_no_trajectory(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"schema_version": "ATIF-v1.8"}')
    assert list(validation_errors([tmp_path / "x.json"])) == [str(tmp_path / "x.json")]
