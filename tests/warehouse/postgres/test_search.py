"""Search on a server: the hits are those of the laptop, for words, phrases, prefixes, expressions and filters."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clew.catalog.query import BadQuery, parse
from clew.catalog.search import SEARCH_FIELDS, Found, Request, Searcher, unmasked
from clew.catalog.sync import sync
from clew.catalog.tokenizer import camel_case_words, words
from clew.errors import UsageError
from clew.filters import Filters
from clew.host import Host
from clew.warehouse.postgres.search import ServerSearcher
from clew.warehouse.postgres.tsvector import MAX_TEXT_WORDS_BYTES, MAX_WORD_BYTES, TRUNCATED, to_tsquery, to_tsvector
from tests.catalog.test_query import random_queries
from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.cli.running import run
from tests.demo_home import write_self_contained_demo
from tests.warehouse.postgres.machines import Machine, ask
from tests.warehouse.postgres.server import Server

LONG = "z" * 180
NASTY = [
    "The parser reads src/clew/io/records.py, line by line",
    "def get_user_name(self): return os.path.join(root)",
    "const fullName = getUserName(user); HTTPServer2Go",
    "Où est le café ? Straße, naïve, ﬁnance ™ Ⓐ",
    "数据库连接失败 connection refused かな 한국어",
    "v1.2.3-beta+build.7 https://user@example.org/a_b?c=d#e",
    "it's 'quoted' & | ! <-> :* \\ (a) \"b\" $1 %s %% é\u0301",
    "before\0behind and \u202eturned\u202c",
    "emoji 🎉 party 🎉party",
    "wide " + "x" * 3_000 + " tail",
    "y" * 70_000 + " unfindable",
    " ".join(f"lexeme{number:04}{LONG}" for number in range(6_000)),
    "... --- !!!",
    'end\n\\.\nof data, "quoted",\r\nand \\N null',
    "\\.",
    "at 300 \u212aelvin the ta\u017fk was done",
]
SESSION, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
QUERIES = [
    *("parser", "PARSER reads", '"parser reads"', '"reads parser"', "parser -wrong", "NOT (parser OR user OR src)"),
    *("get_user_name", "user_name", "name", "getUserName", "fullname", "os.path.join", "path", "records.py", "clew/io"),
    *(
        "cafe",
        "CAFÉ",
        "ou strasse naive",
        "finance",
        "tm",
        "a",
        "数据库",
        "连接失败",
        "据连",
        "数 败",
        "かな",
        "한국어",
    ),
    *("pars*", "get_us*", '"user na"*', "zebra", "http server", '"http server"', "httpserver2go", "v1.2.3", "1.2"),
    *(
        "end of data",
        '"null"',
        "quoted",
        "it's",
        "$1",
        "behind",
        '"before behind"',
        "turned",
        "party",
        '"party party"',
        "tail",
        "wide -tail",
    ),
    *(
        "x" * 3_000,
        f"{'x' * 2_999}*",
        "xx*",
        "unfindable",
        "-unfindable",
        "lexeme5999*",
        f"lexeme0001{LONG} lexeme5998*",
    ),
    *(
        f'"lexeme0005{LONG} lexeme0006"*',
        f'"lexeme0006{LONG} lexeme0005"*',
        "NOT lexeme5999*",
        "-zebra",
        "thread0x0 OR mull0x1",
    ),
    *('-"parser reads"', 'NOT ("parser reads" OR cafe)', "(weave OR shuttle0x2) -please", '"weave thread0x*"'),
]


class World(NamedTuple):
    """A catalog and a server over the same home."""

    here: Searcher
    there: ServerSearcher
    url: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[World]:
    import psycopg

    machine = Machine(tmp_path_factory.mktemp("search"))
    write_self_contained_demo(machine.home)
    for session, texts in ((SESSION, NASTY), (OTHER, NASTY[:4])):
        lines = claude_lines(session, 0, 10)
        for number, text in enumerate(texts):
            lines[0]["message"]["content"] = text
            lines.append({**lines[0], "uuid": f"{session[:8]}-0000-4000-8000-{number + 99:012x}", "parentUuid": None})
            lines[-1]["message"] = {"role": "user", "content": text}
        path = claude_path(machine.home, session)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(spelled(lines))
    catalog = machine.data / "catalog"
    sync([Host.at(machine.home)], catalog, workers=1)
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute("CREATE DATABASE searched")
    url = server.url("searched")
    machine.push(url)
    with closing(Searcher(catalog, unmasked)) as here, closing(ServerSearcher(url, unmasked)) as there:
        yield World(here, there, url)


def values(found: Found) -> list[tuple[Any, ...]]:
    return sorted(
        (hit.agent, hit.session, hit.message or 0, hit.kind, hit.when, hit.title, hit.project) for hit in found.hits
    )


def same(world: World, **asked: Any) -> int:
    """Ask both; returns how many hits there are."""
    request = Request(**{"limit": 5_000, "newest": True, **asked})
    mine, theirs = world.here.search(request), world.there.search(request)
    assert theirs.total == mine.total == len(theirs.hits), asked
    assert values(theirs) == values(mine), asked
    assert [hit.when for hit in theirs.hits] == sorted((hit.when for hit in theirs.hits), reverse=True)
    return theirs.total


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:30])
def test_words_find_what_they_find_here(world: World, query: str) -> None:
    same(world, query=query)


def test_random_queries_find_the_same(world: World) -> None:
    found = 0
    for query in random_queries(11, 700):
        try:
            parse(query)
        except BadQuery:
            continue
        found += same(world, query=query) > 0
    assert found > 10


def test_words_of_the_texts_put_together_by_dice(world: World) -> None:
    dice = random.Random(4)
    known = sorted(
        {word for text in NASTY[:9] for word in [*words(text), *(w for part in camel_case_words(text) for w in part)]}
    )
    hits = 0
    for _ in range(60):
        chosen = dice.sample(known, 3)
        query = dice.choice(("{0} {1}", '"{0} {1}"', "{0} OR {1}", "{0} -{1}", "NOT ({0} OR {1})", '{0} NOT "{1} {2}"'))
        hits += same(world, query=query.format(*chosen)) > 0
    assert hits > 20


@pytest.mark.parametrize("place", SEARCH_FIELDS)
def test_places_are_the_same(world: World, place: str) -> None:
    assert same(world, query="-zebra", places=(place,)) > 0


@pytest.mark.parametrize("text", ["er rea", "ET_USER", "(self):", "连接", "é ?", "?", "zz", "%s", "'", "\\", "e\u0301"])
def test_pieces_of_text_are_the_same(world: World, text: str) -> None:
    same(world, query=text, mode="substring")


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"get\w+ame", r"(?i)parser\s+(is|reads)", r"^const", r"refused$", "a|b", "[数]据"),
        *("(?i)kelvin the", "(?i)task was", "kelvin", "task"),
    ],
)
def test_expressions_are_the_same(world: World, pattern: str) -> None:
    same(world, query=pattern, mode="regex")


@pytest.mark.parametrize(
    "filters",
    [
        {"agent": "codex"},
        {"agent": ("gemini", "claude-code")},
        {"project": "tide"},
        {"project": "-home-mira"},
        {"branch": "main"},
        {"model": "sonnet"},
        {"tool": "edit"},
        {"file": "part1"},
        {"text": "GET_USER"},
        {"has": "error"},
        {"has": "thinking"},
        {"has": "edit"},
        {"has": "subagent"},
        {"has": ("edit", "thinking"), "agent": "claude-code"},
        {"since": "2026-09-01"},
        {"until": "2026-10-02"},
        {"since": "2030-01-01"},
    ],
    ids=str,
)
def test_filters_are_the_same(world: World, filters: dict[str, Any]) -> None:
    same(world, query="-zebra", filters=Filters.of(**filters))


def test_pages_are_parts_of_the_whole(world: World) -> None:
    search = world.there.search
    for query in ("the", '"the user" OR the'):
        whole = search(Request(query, limit=50))
        pages = [search(Request(query, limit=7, offset=at)) for at in range(0, 49, 7)]
        assert {page.total for page in pages} == {whole.total}
        assert [hit for page in pages for hit in page.hits] == whole.hits[:49]


def test_the_command_prints_what_it_prints_here(world: World, home: Path) -> None:
    done = run("search", "parser", "reads", "--engine", world.url, "--json")
    assert done.code == 0
    assert list(done.json) == ["total", "unindexed_texts", "hits"]
    assert list(done.json["hits"][0]) == ["session", "message", "agent", "kind", "timestamp", "snippet"]
    assert "«parser» «reads»" in json.dumps(done.json, ensure_ascii=False)
    text = run("search", "parser", "reads", "--engine", world.url)
    assert SESSION in text.out
    assert run("search", "zebra", "--engine", world.url).code == 1
    assert "choose from" in run("search", "x", "--in", "sideways", "--engine", world.url).err
    assert run("search", "x", "--engine", "duckdb:here").code == 2


def test_secrets_in_raw_text_are_masked_when_shown(url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    secret = "ghp_" + "Zx9Qv7Lm2Kp4Rt6Wy8Bn0Cd1Fg3Hj5Ns7Uv9"[:36]
    lines = claude_lines(SESSION, 0, 5)
    lines[0]["message"]["content"] = f"the needle is {secret} here"
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    machine.push(url)
    assert ask(url, f"SELECT count(*) FROM blocks_copies WHERE text LIKE '%{secret}%'") != [(0,)]
    done = run("search", "needle", "--engine", url)
    assert "needle" in done.out
    assert secret not in done.out


def test_without_text_there_is_nothing_to_search(url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(claude_lines(SESSION, 0, 10)))
    machine.push(url, "metrics")
    done = run("search", "weave", "--engine", url)
    assert done.code == 5
    assert "only metrics were pushed there" in done.err
    other = path.with_name(f"{OTHER}.jsonl")
    other.write_bytes(spelled(claude_lines(OTHER, 0, 10, seed=3)))
    machine.push(url, "redacted")
    path.write_bytes(spelled(claude_lines(SESSION, 0, 20)))
    machine.push(url, "metrics")
    done = run("search", "weave", "--engine", url)
    assert done.code == 0
    assert "1 sessions were pushed without text" in done.err


def test_words_that_the_server_cannot_keep_are_marked() -> None:
    assert to_tsvector("getUserName is Here") == "get getusername here is name user"
    assert to_tsvector("x" * (MAX_WORD_BYTES + 1)) == TRUNCATED
    assert TRUNCATED in to_tsvector(" ".join(f"word{number:09}" for number in range(MAX_TEXT_WORDS_BYTES // 8))).split()
    assert (
        len(to_tsvector(" ".join(f"word{number:09}" for number in range(MAX_TEXT_WORDS_BYTES // 8))))
        < MAX_TEXT_WORDS_BYTES + MAX_TEXT_WORDS_BYTES // 8
    )
    assert to_tsvector("...") == ""


@pytest.mark.parametrize(
    ("query", "text", "is_exact"),
    [
        ("loom", "'loom'", True),
        ("lo*", "'lo':*", True),
        ("a b", "('a' & 'b')", True),
        ("a OR -b", "('a' | !('b'))", True),
        ('"a b"', "('a' & 'b')", False),
        ('-"a b"', None, False),
        ('c -"a b"', "'c'", False),
        ('c OR -"a b"', None, False),
    ],
)
def test_what_the_index_is_asked_for(query: str, text: str | None, is_exact: bool) -> None:
    found = to_tsquery(parse(query))
    assert found == (text, is_exact)


def test_a_query_that_makes_no_sense_is_refused(world: World) -> None:
    with pytest.raises(BadQuery):
        world.there.search(Request("(a"))
    with pytest.raises(UsageError):
        world.there.search(Request("[", mode="regex"))
