"""Commands that answer from the catalog: the same answers as from the sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude
from tests.cli.running import run

ONE, TWO = "0a0a0a0a-1111-4111-8111-111111111111", "0b0b0b0b-2222-4222-8222-222222222222"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    write_claude(tmp_path / "home", ONE, 40)
    write_claude(tmp_path / "home", TWO, 12, seed=1)
    summary = {"type": "summary", "summary": "Looms compared", "leafUuid": claude_lines(TWO, 7, 1, 1)[0]["uuid"]}
    append(claude_path(tmp_path / "home", ONE), spelled([summary]))
    return tmp_path / "home"


def clew(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as it is installed."""
    program = "import sys; from clew.cli.main import run; sys.argv[0] = 'clew'; run()"
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_sync_tells_what_it_did(home: Path) -> None:
    first = json.loads(clew("sync", "--home", str(home), "--json").stdout)
    assert (first["files"], first["lines"], first["sources"]) == (2, 53, 2)
    time.sleep(0.2)
    for _ in range(2):
        again = json.loads(clew("sync", "--json", "--home", str(home)).stdout)
        assert (again["files"], again["lines"], again["rows"]) == (0, 0, 0)


@pytest.mark.slow
def test_a_sync_takes_in_what_was_appended(home: Path) -> None:
    clew("sync", "--home", str(home))
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 2)))
    assert json.loads(clew("sync", "--home", str(home), "--json").stdout)["files"] == 1
    rows = clew("sql", "--home", str(home), "--json", "SELECT count(*) AS n FROM messages").stdout
    assert json.loads(rows) == {"n": 54}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--has", "edit"),
        ("--has", "thinking"),
        ("--has", "error"),
        ("--has", "subagent"),
        ("--model", "SONNET"),
        ("--tool", "edit"),
        ("--project", "loom"),
        ("--branch", "other"),
        ("--since", "2026-10-01T00:20:00"),
        ("--until", "2026-09-01"),
        ("--agent", "codex"),
        ("--text", "shuttle1x2"),
    ],
)
def test_list_says_the_same_with_and_without_a_catalog(home: Path, words: tuple[str, ...]) -> None:
    before = clew("list", "--home", str(home), "--json", *words)
    clew("sync", "--home", str(home))
    after = clew("list", "--home", str(home), "--json", *words)
    assert (after.stdout, after.returncode) == (before.stdout, before.returncode)


@pytest.mark.slow
def test_list_asks_the_sources_where_the_catalog_is_old(home: Path) -> None:
    clew("sync", "--home", str(home))
    append(claude_path(home, TWO), spelled(claude_lines(TWO, 12, 3, 1)))
    listed = json.loads(clew("list", "--home", str(home), "--json").stdout)
    assert {row["id"]: row["messages"] for row in listed} == {ONE: 40, TWO: 15}


@pytest.mark.slow
@pytest.mark.parametrize("reference", [ONE, "0b", "@last", f"{ONE}#3", "claude-code:0a", "0", "zzz"])
def test_show_says_the_same_with_and_without_a_catalog(home: Path, reference: str) -> None:
    os.utime(claude_path(home, TWO), (2e9, 2e9))
    before = clew("show", "--home", str(home), reference)
    clew("sync", "--home", str(home))
    after = clew("show", "--home", str(home), reference)
    assert (after.stdout, after.stderr, after.returncode) == (before.stdout, before.stderr, before.returncode)


@pytest.mark.slow
def test_show_remembers_what_is_gone(home: Path) -> None:
    clew("sync", "--home", str(home))
    claude_path(home, TWO).unlink()
    clew("sync", "--home", str(home))
    shown = clew("show", "--home", str(home), TWO)
    assert "shuttle1x2" in shown.stdout and "was deleted" in shown.stderr
    assert clew("list", "--home", str(home), "--json").stdout.count(TWO) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM source",
        "ATTACH 'x' AS y",
        "PRAGMA journal_mode = DELETE",
        "SELECT load_extension('x')",
        "' OR 1=1 --",
    ],
)
def test_Q01_sql_only_reads(home: Path, query: str) -> None:
    clew("sync", "--home", str(home))
    refused = clew("sql", "--home", str(home), query)
    assert refused.returncode == 2 and refused.stderr.startswith("clew: ") and "Traceback" not in refused.stderr
    assert json.loads(clew("sql", "--home", str(home), "--json", "SELECT count(*) AS n FROM sources").stdout) == {
        "n": 2
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM session_s", "no such table: session_s; did you mean sessions?"),
        ("SELECT * FROM zebra", "no such table: zebra; tables: blocks, change_days, file_changes,"),
        ("SELECT inputtokens FROM usage", "no such column: inputtokens; did you mean input_tokens or "),
        ("SELECT u.modle FROM usage u", "no such column: u.modle; did you mean model"),
        ("SELECT zzz FROM todos", "no such column: zzz; columns of todos: event_id, session_id, idx, content, status"),
        ("SELEC 1", 'near "SELEC": syntax error\n'),
    ],
)
def test_sql_suggests_names(home: Path, query: str, expected: str) -> None:
    clew("sync", "--home", str(home))
    refused = clew("sql", "--home", str(home), query)
    assert refused.returncode == 2 and f"clew: {expected}" in refused.stderr


@pytest.mark.slow
def test_sql_prints_tables_and_csv(home: Path) -> None:
    assert "clew sync" in clew("sql", "--home", str(home), "SELECT 1").stderr
    clew("sync", "--home", str(home))
    query = "SELECT native_id, message_count FROM sessions ORDER BY native_id"
    assert clew("sql", "--home", str(home), query).stdout.splitlines()[1].split() == [ONE, "40"]
    assert clew("sql", "--home", str(home), "--csv", query).stdout.splitlines() == [
        "native_id,message_count",
        f"{ONE},40",
        f"{TWO},12",
    ]


@pytest.mark.slow
def test_doctor_lists_what_a_sync_could_not_read(home: Path) -> None:
    append(claude_path(home, ONE), b'{"type":"us')
    bad = claude_path(home, TWO).with_suffix(".jsonl.gz")
    bad.write_bytes(b"no gzip")
    clew("sync", "--home", str(home))
    found = clew("doctor", "--home", str(home))
    assert found.returncode == 1
    assert "[torn-tail]" in found.stdout and bad.name in found.stdout


def test_tail_prints_the_end(home: Path) -> None:
    lines = clew("tail", "--home", str(home), "-n", "3", "--json", ONE).stdout.splitlines()
    assert [json.loads(line)["index"] for line in lines] == [38, 39, 40]


def test_tail_follows_a_session_that_grows(home: Path) -> None:
    program = "import sys; from clew.cli.main import run; sys.argv[0] = 'clew'; run()"
    words = ["tail", "--home", str(home), "-f", "-n", "1", "--json", "--patience", "10", ONE]
    with subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["index"] == 40
        append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 2)))
        assert [json.loads(process.stdout.readline())["index"] for _ in range(2)] == [41, 42]
        process.terminate()


@pytest.mark.slow
def test_tail_masks_values_that_it_learns_while_it_follows(home: Path) -> None:
    program = "import sys; from clew.cli.main import run; sys.argv[0] = 'clew'; run()"
    words = ["tail", "--home", str(home), "-f", "-n", "1", "--json", "--redact", "secrets", "--patience", "10", ONE]
    value = "correct" + "7horse" + "9battery"
    assigns, repeats = claude_lines(ONE, 40, 2)
    assigns["message"]["content"] = "LATE_PASS" + f"WORD={value}"
    repeats["message"]["content"] = [{"type": "text", "text": f"I use {value} now"}]
    with subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["index"] == 40
        for line in (assigns, repeats):
            append(claude_path(home, ONE), spelled([line]))
            printed = process.stdout.readline()
            assert json.loads(printed)["index"] in (41, 42)
            assert value not in printed
        process.terminate()


@pytest.mark.slow
def test_a_sync_with_nothing_to_do_loads_next_to_nothing(home: Path) -> None:
    clew("sync", "--home", str(home))
    time.sleep(0.2)
    clew("sync", "--home", str(home))
    script = (
        f"import sys; sys.argv[1:] = ['sync', '--home', {str(home)!r}]\n"
        "from clew.cli.main import run\n"
        "try: run()\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'msgspec', 'tantivy', 'rich', 'zstandard', 'clew.agents', 'clew.library', 'concurrent.futures'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.slow
def test_S01_every_folder_that_a_sync_makes_is_for_its_owner_alone(demo: Path, tmp_path: Path) -> None:
    own = tmp_path / "share" / "clew"
    assert run("--home", demo, "sync", env={**os.environ, "CLEW_DATA_DIR": str(own)}, umask=0o022).code == 0
    folders = [own.parent, own, *(path for path in own.rglob("*") if path.is_dir())]
    assert {str(path): oct(path.stat().st_mode & 0o777) for path in folders if path.stat().st_mode & 0o077} == {}


@pytest.mark.slow
def test_a_sync_goes_on_after_a_session_with_a_side_file_was_forgotten(home: Path) -> None:
    folder = home / ".sage/sessions/s1"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text('{"id": "s1"}')
    (folder / "messages.jsonl").write_text('{"uuid": "u1", "role": "user", "content": "hi"}\n')
    clew("sync", "--home", str(home))
    shutil.rmtree(folder)
    clew("sync", "--home", str(home))
    assert clew("sync", "--home", str(home), "--forget-gone").returncode == 0
    for _ in range(2):
        done = clew("sync", "--home", str(home), "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["sources"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("search", "loom", "--in"),
        ("search", "loom", "--home"),
        ("search", "loom", "--limit"),
        ("search", "loom", "-n"),
        ("search", "loom", "--offset"),
        ("sync", "--home"),
        ("stats", "--json", "--home"),
        ("stats", "--json", "--by"),
    ],
)
def test_an_option_without_its_value_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Also where a catalog is there that would answer: of the folder we are in, and of the default sources."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    for sync in (("sync",), ("sync", "--home", str(home))):
        assert clew(*sync).returncode == 0
    done = clew(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{words[-1]}' requires an argument" in done.stderr
