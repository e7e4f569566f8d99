"""Text that an agent puts in between: found, flagged, hidden on request, never lost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.injected_text import is_reminder, reminder_spans, split_reminders, strip_reminders
from clew.analysis.prompts import is_prompt
from tests.unit.samples import SESSION, read_lines, say

OPEN, CLOSE = "<system-reminder>", "</system-reminder>"
REMINDER = f"{OPEN}be careful{CLOSE}"

pytestmark = pytest.mark.seed("S3-26")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"the output\n\n{REMINDER}\n", "the output\n"),
        (f"{REMINDER}\n\nmy words", "my words"),
        (f"one {REMINDER} two", "one two"),
        (f"{REMINDER}\n{REMINDER}", ""),
        (f"{OPEN}outer {REMINDER} outer{CLOSE} after", "after"),
        (f"  {REMINDER}", ""),
        (f"  mine\n{REMINDER}", "  mine"),
        ("no reminder at all\n\n", "no reminder at all\n\n"),
        (f"I typed {OPEN} and went on", f"I typed {OPEN} and went on"),
        (f"I typed {CLOSE} first {OPEN}", f"I typed {CLOSE} first {OPEN}"),
        (f"never closed {OPEN} but {REMINDER}", f"never closed {OPEN} but"),
        ("", ""),
    ],
)
def test_reminders_are_stripped(text: str, kept: str) -> None:
    assert strip_reminders(text) == kept


def test_spans_and_flags() -> None:
    text = f"a{REMINDER}b"
    assert reminder_spans(text) == [(1, 1 + len(REMINDER))]
    assert is_reminder(REMINDER + "\n")
    assert not is_reminder(text)
    assert not is_reminder("")
    assert [(passage.text, passage.is_reminder) for passage in split_reminders(text)] == [
        ("a", False),
        (REMINDER, True),
        ("b", False),
    ]


@given(st.lists(st.sampled_from([OPEN, CLOSE, "words", " ", "\n", "<"]), max_size=12).map("".join))
def test_passages_joined_are_the_text(text: str) -> None:
    passages = list(split_reminders(text))
    assert "".join(passage.text for passage in passages) == text
    assert all(passage.text for passage in passages)
    assert not reminder_spans(strip_reminders(text)) or OPEN in strip_reminders(text)


def test_many_reminders_take_linear_time() -> None:
    assert strip_reminders(f"x {REMINDER}" * 20_000).count("x") == 20_000
    assert strip_reminders(OPEN * 100_000) == OPEN * 100_000


def test_a_reminder_is_not_the_users_words_and_stays_in_the_document(tmp_path: Path) -> None:
    assert not is_prompt(say(1, "user", REMINDER))
    line = {"type": "user", "uuid": "u1", "sessionId": SESSION, "message": {"role": "user", "content": REMINDER}}
    read = read_lines(tmp_path, line)
    assert read.facts.prompts == 0
    assert read.messages[0]["content"][0]["text"] == REMINDER
