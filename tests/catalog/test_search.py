"""Searching a catalog: what is found, how much of it, in what order, and how it is shown."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import re2

from clew.catalog import database, lookup
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.search import SEARCH_FIELDS, Hit, Request, Searcher, unmasked
from clew.catalog.snippets import SNIPPET_CHARS, snippet
from clew.catalog.text_index import TextWriter
from clew.catalog.text_scan import literals_of
from clew.catalog.text_store import ChunkPacker, TextStore
from clew.errors import UsageError
from clew.model.json import JSON
from tests.catalog.by_hand import Said, find, numbers, write_catalog
from tests.catalog.test_query import random_queries

TEXTS = [
    Said("The parser reads src/clew/io/records.py, line by line", "prompt"),
    Said("def get_user_name(self): return os.path.join(root)", "input"),
    Said("const fullName = getUserName(user)", "output"),
    Said("Où est le café ? Straße, naïve", "answer", session=2),
    Said("数据库连接失败 connection refused", "output", session=2),
    Said("I think the parser is wrong about user names", "thinking", session=2),
    Said("Parser mended", "title", session=2),
    Said("/home/ada/src/tidepool/predict.py", "file", session=2),
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_catalog(tmp_path_factory.mktemp("search") / "c", TEXTS)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("parser", {1, 6, 7}),
        ("PARSER reads", {1}),
        ('"parser reads"', {1}),
        ('"reads parser"', set()),
        ("parser -wrong", {1, 7}),
        ("parser NOT (wrong OR mended)", {1}),
        ("refused OR mended", {5, 7}),
        ("NOT (parser OR user OR src)", {4, 5}),
        ("get_user_name", {2, 3}),
        ("user_name", {2, 3}),
        ("name", {2, 3}),
        ("getUserName", {3}),
        ("fullname", {3}),
        ("os.path.join", {2}),
        ("path", {2}),
        ("src/clew/io/records.py", {1}),
        ("records.py", {1}),
        ("clew/io", {1}),
        ("predict", {8}),
        ("cafe", {4}),
        ("CAFÉ", {4}),
        ("ou strasse naive", {4}),
        ("数据库", {5}),
        ("连接失败", {5}),
        ("据连", set()),
        ("数 败", {5}),
        ("pars*", {1, 6, 7}),
        ("get_us*", {2, 3}),
        ('"user na"*', {2, 3, 6}),
        ("zebra", set()),
    ],
)
def test_what_is_found(catalog: Path, query: str, expected: set[int]) -> None:
    found = find(catalog, query)
    assert numbers(found) == expected
    assert found.total == len(expected)


@pytest.mark.parametrize(("name", "kinds"), SEARCH_FIELDS.items())
def test_where_is_said_with_in(catalog: Path, name: str, kinds: tuple[str, ...]) -> None:
    found = find(catalog, "NOT zebra", places=(name,))
    assert {hit.kind for hit in found.hits} == set(kinds)
    both = find(catalog, "NOT zebra", places=(name, "titles"))
    assert {hit.kind for hit in both.hits} == {*kinds, "title"}


def test_where_must_be_known(catalog: Path) -> None:
    with pytest.raises(UsageError, match="choose from prompts"):
        find(catalog, "x", places=("sideways",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("er rea", {1}),
        ("ET_USER", {2}),
        ("UserN", {3}),
        ("(self):", {2}),
        ("连接", {5}),
        ("é ?", {4}),
        ("?", {4}),
        ("zz", set()),
    ],
)
def test_pieces_of_text_are_found(catalog: Path, text: str, expected: set[int]) -> None:
    assert numbers(find(catalog, text, mode="substring")) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"get\w+ame", {2, 3}),
        (r"(?i)parser\s+(is|reads)", {1, 6}),
        (r"^const", {3}),
        (r"refused$", {5}),
        (r"\Adef", {2}),
        (r"[数]据", {5}),
        (r"par?ser|refu(s)ed", {1, 5, 6}),
        (r"x{0}fullName", {3}),
        (r"clew/io/records\.py", {1}),
        (r"nothing\d*at all", set()),
    ],
)
def test_regular_expressions(catalog: Path, pattern: str, expected: set[int]) -> None:
    found = find(catalog, pattern, mode="regex")
    assert numbers(found) == expected
    assert numbers(found) == {at for at, said in enumerate(TEXTS, 1) if re.search(pattern, said.text)}


def test_letters_that_grow_when_they_are_made_small_lose_nothing(tmp_path: Path) -> None:
    folder = write_catalog(tmp_path / "c", ["a harbour called x\u0130abc here"])
    assert find(folder, "x\u0130abc", mode="regex").total == 1
    assert find(folder, "x\u0130abc", mode="substring").total == 1


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        ("needle", ("needle",)),
        ("needles?", ("needle",)),
        ("ab*cd", ("a", "cd")),
        (r"foo\.bar", ("foo.bar",)),
        (r"foo\dbar", ("foo",)),
        ("a|b", ()),
        ("(?s)abc", ()),
        ("(?i)abc", ("abc",)),
        ("abc[de]fgh", ("abc",)),
        ("abc(def)?ghi", ("abc",)),
        ("abc{0,2}d", ("ab",)),
        (r"\x41bc", ()),
    ],
)
def test_letters_that_every_match_must_have(pattern: str, pieces: tuple[str, ...]) -> None:
    assert literals_of(pattern) == pieces


@pytest.mark.parametrize("pattern", ["(", "[a", "(?<=x)y", r"\1", "a{9999}", "\ud800("])
def test_a_bad_expression_is_refused(catalog: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="--regex: "):
        find(catalog, pattern, mode="regex")


SLOW = ["(a+)+$", "(a|a)*$", "(a*)*b", "([a-z]+)*1", "(.*a){20}", "^(([a-z])+.)+[A-Z]([a-z])+$"]


@pytest.mark.parametrize("pattern", SLOW)
def test_Q03_catastrophic_expressions_are_linear(tmp_path: Path, pattern: str) -> None:
    import time

    folder = write_catalog(tmp_path / "c", ["a" * 100_000 + "!"])
    before = time.process_time()
    find(folder, pattern, mode="regex")
    assert time.process_time() - before < 10


def test_the_best_comes_first_or_the_newest(tmp_path: Path) -> None:
    texts = [Said("anchor " + "and much else " * 50, when=3), Said("anchor anchor", when=1), Said("an anchor", when=2)]
    folder = write_catalog(tmp_path / "c", texts)
    assert [hit.message for hit in find(folder, "anchor").hits] == [2, 3, 1]
    assert [hit.message for hit in find(folder, "anchor", newest=True).hits] == [1, 3, 2]
    assert [hit.message for hit in find(folder, "anchor", mode="substring").hits] == [1, 3, 2]


def test_Q04_many_hits_come_in_pages(tmp_path: Path) -> None:
    folder = write_catalog(tmp_path / "c", [Said(f"word number {at}", when=at) for at in range(500)])
    pages = [find(folder, "wor*", newest=True, limit=70, offset=offset) for offset in range(0, 560, 70)]
    assert {page.total for page in pages} == {500}
    seen = [hit.message for page in pages for hit in page.hits]
    assert seen == list(range(500, 0, -1))
    with pytest.raises(UsageError, match="narrow"):
        find(folder, "word", limit=10, offset=100_000)


@pytest.mark.slow
def test_Q02_random_queries_against_an_index_raise_nothing(catalog: Path) -> None:
    answered = 0
    with closing(Searcher(catalog, unmasked)) as searcher:
        for query in random_queries(11, 3_000):
            for mode in ("words", "substring"):
                try:
                    searcher.search(Request(query, mode, limit=2))
                    answered += 1
                except UsageError:
                    pass
    assert answered > 2_000


def test_Q02_random_expressions_raise_nothing(catalog: Path) -> None:
    with closing(Searcher(catalog, unmasked)) as searcher:
        for query in random_queries(13, 500):
            with suppress(UsageError):
                searcher.search(Request(query, "regex", limit=2))


@pytest.mark.parametrize("query", ["' OR 1=1 --", "x'; DROP TABLE block; --", '") OR ("1', "kind:prompt", "text:x^2"])
def test_Q01_nothing_reaches_the_database_as_a_statement(catalog: Path, query: str) -> None:
    before = find(catalog, "NOT zebra").total
    for mode in ("words", "substring", "regex"):
        try:
            find(catalog, query, mode=mode)
        except UsageError:
            continue
    assert find(catalog, "NOT zebra").total == before


def test_text_that_is_not_indexed_yet_is_found_by_its_letters_alone(tmp_path: Path) -> None:
    folder = write_catalog(
        tmp_path / "c", ["old needle"], pending=[Said("new needle in userName"), Said("hay", "output")]
    )
    assert numbers(find(folder, "needle")) == {1}
    assert numbers(find(folder, "eedl", mode="substring")) == {1, 2}
    assert numbers(find(folder, "nee+dle", mode="regex")) == {1, 2}
    assert numbers(find(folder, "hay", places=("prompts",))) == set()


def test_what_is_no_longer_true_is_not_found(tmp_path: Path) -> None:
    blocks = [Said("a needle"), Said("another needle", session=2), Said("needles", session=3)]
    folder = write_catalog(tmp_path / "c", blocks)
    db = database.open_writer(folder)
    db.execute("INSERT INTO removed_text SELECT first, last FROM text_chunk ORDER BY first LIMIT 1")
    db.execute("INSERT INTO unindexed_text SELECT max(first) FROM text_chunk")
    db.close()
    found = find(folder, "needle*")
    assert (numbers(found), found.total) == ({2}, 1)


@pytest.mark.slow
def test_a_long_lived_searcher_sees_what_is_added_and_dropped(tmp_path: Path) -> None:
    folder = write_catalog(tmp_path / "c", ["one needle", "second", Said("of another needle", session=2)])
    searcher = Searcher(folder, unmasked)
    assert searcher.search(Request("needle")).total == 2
    writer = TextWriter(folder / "text")
    writer.remove([(2 * KEYS_PER_SOURCE, 3 * KEYS_PER_SOURCE)])
    writer.commit()
    assert numbers(searcher.search(Request("needle"))) == {1}
    writer.add(KEYS_PER_SOURCE + 2, "prompt", 0, "second needle")
    writer.commit()
    writer.close()
    assert numbers(searcher.search(Request("needle"))) == {1, 2}
    searcher.close()


def test_a_snippet_is_marked_and_on_one_line(tmp_path: Path) -> None:
    text = "first line\n\n" + "word " * 100 + "the\tneedle_in \x1b[31m haystack " + "word " * 100
    folder = write_catalog(tmp_path / "c", [text, "Où est le café ?", "x getUserName y"])
    shown = find(folder, "needle_in").hits[0].snippet
    assert shown.text.startswith("…") and shown.text.endswith("…")
    assert "\n" not in shown.text and "\x1b" not in shown.text
    assert "the «needle_in» ␛[31m haystack" in shown.marked("«", "»")
    assert len(shown.text) <= SNIPPET_CHARS + 10
    assert find(folder, "CAFE").hits[0].snippet.marked("«", "»") == "Où est le «café» ?"
    assert find(folder, "user").hits[0].snippet.marked("«", "»") == "x get«User»Name y"
    assert find(folder, "Où e", mode="substring").hits[0].snippet.marked("<", ">") == "<Où e>st le café ?"
    assert find(folder, "t le .afé", mode="regex").hits[0].snippet.marked("<", ">") == "Où es<t le café> ?"


SECRET = "ghp_" + "Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz0Xc3V"


@pytest.mark.slow
def test_RD06_a_snippet_is_cut_after_the_whole_text_is_masked(tmp_path: Path) -> None:
    for gap in range(0, 200, 9):
        text = f"{SECRET} {'.' * gap} needle {'.' * gap} {SECRET}"
        folder = write_catalog(tmp_path / str(gap), [text])
        searcher = Searcher(folder)
        for query in ("needle", SECRET[:4] + "*"):
            for hit in searcher.search(Request(query)).hits:
                pieces = [SECRET[at : at + 8] for at in range(4, len(SECRET) - 8)]
                assert not any(piece in hit.snippet.text for piece in pieces)
        searcher.close()


def test_Q05_what_is_stored_again_is_no_longer_found(tmp_path: Path) -> None:
    """A source that was cleaned and read again leaves nothing of its old text in the index."""
    folder = write_catalog(tmp_path / "c", [f"token {SECRET} end"])
    assert find(folder, SECRET).total == 1
    before = {path.name for path in (folder / "text").glob("*.term")}
    writer = TextWriter(folder / "text")
    writer.remove([(KEYS_PER_SOURCE, 2 * KEYS_PER_SOURCE)])
    writer.add(KEYS_PER_SOURCE + 1, "prompt", 0, "token [REDACTED] end")
    writer.commit()
    writer.close()
    assert find(folder, SECRET).total == 0
    assert find(folder, SECRET[:6] + "*").total == 0
    left = {path.name for path in (folder / "text").glob("*.term")}
    assert len(left) == 1 and not left & before


def test_texts_come_back_as_they_went_in(tmp_path: Path) -> None:
    db = database.open_writer(tmp_path / "c")
    long = "same text again " * 20
    texts = {
        KEYS_PER_SOURCE + 1: long,
        KEYS_PER_SOURCE + 2: "x\ud800y\0",
        KEYS_PER_SOURCE + 3: long,
        KEYS_PER_SOURCE + 9: "é" * 100_000,
        5 * KEYS_PER_SOURCE + 1: long,
        5 * KEYS_PER_SOURCE + 2: "",
    }
    packer = ChunkPacker(lambda chunk: db.execute("INSERT INTO text_chunk VALUES (?, ?, ?, ?)", chunk))
    for doc, text in texts.items():
        packer.add(doc, "prompt", 0, text)
    packer.flush()
    store = TextStore(db)
    assert {doc: store.get(doc) for doc in texts} == texts
    absent = (0, KEYS_PER_SOURCE, KEYS_PER_SOURCE + 4, 2 * KEYS_PER_SOURCE, 9 * KEYS_PER_SOURCE)
    assert [store.get(doc) for doc in absent] == [None] * 5
    sizes = db.execute("SELECT sum(length(packed)) FROM text_chunk").fetchone()[0]
    assert sizes < 2_000
    db.close()


QUICK = """
import sys
from clew.catalog.search import Request, Searcher, unmasked
from pathlib import Path
assert Searcher(Path(sys.argv[1]), unmasked).search(Request("parser")).total == 3
heavy = {"msgspec", "rich", "click", "clew.agents", "clew.redact", "clew.library", "clew.filters"} & set(sys.modules)
assert not heavy, heavy
"""


def test_a_search_loads_nothing_heavy(catalog: Path) -> None:
    done = subprocess.run([sys.executable, "-c", QUICK, str(catalog)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_catalog_there_is_a_word_about_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="clew sync"):
        Searcher(tmp_path)


WIDE = 20_000
"""More words than tantivy lets a pattern in a phrase match."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many words with the same beginning, in twenty blocks, and a block without such a word."""
    blocks = [" ".join(f"needle_a{n:05x}" for n in range(first, first + 1000)) for first in range(0, WIDE, 1000)]
    blocks += ["needle_a", "needle a_bird", "a needle", "needle_b"]
    return write_catalog(tmp_path_factory.mktemp("wide") / "c", blocks)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("needle_a*", set(range(1, 23))),
        ('"needle a"*', set(range(1, 23))),
        ("needle_a0000*", {1}),
        ("needle_a01*", set(range(5, 10))),
        ("NOT needle_a*", {23, 24}),
        ("needle -needle_a*", {23, 24}),
        ("needle_a* bird", {22}),
        ("a*", set(range(1, 24))),
        ("needle*", set(range(1, 25))),
    ],
)
@pytest.mark.parametrize("newest", [False, True])
def test_a_prefix_of_very_many_words_finds_all_of_them(
    wide: Path, query: str, expected: set[int], newest: bool
) -> None:
    found = find(wide, query, newest=newest, limit=100)
    assert (found.total, numbers(found)) == (len(expected), expected)


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 128, 129, 1_000, 3_000])
def test_very_long_words_are_found(tmp_path: Path, size: int) -> None:
    long = "ab" * (size // 2) + "c" * (size % 2)
    catalog = write_catalog(tmp_path / "c", [f"x_{long}", f"x_{long}_tail", f"x {long[:-1]}z", "x", f"{long}d x"])
    for mode in ("substring", "regex"):
        assert numbers(find(catalog, long, mode=mode)) == {1, 2, 5}
        assert numbers(find(catalog, f"x_{long}", mode=mode)) == {1, 2}
        assert numbers(find(catalog, f"{long}_", mode=mode)) == {2}
    assert numbers(find(catalog, f"x_{long}*")) == {1, 2}
    assert numbers(find(catalog, f"x_{long}_ta*")) == {2}
    assert numbers(find(catalog, f"{long}_zebra*")) == set()
    assert numbers(find(catalog, f"{long}*")) == {1, 2, 5}


def test_a_query_that_the_index_refuses_is_the_fault_of_the_query(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_MAX_EXPANSIONS", 10 * WIDE)
    with pytest.raises(UsageError, match="cannot answer this query"):
        find(wide, "needle_a*")


_BESIDE = ["needle", "a needle x", "needlex", "hay", "hay\n", "", "-", "line\nneedle\nend"]
BOUNDARIES = [Said(text, session=n) for n, pair in enumerate(product(_BESIDE, repeat=2), 1) for text in pair]
"""Two texts in each session, which are stored side by side: neither must have a part in what the other matches."""
_ASSERTIONS = ["^", "$", r"\A", r"\z", r"\b", r"\B", "(?m)^", "(?m)$", "(?m:^)", "(?m:$)", "(?s)^", "(?i)^"]
_ATOMS = ["needle", "hay", "n", "e", "x", r"\n", ".", r"\w", r"\W", "[^e]", "-", r"\.", "in"]


def _random_expression(random: Random, depth: int = 3) -> str:
    if depth == 0 or random.random() < 0.3:
        return random.choice(_ASSERTIONS + _ATOMS)
    inside = [_random_expression(random, depth - 1) for _ in range(random.randint(1, 3))]
    form = random.choice(["{}", "{}", "(?:{})", "({})", "(?i:{})", "(?:{})?", "(?:{})*", "(?:{}|needle)", "{}|x"])
    return form.format("".join(inside))


@pytest.fixture(scope="module", params=["indexed", "pending"])
def side_by_side(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    folder = tmp_path_factory.mktemp("boundaries") / "c"
    if request.param == "indexed":
        write_catalog(folder, BOUNDARIES)
    else:
        write_catalog(folder, [], pending=BOUNDARIES)
    searcher = Searcher(folder, unmasked)
    yield searcher
    searcher.close()


def _found(searcher: Searcher, expression: str) -> set[int]:
    found = searcher.search(Request(expression, "regex", limit=1000), shown=slice(0))
    return {match.doc % KEYS_PER_SOURCE for match in found.matches}


def _matching(expression: str) -> set[int]:
    compiled = re2.compile(expression)
    return {number for number, block in enumerate(BOUNDARIES, 1) if compiled.search(block.text)}


@pytest.mark.parametrize("anchor", _ASSERTIONS)
@pytest.mark.parametrize(
    "form", ["{}needle", "needle{}", "(?:{}needle)", "(?:hay|{}needle)", "{0}needle{0}", "(?:{}|x)needle"]
)
def test_an_assertion_sees_nothing_but_its_text(side_by_side: Searcher, anchor: str, form: str) -> None:
    expression = form.format(anchor)
    assert _found(side_by_side, expression) == _matching(expression)


@pytest.mark.slow
def test_a_regular_expression_finds_what_it_matches_in_each_text_by_itself(side_by_side: Searcher) -> None:
    random = Random(7)
    for _ in range(500):
        expression = _random_expression(random)
        assert _found(side_by_side, expression) == _matching(expression), expression


@pytest.mark.parametrize("mode", ["words", "substring", "regex"])
def test_hits_are_of_the_same_state_of_the_catalog_as_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    folder = write_catalog(tmp_path / "c", ["the tide rises", "the tide falls"])
    read_hits = Searcher._hits

    def delete_then_read_hits(searcher: Searcher, *arguments: Any) -> list[Hit]:
        """Another process changes the catalog between the search and the reading of hits."""
        with closing(database.open_writer(folder)) as db:
            for table in ("block", "message", "text_chunk"):
                db.execute(f"DELETE FROM {table}")
        return read_hits(searcher, *arguments)

    monkeypatch.setattr(Searcher, "_hits", delete_then_read_hits)
    found = find(folder, "tide", mode=mode)
    assert found.total == 2
    assert {hit.snippet.text for hit in found.hits} == {"the tide rises", "the tide falls"}


def test_texts_are_read_for_the_hits_that_are_shown(tmp_path: Path) -> None:
    folder = write_catalog(tmp_path / "c", [Said(f"tide {n}", when=n) for n in range(10)])
    masked: list[str] = []

    def noted(text: str, _calls: Sequence[JSON] = (), /) -> str:
        masked.append(text)
        return text

    searcher = Searcher(folder, noted)
    found = searcher.search(Request("tide", newest=True), slice(2, 4))
    searcher.close()
    assert (found.total, len(found.matches), [hit.message for hit in found.hits]) == (10, 10, [8, 7])
    assert [text for text in masked if text.startswith("tide ")] == ["tide 7", "tide 6"]


def test_what_is_found_within_a_mask_is_not_marked() -> None:
    text = "the key [REDACTED:anthropic_key:abcdefgh] and another key"
    found = snippet(text, lambda text: [match.span() for match in re.finditer("key", text)], str)
    assert found.marked("<", ">") == "the <key> [REDACTED:anthropic_key:abcdefgh] and another <key>"
