"""What words a text has: our own tokeniser and the index agree, character by character."""

import unicodedata
from pathlib import Path

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.catalog.query import Phrase, matches
from clew.catalog.tokenizer import (
    MAX_WORD_BYTES,
    camel_case_parts,
    camel_case_words,
    has_overlong_word,
    normalize_text,
    words,
)
from tests.catalog.by_hand import Said, find, numbers, write_catalog

CUTTER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build()
"""What the index cuts texts with."""

WILD = st.text(
    st.one_of(st.characters(), st.sampled_from("aB1_ .-éÅßİıſǅΣς漢字かなガ한글ﬁ①²𝔸Ⓐ\u0301\u3099\u1100\u1161"))
)


@given(WILD)
def test_the_index_sees_the_same_words(text: str) -> None:
    assert CUTTER.analyze(normalize_text(text)) == words(text)


@given(
    st.lists(st.sampled_from((1, 9, MAX_WORD_BYTES // 4, MAX_WORD_BYTES // 4 + 1)), max_size=6),
    st.sampled_from(" \n\t\u3000x"),
)
def test_a_giant_is_a_run_without_spaces_that_may_be_too_long(sizes: list[int], between: str) -> None:
    text = between.join("é" * size for size in sizes)
    assert has_overlong_word(text) == (max(map(len, text.split()), default=0) > MAX_WORD_BYTES // 4)


@given(WILD, WILD)
def test_what_is_not_ascii_is_folded_alike_wherever_it_stands(before: str, behind: str) -> None:
    assert words(f"{before} {behind}") == words(before) + words(behind)


@given(WILD)
def test_the_index_sees_the_same_parts_of_camel_case(text: str) -> None:
    assert [CUTTER.analyze(hump) for hump in camel_case_parts(text)] == camel_case_words(text)


@given(WILD)
def test_spelling_twice_is_spelling_once(text: str) -> None:
    assert words(" ".join(words(text))) == words(text)


@pytest.mark.slow
def test_the_index_and_we_agree_about_every_character() -> None:
    for first in range(0, 0x110000, 0x1000):
        text = " ".join(f"x{chr(code)}y {chr(code)}" for code in range(first, first + 0x1000))
        assert CUTTER.analyze(normalize_text(text)) == words(text), hex(first)


def test_a_character_alone_is_cut_as_in_company() -> None:
    """Whether anything in a text needs folding must not change how the rest of it is cut."""
    for code in range(0x80, 0x3000):
        if unicodedata.category(chr(code)) != "Cs":
            alone, together = words(f"x{chr(code)}y"), words(f"x{chr(code)}y é")
            assert together == [*alone, "e"], hex(code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case_name", ["snake", "case", "name"]),
        ("src/clew/cli.py:12", ["src", "clew", "cli", "py", "12"]),
        ("os.path.join", ["os", "path", "join"]),
        ("getUserName", ["getusername"]),
        ("Crème BRÛLÉE naïve", ["creme", "brulee", "naive"]),
        ("cafe\u0301", ["cafe"]),
        ("Straße Łódź Ærø", ["strasse", "lodz", "aero"]),
        ("Ёлка", ["елка"]),
        ("数据库 error", ["数", "据", "库", "error"]),
        ("データ", ["デ", "ー", "タ"]),
        ("ｶﾞ", ["ガ"]),
        ("한국어", ["한", "국", "어"]),
        (unicodedata.normalize("NFD", "한국어"), ["한", "국", "어"]),
        ("a→b│c…", ["a", "b", "c"]),
        ("x\udcffy", ["x", "y"]),
        ("", []),
    ],
)
def test_words_of_texts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName()", [["get", "user", "name"]]),
        ("parseHTTPResponse2", [["parse", "http", "response", "2"]]),
        ("HTTPServer", []),
        ("myHTTPServer", [["my", "http", "server"]]),
        ("Plain words, And_Snake", []),
        ("aB aB cD", [["a", "b"], ["c", "d"]]),
        ("x" * 300 + "Y", []),
        ("naïveCafé", [["naive", "cafe"]]),
        ("na\u0131veCafe\u0301", [["naive", "cafe"]]),
        ("straßeÉtéØre", [["strasse", "ete", "ore"]]),
        ("日本getName語", [["get", "name"]]),
        ("x → getName", [["get", "name"]]),
    ],
)
def test_parts_of_camel_case(text: str, expected: list[list[str]]) -> None:
    assert camel_case_words(text) == expected


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.text("ab_ Xé漢.", max_size=8), min_size=1, max_size=6), st.text("ab_ Xé漢.", min_size=1, max_size=4))
def test_the_index_finds_what_we_would_find(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], asked: str
) -> None:
    wanted = tuple(words(asked))
    if not wanted:
        return
    folder = write_catalog(tmp_path_factory.mktemp("c"), texts)
    expected = {
        place for place, text in enumerate(texts, 1) if matches(Phrase(wanted), [words(text), *camel_case_words(text)])
    }
    assert numbers(find(folder, f'"{asked}"', limit=50)) == expected


def test_a_giant_word_is_not_indexed_and_yet_found_as_text(tmp_path: Path) -> None:
    giant = "q" * (MAX_WORD_BYTES + 1)
    folder = write_catalog(tmp_path / "c", [f"before {giant}needle after", Said("needle")])
    assert words(f"a {giant} b") == ["a", "b"]
    assert numbers(find(folder, "after")) == {1}
    assert numbers(find(folder, "qneedle", mode="substring")) == {1}
    assert numbers(find(folder, "qneedl[e]", mode="regex")) == {1}
