"""RD09: the work for any input is counted, not timed: looks at a text, records that are read, values that are known."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from benchmarks.redaction_hostile import SESSIONS, TEXTS
from clew.redact import Known, Marker, paying, scan, scan_all, searching
from clew.redact import known as knowing
from clew.redact.native import mask_file
from clew.redact.searching import LOOK, Fuel
from clew.redact.tree import Redactor, Setting
from clew.redact.user import parse_rules
from tests.redact.planted import Planter

SIZE = 120_000
SAVED = 700
READING, SAVED_READING, LOT = paying.PRICE, paying.SAVED, 2000
PLANT = Planter("work")
OWN = "[[rule]]\nid = 'staff'\npattern = 'EMP-[0-9]{6}'\n"


@pytest.fixture
def fuels(monkeypatch: pytest.MonkeyPatch) -> list[Fuel]:
    """Every store of fuel that is made."""
    made: list[Fuel] = []

    class Noted(Fuel):
        __slots__ = ()

        def __init__(self, price: int = LOOK, saved: int = SAVED) -> None:
            super().__init__(price, saved)
            made.append(self)

    for module in ("rules", "looking", "sieve"):
        monkeypatch.setattr(f"clew.redact.{module}.Fuel", Noted)
    return made


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the texts that were walked over."""
    walked: list[int] = []
    original = searching.walk

    def counted(find: searching.Find, text: bytes, *rest: Any, **how: Any) -> list[searching.Hit]:
        walked.append(len(text))
        return original(find, text, *rest, **how)

    for module in ("engine", "pii", "places", "national"):
        monkeypatch.setattr(f"clew.redact.{module}.walk", counted)
    yield walked


@pytest.mark.parametrize("name", TEXTS)
def test_RD09_a_text_is_worth_one_look_for_so_many_bytes(name: str, fuels: list[Fuel], finds: list[int]) -> None:
    text = TEXTS[name](random.Random(3), SIZE)
    scan(text, "all")
    assert len(fuels) == 1
    # One look may be worth some more: a long cookie, a long base64.
    assert fuels[0].spent <= SAVED + sum(finds) // LOOK + 600
    # All layers together are no more than a few times the text: as it is, without escapes, and what base64 holds.
    assert sum(finds) <= 20 * len(text.encode("utf-8", "surrogatepass"))


def _members(line: bytes) -> int | None:
    """How many members a record has; None for a line that is none."""
    try:
        return len(json.loads(line))
    except ValueError:
        return None


@pytest.mark.parametrize("name", SESSIONS)
def test_RD09_a_session_reads_no_more_records_than_its_size_allows(name: str, fuels: list[Fuel]) -> None:
    content = SESSIONS[name](random.Random(3), 3 * SIZE).encode()
    redactor = Redactor(Setting("secrets", Marker(b"k")))
    masked = b"".join(mask_file(partial(BytesIO, content), redactor))
    looks, records, *_ = fuels
    # Both passes bring something; what was read in the first is not read again. What a lot holds is paid for later.
    assert records.spent <= SAVED_READING + 3 * len(content) // (2 * READING) + LOT
    assert looks.spent <= SAVED + 24 * len(content) // LOOK + 300
    if content.startswith(b"{"):
        for line, old in zip(masked.splitlines(), content.splitlines(), strict=True):
            if (members := _members(old)) is not None:
                assert len(json.loads(line).keys() - {"extensions"}) == members


def test_RD09_a_crowd_of_records_leaves_no_key_and_no_record_unreadable() -> None:
    keys = [PLANT.github() for _ in range(6000)]
    records = [
        {"type": "user", "uuid": f"{n:08x}-0000-4000-8000-000000000000", "text": key} for n, key in enumerate(keys)
    ]
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    redactor = Redactor(Setting("secrets", Marker(b"k")))
    masked = b"".join(mask_file(partial(BytesIO, content), redactor))
    assert redactor.masked["crowded"]
    assert not any(key.encode() in masked for key in keys)
    for line, record in zip(masked.splitlines(), records, strict=True):
        value = json.loads(line)
        assert list(value) == list(record)
        assert (value["type"], value["uuid"]) == (record["type"], record["uuid"])


def test_RD09_what_comes_after_a_crowd_is_looked_at_again() -> None:
    crowd = "".join(json.dumps({"text": PLANT.github()}) + "\n" for _ in range(8000))
    calm = "".join(json.dumps({"text": "Nothing to see here. " * 20}) + "\n" for _ in range(3000))
    last = json.dumps({"text": f"use {PLANT.github()} there"}) + "\n"
    content = (crowd + calm + last).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(Setting("secrets", Marker()))))
    lines = masked.splitlines(keepends=True)
    assert lines[-1] == b'{"text": "use [REDACTED] there"}\n'
    assert lines[-2001:-1] == content.splitlines(keepends=True)[-2001:-1]


def test_RD09_texts_that_share_fuel_are_each_hidden_within_their_borders() -> None:
    texts = [f"token {PLANT.github()} end" if n % 2 else "an ordinary text" for n in range(6000)]
    found = scan_all(texts)
    assert set(found) == set(range(1, 6000, 2))
    assert all(0 <= each.start < each.end <= len(texts[n]) for n, own in found.items() for each in own)


def test_RD09_thousands_of_known_values_are_each_spelled_once_and_compared_where_they_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spelled = 0
    original = knowing.spellings_of

    def counted(value: str) -> set[bytes]:
        nonlocal spelled
        spelled += 1
        return original(value)

    monkeypatch.setattr(knowing, "spellings_of", counted)
    values = [PLANT.password() for _ in range(3000)]
    known = Known(values)
    lines = [f"log {value} end\n".encode() for value in values]
    found = [line[hit.start : hit.end].decode() for line in lines for hit in known.hits(line)]
    assert found == values
    assert spelled == len(values)


def test_RD09_records_that_are_full_of_signs_are_hidden_unread_and_those_behind_them_are_read() -> None:
    crowd = SESSIONS["everything, in records"](random.Random(5), 2 * SIZE)
    key = PLANT.github()
    calm = [json.dumps({"text": "Nothing to see here. " * 40}) + "\n" for _ in range(400)]
    content = (crowd + "".join(calm) + json.dumps({"text": f"use {key} there"}) + "\n").encode()
    redactor = Redactor(Setting("secrets", Marker()))
    lines = b"".join(mask_file(partial(BytesIO, content), redactor)).splitlines(keepends=True)
    assert redactor.masked["crowded"]
    assert lines[-1] == b'{"text": "use [REDACTED] there"}\n'
    assert lines[-401:-1] == [line.encode() for line in calm]


def test_a_token_behind_the_name_of_another_is_found() -> None:
    value = PLANT.github()
    for before in ("sk-" + "ant- or ", "npm" + "_ ", "hf" + "_ ", "AK" + "IA ", "gl" + "pat- "):
        assert scan(before + value), before


def test_many_values_of_one_record_and_many_texts_agree_with_one_at_a_time() -> None:
    texts = [f"password={PLANT.password()}" for _ in range(50)] + ["plain"] * 10
    together = scan_all(texts)
    assert together == {n: scan(text) for n, text in enumerate(texts) if scan(text)}


def test_only_the_beginning_of_a_known_value_at_the_end_of_a_title_is_hidden() -> None:
    values = [PLANT.github() for _ in range(300)]
    redactor = Redactor(Setting("secrets", Marker()))
    redactor.learn([{"text": value} for value in values])
    assert redactor.value({"title": f"use {values[7][:14]}..."}) == {"title": "use [REDACTED]..."}
    assert redactor.value({"title": "use something else..."}) == {"title": "use something else..."}


def _masked(lines: list[str], setting: Setting) -> list[bytes]:
    content = "".join(lines).encode()
    return b"".join(mask_file(partial(BytesIO, content), Redactor(setting))).splitlines()


def test_a_crowd_hides_what_is_no_json_and_what_has_no_quotes() -> None:
    value = PLANT.password()
    odd = ["{broken: " + value + "\n", '{"a": "' + value + "\n", "plain " + value + "\n", '{"' + value + '": 1}\n']
    masked = _masked(
        [json.dumps({"text": PLANT.github()}) + "\n" for _ in range(9000)] + odd, Setting("secrets", Marker())
    )
    assert len(masked) == 9004
    assert not any(value.encode() in line for line in masked)


def test_short_records_without_a_sign_stay_with_rules_of_the_users_own() -> None:
    lines = [json.dumps({"text": f"nothing {n}"}) + "\n" for n in range(6000)]
    masked = _masked(
        [*lines, json.dumps({"text": "EMP-123456"}) + "\n"], Setting("secrets", Marker(), parse_rules(OWN))
    )
    assert masked[:-1] == [line.strip().encode() for line in lines]
    assert masked[-1] == b'{"text": "[REDACTED]"}'


def test_every_user_of_many_short_records_is_hidden_and_each_still_parses() -> None:
    lines = [json.dumps({"cwd": f"/home/nora{n}/x", "win": f"C:\\Users\\nora{n}\\x"}) + "\n" for n in range(3000)]
    masked = _masked(lines, Setting("paths", Marker()))
    assert not any(b"nora" in line for line in masked)
    assert {tuple(json.loads(line)) for line in masked} == {("cwd", "win")}


def test_values_that_are_added_one_by_one_are_each_spelled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled: list[str] = []
    original = knowing.spellings_of

    def noted(value: str) -> set[bytes]:
        spelled.append(value)
        return original(value)

    monkeypatch.setattr(knowing, "spellings_of", noted)
    redactor = Redactor(Setting("secrets", Marker()))
    values = [PLANT.github() for _ in range(60)]
    for value in values:
        assert redactor.stream({"text": f"use {value} now"}) == {"text": "use [REDACTED] now"}
    assert sorted(spelled) == sorted(values)
    assert redactor.stream({"text": values[0].encode().hex()}) == {"text": "[REDACTED]"}


@pytest.mark.parametrize("form", ["2 {}", "{} 2", "order 12 {} ok", "1234 {}", "{} 123", "1 2 3 {} 4"])
@pytest.mark.parametrize("by", [" ", "-", ""])
def test_a_card_beside_other_numbers_is_found(form: str, by: str) -> None:
    card = by.join(["4539", "1488", "0343", "64" + "67"])
    text = form.format(card)
    assert [text[each.start : each.end] for each in scan(text, "pii")] == [card]


def test_a_key_among_line_ends_and_tiny_records_is_found_and_they_stay() -> None:
    key = json.dumps({"text": PLANT.github()}) + "\n"
    lines = ["{}\n"] * 2000 + ["\n"] * 2000 + [key] + ["{}\n"] * 2000
    content = "".join(lines).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(Setting("secrets", Marker()))))
    assert masked == content.replace(key.encode(), b'{"text": "[REDACTED]"}\n')


def test_a_text_that_was_clean_before_its_value_was_known_is_masked_in_every_record() -> None:
    value = PLANT.password()
    said = f"it was {value} then"
    records = [{"note": said}, {"note": said, "more": f"token={PLANT.github()}"}, {"env": f"DB_PASSWORD={value}"}]
    masked = _masked([json.dumps(record) + "\n" for record in records], Setting("secrets", Marker()))
    assert [json.loads(line).get("note") for line in masked] == ["it was [REDACTED] then"] * 2 + [None]


def test_RD09_a_document_of_too_many_texts_is_hidden_whole_and_still_parses() -> None:
    members = {f"k{n}": f"password={PLANT.password()}" for n in range(30_000)}
    [masked] = _masked([json.dumps(members) + "\n"], Setting("secrets", Marker()))
    found = json.loads(masked)
    assert len(found) == len(members)
    assert not any(value.removeprefix("password=") in masked.decode() for value in list(members.values())[::500])


def test_a_long_list_of_short_rows_with_one_secret_keeps_all_else() -> None:
    value = PLANT.github()
    text = json.dumps([[n, n % 7, f"n{n}"] for n in range(60_000)] + [{"token": value}])
    assert _masked([text], Setting("secrets", Marker())) == [text.replace(value, "[REDACTED]").encode()]


def test_a_large_document_with_one_secret_keeps_all_else() -> None:
    value = PLANT.github()
    members = {f"name{n}": f"some words here {n}" for n in range(5000)} | {"last": f"use {value}"}
    [masked] = _masked([json.dumps(members) + "\n"], Setting("secrets", Marker()))
    assert json.loads(masked) == members | {"last": "use [REDACTED]"}


@pytest.mark.parametrize("name", ["many_leaves", "json_in_lists", "key_lists", "short_keys", "brackets"])
def test_RD09_values_are_read_for_no_more_than_their_size_allows(name: str, fuels: list[Fuel]) -> None:
    content = SESSIONS[name](random.Random(3), 5 * SIZE)
    values = [json.loads(line) for line in content.splitlines()]
    redactor = Redactor(Setting("secrets", Marker(b"k")))
    redactor.learn(iter(values))
    masked = [redactor.value(value) for value in values]
    _, records, *_ = fuels
    assert records.spent <= SAVED_READING + 2 * len(content) // READING + 8 * LOT
    assert redactor.masked["crowded"]
    assert [len(each) for each in masked] == [len(value) for value in values]


def test_RD09_values_that_are_too_many_to_read_leak_nothing() -> None:
    keys = [[PLANT.github() for _ in range(40)] for _ in range(400)]
    redactor = Redactor(Setting("secrets", Marker(b"k")))
    redactor.learn({"type": "user", "text": own} for own in keys)
    masked = [redactor.value({"type": "user", "text": own}) for own in keys]
    assert redactor.masked["crowded"]
    assert all(each["type"] == "user" and len(each["text"]) == 40 for each in masked)
    text = json.dumps(masked)
    assert not any(key in text for own in keys for key in own)


def test_RD09_a_known_value_in_records_that_cannot_be_looked_at_again_is_hidden_with_them() -> None:
    value = PLANT.password()
    known = [json.dumps({"a": f"DB_PASSWORD={value}"}) + "\n"]
    lines = [json.dumps({"t": f"{value} " * 3, "token": PLANT.github()}) + "\n" for _ in range(4000)]
    masked = _masked(known + lines, Setting("secrets", Marker()))
    assert len(masked) == 4001
    assert not any(value.encode() in line for line in masked)


def test_RD09_runs_of_backslashes_among_escapes_are_read_once() -> None:
    text = ("\\" * 4000 + "\\u0041") * 4 + f" password={PLANT.password()}7x"
    assert scan(text)


def test_a_line_that_is_no_json_keeps_its_end_when_all_of_it_is_hidden() -> None:
    broken = '{"text": "' + " ".join(PLANT.github() for _ in range(1500)) + "\n"
    last = json.dumps({"text": "nothing"})
    masked = _masked(["{}\n", broken, last + "\n"], Setting("secrets", Marker()))
    assert masked[0] == b"{}" and masked[2] == last.encode()
    assert b"ghp_" not in masked[1]
