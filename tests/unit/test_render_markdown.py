"""Sessions as Markdown: golden files, levels of detail, and the same from the document as from the source."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.agents.claude_code import ClaudeCode
from clew.analysis.actions import difference, patched
from clew.export.markdown import write_markdown
from clew.model import Message, Session
from clew.render.detail import DETAILS, Detail, speaker_of
from clew.render.markdown import markdown
from clew.render.outline import parts
from clew.render.parts import Prose, Section
from clew.render.pieces import call_pieces
from clew.render.terminal import show
from tests.demo_home import write_small_demo

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "render"
DOCUMENT: dict[str, Any] = json.loads((FIXTURES / "session.json").read_text(encoding="utf-8"))
SESSION: dict[str, Any] = DOCUMENT["session"]


def messages() -> Iterator[dict[str, Any]]:
    return iter(DOCUMENT["messages"])


def written(detail: Detail = "full", *, reminders: bool = True) -> str:
    return "".join(markdown(SESSION, messages(), detail=detail, reminders=reminders))


@pytest.mark.parametrize("detail", DETAILS)
def test_markdown_is_as_the_golden_file(detail: Detail) -> None:
    assert written(detail) == (FIXTURES / f"{detail}.md").read_text(encoding="utf-8")


def test_terminal_text_is_as_the_golden_file() -> None:
    assert "".join(show(SESSION, messages(), 80, False)) == (FIXTURES / "full.txt").read_text(encoding="utf-8")


def test_colours_change_nothing_but_the_look() -> None:
    coloured = "".join(show(SESSION, messages(), 80, True))
    text = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert text != coloured and "\x1b" not in text
    for words in ("The mean level is missing.", "pytest -q", "return mean_level", "hologram", "High water is fine"):
        assert words in text


def typed(value: Any, kind: Any) -> Any:
    """The value through the document's types, which forget everything that they do not name."""
    return msgspec.to_builtins(msgspec.convert(value, kind))


def retyped(read: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (typed(message, Message) for message in read)


@pytest.mark.seed("S2-4")
def test_markdown_from_the_document_equals_markdown_from_the_source(tmp_path: Path) -> None:
    write_small_demo(tmp_path)
    agent, seen = ClaudeCode(), 0
    for path in sorted(tmp_path.rglob("projects/**/*.jsonl")):
        source = agent.locate(path)
        facts = agent.facts(source)
        session = agent.session(source, facts)
        read = [unit.value for unit in agent.units(source) if unit.is_message]
        stored = json.loads(json.dumps({"session": session, "messages": read}))
        for detail in DETAILS:
            again = markdown(typed(stored["session"], Session), retyped(stored["messages"]), detail=detail)
            assert "".join(again) == "".join(markdown(session, iter(read), detail=detail))
        seen += bool(read)
    assert seen >= 10


@pytest.mark.seed("S2-4")
def test_nothing_of_the_agent_is_needed() -> None:
    bare = [{key: value for key, value in message.items() if key != "extensions"} for message in messages()]
    assert "".join(markdown(SESSION, iter(bare))) == written()


@pytest.mark.seed("S2-32")
def test_blocks_stand_in_the_order_of_the_source() -> None:
    section = written().split('<a id="m7"></a>')[1].split('<a id="m9"></a>')[0]
    order = ["The mean level is", "`Edit`", "return mean_level", "And a test", "`Write`", "low_water", "`Task`"]
    places = [section.index(words) for words in order]
    assert places == sorted(places)


def test_the_lines_of_one_reply_are_one_section() -> None:
    shown = [part.index for part in parts(SESSION, messages()) if isinstance(part, Section)]
    assert shown == [1, 2, 7, 9, 11, 12, 13, 14, 15]
    assert '<a id="m3"></a>\n\nI will look' in written()


def test_H07_front_matter_values_are_quoted() -> None:
    hostile = 'x"\n---\n# evil\n: {a: b} \\ <!-- \u2028'
    session = {**SESSION, "id": hostile, "title": hostile, "workspace": hostile, "agent_id": hostile}
    lines = "".join(markdown(session, iter(()))).split("\n")
    end = lines.index("---", 1)
    values = {line.split(": ", 1)[0]: json.loads(line.split(": ", 1)[1]) for line in lines[1:end]}
    assert list(values)[:3] == ["id", "title", "workspace"]
    assert values["title"] == 'x" --- # evil : {a: b} \\ <!-- \\u2028'
    assert lines[end + 2].startswith("# x")


@pytest.mark.parametrize("detail", DETAILS)
def test_each_level_holds_all_of_the_one_below(detail: Detail) -> None:
    above = DETAILS[min(DETAILS.index(detail) + 1, len(DETAILS) - 1)]
    lines = [line for line in written(detail).splitlines() if line and not line.startswith(("## ", "<a "))]
    assert set(lines) <= set(written(above).splitlines())


def test_what_each_level_shows() -> None:
    assert "Why is low water" in written("prompts") and "high\\</b> water" in written("prompts")
    assert "I will look" not in written("prompts")
    assert "I will look" in written("conversation") and "compacted here" in written("conversation")
    assert "**Call**" not in written("conversation")
    assert "pytest -q" in written("actions") and "**Error**" in written("actions")
    assert "**Result**" not in written("actions") and "**Thinking**" not in written("actions")
    assert "**Result**" in written() and "**Thinking**" in written() and "injected by the agent" in written()


@pytest.mark.seed("S3-26")
def test_reminders_are_flagged_and_can_be_hidden() -> None:
    assert "*Reminder injected by the agent*\n\n```\n<system-reminder>\nBe brief." in written()
    assert "<system-reminder>\nThe task list is empty." in written()
    terminal = "".join(show(SESSION, messages(), 80, False, reminders=False))
    for text in (written(reminders=False), written("actions"), terminal):
        assert "system-reminder" not in text and "Be brief" not in text
        assert "water." in text and "1 failed" in text
    assert speaker_of(DOCUMENT["messages"][11]) == "prompt", "a reminder does not take the words of a person away"


def test_a_sub_agent_is_shown_in_its_own_session_and_beside_the_main_one() -> None:
    words = {"type": "text", "text": "Compare."}
    task = {"index": 1, "role": "user", "content": [words], "metadata": {"is_sidechain": True}}
    own = {"id": "agent-a1", "is_agent_session": True, "parent_session_id": "s"}
    assert "Compare." in "".join(markdown(own, iter([task]), detail="prompts"))
    assert "*Sub-agent of session* `s`" in "".join(markdown(own, iter([task])))
    assert "Compare." not in "".join(markdown({"id": "s"}, iter([task]), detail="actions"))
    assert "## 1 · user · sub-agent" in "".join(markdown({"id": "s"}, iter([task])))


def test_messages_are_taken_one_at_a_time() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"index": taken, "role": "assistant", "content": [{"type": "text", "text": "on and on"}]}

    pieces = markdown({"id": "x"}, endless())
    while "on and on" not in next(pieces):
        pass
    assert taken == 1


def test_a_file_has_utf8_and_lf(tmp_path: Path) -> None:
    out = io.BytesIO()
    text = {"type": "text", "text": "a\r\nb \ud800 ü"}
    write_markdown({"id": "x", "title": "ü"}, iter([{"index": 1, "role": "assistant", "content": [text]}]), out)
    assert out.getvalue().decode().endswith("a\nb \\ud800 ü\n")
    assert b"\r" not in out.getvalue()


def test_missing_and_odd_parts_are_shown_too() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "tool_id": None, "tool_name": None, "input": None},
        {"type": "tool_result", "tool_id": None},
        {"type": "tool_result", "tool_id": "x", "output": [1, None, {"type": "text"}]},
        {"type": "image"},
        {"type": "image", "encoding": "url", "image": "http://example.org/a.png"},
        {"type": "document", "encoding": "text", "document": "plain words", "title": "notes"},
        {"type": "hologram", "depth": 3},
        {"type": "text", "text": " \n"},
    ]
    message = {"index": 1, "role": "assistant", "timestamp": "soon", "content": blocks}
    text = "".join(markdown({"id": "x"}, iter([message])))
    for words in ("## 1 · assistant · soon", "unnamed tool", "*no output*", "plain words", "hologram"):
        assert words in text
    assert "*image* `http://example.org/a.png`" in text
    assert not any(isinstance(part, Prose) for part in parts({"id": "x"}, iter([message])))


@pytest.mark.parametrize(
    ("given", "pieces"),
    [
        ({"command": "ls"}, ["Command"]),
        ({"command": ["bash", "-lc", "ls"], "workdir": "/x"}, ["Command"]),
        ({"cmd": "ls", "timeout": 3}, ["Command", "Fields"]),
        ({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True}, ["Diff", "Fields"]),
        ({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}] * 2}, ["Diff", "Diff"]),
        ({"path": "a", "command": "str_replace", "old_str": "x", "new_str": "y"}, ["Diff", "Fields"]),
        ({"file_path": "a.rs", "content": "fn"}, ["Code"]),
        ({"command": "view", "path": "a"}, ["Fields"]),
        ({"filepath": "a.rs", "content": "fn"}, ["Code"]),
        ({"path": "a", "old_text": "x", "new_text": "y"}, ["Diff"]),
        ({"path": "a.rs", "new_text": "fn"}, ["Code"]),
        ({"commands": ["ls", "pwd"]}, ["Command"]),
        ("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Add File: b\n+z\n*** End Patch", ["Diff", "Diff"]),
        ({"input": "*** Begin Patch"}, ["Diff"]),
        ({"todos": [{"content": "a", "status": "pending"}]}, ["Tasks"]),
        ({"plan": [{"step": "a", "status": "completed"}], "explanation": "b"}, ["Tasks", "Fields"]),
        ({"pattern": "x", "options": {"deep": 1}, "prompt": "a\nb"}, ["Fields", "Code", "Code"]),
        ({}, []),
        (None, []),
        (3, ["Code"]),
        ("words", ["Code"]),
    ],
)
def test_the_shape_of_the_input_decides(given: Any, pieces: list[str]) -> None:
    assert [type(piece).__name__ for piece in call_pieces(given, [])[1]] == pieces


def test_a_diff_keeps_what_is_common_as_context() -> None:
    assert difference("a\nb\nc\n", "a\nx\ny\nc\n") == " a\n-b\n+x\n+y\n c"
    assert difference("", "a") == "+a"
    assert difference("a", "") == "-a"
    assert difference("a\na", "a") == " a\n-a"


def test_a_patch_is_shown_file_by_file() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f\n-x\n+y\n*** Delete File: b\n*** End Patch\n"
    assert [tuple(change) for change in patched(patch)] == [("a.py", "@@ def f\n-x\n+y"), ("b", "")]
