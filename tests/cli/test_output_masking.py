"""What commands print is masked by the same rules everywhere: names, titles, paths and messages, not only prompts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clew.store import Store
from tests.cli.running import Ran, clew
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.redact.planted import Planter

INSTALLED = (sys.executable, "-c", "from clew.cli.main import run; run()")
"""What the installed command runs, which may answer before the group of commands is loaded."""
SECRETS = {name: Planter(name).github() for name in ("project", "branch", "model", "tool", "title", "file")}


def installed(*words: str | Path) -> Ran:
    done = subprocess.run([*INSTALLED, *map(str, words)], capture_output=True, timeout=60, check=False)
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def write_own_rules(pattern: str) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "clew" / "redaction.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[[rule]]\nid = "harbour"\npattern = "{pattern}"\n')


def sync(home: Path) -> None:
    # A file that was written just now may change again within the same time stamp, and is not trusted.
    time.sleep(0.2)
    assert clew("--home", home, "sync").code == 0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session whose names hold a secret each."""
    home = tmp_path / "world"
    more: dict[str, Any] = {"cwd": f"/srv/{SECRETS['project']}", "gitBranch": f"fix/{SECRETS['branch']}"}
    call = {
        "type": "tool_use",
        "id": "toolu_01",
        "name": f"mcp__{SECRETS['tool']}",
        "input": {"file_path": f"/srv/{SECRETS['file']}.py", "content": "x\n"},
    }
    write = {**call, "id": "toolu_02", "name": "Write"}
    answer = reply("m1", 10, 20, model=f"model-{SECRETS['model']}", **more)
    answer["message"]["content"] += [call, write]
    result = {"type": "tool_result", "tool_use_id": "toolu_02", "content": "ok"}
    given = prompt("", uuid="results", **more)
    given["message"]["content"] = [result]
    claude(home, prompt(f"sail with {SECRETS['title']}", **more), answer, given)
    return home


def printed(done: Ran) -> str:
    return done.out + done.err


def held(text: str) -> list[str]:
    """The names of the secrets that a text shows."""
    return [name for name, secret in SECRETS.items() if secret in text]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sail",), ("--regex", "sail"), ("--substring", "sail"), ("sail", "-n", "1")])
def test_a_search_obeys_the_rules_of_the_person_on_every_path(tmp_path: Path, words: tuple[str, ...]) -> None:
    claude(tmp_path, prompt("sail to Saint-Malo"), reply("m1", 1, 2))
    write_own_rules("Saint-Malo")
    sync(tmp_path)
    for run in (clew, installed):
        found = run("--home", tmp_path, "search", *words)
        assert found.code == 0
        assert "Saint-Malo" not in found.out
        assert "[REDACTED:harbour:" in found.out
        assert "masked" in found.err and "harbour" in found.err
        filtered = run("--home", tmp_path, "search", *words, "--agent", "claude-code")
        assert (filtered.out, filtered.err) == (found.out, found.err)
        assert "Saint-Malo" in run("--home", tmp_path, "search", *words, "--json").out
        assert "Saint-Malo" not in run("--home", tmp_path, "search", *words, "--json", "--redact", "secrets").out


@pytest.mark.slow
def test_a_search_shows_no_project_in_clear(home: Path) -> None:
    sync(home)
    for run in (clew, installed):
        found = run("--home", home, "search", "sail")
        assert found.code == 0
        assert held(printed(found)) == []
    assert held(clew("--home", home, "search", "sail", "--redact", "none").out)


def test_an_option_without_its_value_is_refused(home: Path) -> None:
    sync(home)
    assert installed("--home", home, "search", "tide", "--in").code == 2


# Every command that prints text of sessions.

ASKED = ("--redact", "secrets")
STATS = [("stats", "--by", by) for by in ("day", "session", "project", "branch", "model", "tool")]
COMMANDS = [
    (),
    ("list",),
    ("search", "sail"),
    *STATS,
    ("stats", "--blocks"),
    ("show", SESSION, "--detail", "full"),
    ("tail", SESSION, "--detail", "full"),
    ("graph", SESSION),
    ("files", SESSION),
    ("diff", f"{SESSION}#2"),
    ("todos", SESSION),
    ("validate", "--level", "note"),
    ("verify",),
    ("doctor",),
    ("redact", "scan"),
    ("redact", "scrub", SESSION),
    ("restore", f"{SESSION}#3", "--into", "."),
    ("restore", f"{SESSION}#3", "--into", ".", "--write"),
    ("resume", SESSION, "--print"),
    ("convert", SESSION, "--to", "codex", "--home", "made", "--dry-run"),
    ("archive", "list"),
    ("archive", "verify"),
    ("archive", "prune", "--keep-days", "0"),
]


def damage(home: Path) -> None:
    """Records and files whose problems name a secret."""
    (path,) = home.rglob(f"{SESSION}.jsonl")
    odd = {**prompt("x"), "type": f"odd-{SECRETS['tool']}", "uuid": SECRETS["branch"], "timestamp": SECRETS["title"]}
    with path.open("a") as lines:
        lines.write(json.dumps(odd) + "\n" + json.dumps({**odd, SECRETS["file"]: 1}) + "\n")


@pytest.fixture
def archived(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    damage(home)
    sync(home)
    assert clew("--home", home, "archive").code == 0
    return home


def ran(*words: str | Path) -> Ran:
    """A command that must end as commands do, and know its options."""
    done = clew(*words)
    assert "internal error" not in done.err, (words, done.err)
    assert "no such option" not in done.err.casefold(), (words, done.err)
    return done


@pytest.mark.slow
def test_text_on_the_terminal_is_masked(archived: Path) -> None:
    for words in COMMANDS:
        done = ran("--home", archived, *words)
        assert held(printed(done)) == [], (words, printed(done))


@pytest.mark.slow
def test_json_is_masked_on_demand_and_whole_otherwise(archived: Path) -> None:
    for words in filter(None, COMMANDS):
        asked = ran("--home", archived, *words, "--json", *ASKED)
        assert held(printed(asked)) == [], (words, printed(asked))
        if words[0] != "redact":  # which never prints what it finds
            done = ran("--home", archived, *words, "--json")
            assert "[REDACTED" not in done.out, words
            assert bool(held(done.out)) == ("[REDACTED" in asked.out), words
            assert held(done.err) == [], words


@pytest.mark.slow
def test_statistics_as_csv_are_masked_on_demand(archived: Path) -> None:
    for words in STATS[1:]:
        assert held(clew("--home", archived, *words, "--csv").out), words
        done = clew("--home", archived, *words, "--csv", *ASKED)
        assert "[REDACTED:" in done.out, words
        assert held(printed(done)) == [], words


QUERIES = [
    *(
        f"SELECT * FROM {table}"
        for table in ("sessions", "messages", "blocks", "tool_calls", "usage", "file_changes", "sources")
    ),
    "SELECT CAST(title AS BLOB) AS raw FROM sessions",
]


@pytest.mark.slow
def test_sql_masks_every_cell_on_demand(archived: Path) -> None:
    for query in QUERIES:
        for form in ((), ("--csv",), ("--json",)):
            done = clew("--home", archived, "sql", query, *form, *ASKED)
            assert done.code == 0, done.err
            assert held(printed(done)) == [], (query, form)
            whole = clew("--home", archived, "sql", query, *form)
            assert "[REDACTED" not in whole.out, (query, form)
            assert bool(held(whole.out) or query.startswith("SELECT CAST")) == ("[REDACTED" in done.out), (query, form)


@pytest.mark.slow
def test_the_rules_of_the_person_hold_for_every_command(archived: Path) -> None:
    write_own_rules("(?i)odd|sail|app")
    for words in COMMANDS:
        done = ran("--home", archived, *words)
        assert "sail" not in printed(done).casefold(), (words, printed(done))


@pytest.mark.parametrize("form", ["json", "ndjson", "markdown", "html", "site"])
def test_the_rules_of_the_person_hold_for_exports(tmp_path: Path, form: str) -> None:
    claude(tmp_path / "home", prompt("sail to Saint-Malo"), reply("m1", 1, 2))
    write_own_rules("Saint-Malo")
    where = ("--site", tmp_path / "out") if form == "site" else ("--to", form, "-o", tmp_path / "out" / "session")
    (tmp_path / "out").mkdir()
    done = clew("--home", tmp_path / "home", "export", *where, "--redact", "secrets")
    assert done.code == 0, done.err
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"sail to" in written and b"[REDACTED:harbour:" in written
    assert b"Saint-Malo" not in written


def test_the_rules_of_the_person_hold_for_blame(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "ports.txt"
    file.write_text("Saint-Malo\n")
    answer = reply("m1", 1, 2)
    call = {"type": "tool_use", "id": "t1", "name": "Write"}
    answer["message"]["content"].append({**call, "input": {"file_path": str(file), "content": "Saint-Malo\n"}})
    given = prompt("", uuid="results")
    given["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    claude(home, prompt("note Saint-Malo"), answer, given)
    write_own_rules("Saint-Malo")
    for words in ((), ("--json", *ASKED)):
        done = clew("--home", home, "blame", file, *words)
        assert done.code == 0, done.err
        assert "[REDACTED:harbour:" in done.out
        assert "Saint-Malo" not in printed(done)


def test_an_error_is_masked_by_the_rules_of_the_person(tmp_path: Path) -> None:
    write_own_rules("Saint-Malo")
    done = clew("--home", tmp_path, "show", "Saint-Malo")
    assert done.code
    assert "Saint-Malo" not in done.err
    assert "Saint-Malo" in clew("--home", tmp_path, "show", "Saint-Malo", "--redact", "none").err


def test_rules_that_cannot_be_used_are_named_instead_of_an_error_that_they_would_mask(tmp_path: Path) -> None:
    write_own_rules("Saint-Malo(")
    done = clew("--home", tmp_path, "show", "Saint-Malo")
    assert done.code
    assert "redaction.toml" in done.err
    assert "internal error" not in done.err
    assert "no session" not in done.err


# Commands of clew's own store.


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a secret in the names of a session, a branch and a file, and in what was said and changed."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    file = f"{SECRETS['file']}.txt"
    (work / file).write_text("1\n")
    with Store(home).session(SECRETS["project"]) as session:
        session.user("." * 40 + SECRETS["title"], uuid="q1")
        with session.watch(session.assistant("I write.", uuid="a1"), [file]):
            (work / file).write_text("2\n")
        session.user("and tomorrow?", uuid="q2")
        session.user("and at night?", uuid="q3", parent="a1")
        session.name_branch("q3", f"night-{SECRETS['branch']}")
    (work / file).write_text(f"3 {SECRETS['model']}\n")
    return home


STORE_COMMANDS = [
    ("list",),
    ("branches", "REF"),
    ("branch", "REF"),
    ("branch", "REF", "q3", "--compare", "q2"),
    ("branch", "REF", f"night-{SECRETS['branch']}", "--compare", "main"),
    ("branch", "REF", "q3", "--name", f"late-{SECRETS['branch']}"),
    ("undo", "REF", "--to", "q1", "--dry-run"),
    ("undo", "REF", "--to", "q1"),
    ("undo", "REF", "--to", "q1", "--force"),
    ("redo", "REF", "--dry-run"),
    ("redo", "REF"),
    ("erase", "REF", "q1"),
    ("erase", "REF"),
    ("erase", "REF", "q1", "--write"),
    ("erase", "REF", "--write"),
]


def test_commands_of_the_store_are_masked(stored: Path) -> None:
    for words in STORE_COMMANDS:
        given = [SECRETS["project"] if word == "REF" else word for word in words]
        if "--write" not in words:
            asked = ran("--home", stored, *given, "--json", *ASKED)
            assert held(printed(asked)) == [], (words, printed(asked))
        done = ran("--home", stored, *given)
        assert held(printed(done)) == [], (words, printed(done))


@pytest.mark.slow
def test_problems_of_the_store_are_masked(stored: Path, tmp_path: Path) -> None:
    log = stored / ".sage" / "sessions" / SECRETS["project"] / "messages.jsonl"
    log.write_text(log.read_text() + f'{{"type": "{SECRETS["tool"]}", broken\n' + f'{{"{SECRETS["tool"]}": 1}}\n')
    log.chmod(0o644)
    assert ran("--home", stored, "archive").code == 0
    ref = SECRETS["project"]
    commands = (
        ("doctor",), ("validate", "--level", "note"), ("verify",), ("migrate", stored, "--dry-run"), ("files", ref),
        ("archive", "list"), ("archive", "prune", "--keep-days", "0"), ("redact", "scan"), ("redact", "scrub", ref),
        ("convert", ref, "--to", "claude-code", "--home", tmp_path / "made", "--allow-loss", "--dry-run"),
        ("resume", ref, "--print"), ("resume", ref, "--in", "claude-code", "--print"),
    )  # fmt: skip
    for words in commands:
        done = ran("--home", stored, *words)
        assert held(printed(done)) == [], (words, printed(done))
        asked = ran("--home", stored, *words, "--json", *ASKED)
        assert held(printed(asked)) == [], (words, printed(asked))
    assert held(clew("--home", stored, "doctor", "--json").out)


def test_a_message_is_masked_before_it_is_cut(stored: Path) -> None:
    """The first words of a message that is to be erased may end within a secret."""
    done = clew("--home", stored, "erase", SECRETS["project"], "q1")
    pieces = [SECRETS["title"][at : at + 8] for at in range(4, len(SECRETS["title"]) - 8)]
    assert not any(piece in done.out for piece in pieces), done.out


@pytest.mark.slow
def test_a_credential_file_is_masked_by_its_name_in_blame(home: Path, tmp_path: Path) -> None:
    file = tmp_path / ".env"
    for text in ("PLAIN=tangerine42harbour\n", "".join(f"A{at}=tangerine42harbour\n" for at in range(2_000))):
        file.write_text(text)
        for words in ((), ("--json", *ASKED)):
            assert "tangerine" not in printed(ran("--home", home, "blame", file, *words))
    assert "tangerine" in clew("--home", home, "blame", file, "--json").out


def test_what_is_masked_is_reported_once(archived: Path) -> None:
    for words in (("list",), ("stats", "--by", "model"), ("search", "sail"), ("validate", "--level", "note")):
        done = clew("--home", archived, *words)
        reports = [line for line in done.err.splitlines() if line.startswith("clew: masked ")]
        assert len(reports) == 1 and reports[0].endswith("github_token; --redact none shows it"), done.err
        assert "clew: masked" not in clew("--home", archived, *words, "--redact", "none").err


def test_rules_that_cannot_be_used_stop_a_command_before_it_changes_anything(stored: Path) -> None:
    write_own_rules("(")
    before = {path: path.read_bytes() for path in stored.parent.rglob("*") if path.is_file()}
    ref = SECRETS["project"]
    for words in (("undo", ref, "--to", "q1", "--force"), ("erase", ref, "--write"), ("migrate", stored)):
        done = ran("--home", stored, *words)
        assert done.code == 2 and "redaction.toml" in done.err, (words, done.err)
    after = {path: path.read_bytes() for path in stored.parent.rglob("*") if path.is_file()}
    assert after == before


def test_a_message_that_cannot_be_masked_is_not_shown_and_stops_nothing(home: Path) -> None:
    write_own_rules("(")
    (path,) = home.rglob("*.jsonl")
    other = path.with_name(f"{SECRETS['file']}.jsonl")
    other.mkdir()
    done = ran("--home", home, "list", "--json")
    assert len(done.json) == 1 and held(done.err) == []


@pytest.mark.parametrize("fork", [False, True], ids=["chain", "fork"])
def test_a_token_in_the_place_of_a_uuid_is_hidden_and_the_links_stay(tmp_path: Path, fork: bool) -> None:
    home, token, other = tmp_path / "ids", Planter("uuid").github(), Planter("other").github()
    parents = [None, token, f"msg_{other}", token if fork else "u3"]
    uuids = [token, f"msg_{other}", "u3", "u4"]
    linked = zip(uuids, parents, strict=True)
    claude(home, *(prompt(f"say {uuid[:2]}", uuid=uuid, parentUuid=parent) for uuid, parent in linked))
    path = next(home.rglob("*.jsonl"))
    printed = [
        clew("--home", home, *words, "--redact", "secrets")
        for words in (
            ("export", path, "--to", "json"),
            ("export", path, "--to", "ndjson"),
            ("graph", path, "--json"),
            ("graph", path, "--json", "--tree"),
            ("graph", path),
            ("graph", path, "--as", "mermaid"),
            ("show", path, "--json"),
        )
    ]
    for ran in printed:
        assert ran.code == 0, ran.err
        assert token not in ran.out and other not in ran.out
    for document in printed[0].json, printed[1].json:
        named = {message["uuid"] for message in document["messages"]}
        assert len(named) == 4
        assert {message["parent_uuid"] for message in document["messages"]} - {None} <= named
        assert set(document["graph"]["active_path"]) <= named
        assert {point["uuid"] for point in document["graph"]["fork_points"]} <= named
        assert {one["uuid"] for point in document["graph"]["fork_points"] for one in point["branches"]} <= named
    assert printed[2].json == printed[0].json["graph"]
    assert bool(printed[2].json["fork_points"]) == fork


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_the_heads_of_columns_are_masked(home: Path, form: list[str]) -> None:
    sync(home)
    token = Planter("column").github()
    done = clew("--home", home, "sql", f"select '{token}', 1", "--redact", "secrets", *form)
    assert done.code == 0
    assert token not in done.out
