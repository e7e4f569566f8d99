"""Outputs wrapped in JSON, patches in commands, prompts in an editor's context: every face shows what is inside."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.actions import Change, action, printed
from clew.analysis.injected_text import split_context
from clew.render.detail import FULL, Detail
from clew.render.markdown import markdown
from clew.render.outline import parts
from clew.render.parts import Call, Injected, Note, Output, Picture, Prose, Section
from clew.render.terminal import show
from tests.render.pages import elements, page, parse, reply, words

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch"
CHANGE = (Change("a.py", "@@\n-old\n+new"),)
EDITOR = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nMake it faster.\n"

FILES = "Make it faster.\n--- Content from referenced files ---\nContent from @a.py:\nx = 1\n--- End of content ---"


def ran(output: str, code: int | None = 0, seconds: float = 0.2) -> list[dict[str, Any]]:
    """A command and its wrapped output."""
    wrapped = json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": seconds}})
    call = {"type": "tool_use", "tool_id": "a", "tool_name": "shell", "input": {"command": ["bash", "-lc", "make"]}}
    result = {"type": "tool_result", "tool_id": "a", "tool_name": "shell", "output": wrapped.replace(": ", ":")}
    return [reply(call), reply(result, index=2, role="user")]


def test_a_wrapped_output_is_shown_as_it_was_printed() -> None:
    messages = ran('first\n"second"\n', 2, 3.25)
    (call,) = [part for part in parts({"id": "s"}, messages) if isinstance(part, Call)]
    assert call.result is not None and call.result.exit_code == 2
    assert call.result.pieces == (Output('first\n"second"\n'), Note("took 3.2 s"))
    (returned,) = elements(parse(page(messages)), kind="r")
    assert words(returned).startswith("Result, exit 2") and '"second"' in words(returned)
    assert "ex" in returned.get("class", "").split()
    for face in (markdown({"id": "s"}, iter(messages)), show({"id": "s"}, iter(messages), 80, False)):
        said = "".join(face)
        assert "exit 2" in said and '"second"' in said and "duration_seconds" not in said


def test_a_command_that_went_well_is_not_marked() -> None:
    (returned,) = elements(parse(page(ran(""))), kind="r")
    assert returned.get("class") == "r l3" and "no output" in words(returned)


@pytest.mark.parametrize(
    "output",
    [
        '{"output":"x"}',
        '{"output":"x","metadata":{"exit_code":"0"}}',
        '{"output":"x","metadata":{"exit_code":0,"more":1}}',
        '{"output":"x","metadata":{"exit_code":0},"more":1}',
        '{"output":["x"],"metadata":{}}',
        '{"output":"x","metadata":{"exit_code":0}} and more',
        '{"output":"\ud800","metadata":{}}',
        "output",
    ],
)
def test_what_is_wrapped_otherwise_stays_as_it_is(output: str) -> None:
    assert printed(output) is None


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch << 'PATCH'\n{PATCH}\nPATCH\n",
        f'applypatch <<-"EOF"\n{PATCH}\nEOF',
        ["bash", "-lc", f"apply_patch <<EOF\n{PATCH}\nEOF"],
        ["apply_patch", PATCH],
    ],
)
def test_a_command_that_patches_is_a_change(command: str | list[str]) -> None:
    asked = action({"command": command, "workdir": "/src"})
    assert asked.command is None and asked.changes == CHANGE and asked.rest == {"folder": "/src"}


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -r build",
        f"cd src && apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch <<'EOF'\n{PATCH}",
        f"cat <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch {PATCH} --quiet",
    ],
)
def test_a_command_that_does_more_stays_a_command(command: str) -> None:
    asked = action({"command": command})
    assert asked.command == command and not asked.changes


@pytest.mark.parametrize("detail", ["prompts", "full"])
@pytest.mark.parametrize(("text", "is_before"), [(EDITOR, True), (FILES, False)])
def test_what_is_put_around_a_prompt_is_not_the_users_words(detail: Detail, text: str, is_before: bool) -> None:
    said = reply({"type": "text", "text": text}, role="user")
    shown = [part for part in parts({"id": "s"}, [said], detail=detail) if isinstance(part, Prose | Injected)]
    asked = shown.pop(-1 if is_before else 0)
    assert asked == Prose("Make it faster.", 0)
    assert [type(part) for part in shown] == ([Injected] if detail == "full" else [])
    tree = parse(page([said], detail=detail))
    assert [words(link) for link in next(elements(tree, kind="toc")).iter("a")] == ["Make it faster."]
    injected = list(elements(tree, kind="inj"))
    assert len(injected) == (detail == "full") and all("not the user’s words" in words(one) for one in injected)


def test_files_that_stand_in_blocks_of_their_own_are_not_the_users_words() -> None:
    words_, *files = re.split(r"(?=\n--- |\nContent|\nx)", FILES)
    blocks = [{"type": "text", "text": text} for text in (words_, *files)]
    picture = {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "AAAA"}
    for content in (blocks, [*blocks[:3], picture, *blocks[3:]]):
        shown = [part for part in parts({"id": "s"}, [reply(*content, role="user")]) if not isinstance(part, Section)]
        assert shown[:2] == [
            Prose("Make it faster.", 0),
            Injected("".join(files).strip("\n"), "Files injected by the agent", FULL),
        ]
        assert [type(part) for part in shown[2:]] == [Picture] * (len(content) - len(blocks))


@pytest.mark.parametrize("files", [["\n--- Content from referenced files ---", "no end"], ["--- End of content ---"]])
def test_other_blocks_of_a_prompt_are_the_users_words(files: list[str]) -> None:
    said = reply(*({"type": "text", "text": text} for text in ("Words.", *files)), role="user")
    shown = [part for part in parts({"id": "s"}, [said]) if not isinstance(part, Section)]
    assert not any(isinstance(part, Injected) for part in shown)


@pytest.mark.parametrize(
    "text",
    [
        "Make it faster.",
        "# Title\n\nwords",
        "# My request for Codex:\n",
        "#",
        "Words.\n--- Content from referenced files ---\nno end",
        "\n--- Content from referenced files ---\nno words\n--- End of content ---",
    ],
)
def test_other_prompts_are_all_the_users_words(text: str) -> None:
    assert split_context(text) == ("", text, "")


@given(st.lists(st.sampled_from(["# ", "words", "\n", "## My request for Codex:", FILES, FILES[-9:]])).map("".join))
def test_nothing_of_a_prompt_is_lost(text: str) -> None:
    assert "".join(split_context(text)) == text


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Exit code: 1\nWall time: 2.5 seconds\nTotal output lines: 9\nOutput:\nno\n", ("no\n", 1, 2.5, None)),
        (
            "Chunk ID: a\nWall time: 0.0100 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nok",
            ("ok", 0, 0.01, None),
        ),
        (
            "Chunk ID: a1b2\nWall time: 9 seconds\nProcess running with session ID 4\nOutput:\n",
            ("", None, 9.0, "4"),
        ),
    ],
)
def test_status_lines_are_no_output(output: str, expected: tuple[str, int | None, float | None, str | None]) -> None:
    assert printed(output) == expected


@pytest.mark.parametrize("output", ["Output:\nx", "Wall time: soon\nOutput:\nx", "Exit code: 1\nOutput of it: x", ""])
def test_text_that_looks_like_status_lines_is_output(output: str) -> None:
    assert printed(output) is None
