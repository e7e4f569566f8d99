"""The prefilter: no record in which scanning would find something may pass unread."""

from __future__ import annotations

import base64
import json
import random
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from clew.redact.masks import Marker
from clew.redact.native_files import mask_file
from clew.redact.prefilter import Prefilter, prefilter_for
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.scanner import default_rules, scan
from tests.redact import labelled
from tests.redact.planted import Planter

PLANT = Planter("sieve")
TOKEN, WORD = PLANT.github(), PLANT.password()


def prefilter(*kinds: str) -> Prefilter:
    found = prefilter_for(default_rules(), frozenset(kinds))
    assert found is not None
    return found


def read_lines(lines: list[bytes], *kinds: str) -> set[int]:
    """Return the indexes of the lines that must be read."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return {starts.index(start) for start, _ in prefilter(*kinds).lines_to_read(b"\n".join(lines) + b"\n")}


def spellings(value: Any) -> list[bytes]:
    return [
        json.dumps(value).encode(),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
        json.dumps(value, indent=2).encode(),
        json.dumps({"text": json.dumps(value)}).encode(),
    ]


HOLDING: list[Any] = [
    {"text": f"a\t{TOKEN}"},
    {"text": f"\u2019{TOKEN}\u2019"},
    {"text": f"bell\a\b\f{TOKEN}"},
    {"text": f"line\n{TOKEN}\r\n"},
    {"name": "DB_PASSWORD", "value": WORD},
    {"value": WORD, "key": "db_password"},
    {"passwords": [WORD, "other"]},
    {"argv": ["tool", "--password", WORD]},
    {"argv": ["curl", "-u", f"me:{WORD}"]},
    {"env": {"SMTP_PASSWORD": WORD}},
    {"text": f"password\tis {WORD}"},
    {"content": [{"type": "text", "text": TOKEN[:20]}, {"type": "text", "text": TOKEN[20:]}]},
    {"type": "tool_use", "id": "toolu_1", "input": {"file_path": "/app/.env"}},
    {"type": "tool_use", "id": "toolu_1", "input": {"command": "cat ~/.aws/credentials"}},
    {"text": TOKEN.replace("p", "\\u0070")},
]


@pytest.mark.parametrize("value", HOLDING, ids=range(len(HOLDING)))
def test_a_record_that_holds_something_is_held(value: Any) -> None:
    for raw in spellings(value):
        assert prefilter("secret").must_read(raw), raw
        if b"\n" not in raw:
            assert read_lines([b"{}", raw, b"{}"], "secret") == {1}, raw


@pytest.mark.parametrize("label", ["secret", "pii"])
def test_every_planted_value_is_held_in_any_record(label: str) -> None:
    for record in labelled.records(7, 18):
        if record["label"] == label:
            for raw in spellings({"message": {"content": record["text"]}}):
                assert prefilter("secret", "pii").must_read(raw), record["kind"]


@pytest.mark.parametrize("profile", ["secrets", "all"])
def test_what_is_read_before_the_prefilter_is_built_is_masked_alike(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [*HOLDING, *({"message": {"content": record["text"]}} for record in labelled.records(9, 6))]
    lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)

    def mask() -> bytes:
        return b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings(profile, Marker()))))

    masked = mask()
    monkeypatch.setattr("clew.redact.prefilter.UNFILTERED_RUN_BYTES", 1 << 40)
    assert mask() == masked != lines


def test_a_record_of_many_strings_without_a_candidate_stays_whatever_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = json.dumps(["a"] * 200_001, separators=(",", ":")).encode() + b"\n"
    for min_bytes in (-1, 1 << 40):
        monkeypatch.setattr("clew.redact.prefilter.UNFILTERED_RUN_BYTES", min_bytes)
        redactor = Redactor(MaskSettings("secrets", Marker()))
        assert b"".join(mask_file(partial(BytesIO, b"{}\n" + line), redactor)) == b"{}\n" + line
        assert redactor.learn_and_mask(["a"] * 200_001) == ["a"] * 200_001


def test_what_passes_is_what_a_closer_look_leaves() -> None:
    redactor = Redactor(MaskSettings("pii", Marker()))
    values = [{"message": {"content": record["text"]}} for record in labelled.records(8, 18)]
    held = read_lines([json.dumps(value).encode() for value in values], "secret", "pii")
    assert all(number in held for number, value in enumerate(values) if redactor.findings(value))
    assert len(held) < len(values)


def test_ordinary_records_pass() -> None:
    lines = [
        {
            "type": "user",
            "uuid": "00000000-0000-4000-8000-000000000001",
            "message": {"content": "Please fix the test."},
        },
        {"type": "assistant", "usage": {"input_tokens": 12, "output_tokens": 3}, "message": {"content": "Done."}},
        {"tool": "Read", "input": {"file_path": "/srv/app/main.py"}, "lines": ["import os", "", "def main(): ..."]},
    ]
    assert read_lines([json.dumps(line).encode() for line in lines], "secret") == set()


def test_a_result_is_held_for_the_call_it_answers() -> None:
    call = {"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "/app/.env"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "MODE=quiet-harbour"}
    clean = [{"text": "x" * 3000}] * 20
    for values in ([call, *clean, result], [{"messages": [call, *clean, result]}]):
        redactor = Redactor(MaskSettings("secrets", Marker()))
        redactor.learn(values)
        assert "quiet-harbour" not in json.dumps([redactor.value(value) for value in values])


NUMBERS = [
    "4539 1488 0343 6467", "4539148803436467", "4539-1488-0343-6467", "078-05-1120", "+44 20 7946 0958",
    "GB82 WEST 1234 5698 7654 32", "DE89370400440532013000", "nora.lind@harbour-mail.org", "(212) 555-0142",
    "0612 345 678", "1234567890123456", "2026-11-15T10:20:30", "noreply@github.com", "a@b.test", "3.141592653589793",
]  # fmt: skip
AROUND = [
    "", " ", "\n", "\t", "\u00e9", "\u65e5", "\\", "\\n", '"', "'", "/", "-", "_", ":", "id ", "id: ", "offset=", "x",
    "7", "7 ", "\\u00e9", "\u2028", "\b", "\f", ".", "1.", "$", "=", "(", "[", "\U0001f600",
]  # fmt: skip


def _carried(chance: random.Random) -> Any:
    """A number or two, with something beside them, somewhere in a record."""
    text = "".join(chance.choice(AROUND) + chance.choice(NUMBERS) + chance.choice(AROUND) for _ in range(2))
    words = [text[:place] for place in (9, 14)] + [text[14:], text]
    return chance.choice([
        {chance.choice(["text", "id", "offset", "orderId", "title"]): text},
        {"argv": words}, {text: 1}, {"a": json.dumps({"b": text})}, [text, words], {"id": int("45" + "39148803436467")},
        {"content": [{"type": "text", "text": text[:7]}, {"type": "text", "text": text[7:]}]},
    ])  # fmt: skip


@pytest.mark.slow
def test_no_record_passes_in_which_a_closer_look_finds_a_number() -> None:
    chance = random.Random(7)
    values = [_carried(chance) for _ in range(4000)]
    found = [bool(Redactor(MaskSettings("pii", Marker())).findings(value)) for value in values]
    for number, value in enumerate(values):
        if found[number]:
            assert all(prefilter("secret", "pii").must_read(raw) for raw in spellings(value)), value
    assert 500 < sum(found) < 3900


@pytest.mark.parametrize("line", ["D:\\{} x", "[note] D:\\{} x", " D:\\{} x"])
def test_a_backslash_of_a_text_among_json_records_is_not_an_escape(line: str) -> None:
    token = "fi" + "gd_" + Planter("figma").chars(43)
    text = json.dumps({"a": "see gh" + "p_ and figd_ here"}) + "\n" + line.format(token) + "\n"
    masked = b"".join(mask_file(partial(BytesIO, text.encode()), Redactor(MaskSettings("secrets", Marker()))))
    assert token.encode() not in masked


def _multi_line_keys() -> list[str]:
    """Bodies of keys of PuTTY and OpenSSH, with lines of 64 and 70 characters."""
    chance = random.Random(11)
    bodies = [base64.b64encode(start + chance.randbytes(600)).decode() for start in (b"", b"openssh-key-v1\0")]
    lines = [[body[at : at + 64] for at in range(0, len(body), 64)] for body in bodies]
    putty = [f"Private-Lines: {len(lines[0])}", *lines[0], "Private-MAC: none"]
    return [end.join(key) for key in (putty, lines[1]) for end in ("\n", "\r\n")]


@pytest.mark.parametrize(
    "around", ["{}", "x\n{}\ny", "a\t{}", "({})", "\x1b[31m{}\x1b[0m", "\u00e9{}\u00e9", "\\n{}", "x\f{}"]
)
def test_no_record_passes_in_which_a_closer_look_finds_a_token(around: str) -> None:
    chance = random.Random(around)
    tokens = [make(chance) for make, _ in labelled.SECRETS.values()] + _multi_line_keys()
    for text in (around.replace("{}", token) for token in tokens):
        for layered in (text, json.dumps({"a": text}), json.dumps({"a": json.dumps({"b": text})})):
            if scan(layered):
                assert all(prefilter("secret").must_read(raw) for raw in spellings({"content": layered})), layered
