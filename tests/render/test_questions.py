"""Questions that an agent asked a person, and what was answered: alike in every face."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clew.model.json import JSON
from clew.render.markdown import markdown
from clew.render.outline import parts
from clew.render.page.fragments import Fragments
from clew.render.parts import Call, Code, Option, Question
from clew.render.terminal import show

COLOUR = {
    "question": "Which colour is the <buoy>?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "as it was"}, {"label": "Green, pale", "description": "as the others"}],
}
TOOLS = {
    "question": "What is needed?",
    "multiSelect": True,
    "options": [{"label": "Brush"}, {"label": "Ladder"}, {"label": "Boat"}],
}


def talk(questions: JSON, output: JSON = None, **more: JSON) -> list[dict[str, Any]]:
    """A call that asks, and its result."""
    asked = {"type": "tool_use", "tool_id": "a", "tool_name": "Ask", "input": {"questions": questions, **more}}
    said = {"type": "tool_result", "tool_id": "a", "tool_name": "Ask", "output": output}
    messages: list[dict[str, Any]] = [{"index": 1, "role": "assistant", "content": [asked]}]
    return [*messages, {"index": 2, "role": "user", "content": [said]}] if output is not None else messages


def asked(questions: JSON, output: JSON = None, **more: JSON) -> tuple[Any, ...]:
    """The pieces of the call."""
    (call,) = [part for part in parts({"id": "s"}, talk(questions, output, **more)) if isinstance(part, Call)]
    return call.pieces


def chosen(question: Question) -> list[str]:
    return [option.label for option in question.options if option.is_chosen]


def test_the_answer_that_the_result_tells_is_the_option_that_was_chosen() -> None:
    output = (
        'User has answered your questions: "Which colour is the <buoy>?"="Green, pale", '
        '"What is needed?"="Brush, Boat". You can now continue with the user\'s answers in mind.'
    )
    colour, tools = asked([COLOUR, TOOLS], output)
    assert colour.header == "Colour" and colour.options[0] == Option("Red", "as it was", False)
    assert chosen(colour) == ["Green, pale"] and colour.answer is None
    assert chosen(tools) == ["Brush", "Boat"] and tools.answer is None and tools.header == "several answers"


@pytest.mark.parametrize(
    "output",
    [
        'Your questions have been answered: "What is needed?"="A tin of "good" paint". You can now continue.',
        'Your questions have been answered: "What is needed?"="A tin of "good" paint" user notes: soon. You can now',
        json.dumps({"answers": {"What is needed?": {"answers": ['A tin of "good" paint']}}}),
        json.dumps({"answers": {"What is needed?": 'A tin of "good" paint'}}),
        [{"type": "text", "text": 'Answered: "What is needed?"="A tin of "good" paint"'}],
    ],
)
def test_an_answer_that_is_no_option_is_told_in_its_own_words(output: JSON) -> None:
    (tools,) = asked([TOOLS], output)
    assert chosen(tools) == [] and tools.answer == 'A tin of "good" paint'


def test_of_several_answers_those_that_are_options_are_chosen_and_the_rest_is_told() -> None:
    (tools,) = asked([TOOLS], 'Answered: "What is needed?"="Boat, good luck, Brush, and a friend, of course"')
    assert chosen(tools) == ["Brush", "Boat"] and tools.answer == "good luck, and a friend, of course"
    (colour,) = asked([COLOUR], 'Answered: "Which colour is the <buoy>?"="Red, but not too much"')
    assert chosen(colour) == [] and colour.answer == "Red, but not too much"


def test_answers_go_by_the_id_of_a_question_too_and_may_stand_with_the_questions() -> None:
    (tools,) = asked([{**TOOLS, "id": "need"}], json.dumps({"answers": {"need": {"answers": ["Boat", "Ladder"]}}}))
    assert chosen(tools) == ["Ladder", "Boat"]
    (colour,) = asked([COLOUR], answers={"Which colour is the <buoy>?": "Red"})
    assert chosen(colour) == ["Red"]
    (colour,) = asked([COLOUR], 'Answered: "Which colour is the <buoy>?"="Red"', answers={})
    assert chosen(colour) == ["Red"]


@pytest.mark.parametrize("output", [None, "", "The user did not want to answer.", [], {"answers": 3}, '{"answers": 3}'])
def test_where_nothing_was_answered_nothing_is_chosen(output: JSON) -> None:
    (colour,) = asked([COLOUR], output)
    assert chosen(colour) == [] and colour.answer is None


@pytest.mark.parametrize(
    "questions", [[], "What?", [{"question": 3}], ["What?"], [{"question": "What?", "options": ["a"]}], [COLOUR, {}]]
)
def test_what_is_no_list_of_questions_stays_as_it_is(questions: JSON) -> None:
    assert not any(isinstance(piece, Question) for piece in asked(questions, "x"))


def test_what_an_option_would_look_like_is_shown_below() -> None:
    shown = asked([{**COLOUR, "options": [{"label": "Red", "preview": "paint(RED)\npaint(RED)"}]}])
    assert shown[1] == Code("paint(RED)\npaint(RED)", title="Red")


def test_every_face_shows_questions_options_and_answers_and_no_json() -> None:
    output = 'User has answered your questions: "Which colour is the <buoy>?"="Red", "What is needed?"="Luck". You can'
    messages = talk([COLOUR, TOOLS], output)
    session: dict[str, JSON] = {"id": "s"}
    fragments = Fragments()
    page = "".join([*fragments.write(list(parts(session, messages))), fragments.end()])
    written = "".join(markdown(session, iter(messages)))
    printed = "".join(show(session, iter(messages), 80, False))
    for text in (page, written, printed):
        assert '"question"' not in text and "multiSelect" not in text
        assert text.index("Colour") < text.index("Red") < text.index("as it was") < text.index("What is needed?")
        assert "Luck" in text
    assert '<li class="now">' in page and "☑" in page and "&lt;buoy&gt;" in page and ", chosen" in page
    assert "- [x] Red: as it was" in written and "- [ ] Green, pale: as the others" in written
    assert "[x] Red: as it was" in printed and "[ ] Brush" in printed
