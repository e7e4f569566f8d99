"""clew search: every kind of text of every agent, from the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew import Host, Library
from clew.catalog import database, lookup
from clew.catalog.search import Request, Searcher, unmasked
from clew.catalog.searchable_text import block_texts
from clew.catalog.text_index import KINDS
from clew.catalog.tokenizer import words
from clew.model.time import parse_time, spell_time
from tests.cli.running import LATEST, clew, run
from tests.unit.samples import SESSION, claude_line, write_lines

PROGRAM = [sys.executable, "-c", "from clew.cli.main import run; run()"]
AGENTS = {"claude-code", "codex", "gemini", "sage-agent", "sage-emacs"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def kept_catalog(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests here share one catalog."""
    monkeypatch.setenv("CLEW_DATA_DIR", str(data))


def search(home: Path, *given: str) -> Any:
    ran = clew("--home", home, "search", *given, "--json")
    assert ran.code in (0, 1), ran.err
    return ran.json


def said(home: Path) -> Iterator[tuple[str, str, int, str, str]]:
    """Agent, session, message, kind and text of every block, read from the sources; what is repeated, once."""
    seen: set[str] = set()
    for session in Library(Host.at(home)).sessions():
        for index, message in enumerate(session.messages, 1):
            if message.uuid in seen:
                continue
            seen.add(message.uuid or "")
            for block in block_texts(message):
                if block.kind and words(block.text):
                    yield session.agent.id, session.id, index, block.kind, block.text


def test_every_block_of_every_agent_is_found(demo: Path) -> None:
    met: set[tuple[str, str]] = set()
    clew("--home", demo, "sync")
    searcher = Searcher(database.catalog_folder([demo]), unmasked)
    for agent, session, index, kind, text in said(demo):
        met.add((agent, kind))
        hits = searcher.search(Request(" ".join(dict.fromkeys(words(text)[:40])), limit=500)).hits
        assert (agent, session, index, kind) in {(hit.agent, hit.session, hit.message, hit.kind) for hit in hits}
    searcher.close()
    assert {agent for agent, _ in met} == AGENTS
    assert {kind for _, kind in met} == {"prompt", "answer", "thinking", "input", "output"}


def test_titles_and_files_are_found(demo: Path) -> None:
    found = search(demo, "predict.py", "--in", "files")
    assert {hit["kind"] for hit in found["hits"]} == {"file"}
    assert {hit["message"] for hit in found["hits"]} == {None}
    listed = clew("--home", demo, "list").out
    assert found["hits"][0]["session"][:8] in listed
    for agent in sorted(AGENTS):
        titles = search(demo, "NOT zebra", "--in", "titles", "--agent", agent)
        assert titles["total"], agent


def test_the_answer_is_what_was_promised(demo: Path) -> None:
    found = search(demo, "test", "-n", "3")
    assert set(found) == {"total", "unindexed_texts", "hits"}
    assert found["total"] > 3 and len(found["hits"]) == 3
    for hit in found["hits"]:
        assert set(hit) == {"session", "message", "agent", "kind", "timestamp", "snippet"}
        assert hit["kind"] in KINDS and "«" in hit["snippet"]
    again = search(demo, "test", "-n", "500")
    assert len(again["hits"]) == again["total"] == found["total"]
    rest = search(demo, "test", "-n", "500", "--offset", "3")
    assert found["hits"] + rest["hits"] == again["hits"]


def test_a_hit_is_opened_by_its_reference(demo: Path) -> None:
    hit = search(demo, "test", "--in", "prompts")["hits"][0]
    shown = clew("--home", demo, "show", f"{hit['agent']}:{hit['session']}#{hit['message']}")
    assert shown.code == 0
    assert "test" in shown.out.lower()


def test_the_newest_first(demo: Path) -> None:
    spelled = [hit["timestamp"] for hit in search(demo, "the", "--newest", "-n", "100")["hits"]]
    times = [time for time in map(parse_time, spelled) if time is not None]
    assert times == sorted(times, reverse=True) and len(set(times)) > 5
    assert list(map(spell_time, times)) == spelled


@pytest.mark.parametrize(
    "given",
    [
        ("--agent", "codex"),
        ("--agent", "codex", "--agent", "gemini"),
        ("--project", "TIDE"),
        ("--branch", "main"),
        ("--model", "claude"),
        ("--since", "2026-10-20"),
        ("--until", "2026-10-01"),
        ("--tool", "bash"),
        ("--file", "predict"),
        ("--has", "error"),
        ("--has", "thinking"),
        ("--has", "edit"),
        ("--text", "low water"),
        ("--has", "edit", "--agent", "claude-code", "--text", "Saint-Malo"),
    ],
    ids=" ".join,
)
def test_filters_choose_the_sessions_that_a_list_shows(demo: Path, given: tuple[str, ...]) -> None:
    listed = {row["id"] for row in clew("--home", demo, "list", "--json", *given).json}
    hits = search(demo, "NOT zebra", *given, "-n", "5000")["hits"]
    assert {hit["session"] for hit in hits} == listed
    everything = search(demo, "NOT zebra", "-n", "5000")["hits"]
    assert found_in({"hits": hits}) == found_in({"hits": [hit for hit in everything if hit["session"] in listed]})


def test_text_is_grouped_by_session(demo: Path) -> None:
    ran = clew("--home", demo, "search", "test", "-n", "8")
    heads = [line for line in ran.out.splitlines() if line and not line.startswith(" ")]
    assert ran.code == 0
    assert len(heads) == len({line.split(" · ")[-1] for line in heads})
    assert all(line.split(" · ")[-2] in AGENTS for line in heads)
    assert "1 to 8 of" in ran.err and "--offset 8" in ran.err


def test_nothing_found_is_exit_code_1(demo: Path) -> None:
    assert clew("--home", demo, "search", "zebraless").code == 1
    assert search(demo, "zebraless") == {"total": 0, "unindexed_texts": 0, "hits": []}


@pytest.mark.parametrize("runs", [clew, run], ids=["command", "process"])
def test_Q02_bad_syntax_is_shown_with_a_caret(demo: Path, runs: Any) -> None:
    ran = runs("--home", demo, "search", "tide OR")
    assert ran.code == 2 and not ran.out
    assert ran.err.splitlines()[1:3] == ["  tide OR", "         ^"]


@pytest.mark.parametrize(
    "given",
    [
        ["--regex", "("],
        ["--regex", "--substring", "x"],
        ["--in", "sideways", "x"],
        ["x", "--limit", "0"],
        ["--has", "x", "x"],
    ],
)
def test_what_makes_no_sense_is_refused(demo: Path, given: list[str]) -> None:
    ran = clew("--home", demo, "search", *given)
    assert ran.code == 2 and not ran.out


@pytest.mark.slow
def test_as_a_process_it_says_the_same(demo: Path, data: Path) -> None:
    clew("--home", demo, "sync")
    env = {**os.environ, "CLEW_DATA_DIR": str(data)}
    for given in (
        ["test"],
        ["test", "--json"],
        ["low", "water", "--newest", "-n", "2"],
        ["--regex", r"def \w+", "--json"],
    ):
        quick = run("--home", demo, "search", *given, env=env)
        slow = clew("--home", demo, "search", *given)
        assert (quick.code, quick.out) == (slow.code, slow.out)


def test_what_is_new_is_found_unless_told_otherwise(
    tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    missing = clew("--home", home, "search", "xylophone", "--no-sync")
    assert missing.code == 2 and "clew sync" in missing.err
    first = clew("--home", home, "search", "xylophone")
    assert (first.code, first.err) == (1, "nothing found for 'xylophone'\n")
    [path] = home.glob(f".claude/projects/*/{LATEST}.jsonl")
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    line.update(
        type="user",
        uuid="00000000-0000-4000-8000-000000000001",
        message={"role": "user", "content": "play the xylophone"},
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    assert clew("--home", home, "search", "xylophone", "--no-sync").code == 1
    assert search(home, "xylophone")["total"] == 1
    assert clew("--home", home, "search", "xylophone", "--no-sync").code == 0


def found_in(answer: Any) -> list[str]:
    return sorted(f"{hit['session']} {hit['message']} {hit['kind']} {hit['snippet']}" for hit in answer["hits"])


@pytest.mark.slow
def test_a_prefix_of_very_many_words_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    text = " ".join(f"needle_a{number:05x}" for number in range(20_000))
    project = tmp_path / ".claude/projects/-p"
    project.mkdir(parents=True)
    write_lines(project, claude_line("user", "u1", None, text))
    assert clew("--home", tmp_path, "sync").code == 0
    index = next((tmp_path / "data").glob("catalog-*/text/meta.json"))
    before = index.stat().st_ino, index.read_bytes()
    for ran in (clew("--home", tmp_path, "search", "needle_a*"), run("search", "needle_a*", "--home", tmp_path)):
        assert (ran.code, ran.err) == (0, "")
    assert (index.stat().st_ino, index.read_bytes()) == before


def test_S11_a_broken_index_is_made_anew(tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path))
    before = search(demo, "test", "-n", "99")
    [meta] = database.catalog_folder([demo]).glob("text/meta.json")
    meta.write_text("{broken", encoding="utf-8")
    ran = clew("--home", demo, "search", "test", "-n", "99", "--json")
    assert "rebuilding it" in ran.err, ran.err
    assert ran.code == 0, ran.err
    again = ran.json
    assert again["total"] == before["total"]
    assert found_in(again) == found_in(before)


def test_H08_nothing_steers_the_terminal(tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    evil = "xylophone \x1b]0;title\x07 \x1b[2J \x9b31m \r back\b \u202e \u200b end"
    [path] = home.glob(f".claude/projects/*/{LATEST}.jsonl")
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    line.update(type="user", uuid="00000000-0000-4000-8000-000000000002", message={"role": "user", "content": evil})
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(line) + "\n", encoding="utf-8")
    ran = clew("--home", home, "search", "xylophone")
    assert ran.code == 0
    for char in "\x1b\x07\x9b\r\b\u202e\u200b":
        assert char not in ran.out
    assert "␛[2J" in ran.out


def test_secrets_are_masked_in_text_unless_told_otherwise(
    tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    secret = "ghp_" + "Zx8Qw3Er5Ty7Ui9Op1As2Df4Gh6Jk8Lz0Xc3V"
    [path] = home.glob(f".claude/projects/*/{LATEST}.jsonl")
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    line.update(
        type="user",
        uuid="00000000-0000-4000-8000-000000000003",
        message={"role": "user", "content": f"xylophone {secret}"},
    )
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(line) + "\n", encoding="utf-8")
    assert secret not in clew("--home", home, "search", "xylophone").out
    assert secret in clew("--home", home, "search", "xylophone", "--redact", "none").out


def project(home: Path) -> Path:
    """A folder for Claude Code's sessions in an empty home."""
    folder = home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.seed("S3-33")
def test_accented_words_are_found_with_and_without_their_accents(tmp_path: Path) -> None:
    write_lines(project(tmp_path), claude_line("user", "u1", None, "Où est la marée ?"))
    for words_of_a_person in ("marée", "maree", "MARÉE", "mare\u0301e", "ou"):
        kinds = {hit["kind"] for hit in search(tmp_path, words_of_a_person)["hits"]}
        assert kinds == {"prompt", "title"}, words_of_a_person


@pytest.mark.seed("S4-5")
def test_a_session_is_found_by_its_slug(tmp_path: Path) -> None:
    write_lines(project(tmp_path), claude_line("user", "u1", None, "hello", slug="calm-blue-sea"))
    for name in ("calm-blue-sea", "blue"):
        assert [hit["session"] for hit in search(tmp_path, name)["hits"]] == [SESSION], name
    assert search(tmp_path, "blue", "--in", "titles")["total"] == 1
    assert "calm-blue-sea" in clew("--home", tmp_path, "list", "--json").out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_said_in_a_line(demo: Path) -> None:
    search(demo, "bell")
    with open("/dev/full", "wb") as full:
        words = [*PROGRAM, "--home", str(demo), "search", "bell"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") <= 2


@pytest.mark.slow
def test_a_question_can_be_stopped(demo: Path) -> None:
    search(demo, "bell")
    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
    asked = subprocess.Popen([*PROGRAM, "--home", str(demo), "sql", endless], stderr=subprocess.PIPE)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            asked.communicate(timeout=3)
        asked.send_signal(signal.SIGINT)
        _, said_last = asked.communicate(timeout=30)
    finally:
        asked.kill()
        asked.wait()
    assert asked.returncode == 130 and b"Traceback" not in said_last


def test_text_that_is_not_indexed_yet_is_told(tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    assert clew("--home", demo, "list").code == 0
    for asked in (("search", "tide", "--no-sync"), ("stats", "--no-sync"), ("sql", "SELECT * FROM messages")):
        ran = clew("--home", demo, *asked, "--json")
        assert "sessions were not read yet; `clew sync` reads them" in ran.err, asked
    assert clew("--home", demo, "stats").code == 0
    ran = clew("--home", demo, "search", "tide", "--no-sync", "--json")
    assert ran.json["unindexed_texts"] > 0 and "are not indexed yet" in ran.err
    whole = clew("--home", demo, "search", "tide", "--json")
    assert whole.json["unindexed_texts"] == 0 and whole.json["total"] > 0 and whole.err == ""


def test_a_hit_begins_with_a_reference_that_show_understands(demo: Path) -> None:
    lines = clew("--home", demo, "search", "equinox OR tick", "-n", "3").out.splitlines()
    references = [line.split()[0] for line in lines if line.startswith("  ")]
    assert any("#" in reference for reference in references)
    for reference in references:
        assert clew("--home", demo, "show", reference).code == 0


def test_an_empty_result_names_the_filters(demo: Path) -> None:
    ran = clew("--home", demo, "search", "zzzqqq", "--agent", "codex", "--since", "2026-01-01")
    assert ran.err.splitlines()[-1] == "nothing found for 'zzzqqq' with --agent codex --since 2026-01-01"
    for name in ("list", "stats"):
        ran = clew("--home", demo, name, "--project", "no such project")
        assert (ran.code, ran.out, ran.err) == (1, "", "no sessions match --project 'no such project'\n")


def test_sessions_without_a_model_are_not_denied(demo: Path) -> None:
    ran = clew("--home", demo, "stats", "--agent", "sage-emacs", "--by", "model")
    assert (ran.code, ran.err) == (1, "no sessions with token usage match --agent sage-emacs\n")


def test_an_empty_period_is_explained(demo: Path) -> None:
    ran = clew("--home", demo, "stats", "--since", "2001-10", "--until", "2001-10")
    expected = "no sessions match --since 2001-10 --until 2001-10; --until 2001-10 ends where 2001-10 begins\n"
    assert (ran.code, ran.out, ran.err) == (1, "", expected)


def test_a_word_boundary_matches_at_the_start_of_a_text(home: Path) -> None:
    write_prompts(home, "needle and thread", "a needle", "needles", "noneedle")
    assert search(home, "--in", "prompts", "--regex", r"\bneedle\b")["total"] == 2
    assert search(home, "--in", "prompts", "--regex", r"\Bneedle")["total"] == 1


def test_a_prefix_of_very_many_words_leaves_the_index_as_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_prompts(home, " ".join(f"needle_a{number:05x}" for number in range(17_000)), "needle_b")
    ran = clew("--home", home, "search", "needle_a*", "--in", "prompts", "--json")
    assert (ran.code, ran.json["total"]) == (0, 1)
    assert "again" not in ran.err
    # Were it still too much for the index, the query would be refused, and nothing built again.
    monkeypatch.setattr(lookup, "_MAX_EXPANSIONS", 10**6)
    refused = clew("--home", home, "search", "needle_a*")
    assert refused.code == 2
    assert "cannot answer this query" in refused.err
    assert "again" not in refused.err


def write_prompts(home: Path, *prompts: str) -> None:
    """A session with these prompts."""
    folder = home / ".claude/projects/-home-ada-src-tide"
    folder.mkdir(parents=True)
    write_lines(folder, *(claude_line("user", f"u{at}", None, text) for at, text in enumerate(prompts)))


def test_a_query_that_is_code_leads_to_substring(demo: Path) -> None:
    ran = clew("--home", demo, "search", "local(")
    assert ran.code == 2 and "a word to search for is missing at the end" in ran.err
    assert ran.err.endswith("--substring searches for the text as it is\n")
    assert clew("--home", demo, "search", "--substring", "local(").code == 0
