"""Words that stand in odd places go over, or are named; what is written is what a provider takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.convert.conversion import NothingToConvert
from clew.convert.losses import Loss, Losses
from clew.convert.prepare import prepare
from tests.agents.gemini_worlds import call, gemini, header, log, user
from tests.agents.rollouts import THREAD, event, item, line, meta
from tests.agents.rollouts import words as said
from tests.agents.rollouts import write as rollout
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

PIXEL = "aGk="
PICTURE = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
TARGETS = ["claude-code", "codex", "gemini", "sage-agent", "sage-emacs"]


def convert(path: Path, target: str, home: Path) -> tuple[list[dict[str, Any]], list[Loss]]:
    """The messages of the copy, and what was lost."""
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    copy = only(Path(written.files[0]))
    units = copy.agent.units(copy.source)
    return [unit.value for unit in units if unit.is_message and unit.value["role"] != "system"], written.losses


def lines(path: Path, target: str, home: Path) -> list[dict[str, Any]]:
    """The records of the copy as they are written."""
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    read = [json.loads(text) for text in Path(written.files[0]).read_text().splitlines()]
    return [record for record in read if record.get("type") != "clew-origin"]


def onward(path: Path, target: str, home: Path) -> tuple[Path, list[Loss]]:
    """The copy of a session that brings no original along, as if it had gone on; and what was lost."""
    found = only(path)
    written = prepare(found.agent, found.source, target, with_original=False).write(home, allow_loss=True)
    return Path(written.files[0]), written.losses


def whats(losses: list[Loss]) -> list[tuple[int | None, str]]:
    return [(loss.message, loss.what) for loss in losses]


def others(agent: str) -> list[str]:
    return [target for target in TARGETS if target != agent]


def spoken(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(m["role"], b["text"]) for m in messages for b in m["content"] if b["type"] == "text" and b["text"]]


class TestLosses:
    def test_equal_ones_are_counted_and_the_first_message_is_told(self) -> None:
        losses = Losses()
        for index in range(3, 90):
            losses.add(index, "thinking", "no place")
        losses.add(5, "a picture", "no place")
        thinking = Loss(3, "87 x thinking", "no place", kind="thinking", count=87)
        assert losses.listed() == [thinking, Loss(5, "a picture", "no place")]

    def test_many_thoughts_are_one_line(self, tmp_path: Path) -> None:
        thought = {"type": "summary_text", "text": "Hm."}
        thoughts = [item("reasoning", n, summary=[thought]) for n in range(40)]
        path = rollout(tmp_path, meta(), said("user", "Ring."), *thoughts, said("assistant", "Done."))
        _, losses = convert(path, "claude-code", tmp_path / "home")
        assert whats(losses) == [(2, "40 x thinking")]


class TestCodex:
    @pytest.mark.parametrize("target", others("codex"))
    def test_a_command_of_the_user_goes_over(self, tmp_path: Path, target: str) -> None:
        ran = "<user_shell_command>\n<command>\nmake ring\n</command>\n<result>\nding\n</result>\n</user_shell_command>"
        path = rollout(tmp_path, meta(), said("user", "Ring."), said("user", ran), said("assistant", "Heard."))
        messages, losses = convert(path, target, tmp_path / "home")
        assert spoken(messages) == [("user", "Ring."), ("user", ran), ("assistant", "Heard.")]
        assert losses == []

    @pytest.mark.parametrize("target", others("codex"))
    @pytest.mark.parametrize("name", ["user_shell_command", "subagent_notification"])
    def test_what_is_the_words_of_nobody_and_goes_over_all_the_same_comes_back_once(
        self, tmp_path: Path, target: str, name: str
    ) -> None:
        told = f"<{name}>\nding\n</{name}>"
        path = rollout(tmp_path, meta(), said("user", "Ring."), said("user", told), said("assistant", "Heard."))
        copy = onward(onward(path, target, tmp_path / "there")[0], "codex", tmp_path / "back")[0]
        messages, _ = convert(copy, "claude-code", tmp_path / "third")
        assert spoken(messages) == [("user", "Ring."), ("user", told), ("assistant", "Heard.")]

    @pytest.mark.parametrize("target", others("codex"))
    def test_a_failure_that_codex_reads_from_the_result_is_not_lost_on_the_way_back(
        self, tmp_path: Path, target: str
    ) -> None:
        failed = "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nno bell\n"
        calls = [item("function_call", name="shell", arguments="{}", call_id=name) for name in ("c1", "c2")]
        results = [item("function_call_output", call_id=name, output=failed) for name in ("c1", "c2")]
        path = rollout(tmp_path, meta(), said("user", "Ring."), *calls, *results, said("assistant", "No."))
        there, losses = onward(path, target, tmp_path / "there")
        assert losses == []
        back, losses = onward(there, "codex", tmp_path / "back")
        assert losses == []
        messages, _ = convert(back, "claude-code", tmp_path / "third")
        assert [b.get("is_error") for m in messages for b in m["content"] if b["type"] == "tool_result"] == [True, True]

    @pytest.mark.parametrize("target", others("codex"))
    def test_items_of_the_time_to_come_are_named(self, tmp_path: Path, target: str) -> None:
        unknown = [item("hologram", text="a bell"), item("hologram", text="two bells")]
        path = rollout(tmp_path, meta(), said("user", "Ring."), *unknown)
        _, losses = convert(path, target, tmp_path / "home")
        assert whats(losses) == [(1, "2 x an item of the kind 'hologram'")]

    def test_so_are_those_that_stand_alone_on_their_lines(self, tmp_path: Path) -> None:
        head = {"id": THREAD, "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None}
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Ring."}]}
        path = rollout(tmp_path, head, asked, {"type": "hologram", "text": "a bell"})
        _, losses = convert(path, "claude-code", tmp_path / "home")
        assert whats(losses) == [(1, "an item of the kind 'hologram'")]

    def test_so_is_a_line_that_says_who_speaks_and_holds_no_message(self, tmp_path: Path) -> None:
        head = {"id": THREAD, "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None}
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Ring."}]}
        path = rollout(tmp_path, head, asked, {"role": "assistant", "spoken": "Ding."})
        _, losses = convert(path, "claude-code", tmp_path / "home")
        assert whats(losses) == [(1, "a line of the role 'assistant'")]

    def test_a_message_of_another_agent_goes_over_once(self, tmp_path: Path) -> None:
        alone = line("inter_agent_communication", {"author": "one", "recipient": "two", "content": "Ring."})
        twin = line("inter_agent_communication", {"author": "one", "recipient": "two", "content": "Again."})
        beside = item("agent_message", content=[{"type": "input_text", "text": "Again."}])
        path = rollout(tmp_path, meta(), alone, said("assistant", "Ding."), twin, beside, said("assistant", "Dong."))
        messages, losses = convert(path, "claude-code", tmp_path / "home")
        assert [text for _, text in spoken(messages)] == ["Ring.", "Ding.", "Again.", "Dong."]
        assert losses == []

    def test_a_message_of_another_agent_that_was_taken_back_stays(self, tmp_path: Path) -> None:
        path = rollout(
            tmp_path,
            meta(),
            said("user", "Ring."),
            said("assistant", "Ding."),
            line("inter_agent_communication", {"author": "one", "content": "Stop."}),
            said("assistant", "Stopped."),
            event("thread_rolled_back", num_turns=1),
            said("user", "On."),
        )
        messages, _ = convert(path, "claude-code", tmp_path / "home")
        assert [text for _, text in spoken(messages)] == ["Ring.", "Ding.", "On."]

    @pytest.mark.parametrize("target", others("codex"))
    def test_a_proposed_plan_goes_over(self, tmp_path: Path, target: str) -> None:
        plan = event("item_completed", item={"type": "Plan", "id": "p", "text": "First ring, then rest."})
        path = rollout(tmp_path, meta(), said("user", "Plan."), plan, said("user", "Go."))
        messages, losses = convert(path, target, tmp_path / "home")
        assert spoken(messages) == [("user", "Plan."), ("assistant", "First ring, then rest."), ("user", "Go.")]
        assert losses == []

    def test_a_plan_that_a_message_tells_goes_over_once(self, tmp_path: Path) -> None:
        plan = event("item_completed", item={"type": "Plan", "id": "p", "text": "Ring."})
        told = said("assistant", "<proposed_plan>\nRing.\n</proposed_plan>")
        for at, order in enumerate(((plan, told), (told, plan))):
            path = rollout(tmp_path / str(at), meta(), said("user", "Plan."), *order, said("user", "Go."))
            messages, _ = convert(path, "gemini", tmp_path / str(at) / "home")
            assert [role for role, _ in spoken(messages)] == ["user", "assistant", "user"]

    def test_what_a_review_found_goes_over(self, tmp_path: Path) -> None:
        place = {"absolute_file_path": "/bell.py", "line_range": {"start": 3, "end": 4}}
        found = {"title": "Too loud", "body": "It rings at night.", "code_location": place}
        review = event("exited_review_mode", review_output={"findings": [found], "overall_explanation": "Nearly."})
        path = rollout(tmp_path, meta(), said("user", "Review."), review)
        messages, losses = convert(path, "claude-code", tmp_path / "home")
        expected = "Nearly.\n\nToo loud\nIt rings at night.\n/bell.py:3-4"
        assert spoken(messages) == [("user", "Review."), ("assistant", expected)]
        assert losses == []

    def test_calls_that_code_made_are_named_and_others_are_not(self, tmp_path: Path) -> None:
        def ended(call_id: str) -> dict[str, Any]:
            invocation = {"server": "bells", "tool": "ring", "arguments": {"hard": True}}
            return event("mcp_tool_call_end", call_id=call_id, invocation=invocation, result={"Ok": {"content": []}})

        made = item("function_call", name="mcp__bells__ring", arguments="{}", call_id="c1")
        answer = item("function_call_output", call_id="c1", output="ding")
        path = rollout(tmp_path, meta(), said("user", "Ring."), made, ended("c1"), answer, ended("exec-1"))
        _, losses = convert(path, "claude-code", tmp_path / "home")
        assert whats(losses) == [(3, "a call that only an event mentions")]

    def test_what_a_search_found_is_named(self, tmp_path: Path) -> None:
        search = item("web_search_call", status="completed", action={"type": "search", "query": "bells"})
        ended = event("web_search_end", call_id="ws", query="bells", results=[{"title": "Bow"}])
        path = rollout(tmp_path, meta(), said("user", "Look."), search, ended)
        assert whats(convert(path, "gemini", tmp_path / "home")[1]) == [(2, "the results of a web search")]

    @pytest.mark.parametrize("name", ["ring", "mcp__bells__ring"])
    def test_a_tool_keeps_its_namespace(self, tmp_path: Path, name: str) -> None:
        made = item("function_call", name=name, namespace="mcp__bells__", arguments="{}", call_id="c1")
        answer = item("function_call_output", call_id="c1", output="ding")
        messages, losses = convert(rollout(tmp_path, meta(), made, answer), "claude-code", tmp_path / "home")
        assert messages[0]["content"][0]["tool_name"] == "mcp__bells__ring"
        assert losses == []


class TestGemini:
    def result(self, folder: Path, *parts: Any) -> Path:
        return log(folder, header(), user("a"), gemini("b", toolCalls=[{**call("c1"), "result": list(parts)}]))

    def response(self, said: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"functionResponse": {"id": "c1", "name": "read_file", "response": said, **more}}

    @pytest.mark.parametrize(
        ("said", "more"),
        [
            ({"output": "ding", "extra": {"b": "dong"}}, {}),
            ({"output": "ding", "error": "dong"}, {}),
            ({"output": "ding dong"}, {"name": "another"}),
        ],
    )
    @pytest.mark.parametrize("is_nested", [False, True])
    def test_odd_results_go_over_whole(
        self, tmp_path: Path, said: dict[str, Any], more: dict[str, Any], is_nested: bool
    ) -> None:
        nested = {"parts": [PICTURE]} if is_nested else {}
        parts = [self.response(said, **more, **nested), *([] if is_nested else [PICTURE]), {"text": "aside"}]
        messages, losses = convert(self.result(tmp_path, *parts), "claude-code", tmp_path / "home")
        (result,) = messages[-1]["content"]
        assert [block["type"] for block in result["output"]] == ["text", "image"]
        assert all(word in result["output"][0]["text"] for word in ("ding", "dong", "aside"))
        assert losses == []

    @pytest.mark.parametrize("target", others("gemini"))
    def test_a_picture_in_a_note_is_named(self, tmp_path: Path, target: str) -> None:
        note = {**user("b", [{"text": "see"}, PICTURE]), "type": "info"}
        path = log(tmp_path, header(), user("a"), note)
        assert whats(convert(path, target, tmp_path / "home")[1]) == [(2, "a picture in a note of the agent")]

    @pytest.mark.parametrize("target", others("gemini"))
    def test_messages_of_an_unknown_type_are_named(self, tmp_path: Path, target: str) -> None:
        path = log(tmp_path, header(), user("a"), {**user("b"), "type": "model"}, {**user("c"), "type": "model"})
        assert whats(convert(path, target, tmp_path / "home")[1]) == [(2, "2 x a message of the kind 'model'")]

    def test_the_heading_of_a_thought_goes_over(self, tmp_path: Path) -> None:
        thought = {"subject": "Bells", "description": "They ring.", "timestamp": "2026-10-20T09:15:04.000Z"}
        path = log(tmp_path, header(), user("a"), gemini("b", thoughts=[thought]))
        written = [record["payload"] for record in lines(path, "codex", tmp_path / "home")]
        assert {"type": "agent_reasoning", "text": "Bells\nThey ring."} in written

    def test_a_block_without_a_type_is_named_by_its_key(self, tmp_path: Path) -> None:
        path = log(tmp_path, header(), user("a"), gemini("b", [{"executableCode": {"code": "ring()"}}, {"text": "so"}]))
        _, losses = convert(path, "claude-code", tmp_path / "home")
        assert whats(losses) == [(2, "a block of the kind 'executableCode'")]


class TestClaudeCode:
    def queued(self, text: Any, operation: str = "enqueue") -> dict[str, Any]:
        record = {"type": "queue-operation", "operation": operation, "sessionId": "s"}
        return {**record, "timestamp": "2026-11-15T10:00:00.000Z", "content": text}

    @pytest.mark.parametrize("target", others("claude-code"))
    @pytest.mark.parametrize("text", ["Ring twice.", [{"type": "text", "text": "Ring twice."}]])
    def test_a_prompt_that_only_waited_is_named(self, tmp_path: Path, target: str, text: Any) -> None:
        path = transcript(tmp_path, spoke("user", "Ring.", uuid="u1", parentUuid=None), self.queued(text))
        assert whats(convert(path, target, tmp_path / "home")[1]) == [(1, "a queued prompt that was never sent")]

    @pytest.mark.parametrize(
        ("waited", "sent"),
        [
            ("Ring twice.", "Ring twice.\n"),
            ("/ring twice", "<command-name>/ring</command-name>"),
            ("<task-notification>over</task-notification>", "Ring."),
        ],
    )
    def test_one_that_was_sent_is_not(self, tmp_path: Path, waited: str, sent: str) -> None:
        path = transcript(tmp_path, self.queued(waited), spoke("user", sent, uuid="u1", parentUuid=None))
        assert convert(path, "codex", tmp_path / "home")[1] == []

    def test_one_that_begins_with_a_path_is_no_command(self, tmp_path: Path) -> None:
        sent = spoke("user", "What is in /tmp/bell?", uuid="u1", parentUuid=None)
        path = transcript(tmp_path, self.queued("/tmp/bell fails, fix it"), sent)
        losses = convert(path, "codex", tmp_path / "home")[1]
        assert [loss.what for loss in losses] == ["a queued prompt that was never sent"]

    @pytest.mark.parametrize("target", others("claude-code"))
    def test_citations_are_named(self, tmp_path: Path, target: str) -> None:
        text = {"type": "text", "text": "It rang.", "citations": [{"cited_text": "ding"}]}
        path = transcript(tmp_path, spoke("assistant", [text], uuid="u1", parentUuid=None))
        assert whats(convert(path, target, tmp_path / "home")[1]) == [(1, "the citations of a text")]

    def test_the_title_of_a_document_is_named(self, tmp_path: Path) -> None:
        source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
        block = {"type": "document", "source": source, "title": "Bells", "citations": {"enabled": True}}
        path = transcript(tmp_path, spoke("user", [block], uuid="u1", parentUuid=None))
        assert whats(convert(path, "gemini", tmp_path / "home")[1]) == [(1, "the title of a document")]


@pytest.mark.parametrize("target", TARGETS)
def test_half_a_character_is_named(tmp_path: Path, target: str) -> None:
    if target == "codex":
        path = log(tmp_path, header(), user("a", "MARK"), gemini("b"))
    else:
        path = rollout(tmp_path, meta(), said("user", "MARK"), said("assistant", "Ding."))
    path.write_bytes(path.read_bytes().replace(b"MARK", b"a \\ud83d bell"))
    messages, losses = convert(path, target, tmp_path / "home")
    assert spoken(messages)[0][1] == "a � bell"
    if target != only(path).agent.id:
        assert whats(losses) == [(1, "half of a character")]


class TestTakenBack:
    def test_everything(self, tmp_path: Path) -> None:
        rolled = event("thread_rolled_back", num_turns=1)
        path = rollout(tmp_path, meta(), said("user", "Ring."), said("assistant", "Ding."), rolled)
        found = only(path)
        assert found.agent.facts(found.source).tree.graph().active_path == []
        with pytest.raises(NothingToConvert):
            prepare(found.agent, found.source, "claude-code")

    def test_everything_and_then_one_message(self, tmp_path: Path) -> None:
        rolled = event("thread_rolled_back", num_turns=1)
        path = rollout(tmp_path, meta(), said("user", "Ring."), rolled, said("assistant", "Ding."))
        messages, losses = convert(path, "claude-code", tmp_path / "home")
        assert spoken(messages) == [("assistant", "Ding.")]
        assert whats(losses) == [(None, "1 message on other branches")]

    def test_everything_of_gemini(self, tmp_path: Path) -> None:
        path = log(tmp_path, header(), user("a", "Ring."), {"$rewindTo": "a"}, user("b", "Stop."))
        messages, losses = convert(path, "claude-code", tmp_path / "home")
        assert spoken(messages) == [("user", "Stop.")]
        assert whats(losses) == [(None, "1 message on other branches")]


class TestWhatProvidersTake:
    def test_calls_without_an_id_have_ids_of_their_own(self, tmp_path: Path) -> None:
        searches = [item("web_search_call", action={"type": "search", "query": text}) for text in ("one", "two")]
        named = item("web_search_call", id="ws_3", action={"type": "search", "query": "three"})
        path = rollout(tmp_path, meta(), said("user", "Look."), *searches, named)
        messages, _ = convert(path, "claude-code", tmp_path / "home")
        ids = [block["tool_id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
        assert len(set(ids)) == 3
        assert ids[2] == "ws_3"

    def test_a_result_by_the_id_of_the_item_finds_its_call(self, tmp_path: Path) -> None:
        made = item("local_shell_call", id="lsh_1", call_id=None, action={"type": "exec", "command": ["ls"]})
        answer = item("function_call_output", call_id="lsh_1", output="bell.py")
        messages, _ = convert(rollout(tmp_path, meta(), made, answer), "claude-code", tmp_path / "home")
        assert [block["type"] for message in messages for block in message["content"]] == ["tool_use", "tool_result"]

    @pytest.mark.parametrize("target", others("codex"))
    def test_arguments_are_an_object(self, tmp_path: Path, target: str) -> None:
        made = item("function_call", name="ring", arguments="not json", call_id="c1")
        messages, losses = convert(rollout(tmp_path, meta(), said("user", "x"), made), target, tmp_path / "home")
        (given,) = [b["input"] for m in messages for b in m["content"] if b["type"] == "tool_use"]
        assert given == {"input": "not json"}
        assert losses == []

    @pytest.mark.parametrize("target", ["claude-code", "gemini"])
    def test_a_picture_that_was_drawn_is_the_result_of_its_call(self, tmp_path: Path, target: str) -> None:
        drawn = item("image_generation_call", id="ig_1", status="completed", revised_prompt="a bell", result=PIXEL)
        path = rollout(tmp_path, meta(), said("user", "Draw."), drawn, said("assistant", "There."))
        messages, losses = convert(path, target, tmp_path / "home")
        kinds = [(m["role"], [b["type"] for b in m["content"]]) for m in messages]
        assert kinds[1:3] == [("assistant", ["tool_use"]), ("user", ["tool_result"])]
        pictures = [block for block in messages[2]["content"][0]["output"] if block["type"] == "image"]
        assert [picture["image"] for picture in pictures] == [PIXEL]
        assert losses == []

    @pytest.mark.parametrize("target", ["claude-code", "codex"])
    def test_a_picture_in_a_reply_is_named(self, tmp_path: Path, target: str) -> None:
        path = log(tmp_path, header(), user("a"), gemini("b", [{"text": "There."}, PICTURE]))
        messages, losses = convert(path, target, tmp_path / "home")
        assert spoken(messages)[1:] == [("assistant", "There.")]
        assert whats(losses) == [(2, "a picture in a reply")]

    @pytest.mark.parametrize(
        ("kind", "target", "what"),
        [
            ("audio/wav", "claude-code", "an attached document"),
            ("image/svg+xml", "claude-code", "a picture"),
            ("image/svg+xml", "codex", "a picture"),
        ],
    )
    def test_types_that_are_not_taken_are_named(self, tmp_path: Path, kind: str, target: str, what: str) -> None:
        part = {"inlineData": {"mimeType": kind, "data": PIXEL}}
        path = log(tmp_path, header(), user("a", [{"text": "see"}, part]))
        _, losses = convert(path, target, tmp_path / "home")
        assert [(loss.what, kind in loss.why) for loss in losses] == [(what, True)]

    def test_a_type_is_spelled_as_all_spell_it(self, tmp_path: Path) -> None:
        part = {"inlineData": {"mimeType": "image/jpg", "data": PIXEL}}
        path = log(tmp_path, header(), user("a", [{"text": "see"}, part]))
        written = lines(path, "claude-code", tmp_path / "home")
        assert written[0]["message"]["content"][1]["source"]["media_type"] == "image/jpeg"

    def linked(self, folder: Path, address: str) -> Path:
        picture = {"type": "input_image", "image_url": address}
        words = {"type": "input_text", "text": "see"}
        return rollout(folder, meta(), item("message", role="user", content=[words, picture]))

    def test_an_address_stands_where_its_reader_looks(self, tmp_path: Path) -> None:
        path = self.linked(tmp_path, "https://bells.example/a.png")
        written = lines(path, "claude-code", tmp_path / "claude")
        source = {"type": "url", "url": "https://bells.example/a.png"}
        assert written[0]["message"]["content"][1] == {"type": "image", "source": source}
        parts = lines(path, "gemini", tmp_path / "gemini")[1]["content"]
        assert parts[1] == {"fileData": {"mimeType": "image/png", "fileUri": "https://bells.example/a.png"}}

    def test_an_address_comes_back_from_claude_code(self, tmp_path: Path) -> None:
        source = {"type": "url", "url": "https://bells.example/a.png"}
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
        path = transcript(tmp_path, spoke("user", blocks, uuid="u1", parentUuid=None))
        messages, losses = convert(path, "codex", tmp_path / "home")
        assert messages[0]["content"][1]["image"] == "https://bells.example/a.png"
        assert losses == []

    @pytest.mark.parametrize(
        ("address", "target"),
        [("file-id-1", "claude-code"), ("gs://bells/a.png", "gemini"), ("https://bells.example/a", "gemini")],
    )
    def test_an_address_that_says_nothing_is_named(self, tmp_path: Path, address: str, target: str) -> None:
        _, losses = convert(self.linked(tmp_path, address), target, tmp_path / "home")
        assert whats(losses) == [(1, "a picture")]

    def test_a_call_without_a_result_stays_one(self, tmp_path: Path) -> None:
        made = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ring"}}
        path = transcript(
            tmp_path,
            spoke("user", "try", uuid="u1", parentUuid=None),
            spoke("assistant", [made], uuid="u2", parentUuid="u1"),
        )
        found = only(path)
        there = Path(prepare(found.agent, found.source, "gemini").write(tmp_path / "gemini").files[0])
        messages, losses = convert(there, "codex", tmp_path / "codex")
        assert [block["type"] for message in messages for block in message["content"]] == ["text", "tool_use"]
        assert losses == []


class TestInstructions:
    def conversation(self, folder: Path) -> Path:
        """One that begins with what the model is told."""
        path = folder / ".emacs.d/sage/projects/-work/history/20260820-100000.jsonl"
        path.parent.mkdir(parents=True)
        told = [("system", "Answer in rhymes."), ("user", "What now?"), ("assistant", "Have a cow.")]
        texts = [{"role": role, "content": text, "timestamp": "2026-08-20T10:00:00Z"} for role, text in told]
        path.write_text("".join(json.dumps(text) + "\n" for text in texts))
        return path

    @pytest.mark.parametrize("target", ["sage-emacs", "sage-agent"])
    def test_they_stay_instructions_where_there_are_some(self, tmp_path: Path, target: str) -> None:
        found = only(self.conversation(tmp_path))
        written = prepare(found.agent, found.source, target).write(tmp_path / "home")
        copy = only(Path(written.files[0]))
        messages = [unit.value for unit in copy.agent.units(copy.source)]
        assert spoken(messages)[0] == ("system", "Answer in rhymes.")
        assert written.losses == []

    @pytest.mark.parametrize("target", ["claude-code", "codex", "gemini"])
    def test_they_are_named_where_there_are_none(self, tmp_path: Path, target: str) -> None:
        messages, losses = convert(self.conversation(tmp_path), target, tmp_path / "home")
        assert spoken(messages) == [("user", "What now?"), ("assistant", "Have a cow.")]
        assert whats(losses) == [(1, "a system message")]


class TestCommands:
    @pytest.mark.parametrize("target", others("gemini"))
    def test_those_to_gemini_are_no_prompts(self, tmp_path: Path, target: str) -> None:
        prompts = [user("u2", "/quit"), user("u3", "?"), user("u4", "x/y?")]
        path = log(tmp_path, header(), user("u1", "one"), gemini("g1", "two"), *prompts)
        messages, losses = convert(path, target, tmp_path / "home")
        assert spoken(messages) == [("user", "one"), ("assistant", "two"), ("user", "x/y?")]
        assert losses == []

    @pytest.mark.parametrize("text", ["/etc/hosts is odd", "? what", " \n\ufeff/x", "\u3000/x", "<hook_context> y"])
    def test_what_looks_like_one_stays_a_prompt(self, tmp_path: Path, text: str) -> None:
        messages, losses = convert(transcript(tmp_path, spoke("user", text, uuid="u1")), "gemini", tmp_path / "home")
        assert spoken(messages) == [("user", "\u200b"), ("user", text)]
        assert not (messages[0].get("metadata") or {}).get("is_meta")
        assert losses == []

    def test_it_comes_back_as_it_was_said(self, tmp_path: Path) -> None:
        found = only(transcript(tmp_path, spoke("user", "/etc/hosts is odd", uuid="u1")))
        file = Path(prepare(found.agent, found.source, "gemini").write(tmp_path / "home").files[0])
        with file.open("a") as stream:
            stream.write(json.dumps(user("n1", "and now?")) + "\n")
        messages, _ = convert(file, "claude-code", tmp_path / "back")
        assert spoken(messages) == [("user", "/etc/hosts is odd"), ("user", "and now?")]
