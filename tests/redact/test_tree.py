"""Redaction over structures: every text is met, ids and shape stay, and what is found once is masked everywhere."""

from __future__ import annotations

import base64
import json
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.model.json import JSON
from clew.redact.json_text import MISSING, read, splice
from clew.redact.masks import Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.settings import parse_rules
from tests.json_values import values
from tests.redact.planted import Planter, card, held

PLANT = Planter("tree")
TOKEN, OTHER = PLANT.github(), PLANT.anthropic()
UUID = "bf8f295c-98bb-43bf-a972-9959174591e4"


def redactor(profile: str = "secrets", key: bytes | None = b"key") -> Redactor:
    return Redactor(MaskSettings(profile, Marker(key)))


def once(value: Any, profile: str = "secrets") -> Any:
    return redactor(profile).learn_and_mask(value)


def text_of(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "value",
    [
        {"type": "text", "text": f"here: {TOKEN}"},
        {"type": "thinking", "thinking": f"the key is {TOKEN}", "signature": "E" * 120},
        {"type": "tool_use", "tool_id": "toolu_01abc", "tool_name": "Bash", "input": {"command": f"echo {TOKEN}"}},
        {"type": "tool_result", "tool_id": "toolu_01abc", "output": [{"type": "text", "text": f"out {TOKEN}"}]},
        {"snapshot": {"files": {"src/a.py": {"original_content": f"KEY = '{TOKEN}'"}}}},
        {"snapshot": {"files": {f"keys/{TOKEN}.txt": {"state": "created"}}}},
        {"title": f"use {TOKEN} please"},
        {"metadata": {"cwd": f"/srv/{TOKEN}/x", "todos": [{"content": f"rotate {TOKEN}"}]}},
        {"extensions": {"codex": {"rest": {"deep": [[[{"x": [TOKEN]}]]]}}}},
        {"unknown": {TOKEN: 1}},
        {"list": ["curl", "-H", f"X-Api: {TOKEN}"]},
    ],
    ids=lambda value: next(iter(value)),
)
def test_every_place_is_met(value: dict[str, Any]) -> None:
    masked = once(value)
    assert not held(text_of(masked), {"token": TOKEN})
    assert b"[REDACTED:" in text_of(masked)
    assert shape(masked) == shape(value)


def shape(value: Any) -> Any:
    """A value without its words."""
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_keys_keep_their_order_and_the_rest_its_identity() -> None:
    clean = {"z": 1, "a": ["x", {"q": None}]}
    value = {"second": clean, "first": f"{TOKEN}", "usage": {"input_tokens": 5, "output_tokens": 123456789012345}}
    masked = once(value)
    assert list(masked) == list(value)
    assert masked["second"] is clean
    assert masked["usage"] is value["usage"]


def test_what_holds_nothing_comes_back_as_the_very_same() -> None:
    value = {"type": "user", "message": {"content": [{"type": "text", "text": "nothing to see"}]}}
    assert once(value, "all") is value


@pytest.mark.seed("S0-32")
def test_token_counts_are_never_touched() -> None:
    usage = {"input_tokens": int(card()), "output_tokens": 7, "cache_read_input_tokens": int(card(seed=8))}
    assert once({"message": {"usage": usage}, "tokens": {"estimated": int(card())}}, "all") == {
        "message": {"usage": usage},
        "tokens": {"estimated": int(card())},
    }


@pytest.mark.seed("S0-26")
def test_a_card_that_is_a_number_is_masked_too() -> None:
    number = int(card())
    masked = once({"customer": {"card_number": number, "offset": number + 1}}, "pii")
    assert str(number) not in json.dumps(masked)
    assert masked["customer"]["offset"] == number + 1


IDS: dict[str, Any] = {
    "uuid": UUID,
    "parentUuid": UUID,
    "sessionId": UUID,
    "session_id": UUID,
    "requestId": "req_011CWzMd5vc7cwkNhz5GovQM",
    "message_id": "msg_01" + PLANT.chars(22),
    "tool_use_id": "toolu_01" + PLANT.chars(22),
    "call_id": "call_" + PLANT.chars(24),
    "content_hash": "ab12" * 16,
    "sha256": "0f" * 32,
    "signature": base64.b64encode(bytes(range(200))).decode(),
    "encrypted_content": "gAAAAAB" + PLANT.chars(300),
    "timestamp": "2026-01-11T22:00:00.000Z",
}


@pytest.mark.parametrize("profile", ["secrets", "pii", "paths", "all"])
def test_RD02_ids_hashes_signatures_and_times_stay(profile: str) -> None:
    value = {**IDS, "text": f"the key is {TOKEN}", "deep": [IDS]}
    masked = once(value, profile)
    assert {name: masked[name] for name in IDS} == IDS
    assert masked["deep"] == [IDS]


@pytest.mark.parametrize("form", ["{}", "toolu_{}", "msg_{}", "call-{}", "thread_x-{}"])
def test_a_token_in_an_id_is_hidden_and_references_to_it_stay_equal(form: str) -> None:
    value = {"id": form.format(TOKEN), "tool_use_id": form.format(TOKEN), "parentUuid": form.format(TOKEN)}
    masked = once(value)
    assert TOKEN not in str(masked)
    assert len(set(masked.values())) == 1


def test_a_key_of_aws_before_a_uuid_is_hidden() -> None:
    key = PLANT.aws_id()
    assert key not in str(once({"id": f"{key}-{UUID}"}))


def test_a_key_that_says_id_does_not_hide_a_secret() -> None:
    value = {"AccessKeyId": PLANT.aws_id(), "signature": TOKEN, "id": OTHER}
    assert not held(text_of(once(value)), {"aws": value["AccessKeyId"], "token": TOKEN, "other": OTHER})


@pytest.mark.parametrize("key", ["signature", "thoughtSignature", "encrypted_content", "encryptedContent"])
def test_a_long_token_in_the_place_of_a_signature_is_masked(key: str) -> None:
    long = "sk-" + "proj-" + PLANT.chars(150)
    for token in (OTHER, long):
        assert token not in text_of(once({key: token})).decode()
    assert once({key: "E" * 120}) == {key: "E" * 120}


def pictures(begin: bytes, end: str = "") -> list[Any]:
    """A picture as agents write it down in four ways, with something that follows it."""
    picture = base64.b64encode(begin + f"{TOKEN}\n".encode() * 20).decode() + end
    return [
        {"type": "image", "media_type": "image/png", "encoding": "base64", "image": picture},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": picture}},
        {"inlineData": {"mimeType": "image/webp", "data": picture}},
        {"image_url": "data:image/png;base64," + picture},
    ]


def test_pictures_stay() -> None:
    for begin in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"\0\0\0\x1cftypavif"):
        value = pictures(begin)
        assert once([*value, {"type": "text", "text": TOKEN}])[:4] == value


@pytest.mark.parametrize("begin", [b"", b"text ", b"<svg>"])
def test_what_is_called_a_picture_and_is_none_is_searched(begin: bytes) -> None:
    for value in pictures(begin):
        assert not held(text_of(once([{"text": TOKEN}, value])), {"token": TOKEN}), value


@pytest.mark.parametrize("between", [" ", "\n", "=", ".", ", "])
def test_what_follows_a_picture_is_searched(between: str) -> None:
    for value in pictures(b"\x89PNG\r\n\x1a\n", between + OTHER):
        assert OTHER not in text_of(once(value)).decode()


@pytest.mark.parametrize("token", [TOKEN, OTHER, PLANT.aws_id()])
def test_a_token_in_the_place_of_a_picture_is_masked(token: str) -> None:
    value = [{"media_type": "image/png", "data": token}, {"image_url": f"data:image/png;base64,{token}"}]
    assert token not in text_of(once(value)).decode()


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_RD04_json_within_strings_stays_json(levels: int) -> None:
    inner: Any = {"b": 1, "key": TOKEN, "a": 'line\nbreak "quoted" é', "n": 1.50}
    text = json.dumps(inner)
    for _ in range(levels - 1):
        text = json.dumps({"arguments": text})
    masked = once({"arguments": text})["arguments"]
    assert not held(masked.encode(), {"token": TOKEN})
    for _ in range(levels - 1):
        masked = json.loads(masked)["arguments"]
    found = json.loads(masked)
    assert list(found) == list(inner)
    assert found["a"] == inner["a"]
    assert "1.5" in masked


def test_RD04_a_value_split_over_two_blocks_of_a_message() -> None:
    blocks = [{"type": "text", "text": f"use {TOKEN[:17]}"}, {"type": "text", "text": f"{TOKEN[17:]} from now on"}]
    masked = once({"content": blocks})["content"]
    joined = masked[0]["text"] + masked[1]["text"]
    assert TOKEN[:17] not in joined
    assert TOKEN[17:] not in joined
    assert joined.startswith("use ")
    assert joined.endswith(" from now on")


def test_two_blocks_that_only_look_alike_are_left() -> None:
    blocks = [{"type": "text", "text": "the secret is"}, {"type": "text", "text": "patience, and the token: effort"}]
    assert once({"content": blocks})["content"] == blocks


def test_words_of_a_command_are_seen_together() -> None:
    word = PLANT.password()
    masked = once({"command": ["mysql", "--user", "root", "--password", word, "db"]})
    assert word not in json.dumps(masked)
    assert masked["command"][:4] == ["mysql", "--user", "root", "--password"]
    assert masked["command"][5] == "db"


@pytest.mark.seed("S0-28")
@pytest.mark.parametrize("key", ["password", "DB_PASSWORD", "client_secret", "apiKey", "auth_token"])
def test_the_name_of_a_member_tells_what_it_holds(key: str) -> None:
    word = PLANT.password()
    for value in ({key: word}, {"env": [{"name": key, "value": word}]}, {"args": json.dumps({key: word})}):
        masked = once(value)
        assert word not in json.dumps(masked)
        assert key in json.dumps(masked)


def test_a_value_found_once_is_masked_everywhere() -> None:
    word = PLANT.password()
    session = [
        {"content": [{"type": "text", "text": f"it said {word} again"}]},
        {"content": [{"type": "tool_result", "output": f"DB_PASSWORD={word}\n"}]},
        {"content": [{"type": "text", "text": json.dumps({"note": f"<{word}>"})}]},
        {"content": [{"type": "text", "text": base64.b64encode(f"x:{word}".encode()).decode()}]},
    ]
    one = redactor()
    one.learn(session)
    masked = [one.value(part) for part in session]
    assert not held(text_of(masked), {"word": word})
    assert len({tag for part in masked[:3] for tag in tags(part)}) == 1


def tags(value: Any) -> list[str]:
    """The tags of the markers in a value."""
    import re

    return re.findall(r"\[REDACTED:[\w.-]+:([a-z2-7]{8})\]", json.dumps(value))


def test_a_title_cut_in_the_middle_of_a_secret_is_masked() -> None:
    one = redactor()
    one.learn([{"text": f"use {TOKEN} for it"}])
    for length in range(6, len(TOKEN)):
        masked = one.value({"title": f"use {TOKEN[:length]}…", "firstPrompt": f"use {TOKEN[:length]}"})
        assert TOKEN[:length] not in json.dumps(masked), length


@pytest.mark.seed("S0-23", "S0-24")
@pytest.mark.parametrize(
    "path", [".env", "/srv/app/.env.local", "~/.aws/credentials", "credentials.json", "secrets.yaml"]
)
def test_the_path_that_a_tool_read_goes_to_its_result(path: str) -> None:
    word = PLANT.chars(14)
    body = json.dumps({"plain_name": word}) if path.endswith(".json") else f"plain_name: {word}\n"
    body = f"PLAIN_NAME={word}\n" if ".env" in path else body
    body = f"[default]\nplain_name = {word}\n" if "aws" in path else body
    for call, answer in (
        ({"type": "tool_use", "tool_id": "t1", "input": {"file_path": path}}, {"tool_id": "t1", "output": body}),
        ({"type": "tool_use", "id": "t2", "input": {"command": f"cat {path}"}}, {"tool_use_id": "t2", "content": body}),
        (
            {"type": "function_call", "call_id": "c3", "arguments": json.dumps({"command": ["cat", path]})},
            {"type": "function_call_output", "call_id": "c3", "output": body},
        ),
        ({"id": "g4", "args": {"absolute_path": path}, "result": [{"output": body}]}, {}),
        ({"file": {"filePath": path, "content": body}}, {}),
        ({"trackedFiles": {path: {"originalContent": body}}}, {}),
    ):
        session = [{"content": [call]}, {"content": [answer]}]
        one = redactor()
        one.learn(session)
        masked = json.dumps([one.value(part) for part in session])
        assert word not in masked, (path, call)
        assert path in masked


@pytest.mark.slow
@given(st.data())
def test_RD05_masking_twice_is_masking_once(data: st.DataObject) -> None:
    value = data.draw(planted_values)
    masked = once(value, "all")
    assert once(masked, "all") == masked
    assert text_of(redactor("all").learn_and_mask(value)) == text_of(masked)


texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from([TOKEN, f"key={TOKEN}", f"password: {OTHER}", json.dumps({"token": OTHER}), "/home/ada/x", card()]),
)
planted_values = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(planted_values)
def test_no_planted_value_survives_anywhere(value: Any) -> None:
    assert not held(text_of(once(value)), {"token": TOKEN, "other": OTHER})


@pytest.mark.parametrize("key", [b"one key", None])
def test_RD05_markers_give_nothing_away(key: bytes | None) -> None:
    masked = json.dumps(
        Redactor(MaskSettings("secrets", Marker(key))).learn_and_mask({"a": TOKEN, "b": f"again {TOKEN}", "c": OTHER})
    )
    for length in range(4, 12):
        assert TOKEN[-length:] not in masked
        assert TOKEN[4 : 4 + length] not in masked
    if key is not None:
        first, again, other = tags(masked)
        assert first == again != other
        assert tags(Redactor(MaskSettings("secrets", Marker(b"another"))).learn_and_mask({"a": TOKEN})) != [first]


@pytest.mark.slow
@given(values(["a", "text", "id", "token"], ["a", "x y"]))
def test_any_json_passes_through(value: Any) -> None:
    masked = once(value, "all")
    assert shape_kept(value, masked)


def shape_kept(value: Any, masked: Any) -> bool:
    if isinstance(value, dict):
        return len(masked) == len(value) and all(map(shape_kept, value.values(), masked.values()))
    if isinstance(value, list):
        return len(masked) == len(value) and all(map(shape_kept, value, masked))
    return type(value) is type(masked) or isinstance(masked, str)


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 lone " + TOKEN,
        "\x00\x01\x02" * 1000 + TOKEN,
        '{"broken": "' + TOKEN,
        '{"a": "' + "[" * 5000 + '"}',
        "[" * 3000 + json.dumps(TOKEN) + "]" * 3000,
        '"' * 5000 + TOKEN,
        "\\" * 5001 + TOKEN,
    ],
    ids=["surrogate", "binary", "torn", "brackets", "deep", "quotes", "backslashes"],
)
def test_hostile_texts_pass_through_without_the_value(text: str) -> None:
    for masked in (redactor().text(text), redactor().lines([text])[0], once({"x": text})["x"]):
        assert TOKEN not in masked


def test_both_members_of_one_name_are_met() -> None:
    line = '{"a": "' + TOKEN + '", "b": 1.50, "a": "plain"}'
    masked = redactor().text(line)
    assert TOKEN not in masked
    assert masked.endswith('", "b": 1.50, "a": "plain"}')


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_line_is_spelled_as_before_but_for_what_is_masked(ascii_only: bool, separators: tuple[str, str]) -> None:
    value = {"é": "naïve ☃", "t": f"tab\t{TOKEN} ☃", "n": [1, 2.0]}
    line = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    one = redactor()
    masked = one.text(line)
    expected = json.dumps(one.value(value), ensure_ascii=ascii_only, separators=separators)
    assert masked == expected


@pytest.mark.slow
@given(values(["a", "text", "id", "token"], ["a", "x y"]), st.booleans())
def test_splicing_changes_only_what_it_is_told(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert splice(text, {}) == text
    found = read(text)
    assert found is not MISSING
    assert json.loads(splice(text, {"a": "b"})) == _replaced(value)


def _replaced(value: Any) -> Any:
    if isinstance(value, dict):
        return {("b" if key == "a" else key): _replaced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    return "b" if value == "a" else value


def _deep(inner: Any, around: Any, depth: int) -> Any:
    for _ in range(depth):
        inner = around(inner)
    return inner


def _innermost(value: Any) -> Any:
    while isinstance(value, (list, dict)):
        value = value[0] if isinstance(value, list) else value["a"]
    return value


@pytest.mark.parametrize("depth", [600, 20_000])
@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "objects"])
def test_a_value_of_any_depth_is_masked(around: Any, depth: int) -> None:
    masked = once(_deep(f"use {TOKEN}", around, depth))
    assert _innermost(masked).startswith("use [REDACTED")


def test_a_tuple_is_masked_like_a_list() -> None:
    assert TOKEN not in json.dumps(once({"a": (TOKEN, {"b": (TOKEN,)})}))


def test_a_number_of_any_length_stays() -> None:
    value = {"a": 10**5000, "b": [10**5000], "c": f"use {TOKEN}"}
    masked = once(value)
    assert (masked["a"], masked["b"]) == (value["a"], value["b"])
    assert masked["c"].startswith("use [REDACTED")


@pytest.mark.slow
def test_values_with_lone_surrogates_are_masked_like_others() -> None:
    values = [{"text": f"\ud800 {n} password=aB3{n}xYz{n}"} for n in range(3000)]
    one = redactor()
    one.learn(values)
    masked = [one.value(value) for value in values]
    assert all(list(each) == ["text"] and "xYz" not in each["text"] for each in masked)


def test_lines_are_masked_together_and_stay_as_many() -> None:
    texts = [
        "",
        "plain",
        f"use {TOKEN}",
        '{"a": 1}\n',
        json.dumps({"a": TOKEN}) + "\n",
        "\ud800 " + TOKEN,
        "two\nlines",
    ]
    for some in (texts, texts[:-1]):
        masked = redactor().lines(some)
        assert len(masked) == len(some)
        assert [new == old for new, old in zip(masked, some, strict=True)] == [TOKEN not in text for text in some]
        assert [new.endswith("\n") for new in masked] == [old.endswith("\n") for old in some]
        assert masked[5].startswith("\ud800 [REDACTED")


def test_a_line_that_answers_a_call_is_masked_by_the_file_the_call_was_about() -> None:
    call = {"type": "tool_use", "id": "toolu_01AbCdEf", "input": {"file_path": "/srv/app/.env"}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_01AbCdEf", "content": "SHOP=blue-harbour\n"}
    masked = redactor().lines([json.dumps(call), json.dumps(answer)])
    assert "blue-harbour" not in masked[1]


@pytest.mark.slow
def test_json_within_thousands_of_texts_and_lines_is_masked() -> None:
    texts = [json.dumps([json.dumps({"password": f"aB{n}xYz{m}"}) for m in range(60)]) for n in range(1500)]
    together, apart = redactor(), redactor()
    for masked in (together.lines(texts), list(map(apart.text, texts))):
        assert not any("xYz" in text for text in masked)
        assert [len(json.loads(text)) for text in masked] == [60] * len(texts)


def test_rules_of_ones_own_reach_short_keys_short_texts_and_numbers() -> None:
    rules = parse_rules(
        "[[rule]]\nid = 'staff'\npattern = 'EMP-[0-9]{4}'\n[[rule]]\nid = 'badge'\npattern = '77[0-9]{2}|\\bZ9'\n"
    )
    record: JSON = {"EMP-1234": [7712], "n": 7713, "tokens": 7714, "s": "Z9", "in": json.dumps({"EMP-5678": 7715.5})}
    masked = json.dumps(Redactor(MaskSettings("secrets", Marker(), rules)).learn_and_mask(record))
    assert not [text for text in ("EMP-", "77", "Z9") if text in masked]
    lines = json.dumps(record).encode() + b"\n"
    native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker(), rules))))
    assert json.loads(native) == json.loads(masked)


def test_members_that_only_another_member_tells_to_be_secrets_are_masked() -> None:
    planter = Planter("related")
    secret = planter.chars(40)
    word = base64.b64encode(secret.encode()).decode()
    objects: list[JSON] = [
        {"kty": "EC", "crv": "P-256", "d": secret},
        {"apiVersion": "v1", "data": {"config": word}, "kind": "Secret"},
        {"kind": "Secret", "stringData": {"config": secret}},
        {"AccessKeyId": "AK" + "IA" + planter.chars(16, "ABCDEFGHJKLMNPQRSTUVWXYZ234567"), "Value": secret},
    ]
    for value in objects:
        for record in (
            value,
            {"result": value},
            {"stdout": json.dumps(value)},
            {"stdout": json.dumps(value, indent=2)},
        ):
            masked = json.dumps(Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record))
            assert secret not in masked and word not in masked, record
            lines = json.dumps(record).encode() + b"\n"
            native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker()))))
            assert secret.encode() not in native and word.encode() not in native, record


@pytest.mark.parametrize("name", ["db_pw", "loginPw", "GITHUB_PAT", "psk", "kennwort", "senha", "contraseña", "пароль"])
def test_a_name_means_the_same_in_a_record_and_in_a_text(name: str) -> None:
    value = {name: Planter(name).password()}
    for record in (value, {"stdout": json.dumps(value)}, {"arguments": json.dumps({"text": json.dumps(value)})}):
        masked = json.dumps(Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record))
        assert value[name] not in masked, record
        lines = json.dumps(record).encode() + b"\n"
        native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker()))))
        assert value[name].encode() not in native, record
