"""clew export --format otel: spans that OpenTelemetry's own decoder reads, without content unless it is asked for."""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clew.interchange.hugging_face import write_simple_trace
from clew.interchange.otel import SCHEMA_URL
from clew.interchange.otel import write as write_spans
from clew.interchange.thread import Thread
from clew.sources.local import at_path
from tests.cli.running import WITH_AGENTS, clew
from tests.interchange.test_atif import Transcript

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path)


def spans(*words: str | Path) -> list[dict[str, Any]]:
    ran = clew("export", *words, "--to", "otel")
    assert ran.code == 0, ran.err
    (resource,) = ran.json["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert scope["schemaUrl"] == SCHEMA_URL
    found: list[dict[str, Any]] = scope["spans"]
    return found


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_replies_calls_and_the_session_are_spans(transcript: Transcript) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7}
    transcript.add("user", "Ring.").call("a", id="m1", usage=usage).result("a").add("assistant", "Done.", id="m2")
    chat, tool, last, agent = spans(transcript.path)
    assert [span["name"] for span in (chat, tool, last, agent)] == [
        "chat claude-opus-4-5",
        "execute_tool Bash",
        "chat",
        "invoke_agent claude-code",
    ]
    assert {span["parentSpanId"] for span in (chat, tool, last)} == {agent["spanId"]} and "parentSpanId" not in agent
    assert len({span["spanId"] for span in (chat, tool, last, agent)}) == 4
    given = attributes(chat)
    assert given["gen_ai.provider.name"] == "anthropic" and given["gen_ai.response.id"] == "m1"
    assert given["gen_ai.usage.input_tokens"] == "30" and given["gen_ai.usage.cache_read.input_tokens"] == "20"
    assert (chat["startTimeUnixNano"], chat["endTimeUnixNano"]) == ("1790841601000000000", "1790841602000000000")
    assert (tool["startTimeUnixNano"], tool["endTimeUnixNano"]) == ("1790841602000000000", "1790841603000000000")
    assert attributes(tool)["gen_ai.tool.call.id"] == "a"
    assert attributes(agent)["gen_ai.conversation.id"] == transcript.path.stem


def times(span: dict[str, Any]) -> tuple[int, int]:
    """Start and end, in seconds after the hour of the transcript."""
    start, end = (int(span[f"{name}TimeUnixNano"]) // 10**9 - 1790841600 for name in ("start", "end"))
    return start, end


def test_a_reply_begins_when_the_tools_before_it_have_ended(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", "b", id="m1").result("a").result("b").add("assistant", "Done.", id="m2")
    chat, one, other, last, agent = spans(transcript.path)
    assert [times(span) for span in (chat, one, other, last, agent)] == [(1, 2), (2, 3), (2, 4), (4, 5), (1, 5)]


def test_a_result_that_comes_after_the_next_reply_does_not_move_it(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", id="m1").add("assistant", "Wait.", id="m2").result("a")
    chat, tool, last, agent = spans(transcript.path)
    assert [times(span) for span in (chat, tool, last, agent)] == [(1, 2), (2, 4), (2, 3), (1, 4)]


def test_a_session_lasts_as_long_as_its_last_tool(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", id="m1").result("a")
    _, tool, agent = spans(transcript.path)
    assert times(tool) == (2, 3) and times(agent) == (1, 3)


def test_ids_stay_the_same_when_a_session_grows(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", id="m1").result("a")
    before = {span["spanId"]: span["name"] for span in spans(transcript.path)}
    transcript.add("assistant", "Done.", id="m2")
    after = {span["spanId"]: span["name"] for span in spans(transcript.path)}
    assert before.items() <= after.items()


def test_content_is_left_out_unless_it_is_asked_for(transcript: Transcript) -> None:
    transcript.add("user", "Ring softly.").call("chime", id="m1").result("chime")
    transcript.add("assistant", "It rang twice.", id="m2")
    texts = ("Ring softly.", "It rang twice.", "result of chime", '"command"')
    plain = clew("export", transcript.path, "--to", "otel").out
    assert not [text for text in texts if text in plain]
    whole = clew("export", transcript.path, "--to", "otel", "--with-content").out.replace('\\"', '"')
    assert all(text in whole for text in texts)
    refused = clew("export", transcript.path, "--to", "atif", "--with-content")
    assert refused.code == 2 and "--with-content needs --format otel" in refused.err


def test_a_failed_call_is_an_error(transcript: Transcript) -> None:
    transcript.add("user", "Ring.").call("a", id="m1")
    transcript.add("user", [{"type": "tool_result", "tool_use_id": "a", "content": "no bell", "is_error": True}])
    tool = next(span for span in spans(transcript.path) if span["name"].startswith("execute_tool"))
    assert tool["status"] == {"code": 2} and attributes(tool)["error.type"] == "tool_error"


def test_subagents_hang_on_the_call_that_started_them(synced_demo: Path) -> None:
    found = spans("--home", synced_demo, WITH_AGENTS)
    names = {span["spanId"]: span["name"] for span in found}
    children = [span for span in found if span["name"].startswith("invoke_agent") and "parentSpanId" in span]
    assert len(children) == 2 and {names[span["parentSpanId"]] for span in children} == {"execute_tool Agent"}
    assert len({span["traceId"] for span in found}) == 1


def test_a_subagent_of_another_branch_hangs_on_the_session(transcript: Transcript) -> None:
    call = {"type": "tool_use", "id": "a", "name": "Agent", "input": {"prompt": "Look for bells."}}
    transcript.add("user", "Ring.").add("assistant", [call], id="m1")
    answer = [{"type": "tool_result", "tool_use_id": "a", "content": "None."}]
    transcript.add("user", answer, toolUseResult={"agentId": "abc1234"})
    transcript.add("user", "Ring twice.", parentUuid=None).add("assistant", "Done.", id="m2")
    subagent = Transcript(transcript.path.with_suffix("") / "subagents")
    subagent.path = subagent.path.with_name("agent-abc1234.jsonl")
    subagent.path.parent.mkdir(parents=True)
    head = {"sessionId": transcript.path.stem, "isSidechain": True, "agentId": "abc1234"}
    subagent.add("user", "Look for bells.", **head).add("assistant", "None.", id="s1", **head)
    found = spans(transcript.path)
    assert [span["name"] for span in found] == ["chat", "chat", "invoke_agent claude-code", "invoke_agent claude-code"]
    assert found[2]["parentSpanId"] == found[3]["spanId"]
    assert {span["parentSpanId"] for span in found[:-1]} <= {span["spanId"] for span in found}


def test_losses_of_several_sessions_are_added_up(synced_demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.otlp.jsonl"
    ran = clew("export", "--home", synced_demo, "--agent", "claude-code", "--to", "otel", "-o", out)
    assert "  lost: 2 x a message on another branch, in 1 session: the format has one line of messages\n" in ran.err
    assert re.search(r"  note: \d+ x a record that is no message, in \d+ sessions: ", ran.err)
    assert "  note: 1 x the tokens of a call of a model, in 1 session: " in ran.err


def test_secrets_are_masked(transcript: Transcript) -> None:
    token = "glpat-" + sha256(b"bell").hexdigest()[:20]
    transcript.add("user", f"Use {token}").add("assistant", "Done.", id="m1")
    masked = clew("export", transcript.path, "--to", "otel", "--with-content")
    assert token not in masked.out and "REDACTED" in masked.out


def test_the_official_decoder_reads_every_session(synced_demo: Path, tmp_path: Path) -> None:
    trace = pytest.importorskip("opentelemetry.proto_json.trace.v1.trace")
    out = tmp_path / "spans.otlp.jsonl"
    for options in ((), ("--with-content",)):
        ran = clew("export", "--home", synced_demo, "--to", "otel", "-o", out, "--force", *options)
        assert ran.code == 0, ran.err
        lines = out.read_text(encoding="utf-8").splitlines()
        assert len(lines) > 20
        for line in lines:
            found = trace.TracesData.from_json(line).resource_spans[0].scope_spans[0].spans
            ids = Counter(span.span_id for span in found)
            assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in found)
            assert ids.most_common(1)[0][1] == 1
            assert all(not span.parent_span_id or span.parent_span_id in ids for span in found)


def test_every_session_of_the_corpus_is_exported(shared: Path) -> None:
    for found in at_path(shared / "corpus"):
        out = BytesIO()
        write_spans(Thread(found.agent, found.source), out)
        write_simple_trace(Thread(found.agent, found.source), out, found.agent.session_id(found.source))
        assert all(isinstance(json.loads(line), dict) for line in out.getvalue().splitlines())


def test_attributes_are_those_of_the_conventions(synced_demo: Path) -> None:
    names = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for name, value in vars(names).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    found = spans("--home", synced_demo, WITH_AGENTS, "--with-content")
    used = {name for span in found for name in attributes(span) if name.startswith("gen_ai.")}
    assert len(used) > 10 and used <= known
