"""The engine: what it finds, in which surroundings and layers, and what it leaves alone."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.redact import (
    MARKER,
    PLAIN,
    Finding,
    KnownValues,
    Marker,
    kinds_of,
    parse_rules,
    redact,
    rules_version,
    scan,
    scan_all,
)
from clew.redact.prefilter import Prefilter
from clew.redact.scanner import default_rules
from clew.redact.token_rules import builtin_rules
from tests.redact import labelled
from tests.redact.planted import Planter
from tests.redact.scoring import SECRETS_GENERATOR, load_generator, ours

MIXED = string.ascii_letters + string.digits


def token(seed: int = 1, prefix: str = "gh" + "p_", length: int = 36) -> str:
    chance = random.Random(seed)
    return prefix + "".join(chance.choice(MIXED) for _ in range(length - 3)) + "aZ4"


def hidden(text: str, value: str, profile: str = "secrets", path: str | None = None) -> bool:
    return value not in redact(text, profile, path=path)


# --- RD01: the score


@pytest.mark.slow
def test_RD01_our_own_set_is_found_whole_and_nothing_else() -> None:
    score = ours([row for seed in range(1, 6) for row in labelled.records(seed, 18)])
    missed = {kind: row for kind, row in score.kinds.items() if row[0] < row[1]}
    assert not missed
    assert score.right == score.reported


@pytest.mark.parametrize("seed", [1, 7, 20, 101])
def test_RD01_the_shared_set(shared: Path, seed: int) -> None:
    score = ours(load_generator(shared / SECRETS_GENERATOR).generate(seed))
    assert score.recall("secret") >= 99.5
    assert score.recall("pii") == 100
    assert score.precision() >= 99.5
    assert all(found >= 0.9 * planted for found, planted in score.kinds.values())


def test_there_are_rules_for_many_services() -> None:
    rules = builtin_rules()
    services = {name for rule in rules for name in rule.service.split(", ")}
    assert len(services) >= 150
    assert len({rule.id for rule in rules}) == len(rules)


_EXAMPLES = {
    "[A-Za-z0-9]": MIXED,
    "[a-f0-9]": "0123456789abcdef",
    "[A-Za-z0-9_-]": MIXED + "_-",
    "[A-Z0-9]": string.ascii_uppercase + string.digits,
    "[a-z0-9]": string.ascii_lowercase + string.digits,
}


def simple_rules() -> list[tuple[str, str, str]]:
    """Rules of one beginning and one run, as (id, beginning, run)."""
    rules = builtin_rules()
    return [
        (rule.id, begin, rule.rest)
        for rule in rules
        for begin in rule.prefixes[:1]
        if rule.rest.partition("{")[0] in _EXAMPLES and rule.rest.endswith("}") and rule.rest.count("{") == 1
    ]


@pytest.mark.parametrize(("rule", "begin", "then"), simple_rules(), ids=lambda value: str(value)[:24])
def test_a_key_made_by_the_book_is_found(rule: str, begin: str, then: str) -> None:
    alphabet, _, counts = then.partition("{")
    length = int(counts.rstrip("}").split(",")[0])
    chance = random.Random(rule)
    value = begin + "".join(chance.choice(_EXAMPLES[alphabet].rstrip("_-")) for _ in range(length - 2)) + "a7"[-2:]
    if alphabet == "[A-Z0-9]":
        value = begin + value[len(begin) :].upper()
    found = scan(f"used {value} before")
    assert [(each.start, each.end) for each in found] == [(5, 5 + len(value))]


@pytest.mark.parametrize("times", [2, 20])
@pytest.mark.parametrize(
    ("rule", "begin", "then"),
    [each for each in simple_rules() if each[2].endswith(",}")],
    ids=lambda value: str(value)[:24],
)
def test_a_key_that_has_grown_is_found_whole(rule: str, begin: str, then: str, times: int) -> None:
    alphabet, _, least = then.partition("{")
    value = begin + Planter(rule).chars(times * int(least.rstrip(",}")), _EXAMPLES[alphabet].rstrip("_-"))
    assert [(each.start, each.end) for each in scan(f"used {value} before")] == [(5, 5 + len(value))]


def test_a_long_key_directly_behind_another_is_found_whole() -> None:
    plant = Planter("adjacent")
    value = plant.github() + "github" + f"_pat_{plant.chars(22)}_{plant.chars(600)}"
    assert [(each.start, each.end) for each in scan(f"used {value} before")] == [(5, 5 + len(value))]


@pytest.mark.parametrize("width", [40, 76, 120])
@pytest.mark.parametrize("before", ["", "export KEY="])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_wrapped_key_is_masked_in_every_line_and_what_follows_stays(width: int, before: str, line_end: str) -> None:
    plant, prefilter = Planter("wrapped"), Prefilter(default_rules(), frozenset({"secret"}))
    parts = [{"alg": "RS256"}, {"sub": plant.chars(500)}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    for value in ("sk-" + "proj-" + plant.chars(156), plant.anthropic(), ".".join([*encoded, plant.chars(342)])):
        text = before + value
        lines = [text[start : start + width] for start in range(0, len(text), width)]
        record = json.dumps({"a": line_end.join(lines)})
        assert all(prefilter.must_read(raw.encode()) for raw in (record, json.dumps({"a": record})))
        masked = redact(line_end.join([*lines, "The next line", "3f2a9c0d17"]))
        assert not any(line in masked for line in lines if len(line) >= 12)
        assert masked.endswith(line_end.join(["", "The next line", "3f2a9c0d17"]))


def test_keys_in_lines_of_their_own_are_each_masked() -> None:
    keys = [Planter(str(number)).github() for number in range(5)]
    assert len(scan("\n".join(keys))) == 5


def test_only_a_prefix_that_needs_a_word_start_sets_an_upper_limit_to_the_last_run_of_a_key() -> None:
    limited = [
        rule.id for rule in builtin_rules() if not rule.needs_word_start and re.search(r"\]\{\d+,\d+\}$", rule.rest)
    ]
    assert limited == ["jwe"]


@pytest.mark.parametrize("sizes", [(6_000, 9, 43), (9, 12_000, 43), (9, 9, 3_000), (3_000, 9_000, 2_500)])
def test_a_web_token_of_long_parts_is_found_whole(sizes: tuple[int, int, int]) -> None:
    plant = Planter("long parts")
    parts = [{"alg": "RS256", "x5c": plant.chars(sizes[0])}, {"sub": plant.chars(sizes[1])}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    value = ".".join([*encoded, plant.chars(sizes[2])])
    assert [(each.start, each.end) for each in scan(f"used {value} before")] == [(5, 5 + len(value))]


def test_a_long_body_of_an_openssh_key_is_found_whole() -> None:
    value = base64.b64encode(b"openssh-key-v1\0" + random.Random(5).randbytes(9_000)).decode()
    assert [(each.start, each.end) for each in scan(f"used {value}")] == [(5, 5 + len(value))]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [100, 600, 4_000])
def test_every_line_of_a_putty_key_is_masked_and_the_lines_around_stay(line_end: str, size: int) -> None:
    body = base64.b64encode(random.Random(size).randbytes(size)).decode()
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    text = line_end.join(["Comment: a", f"Private-Lines: {len(lines)}", *lines, "Private-MAC: none", "Then words."])
    masked = redact(text)
    assert not any(line in masked for line in lines)
    assert masked.startswith("Comment: a") and masked.endswith(line_end.join(["", "Private-MAC: none", "Then words."]))


@pytest.mark.slow
def test_thousands_of_prefixes_in_a_row_take_a_limited_time() -> None:
    for prefix in ("sk-ant-", "sk-proj-", "tskey-", "eyJ-", "Private-Lines: 1 "):
        begin = time.process_time()
        scan(prefix * (100_000 // len(prefix)))
        assert time.process_time() - begin < 5, prefix


# --- RD04: layers


def in_json(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps({"content": text})
    return text


def test_a_token_in_the_name_of_a_folder_is_found() -> None:
    """Agents name the folder of a project after its path, with dashes for everything but letters and digits."""
    plant = Planter("folder")
    fine = f"_pat_{plant.chars(22)}_{plant.chars(59)}"
    for token in (plant.github(), "hf" + "_" + plant.chars(34), "github" + fine):
        folder = f"-home-ada-src-shop-{token}".replace("_", "-")
        assert token.partition("_")[2].replace("_", "-") not in redact(folder), folder


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("make", [lambda v: f"A=1\nAPI_TOKEN={v}\nB=2", lambda v: f'say "{v}"', lambda v: f"x\t{v}\n"])
def test_RD04_json_in_json(depth: int, make: object) -> None:
    value = token(depth)
    text = in_json(make(value), depth)  # type: ignore[operator]
    assert hidden(text, value)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_RD04_line_ends_inside_a_private_key(depth: int) -> None:
    chance = random.Random(3)
    body = [("".join(chance.choice(MIXED + "+/") for _ in range(64))) for _ in range(6)]
    kind = "RSA PRIVATE" + " KEY"
    text = in_json(f"-----BEGIN {kind}-----\n" + "\n".join(body) + f"\n-----END {kind}-----\nafter", depth)
    clean = redact(text)
    assert not any(line in clean for line in body)
    assert "after" in clean


def test_RD04_a_private_key_that_was_cut_off() -> None:
    chance = random.Random(4)
    body = "\n".join("".join(chance.choice(MIXED) for _ in range(64)) for _ in range(4))
    assert hidden("-----BEGIN PRIVATE" + " KEY-----\n" + body, body[:60])


def test_RD04_unicode_escapes() -> None:
    value = token(9)
    spelled = "".join(f"\\u{ord(char):04x}" for char in value)
    assert spelled not in redact(f'{{"a": "{spelled}"}}')
    part = value[:10] + f"\\u{ord(value[10]):04X}" + value[11:]
    assert part not in redact(f'"key": "{part}"')


def test_RD04_percent_escapes() -> None:
    chance = random.Random(8)
    value = "".join(chance.choice(MIXED + "+/") for _ in range(38)) + "+/"
    assert hidden("q=1&body=" + quote(f"aws_secret_access_key={value}&x=1", safe=""), quote(value, safe=""))


def test_RD04_base64_of_an_env_file() -> None:
    text = base64.b64encode(f"PORT=80\nDB_PASSWORD={token(5, 'x', 20)}\n".encode()).decode()
    assert hidden(f"data: {text} end", text)
    harmless = base64.b64encode(b"The password of the day is to be asked for at the desk.").decode()
    assert not scan(harmless)


@pytest.mark.parametrize("cut", [8, 12, 20, 39])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\n    ", '" +\n  "', "\\\n"])
def test_RD04_a_value_over_two_lines(cut: int, between: str) -> None:
    value = token(6)
    clean = redact(f"see {value[:cut]}{between}{value[cut:]} there")
    assert value[:cut] not in clean
    assert value[cut:] not in clean or len(value[cut:]) < 4


# --- RD05: markers


@given(st.binary(min_size=1, max_size=40), st.text(min_size=1), st.text(min_size=1))
def test_RD05_equal_values_have_equal_tags_under_one_key(key: bytes, one: str, other: str) -> None:
    marker = Marker(key)
    assert marker(one, "a") == marker(one, "a")
    assert (marker.tag(one) == marker.tag(other)) == (one == other)
    assert marker.tag(one) != Marker(key + b"x").tag(one)
    assert MARKER.fullmatch(marker(one, "some_rule"))


def test_RD05_a_marker_keeps_nothing_of_the_value() -> None:
    value = token()
    marker = Marker(b"key")(value, "github_token")
    assert marker.startswith("[REDACTED:github_token:")
    assert not any(value[place : place + 3] in marker for place in range(len(value) - 2))


@pytest.mark.slow
def test_RD05_redaction_is_idempotent() -> None:
    mark = Marker(b"k")
    for row in labelled.records(3, 18):
        for chosen in (None, mark):
            once = redact(row["text"], "all", mark=chosen)
            assert redact(once, "all", mark=chosen) == once


@given(st.text())
def test_RD05_any_text_is_redacted_once(text: str) -> None:
    once = redact(f"{text} password={token(2, '', 20)} {text}", "all")
    assert redact(once, "all") == once


# --- RD09: hostile texts

_UNITS = [
    "a=",
    ":::",
    "eyJ",
    "1234567890",
    "4 ",
    "://",
    "a://b:c@",
    "sk-",
    "sk-ant-",
    "gh" + "p_",
    "AK" + "IA",
    "password=",
    "pwd=" + "Ab1234 ",
    "token" + ": 'Ab12345678', ",
    "Bearer" + " a1b2c3d4 ",
    "cookie: a=b;",
    "kind: Secret\n",
    "%3D",
    "\\u0041",
    "\\/",
    "\\",
    "\\n",
    '"',
    "<password>",
    "-u a:bcd ",
    "eyJhbGci.",
    "x@y.zz ",
    "+33",
    "GB82 WEST ",
    "/home/a/",
    "10.0.0.1 ",
    "UEFTU1dPUkQ",
    "[REDACTED]",
    "[REDACTED",
    "\0",
    "\ud800",
    "é",
    "日",
    "-----BEGIN PRIVATE" + " KEY-----",
    "PASSWORD=" + "hunter2\n",
    "?key=",
    ".abcdef.",
    "ghp_\n",
    "Private-" + "Lines: 1\naaaa\n",
    "xo" + "xb-1 ",
]


def hostile() -> list[str]:
    chance = random.Random(11)
    mixed = ["".join(chance.choice(_UNITS) for _ in range(chance.randrange(1, 12))) for _ in range(9_900)]
    noise = ["".join(chr(chance.randrange(1, 3000)) for _ in range(200)) for _ in range(100)]
    return mixed + noise


@pytest.mark.slow
def test_RD09_ten_thousand_hostile_texts_raise_nothing() -> None:
    for text in hostile():
        last = 0
        for found in scan(text, "all"):
            assert last <= found.start < found.end <= len(text)
            last = found.end


# --- RD10: the version


def test_RD10_the_rules_have_a_version_that_grows_with_a_users() -> None:
    own = parse_rules("[[rule]]\nid = 'mine'\npattern = 'M-[0-9]{4}'\n")
    other = parse_rules("[[rule]]\nid = 'mine'\npattern = 'M-[0-9]{5}'\n")
    assert rules_version()[:4].isdigit()
    assert len({rules_version(), own.version, other.version}) == 3
    assert own.version.startswith(rules_version() + "+")


# --- Known values, many texts, profiles


@pytest.mark.parametrize(
    "spell",
    [
        lambda value: value,
        lambda value: json.dumps(value),
        lambda value: json.dumps(json.dumps(value)),
        lambda value: quote(value, safe=""),
        lambda value: value.encode().hex(),
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: base64.b64encode(b"a" + value.encode() + b"b").decode(),
        lambda value: base64.b64encode(b"ab" + value.encode() + b"cd").decode(),
        lambda value: base64.urlsafe_b64encode(b"abc" + value.encode()).decode(),
        lambda value: "".join(f"\\u{ord(char):04x}" for char in value),
        lambda value: json.dumps(value, ensure_ascii=False).replace("/", "\\/"),
    ],
)
@pytest.mark.parametrize("value", ["correct horse/battery", 'qu"ote\\and+more/', "Zwölf Boxkämpfer"])
def test_known_values_are_found_in_every_spelling(spell: object, value: str) -> None:
    text = f"log {spell(value)} end"  # type: ignore[operator]
    found = scan(text, known=KnownValues([value]))
    assert found
    clean = redact(text, known=KnownValues([value]))
    middle = spell(value).strip('"\\')[4:-4]  # type: ignore[operator]
    assert middle not in clean
    assert not scan("nothing of the kind here", known=KnownValues([value]))


@pytest.mark.slow
def test_many_texts_at_once_give_what_each_gives() -> None:
    texts = [row["text"] for row in labelled.records(2, 18)] + [
        "",
        "a",
        "\\ntoken\\n" + token(3),
        "x\\n" + token(4),
        "plain",
    ]
    for profile in ("none", "secrets", "pii", "paths", "all"):
        single = {index: found for index, text in enumerate(texts) if (found := scan(text, profile))}
        assert scan_all(texts, profile) == single
    assert scan_all([*texts, "with\0nul"], "all")


def test_profiles_look_for_what_they_say() -> None:
    text = f"mail ada.l@posteo.de key {token()} in /home/ada/x on 192.168.3.4"
    kinds = {
        profile: {each.kind for each in scan(text, profile)} for profile in ("none", "secrets", "pii", "paths", "all")
    }
    assert kinds == {profile: set(kinds_of(profile)) for profile in kinds}


def test_paths_name_the_user_and_the_machine() -> None:
    text = "/home/grace/app, C:\\Users\\Grace\\x, -home-grace-app, grace@box:~$ ls, 10.1.2.3, nas.local"
    text += ", /home/user/x, 8.8.8.8"
    clean = redact(text, "paths")
    assert "race" not in clean
    assert "10.1.2.3" not in clean and "nas.local" not in clean
    assert "/home/user/x" in clean and "8.8.8.8" in clean


def test_files_and_calls_that_end_like_a_host_stay() -> None:
    for text in ("app.local.yaml", "see .env.local", "conf/.rc.local", "Folder.home() / 'x'", "tasks.internal.rs"):
        assert redact(text, "paths") == text
    assert redact("ssh nas.local and http://box.lan/x", "paths") == f"ssh {PLAIN} and http://{PLAIN}/x"


def test_places_count_characters() -> None:
    value = token()
    text = f"日本語 \U0001f600 é\ud800 {value} ü"
    assert scan(text) == [Finding(text.index(value), text.index(value) + len(value), "github_token", "secret", 0.95)]
    assert redact(text) == text.replace(value, PLAIN)


@pytest.mark.slow
def test_the_repository_holds_no_secret() -> None:
    root = Path(__file__).resolve().parents[2]
    found = []
    for folder in ("src", "tests", "docs", "benchmarks"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".toml", ".json", ".jsonl"} and "fixtures" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                found += [
                    f"{path.relative_to(root)}:{text.count(chr(10), 0, each.start) + 1}: {each.rule}"
                    for each in scan(text)
                ]
    assert not found, "\n".join(found)
