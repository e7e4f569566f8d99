"""RD09: however many records and values there are, each is found; the candidates of one string are limited."""

from __future__ import annotations

import base64
import json
from functools import partial
from io import BytesIO
from time import process_time

import pytest

from clew.redact import KnownValues, Marker, redact, scan, scan_all
from clew.redact import known_values as knowing
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.settings import parse_rules
from tests.redact.planted import Planter

PLANT = Planter("work")
OWN = "[[rule]]\nid = 'staff'\npattern = 'EMP-[0-9]{6}'\n"
TOO_MANY_CANDIDATES = "too_many_candidates"
DENSE = "hf" + "_ "
"""A candidate that is none, and no more."""


def test_RD09_beyond_the_limit_the_rest_of_a_string_is_masked() -> None:
    for size in (10_000, 200_000):
        text = DENSE * (size // len(DENSE))
        [found] = scan(text)
        assert (found.rule, found.end) == (TOO_MANY_CANDIDATES, len(text))
        assert text[: found.start].count("hf") == 2000 + len(text) // 64


def test_RD09_within_the_limit_nothing_is_masked_and_a_secret_behind_it_is_found() -> None:
    text = DENSE * 2000
    assert redact(text) == text
    value = PLANT.github()
    text += " " * 64_000 + value
    assert redact(text) == text.replace(value, "[REDACTED]")


def test_RD09_the_candidates_of_each_string_are_counted_by_themselves() -> None:
    value = PLANT.github()
    dense, calm, key = DENSE * 5000, "an ordinary text", f"use {value} there"
    texts = [calm, dense, key, dense, calm, DENSE * 1900]
    found = scan_all(texts)
    assert {number: [each.rule for each in own] for number, own in found.items()} == {
        1: [TOO_MANY_CANDIDATES],
        2: [found[2][0].rule],
        3: [TOO_MANY_CANDIDATES],
    }
    assert found[1] == found[3] == scan(dense)
    redactor = Redactor(MaskSettings("secrets", Marker()))
    masked = redactor.learn_and_mask({"texts": [{"note": text} for text in texts]})
    assert [each["note"] for each in masked["texts"]] == [redact(text) for text in texts]
    assert redactor.masked[TOO_MANY_CANDIDATES] == 1  # equal texts count once


@pytest.mark.parametrize("border", ["\0", "\n\0\n"])
def test_RD09_what_looks_like_a_border_does_not_begin_a_new_string(border: str) -> None:
    text = f"{DENSE}{border}" * 6000
    [found] = scan(text)
    assert (found.rule, found.end) == (TOO_MANY_CANDIDATES, len(text))


@pytest.mark.slow
def test_RD09_what_is_masked_unchecked_is_masked_between_and_behind_markers() -> None:
    text = DENSE * 2500 + "[REDACTED]secret1[REDACTED:assigned_password:abcdefgh]secret2" * 3
    assert "secret" not in redact(text)
    # The first candidate beyond the limit lies within a marker.
    unit, end = "pass" + "word=your_key_1X; ", "[REDACTED:assigned_password:abc2efg7] tail"
    count = next(count for count in range(2000, 9000) if count >= 2000 + (count * len(unit) + len(end)) // 64)
    assert redact(unit * (count - 1) + end).endswith(end)
    assert redact(unit * count + end).endswith("abc2efg7][REDACTED]")


def test_RD09_candidates_within_base64_are_counted_with_those_around_it() -> None:
    inside = base64.b64encode(("TOKEN=x " + DENSE * 500).encode()).decode()
    text = " ".join([inside] * 20) + " end"
    found = scan(text)
    assert found[-1].rule == TOO_MANY_CANDIDATES and found[-1].end == len(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["password=", "://a:b", "sk-", "eyJ", "%3D%3D", "\\u0041", "cookie: a=1;"])
def test_RD09_a_secret_behind_any_density_of_signs_is_masked(unit: str) -> None:
    value = PLANT.password()
    assert value not in redact(f"{unit * 20_000}\nDB_PASSWORD={value}\n")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["token,", "token|", "token\t", "token," * 160 + "\n", "| token " * 120 + "\n"])
def test_RD09_the_time_for_names_of_secrets_grows_with_the_length_of_a_text(unit: str) -> None:
    scan(unit)
    spent = []
    for size in (50_000, 400_000):
        start = process_time()
        scan(unit * (size // len(unit)))
        spent.append(process_time() - start)
    # A quarter of a second more than eight times as long: measurements vary. The square would be 64 times as long.
    assert spent[1] < 16 * spent[0] + 0.25
    assert spent[1] < 6


def test_RD09_a_cell_behind_a_long_cell_is_read() -> None:
    value = PLANT.password()
    for row in (f"| {'word ' * 300} | password | {value} |", f"| password | {value} | {'word ' * 300} |"):
        assert value not in redact(f"| a | b | c |\n{row}\n")
    header, cells = ",".join(f"column{number}" for number in range(80)), ",".join(["x"] * 80)
    assert value not in redact(f"{header},password\n{cells},{value}\n")


@pytest.mark.slow
def test_RD09_a_record_of_too_many_strings_is_masked_whole_and_keeps_its_shape() -> None:
    value = PLANT.github()
    uuid = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"
    record = {
        "type": "user",
        "uuid": uuid,
        "sessionId": uuid,
        "time": "2026-01-01T00:00:00Z",
        "pass" + "word": "monkey",
        "card": 4539148803436467,
        "n": [1, 2.5, None, True],
        value: "a key",
        "texts": [f"word {number}" for number in range(200_001)] + [value],
    }
    line = json.dumps(record) + "\n"
    before, behind = json.dumps({"a": f"use {value}"}) + "\n", json.dumps({"a": "calm"}) + "\n"
    redactor = Redactor(MaskSettings("secrets", Marker()))
    content = (before + line + behind).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), redactor)).splitlines(keepends=True)
    assert (masked[0], masked[2]) == (b'{"a": "use [REDACTED]"}\n', behind.encode())
    found = json.loads(masked[1])
    assert redactor.masked[TOO_MANY_CANDIDATES] == 1
    assert found["texts"] == ["[REDACTED]"] * 200_002
    assert {name: found[name] for name in ("type", "uuid", "sessionId", "time", "n")} == {
        name: record[name] for name in ("type", "uuid", "sessionId", "time", "n")
    }
    assert (found["pass" + "word"], found["card"], found["[REDACTED]"]) == ("[REDACTED]",) * 3
    assert len(found) == len(record)
    assert Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record) == found
    [(_, finding)] = Redactor(MaskSettings("secrets", Marker())).findings(record)
    assert finding.rule == TOO_MANY_CANDIDATES


def test_RD09_a_record_of_too_many_strings_without_a_candidate_stays() -> None:
    record = {"texts": [f"word {number}" for number in range(200_001)]}
    assert Redactor(MaskSettings("all", Marker())).learn_and_mask(record) is record


def test_RD09_a_record_of_too_many_bytes_is_masked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.redact.redactor.MAX_SCANNED_BYTES", 10_000)
    record = {"type": "user", "a": PLANT.github(), "b": "word " * 3000}
    line = json.dumps(record).encode() + b"\n"
    redactor = Redactor(MaskSettings("secrets", Marker()))
    masked = b"".join(mask_file(partial(BytesIO, line), redactor))
    assert json.loads(masked) == {"type": "user", "a": "[REDACTED]", "b": "[REDACTED]"}
    assert Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record) == json.loads(masked)
    text = f"word {record['a']} " * 3000
    assert b"".join(mask_file(partial(BytesIO, text.encode()), redactor)).decode() == "word [REDACTED] " * 3000


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/srv/app/.env", "/srv/app/secrets.yaml", "/srv/credentials.json"])
def test_RD09_a_long_credential_file_is_read_like_a_short_one(path: str) -> None:
    lines = [f'  "NAME_{number}": "value-{number:05}",' for number in range(3000)]
    if not path.endswith("json"):
        lines = [f"NAME_{number} = value-{number:05}" for number in range(3000)]
    text = "\n".join(["{", *lines, '  "last": 1', "}"] if path.endswith("json") else lines) + "\n"
    masked = b"".join(
        mask_file(partial(BytesIO, text.encode()), Redactor(MaskSettings("secrets", Marker())), path)
    ).decode()
    assert "value-" not in masked
    assert masked.count("NAME_") == 3000
    long = text.replace("value-00007", "v" * 40_000 + "end-of-value")
    assert "end-of-value" not in redact(long, path=path)
    assert "end-of" not in redact(" " * 100_000 + "\n" + long, path=path)


@pytest.mark.slow
def test_RD09_thousands_of_records_with_a_key_each_lose_their_keys_alone() -> None:
    keys = [PLANT.github() for _ in range(6000)]
    records = [
        {"type": "user", "uuid": f"{n:08x}-0000-4000-8000-000000000000", "text": key} for n, key in enumerate(keys)
    ]
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings("secrets", Marker()))))
    assert [json.loads(line) for line in masked.splitlines()] == [{**each, "text": "[REDACTED]"} for each in records]
    values = [{"type": "user", "text": keys[place : place + 40]} for place in range(0, 4000, 40)]
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn(values)
    assert [redactor.value(each)["text"] for each in values] == [["[REDACTED]"] * 40] * 100


@pytest.mark.slow
def test_texts_that_are_searched_together_are_each_masked_within_their_borders() -> None:
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
    known = KnownValues(values)
    lines = [f"log {value} end\n".encode() for value in values]
    found = [line[hit.start : hit.end].decode() for line in lines for hit in known.hits(line)]
    assert found == values
    assert spelled == len(values)


def test_RD09_the_time_for_a_text_does_not_grow_with_the_number_of_known_values_of_one_beginning() -> None:
    header = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"' + b"k" * 128 + b'"}').decode()
    plant = Planter("one beginning")
    values = [header + base64.b64encode(plant.password().encode() * 12).decode() for _ in range(2000)]
    text = " ".join(values[:200] * 5).encode()
    spent = []
    for known in (KnownValues(values[:200]), KnownValues(values)):
        known.hits(b"builds the automaton")
        start = process_time()
        assert len(known.hits(text)) == 1000
        spent.append(process_time() - start)
    # A comparison with each value would take ten times as long.
    assert spent[1] < 4 * spent[0] + 0.1


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
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn([{"text": value} for value in values])
    assert redactor.value({"title": f"use {values[7][:14]}..."}) == {"title": "use [REDACTED]..."}
    assert redactor.value({"title": "use something else..."}) == {"title": "use something else..."}


def _masked(lines: list[str], setting: MaskSettings) -> list[bytes]:
    content = "".join(lines).encode()
    return b"".join(mask_file(partial(BytesIO, content), Redactor(setting))).splitlines()


@pytest.mark.slow
def test_short_records_without_a_sign_stay_with_rules_of_the_users_own() -> None:
    lines = [json.dumps({"text": f"nothing {n}"}) + "\n" for n in range(6000)]
    masked = _masked(
        [*lines, json.dumps({"text": "EMP-123456"}) + "\n"], MaskSettings("secrets", Marker(), parse_rules(OWN))
    )
    assert masked[:-1] == [line.strip().encode() for line in lines]
    assert masked[-1] == b'{"text": "[REDACTED]"}'


@pytest.mark.slow
def test_every_user_of_many_short_records_is_hidden_and_each_still_parses() -> None:
    lines = [json.dumps({"cwd": f"/home/nora{n}/x", "win": f"C:\\Users\\nora{n}\\x"}) + "\n" for n in range(3000)]
    masked = _masked(lines, MaskSettings("paths", Marker()))
    assert not any(b"nora" in line for line in masked)
    assert {tuple(json.loads(line)) for line in masked} == {("cwd", "win")}


def test_values_that_are_added_one_by_one_are_each_spelled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled: list[str] = []
    original = knowing.spellings_of

    def noted(value: str) -> set[bytes]:
        spelled.append(value)
        return original(value)

    monkeypatch.setattr(knowing, "spellings_of", noted)
    redactor = Redactor(MaskSettings("secrets", Marker()))
    values = [PLANT.github() for _ in range(60)]
    for value in values:
        assert redactor.mask_for_append({"text": f"use {value} now"}) == {"text": "use [REDACTED] now"}
    assert sorted(spelled) == sorted(values)
    assert redactor.mask_for_append({"text": values[0].encode().hex()}) == {"text": "[REDACTED]"}


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
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings("secrets", Marker()))))
    assert masked == content.replace(key.encode(), b'{"text": "[REDACTED]"}\n')


def test_a_text_that_was_clean_before_its_value_was_known_is_masked_in_every_record() -> None:
    value = PLANT.password()
    said = f"it was {value} then"
    records = [{"note": said}, {"note": said, "more": f"token={PLANT.github()}"}, {"env": f"DB_PASSWORD={value}"}]
    masked = _masked([json.dumps(record) + "\n" for record in records], MaskSettings("secrets", Marker()))
    assert [json.loads(line).get("note") for line in masked] == ["it was [REDACTED] then"] * 2 + [None]


@pytest.mark.slow
def test_a_document_of_many_passwords_loses_each_and_keeps_all_else() -> None:
    members = {f"k{n}": f"password={PLANT.password()}" for n in range(5000)}
    [masked] = _masked([json.dumps(members) + "\n"], MaskSettings("secrets", Marker()))
    assert json.loads(masked) == dict.fromkeys(members, "password=[REDACTED]")


@pytest.mark.slow
def test_a_long_list_of_short_rows_with_one_secret_keeps_all_else() -> None:
    value = PLANT.github()
    text = json.dumps([[n, n % 7, f"n{n}"] for n in range(60_000)] + [{"token": value}])
    assert _masked([text], MaskSettings("secrets", Marker())) == [text.replace(value, "[REDACTED]").encode()]


def test_a_large_document_with_one_secret_keeps_all_else() -> None:
    value = PLANT.github()
    members = {f"name{n}": f"some words here {n}" for n in range(5000)} | {"last": f"use {value}"}
    [masked] = _masked([json.dumps(members) + "\n"], MaskSettings("secrets", Marker()))
    assert json.loads(masked) == members | {"last": "use [REDACTED]"}


@pytest.mark.slow
def test_a_known_value_is_masked_in_thousands_of_records_with_a_key_each() -> None:
    value = PLANT.password()
    known = [json.dumps({"a": f"DB_PASSWORD={value}"}) + "\n"]
    lines = [json.dumps({"t": f"{value} " * 3, "token": PLANT.github()}) + "\n" for _ in range(4000)]
    masked = _masked(known + lines, MaskSettings("secrets", Marker()))
    assert len(masked) == 4001
    assert not any(value.encode() in line for line in masked)


def test_RD09_runs_of_backslashes_among_escapes_are_read_once() -> None:
    text = ("\\" * 4000 + "\\u0041") * 4 + f" password={PLANT.password()}7x"
    assert scan(text)


@pytest.mark.slow
def test_a_line_that_is_no_json_keeps_its_end_when_the_rest_of_it_is_masked() -> None:
    broken = '{"text": "' + " ".join(PLANT.github() for _ in range(9000)) + "\n"
    last = json.dumps({"text": "nothing"})
    masked = _masked(["{}\n", broken, last + "\n"], MaskSettings("secrets", Marker()))
    assert masked[0] == b"{}" and masked[2] == last.encode()
    assert b"ghp_" not in masked[1]
