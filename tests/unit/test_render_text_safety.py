"""Nothing that a session holds reaches the terminal as a command, and nothing in it is invisible."""

import re
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.render.terminal import show
from clew.render.text_safety import one_line, visible

INTRODUCERS = ["\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x9b", "\x9d", "\x90", "\x9f", "\x9e", "\x98"]
BODIES = [
    "31m",
    "2J",
    "H",
    "0;title\x07",
    "8;;http://evil.example\x1b\\click",
    "52;c;ZXZpbA==\x07",
    "6n",
    "?1049h",
    "!p",
    "3J",
    "1;1r",
]
SINGLES = [
    "\x1bc", "\x1b7", "\x1b(0", "\x1b#8", "\x1b", "\x1b%G", "\x1bN", "\x1bO", "\x1b=", "\x1b>",
    "a\rb", "\r", "\r\r\n", "\x08" * 9, "\x07", "\x7f", "\x00", "\x0b", "\x0c", "\x0e", "\x0f", "\x05", "\x1a",
    "\x84", "\x85", "\x8d", "\x9c", "\xad", "\u034f", "\u061c", "\u115f", "\u180e", "\u3164", "\uffa0",
    "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u200e", "\u200f",
    "\u200b", "\u200c", "\u200d", "\u2060", "\u2061", "\u2062", "\u2063", "\u2064", "\ufeff", "\u2028", "\u2029",
    "\ud800", "\udfff", "\udc9b", "\ufff9", "\ufffb", "\U000e0001", "\U000e0041", "\U000e007f", "\U000e0100", "\ufe00",
    "a\u200db", "😀\u200dx", "x\u200c😀", "\U0001d173",
]  # fmt: skip
HOSTILE = [introducer + body for introducer, body in product(INTRODUCERS, BODIES)] + SINGLES
HARMFUL_KINDS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def harmful(text: str) -> set[str]:
    """Characters of the kinds that terminals obey or do not show."""
    return {char for char in text if char not in "\n\t" and unicodedata.category(char) in HARMFUL_KINDS}


def session_of(text: str) -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = [
        {"type": "thinking", "thinking": f"thought {text}"},
        {"type": "text", "text": f"words {text} and [a link](http://example.org/{text})"},
        {"type": "tool_use", "tool_id": "t", "tool_name": f"name {text}", "input": {"command": text, text: text}},
        {"type": "unknown", "value": {"type": text, text: [text]}},
        {"type": "image", "media_type": text, "encoding": "url", "image": text},
    ]
    result = {"type": "tool_result", "tool_id": "t", "tool_name": text, "output": text, "is_error": True}
    return [
        {"index": 1, "role": "user", "timestamp": text, "content": [{"type": "text", "text": text}]},
        {"index": 2, "role": "assistant", "content": blocks, "metadata": {"model": {"name": text}}},
        {"index": 3, "role": "user", "content": [result]},
    ]


def test_H08_there_are_200_hostile_sequences() -> None:
    assert len(set(HOSTILE)) >= 200


@pytest.mark.parametrize("sequence", HOSTILE, ids=ascii)
def test_H08_a_hostile_sequence_is_shown(sequence: str) -> None:
    shown = visible(f"before {sequence} behind")
    assert not harmful(shown)
    assert shown.startswith("before ") and shown.endswith(" behind")
    assert len(shown) > len("before  behind"), "spelled out, not taken away"
    shown.encode()


@pytest.mark.slow
@pytest.mark.parametrize("color", [False, True])
def test_H08_no_sequence_gets_through_the_terminal_view(color: bool) -> None:
    for sequence in HOSTILE:
        session = {"id": sequence, "title": sequence, "parent_session_id": sequence}
        text = "".join(show(session, iter(session_of(sequence)), 80, color, "full"))
        assert not harmful(OUR_COLOURS.sub("", text) if color else text), ascii(sequence)


@given(st.text())
def test_H08_any_text_is_harmless_and_can_be_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode()
    joiners = {"\u200c", "\u200d"}
    selectors = {char for char in shown if "\U000e0100" <= char <= "\U000e01ef"}
    assert harmful(shown) - joiners - selectors <= _arabic_marks()
    assert visible(shown) == shown


def _arabic_marks() -> set[str]:
    """Signs of format that are seen: the marks of numbers in Arabic and other scripts."""
    return {chr(code) for code in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)} | {
        chr(code) for code in range(0x13430, 0x13440)
    }


def test_newline_and_tab_stay() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("a\r\nb") == "a\nb"


@pytest.mark.parametrize("text", ["👨‍👩‍👧 and 🏳️‍🌈", "می‌خواهم", "葛\U000e0100城", "naïve ☕️ 日本語", "क्‍ष"])
def test_joiners_of_emoji_and_scripts_stay(text: str) -> None:
    assert visible(text) == text


def test_escapes_are_spelled() -> None:
    assert visible("\x1b[31mred\x07\x7f\x9b") == "␛[31mred␇␡\\x9b"
    assert visible("\u202e\ud800\U000e0041") == "\\u202e\\ud800\\U000e0041"


def test_one_line() -> None:
    assert one_line("  a\n\n b\t\x1bc ") == "a b ␛c"


def test_visible_text_is_returned_as_it_is() -> None:
    text = "plain words, ümlauts — and a line\n" * 1_000
    assert visible(text) is text


def test_every_control_is_spelled_out_and_nothing_else_of_plain_text() -> None:
    for code in range(0x80):
        text = f"a{chr(code)}b"
        is_plain = code in (0x09, 0x0A) or 0x20 <= code < 0x7F
        assert (visible(text) == text) is is_plain
