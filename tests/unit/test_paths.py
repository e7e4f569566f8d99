"""Folder names that agents make of paths, and names that are safe to make paths of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import PathRefused, UsageError
from clew.io.paths import (
    encode,
    encode_claude,
    encode_seed_claude,
    file_name,
    link_on_way,
    safe_relative,
    same_project,
    spellings,
)
from tests.unit.samples import seed


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/ada/src/moon.phase", "-home-ada-src-moon-phase"),
        ("/home/ada/my_project (2)", "-home-ada-my-project--2-"),
        ("C:\\Users\\Ada", "C--Users-Ada"),
        ("/home/ada/été", "-home-ada--t-"),
        ("/home/ada/\U0001f319", "-home-ada---"),
        ("/home/ada/月", "-home-ada--"),
        ("", ""),
        ("/", "-"),
    ],
)
@pytest.mark.seed("SX-12")
def test_every_unit_outside_letters_and_digits_becomes_a_dash(path: str, name: str) -> None:
    assert encode_claude(path) == name
    assert encode(path, "claude-code") == name


def java_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) % 2**32
    return value - 2**32 if value >= 2**31 else value


def test_long_names_are_cut_and_hashed() -> None:
    assert encode_claude("/" + "a" * 199) == "-" + "a" * 199
    for path in ("/" + "a" * 200, "/" + "b.c/" * 80, "/home/" + "\U0001f319" * 120):
        name = encode_claude(path)
        assert len(name) > 200
        cut, _, hashed = name[:200], name[200], name[201:]
        assert re.fullmatch(r"[A-Za-z0-9-]{200}", cut)
        assert name[200] == "-"
        assert int(hashed, 36) == abs(java_hash(path))
    # Two paths that begin alike are told apart by the hash.
    assert encode_claude("/" + "a" * 300) != encode_claude("/" + "a" * 301)


@pytest.mark.seed("SX-12")
def test_the_stated_and_the_observed_rule_both_match() -> None:
    path = "/home/ada/src/my_app v1.2"
    stated, observed = encode_seed_claude(path), encode_claude(path)
    assert stated == "-home-ada-src-my_app v1-2"
    assert observed == "-home-ada-src-my-app-v1-2"
    assert same_project(stated, path)
    assert same_project(observed, path)
    assert {stated, observed} <= set(spellings(path))
    assert not same_project("-home-ada-src-other", path)
    for example in seed("seed-000/encodings"):
        assert encode_claude(example["path"]) == encode_seed_claude(example["path"]) == example["claude"]
        assert same_project(example["claude"], example["path"])
        assert same_project(example["sage"], example["path"])


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=150))
def test_names_of_paths_are_plain_and_as_long_as_the_path(path: str) -> None:
    name = encode_claude(path)
    assert re.fullmatch(r"[A-Za-z0-9-]*", name)
    assert len(name) == len(path.encode("utf-16-le")) // 2 or len(name) > 200
    assert same_project(name, path)


HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc/passwd",
    "a\\b",
    "..\\x",
    "C:x",
    "C:\\x",
    "\\\\host\\share",
    "a:stream",
    "x\0y",
    "a*b",
    "a?b",
    'a"b',
    "a<b",
    "a|b",
    "x" * 256,
    "é" * 200,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_R01_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a safe file name"):
        safe_relative(name)


@pytest.mark.parametrize("name", ["a", "agent-1.jsonl", "-home-ada", "été", "a b", "...", ".hidden"])
def test_plain_names_pass(name: str) -> None:
    assert safe_relative(name) == name
    assert file_name(name) == name


def test_a_path_that_is_not_below_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert link_on_way(tmp_path, tmp_path / "in" / "x") is None
    assert link_on_way(tmp_path, tmp_path / "link" / "x") == tmp_path / "link"
    for path in (tmp_path / "link", tmp_path / "in" / ".." / "link"):
        with pytest.raises(PathRefused, match="is not below"):
            link_on_way(tmp_path / "in", path)


def test_a_name_in_which_a_secret_was_masked_is_a_name() -> None:
    assert safe_relative("-src-[REDACTED:github_token:abcdefg2]") == "-src-[REDACTED-github_token-abcdefg2]"
    assert safe_relative("-src-[REDACTED]") == "-src-[REDACTED]"
    for name in ("[REDACTED:/etc:abcdefg2]", "[REDACTED:a:b]", "[REDACTED:a:abcdefg2]:x"):
        with pytest.raises(UsageError, match="not a safe file name"):
            safe_relative(name)


@pytest.mark.parametrize("name", [*HOSTILE, "x\ny", "\x1b[31mred", "a/../../b"])
def test_R01_a_name_made_of_anything_stays_where_it_is(name: str) -> None:
    made = file_name(name)
    assert safe_relative(made) == made
    assert made.isprintable()


@given(st.text(max_size=300))
def test_R01_every_name_made_is_safe(text: str) -> None:
    assert safe_relative(file_name(text))
