"""Nothing that was planted comes out of any command, of any file it writes, or of what it says on the way."""

from __future__ import annotations

import gzip
import json
import os
import pty
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from clew.agents import registry
from clew.host import data_dir
from clew.redact.masks import MARKER
from clew.redact.scanner import default_rules
from clew.redact.settings import RULES_FILE
from tests.cli.running import COMMAND, LATEST, Ran, clew, run
from tests.counting.homes import claude, prompt, reply
from tests.redact import histories
from tests.redact.histories import SESSION
from tests.redact.planted import Planter, held

PLANTED = histories.values()
RECEIVERS = [agent.id for agent in registry.load_all() if agent.target_profile() is not None]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A home with one session that holds a value in every place."""
    home = tmp_path / "world"
    histories.write(home, PLANTED)
    return home


@pytest.fixture
def worlds(world: Path) -> Path:
    """The same session, converted for every agent that takes it, with the included original."""
    for target in RECEIVERS:
        if target != "claude-code":
            done = clew("--home", world, "convert", SESSION, "--to", target, "--home", world, "--allow-loss")
            assert done.code == 0, done.err
    return world


def nothing_in(content: bytes | str, what: str) -> None:
    """Fail where some bytes hold a planted value."""
    content = content.encode() if isinstance(content, str) else content
    assert not held(content, PLANTED), f"{what}: {held(content, PLANTED)}"


def nothing_said(done: Ran, what: str, codes: tuple[int, ...] = (0,)) -> Ran:
    assert done.code in codes, (what, done.err)
    nothing_in(done.raw, what)
    nothing_in(done.err, f"{what}, stderr")
    return done


def unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content


def nothing_below(folder: Path) -> int:
    """Fail where a file below a folder holds a planted value; returns how many there are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        nothing_in(unpacked(path), str(path.relative_to(folder)))
        nothing_in(str(path), "the name of a file")
    return len(files)


def test_the_planted_values_are_there(worlds: Path) -> None:
    content = b"".join(path.read_bytes() for path in worlds.rglob("*.jsonl"))
    assert set(held(content, PLANTED)) == set(PLANTED) - {"split"}
    assert len(json.loads(clew("--home", worlds, "list", "--json").raw)) == len(RECEIVERS)


@pytest.mark.parametrize("form", ["json", "ndjson", "markdown"])
@pytest.mark.parametrize("packing", [(), ("--gz",), ("--zst",)], ids=["plain", "gz", "zst"])
def test_RD03_exports(worlds: Path, tmp_path: Path, form: str, packing: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    done = clew(
        "--home", worlds, "export", "--to", form, *packing, "-o", out, "--redact", "secrets", "--detail", "full"
    )
    nothing_said(done, form)
    assert nothing_below(out) == len(RECEIVERS)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["date", "project"])
def test_RD03_native_copies(worlds: Path, tmp_path: Path, layout: str) -> None:
    nothing_said(
        clew("--home", worlds, "export", "--layout", layout, "-o", tmp_path / "out", "--redact", "secrets"), layout
    )
    assert nothing_below(tmp_path / "out") == len(RECEIVERS)


@pytest.mark.slow
@pytest.mark.parametrize("target", RECEIVERS)
def test_RD03_conversions(worlds: Path, tmp_path: Path, target: str) -> None:
    for source in sorted(row["id"] for row in clew("--home", worlds, "list", "--json").json):
        home = tmp_path / "to" / source
        words = ("convert", source, "--to", target, "--home", home, "--allow-loss", "--redact", "secrets")
        nothing_said(clew("--home", worlds, *words, "--dry-run", "--json"), "what would be")
        nothing_said(clew("--home", worlds, *words), f"{source} for {target}")
        assert nothing_below(home)
        assert len(clew("--home", home, "list", "--json").json) == 1


COMMANDS: list[tuple[str, ...]] = [
    ("list",),
    ("show", "REF", "--detail", "full"),
    ("show", "REF#2"),
    ("graph", "REF"),
    ("graph", "REF", "--as", "mermaid"),
    ("todos", "REF"),
    ("files", "REF"),
    ("diff", "REF#8"),
    ("validate", "REF"),
    ("verify", "REF"),
    ("redact", "scan", "REF"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_RD03_text_is_masked_by_default(worlds: Path, words: tuple[str, ...]) -> None:
    for row in clew("--home", worlds, "list", "--json").json:
        called = [word.replace("REF", row["id"]) for word in words]
        nothing_said(clew("--home", worlds, *called), f"{called} of {row['agent']}", (0, 1))


@pytest.mark.parametrize("words", [words for words in COMMANDS if "mermaid" not in words], ids=" ".join)
def test_RD03_json_is_masked_on_demand(worlds: Path, words: tuple[str, ...]) -> None:
    asked = () if words[0] in ("validate", "verify") else ("--redact", "all")
    for row in clew("--home", worlds, "list", "--json").json:
        called = [word.replace("REF", row["id"]) for word in words]
        done = nothing_said(clew("--home", worlds, *called, "--json", *asked), f"{called} of {row['agent']}", (0, 1))
        for line in done.raw.splitlines():
            json.loads(line)


def test_RD03_raw_records_and_files(worlds: Path) -> None:
    for row in clew("--home", worlds, "list", "--json").json:
        nothing_said(clew("--home", worlds, "show", row["id"], "--raw", "--redact", "secrets"), row["agent"])
    for words in ((), ("--json",)):
        shown = clew(
            "--home", worlds, "show", f"{SESSION}#12", "--file", "/srv/tide/m.py", "--redact", "secrets", *words
        )
        nothing_said(shown, "a file")
        assert MARKER.search(shown.out)
    whole = clew("--home", worlds, "show", f"{SESSION}#12", "--file", "/srv/tide/m.py")
    assert whole.out == f"K = '{PLANTED['written']}'\n"


def test_RD03_blame(world: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(f"K = '{PLANTED['written']}'\n")
    asked = ("blame", file, "--as", "/srv/tide/m.py")
    nothing_said(clew("--home", world, *asked), "blame")
    nothing_said(clew("--home", world, *asked, "--json", "--redact", "secrets"), "blame --json")


def test_what_programs_read_is_whole_unless_asked(world: Path) -> None:
    exported = clew("--home", world, "export", SESSION)
    assert set(held(exported.raw, PLANTED)) == set(PLANTED) - {"split"}
    assert exported.err == ""
    native = histories.write(world / "copy", PLANTED)
    assert clew("--home", world, "show", SESSION, "--raw").raw == native.read_bytes() + b"\n"
    assert "extensions" not in exported.json


def test_a_redacted_document_says_so_and_makes_no_claim(world: Path, tmp_path: Path) -> None:
    target = tmp_path / "masked.json"
    clew("--home", world, "export", SESSION, "-o", target, "--redact", "secrets")
    document = json.loads(target.read_text())
    stamp = document["extensions"]["clew"]["redacted"]
    assert stamp["profile"] == "secrets"
    assert stamp["rules"] == default_rules().version
    assert stamp["masked"] >= len(PLANTED) - 2
    done = nothing_said(clew("import", target, "--stdout"), "import")
    assert "was masked; the restored files are not the originals" in done.err
    original = histories.lines(PLANTED)
    for new, old in zip(done.out.split("\n"), original, strict=True):
        if new != old:
            assert MARKER.search(new)
    whole = tmp_path / "whole.json"
    clew("--home", world, "export", SESSION, "-o", whole)
    assert clew("import", whole, "--stdout").err == ""


def test_markdown_says_what_was_masked(world: Path) -> None:
    done = clew("--home", world, "export", SESSION, "--to", "markdown")
    assert "*Redacted by clew: " in done.out
    assert "clew: masked " in done.err
    assert "--redact none" in done.err
    whole = clew("--home", world, "export", SESSION, "--to", "markdown", "--redact", "none")
    assert "Redacted" not in whole.out
    assert PLANTED["prompt"] in whole.out


def test_plain_markers(world: Path) -> None:
    done = nothing_said(clew("--home", world, "show", SESSION, "--detail", "full", "--redact-plain"), "show")
    assert "[REDACTED]" in done.out
    assert "[REDACTED:" not in done.out
    assert not (data_dir() / "redaction.key").exists()


def test_the_key_is_made_once_and_for_its_owner_alone(world: Path) -> None:
    first = clew("--home", world, "show", SESSION)
    key = data_dir() / "redaction.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert clew("--home", world, "show", SESSION).out == first.out
    key.unlink()
    assert clew("--home", world, "show", SESSION).out != first.out


def test_no_key_is_made_where_nothing_is_masked(demo: Path) -> None:
    assert clew("--home", demo, "show", "@last").code == 0
    assert not (data_dir() / "redaction.key").exists()


@pytest.mark.slow
def test_a_key_that_is_none_is_refused(world: Path) -> None:
    key = data_dir() / "redaction.key"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"short")
    done = clew("--home", world, "show", SESSION)
    assert done.code == 3
    assert "too short for a key" in done.err


# Recording


@pytest.mark.slow
@pytest.mark.seed("S0-20", "S0-21", "S0-30")
def test_RD03_recorded_messages_are_masked_before_they_reach_the_disk(tmp_path: Path) -> None:
    plant = Planter("record")
    secret, password = plant.anthropic(), plant.password()
    messages = [
        {"role": "user", "content": f"ANTHROPIC_API_KEY='{secret}'"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "read", "arguments": {"path": ".env"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "read", "content": f"PLAIN={password}\n"},
        {"role": "user", "content": "x" * 90 + f" {secret}", "custom": {"key": secret}},
    ]
    text = "\n".join(map(json.dumps, messages)).encode()
    done = run(
        "record", "--store", tmp_path, "--session", "s", "--redact", "secrets", input=text, env=own_env(tmp_path)
    )
    assert done.code == 0, done.err
    values = {"secret": secret, "password": password}
    for path in (tmp_path / ".sage").rglob("*"):
        if path.is_file():
            assert not held(path.read_bytes(), values), path
            assert not any(secret[:at].encode() in path.read_bytes() for at in range(14, len(secret)))
    log = (tmp_path / ".sage" / "sessions" / "s" / "messages.jsonl").read_text()
    assert "ANTHROPIC_API_KEY=" in log
    assert done.err.startswith("clew: masked ")


def own_env(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "CLEW_DATA_DIR": str(home / "clew")}


@pytest.mark.slow
def test_a_store_may_say_that_it_is_masked(tmp_path: Path) -> None:
    secret = Planter("store").github()
    (tmp_path / ".sage").mkdir()
    (tmp_path / ".sage" / "config.json").write_text(json.dumps({"clew": {"redact": "secrets"}}))
    line = json.dumps({"role": "user", "content": secret}).encode()
    run("record", "--store", tmp_path, "--session", "s", input=line, env=own_env(tmp_path))
    log = tmp_path / ".sage" / "sessions" / "s" / "messages.jsonl"
    assert secret not in log.read_text()
    run("record", "--store", tmp_path, "--session", "t", "--redact", "none", input=line, env=own_env(tmp_path))
    assert secret in (log.parent.parent / "t" / "messages.jsonl").read_text()


# Errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        '{"role": "SECRET", "content": "x"}',
        '{"role": "user", "content": {"SECRET": 1}}',
        '{"role": "user", "content": "SECRET"',
        '{"role": "user", "content": "x", "usage": {"SECRET": 1}}',
        '{"role": "user", "content": "x", "timestamp": "SECRET"}',
        '{"role": "user", "content": "x", "parent": "SECRET"}',
    ],
)
def test_L01_a_bad_line_is_named_without_what_it_holds(tmp_path: Path, line: str) -> None:
    secret = Planter("bad").github()
    text = line.replace("SECRET", secret).encode()
    done = run("record", "--store", tmp_path, "--session", "s", input=text, env=own_env(tmp_path))
    assert done.code == 4
    assert secret not in done.err


def test_L01_an_error_of_ours_shows_no_message_text(world: Path, tmp_path: Path) -> None:
    """An error that nobody expected tells where it happened, not what was read."""
    code = (
        "import sys\n"
        "from clew.cli.main import main\n"
        "import clew.library as library\n"
        "def broken(self): raise KeyError(sys.argv[-1])\n"
        "library.StoredSession.units = broken\n"
        "main(['--home', sys.argv[1], 'show', sys.argv[2], '--raw'])\n"
    )
    import subprocess

    words = [sys.executable, "-c", code, str(world), SESSION, PLANTED["prompt"]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=own_env(tmp_path))
    assert done.returncode == 1
    assert PLANTED["prompt"] not in done.stderr
    assert "KeyError" in done.stderr
    assert "in broken" in done.stderr


def test_L01_an_unknown_reference_is_masked(world: Path) -> None:
    done = clew("--home", world, "show", PLANTED["prompt"])
    assert done.code == 1
    nothing_in(done.err, "stderr")


# Previews


@pytest.mark.slow
def test_RD06_titles_are_cut_after_masking(tmp_path: Path) -> None:
    """A prompt with a secret at every place around where titles end."""
    secret = Planter("cut").github()
    for at in range(40, 110):
        home = tmp_path / str(at)
        planted = dict(PLANTED)
        lines = histories.lines(planted)[:1]
        prompt = "w" * (at - 1) + " " + secret + " and more words behind it, so that it is too long for a title"
        record = json.loads(lines[0])
        record["message"]["content"] = prompt
        path = home / ".claude" / "projects" / "-srv-tide" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record) + "\n")
        for words in (("list",), ("list", "--json", "--redact", "all"), ("graph", SESSION), ("show", SESSION)):
            done = clew("--home", home, *words)
            assert not any(secret[:length] in done.out for length in range(8, len(secret))), (at, words)
    assert "[REDACTED:" in clew("--home", tmp_path / "40", "list").out


# Scanning


@pytest.mark.slow
def test_RD07_scan_tells_rule_and_place_and_never_the_value(worlds: Path) -> None:
    done = nothing_said(clew("--home", worlds, "redact", "scan"), "scan", (1,))
    assert len(done.out.splitlines()) > len(PLANTED)
    listed = nothing_said(clew("--home", worlds, "redact", "scan", "--json"), "scan --json", (1,)).json
    assert listed["rules"]
    rows = [row for row in listed["findings"] if row["session"] == SESSION]
    assert {row["message"] for row in rows} >= {1, 2, 3, 5, 7, 11}
    assert all(MARKER.fullmatch(row["masked"]) for row in rows)
    prompt = next(row for row in rows if row["message"] == 1)
    assert prompt["line"] == 1
    assert prompt["kind"] == "secret"
    assert 0 < prompt["confidence"] <= 1


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "sage-agent"])
def test_scan_of_nothing_is_fine(demo: Path, agent: str) -> None:
    done = clew("--home", demo, "redact", "scan", "--agent", agent)
    assert (done.code, done.out, done.err) == (0, "", "nothing found\n")
    assert clew("--home", demo, "redact", "scan", "--agent", agent, "--json").json["findings"] == []


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_RD07_reveal_needs_a_terminal(world: Path, words: tuple[str, ...]) -> None:
    done = nothing_said(clew("--home", world, "redact", "scan", "--reveal", *words), "reveal", (2,))
    assert "terminal" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "shown"), [("yes", True), ("no", False), ("", False), ("y", False)])
def test_RD07_reveal_needs_a_typed_yes(world: Path, tmp_path: Path, answer: str, shown: bool) -> None:
    printed = at_terminal(tmp_path, answer, "--home", str(world), "redact", "scan", SESSION, "--reveal")
    assert ("Type yes" in printed) is True
    assert (PLANTED["prompt"] in printed) is shown


def at_terminal(home: Path, answer: str, *words: str) -> str:
    """What a command prints on a terminal where somebody types an answer."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(own_env(home), COLUMNS="250", TERM="dumb")
        os.execv(COMMAND[0], [*COMMAND, *words])
    os.write(terminal, answer.encode() + b"\n")
    printed = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            printed += piece
    except OSError:
        pass  # the other end was closed
    os.waitpid(child, 0)
    return printed.decode()


# Files


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_files_are_masked_and_left_alone(tmp_path: Path, name: str) -> None:
    text = "\n".join(histories.lines(PLANTED)).encode()
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".jsonl": bytes,
        ".gz": gzip.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    file = tmp_path / name
    file.write_bytes(packers[file.suffix](text))
    before = file.read_bytes()
    target = tmp_path / f"out{''.join(file.suffixes)}"
    nothing_said(clew("redact", file, "-o", target), name)
    nothing_in(unpacked(target), name)
    assert file.read_bytes() == before
    assert clew("redact", file, "-o", target).code == 6
    for new, old in zip(unpacked(target).split(b"\n"), text.split(b"\n"), strict=True):
        assert new == old or b"[REDACTED:" in new
    assert clew("redact", file).raw == unpacked(target)
    assert clew("redact", "files", file, "--redact", "none").raw == text


def test_a_document_stays_a_document(world: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    clew("--home", world, "export", SESSION, "-o", whole)
    done = nothing_said(clew("redact", whole), "a document")
    document = json.loads(done.raw)
    assert list(document) == [*json.loads(whole.read_text()), "extensions"]
    assert document["extensions"]["clew"]["redacted"]["profile"] == "secrets"
    masked = tmp_path / "masked.json"
    masked.write_bytes(done.raw)
    assert "not the original" in clew("import", masked, "--stdout").err


def test_several_files_go_to_a_folder(tmp_path: Path) -> None:
    secret = Planter("several").github()
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name}: {secret}\n")
    files = (tmp_path / "a.txt", tmp_path / "b.txt")
    assert clew("redact", *files, "-o", tmp_path / "none").code == 2
    (tmp_path / "out").mkdir()
    assert clew("redact", *files, "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "a.txt").read_text().startswith("a.txt: [REDACTED:")


@pytest.mark.seed("S0-23", "S0-24", "S0-25")
@pytest.mark.parametrize(
    ("name", "text"),
    [(".env", "PLAIN=WORD\n"), ("credentials.json", '{"x": {"plain": "WORD"}}\n'), ("secrets.yaml", "plain: WORD\n")],
)
def test_a_credential_file_is_known_by_its_name(tmp_path: Path, name: str, text: str) -> None:
    word = Planter(name).chars(16)
    (tmp_path / name).write_text(text.replace("WORD", word))
    done = clew("redact", tmp_path / name)
    assert word not in done.out
    assert done.out.startswith(text.partition("WORD")[0])


# The rules of the person


def test_rules_of_ones_own(tmp_path: Path, world: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_text("ticket HARBOUR-00042, ticket HARBOUR-00043\n")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nid = "harbour_ticket"\npattern = "HARBOUR-[0-9]{5}"\n')
    assert clew("redact", file).out == file.read_text()
    done = clew("redact", file, "--rules", rules)
    assert "HARBOUR-0" not in done.out
    assert "2 harbour_ticket" in done.err
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "clew" / "redaction.toml"
    config.parent.mkdir(parents=True)
    shutil.copy(rules, config)
    assert "HARBOUR-0" not in clew("redact", file).out


def test_RD12_a_rule_that_does_not_compile_is_refused_with_its_line(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('\n\n[[rule]]\nid = "broken"\npattern = "(["\n')
    done = clew("redact", rules, "--rules", rules)
    assert done.code == 2
    assert "rules.toml:" in done.err


# Scrubbing


@pytest.mark.parametrize("agent", RECEIVERS)
def test_RD08_scrub_is_a_dry_run_unless_told(worlds: Path, agent: str) -> None:
    before = {path: path.read_bytes() for path in worlds.rglob("*") if path.is_file()}
    done = nothing_said(clew("--home", worlds, "redact", "scrub", "--agent", agent), agent)
    assert "nothing was changed" in done.err
    assert {path: path.read_bytes() for path in worlds.rglob("*") if path.is_file()} == before
    assert not (data_dir() / "rescue").exists()


@pytest.mark.seed("S0-39")
@pytest.mark.parametrize("agent", RECEIVERS)
def test_RD08_scrub_cleans_a_session_in_place(worlds: Path, agent: str) -> None:
    (row,) = clew("--home", worlds, "list", "--agent", agent, "--json").json
    path = Path(row["path"])
    os.utime(path, ns=(10**18, 10**18))
    before, shown = path.read_bytes(), clew("--home", worlds, "show", row["id"], "--redact", "all").out
    done = nothing_said(clew("--home", worlds, "redact", "scrub", row["id"], "--write", "--json"), agent).json
    nothing_in(path.read_bytes(), agent)
    assert b"clew-origin" not in b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))
    assert path.stat().st_mtime_ns == 10**18
    (backup,) = [Path(copy) for copy in done["sessions"][0]["backups"] if Path(copy).name == path.name]
    assert backup.read_bytes() == before
    assert backup.stat().st_mode & 0o777 == 0o600
    assert clew("--home", worlds, "redact", "scan", row["id"]).code == 0
    assert clew("--home", worlds, "validate", row["id"]).code in (0, 1)
    assert clew("--home", worlds, "verify", row["id"]).code == 0
    assert clew("--home", worlds, "show", row["id"], "--redact", "all").out == shown
    assert clew("--home", worlds, "redact", "scrub", row["id"], "--write").code == 1


def test_RD08_what_could_not_be_removed_is_said(world: Path) -> None:
    for name in ("history.jsonl", "file-history/copy@v1"):
        place = world / ".claude" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps({"display": PLANTED["prompt"]}))
    done = nothing_said(clew("--home", world, "redact", "scrub", SESSION, "--write"), "scrub")
    assert done.err.count("not removed from") == 2
    assert "history.jsonl" in done.err
    assert "copy@v1" in done.err
    assert "are kept in" in done.err


def test_RD08_a_file_is_not_taken_for_the_output_of_the_last_call(tmp_path: Path) -> None:
    """`workspace.yaml` is scanned right after the record that answers the call."""
    plant = Planter("workspace")
    folder = tmp_path / ".copilot" / "session-state" / "fc218e07-5067-4495-928c-81798e1e5121"
    folder.mkdir(parents=True)
    call = {"toolCallId": "toolu_01c", "toolName": "bash", "arguments": {"command": "cat ~/.ssh/id_ed25519"}}
    answer = {"toolCallId": "toolu_01c", "success": True, "result": {"content": plant.pem()}}
    lines = [
        {"type": "session.start", "data": {"sessionId": folder.name, "version": 1}},
        {"type": "tool.execution_start", "data": call},
        {"type": "tool.execution_complete", "data": answer},
    ]
    folder.joinpath("events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    workspace = f'id: {folder.name}\ncwd: "/srv/tide"\nname: "Rotate {{}}"\nuser_named: true\n'
    folder.joinpath("workspace.yaml").write_text(workspace.format(plant.github()))
    assert clew("--home", tmp_path, "redact", "scrub", folder.name, "--write").code == 0
    masked = folder.joinpath("workspace.yaml").read_text()
    assert MARKER.sub("{}", masked) == workspace


def test_scrub_wants_to_be_told_which(world: Path) -> None:
    assert clew("--home", world, "redact", "scrub").code == 2


def test_scrub_leaves_clean_sessions_alone(demo: Path) -> None:
    done = clew("--home", demo, "redact", "scrub", "--agent", "codex", "--write")
    assert (done.code, done.out) == (1, "")
    assert not (data_dir() / "rescue").exists()


def test_a_session_that_is_written_to_meanwhile_is_left(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.migrate import scrub

    path = next(world.rglob("*.jsonl"))
    real = scrub._keep

    def keep(file: Path, kept: Path) -> Path:
        copy = real(file, kept)
        with path.open("ab") as log:
            log.write(b'\n{"type":"user"}\n')
        return copy

    monkeypatch.setattr(scrub, "_keep", keep)
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert done.code == 5
    assert path.read_bytes().endswith(b'{"type":"user"}\n')
    assert PLANTED["prompt"].encode() in path.read_bytes()


def session_file(home: Path) -> Path:
    (path,) = home.rglob(f"{SESSION}.jsonl")
    return path


def with_another_session(home: Path) -> Path:
    """A second session that holds something too."""
    other = home / ".claude" / "projects" / "-srv-other" / "5d1f4c9e-0000-4000-8000-000000000000.jsonl"
    other.parent.mkdir(parents=True)
    other.write_text(session_file(home).read_text().replace(SESSION, other.stem))
    return other


LINKS = ["symbolic", "hard"]
WRITES: list[tuple[str, ...]] = [("--write",), ()]


def linked(home: Path, tmp_path: Path, kind: str) -> Path:
    """Give a session's file another name outside; returns that."""
    path, outside = session_file(home), tmp_path / "outside" / f"{SESSION}.jsonl"
    outside.parent.mkdir()
    if kind == "symbolic":
        path.rename(outside)
        path.symlink_to(outside)
    else:
        os.link(path, outside)
        os.link(path, outside.with_name("third"))
    return outside


@pytest.mark.parametrize("write", WRITES, ids=["write", "dry"])
@pytest.mark.parametrize("kind", LINKS)
def test_a_linked_session_is_not_scrubbed_and_that_is_said(
    world: Path, tmp_path: Path, kind: str, write: tuple[str, ...]
) -> None:
    other = with_another_session(world)
    outside = linked(world, tmp_path, kind)
    path, before = session_file(world), outside.read_bytes()
    done = nothing_said(clew("--home", world, "redact", "scrub", "--agent", "claude-code", *write), "scrub", (1,))
    (said,) = [line for line in done.err.splitlines() if line.startswith("clew: not scrubbed: ")]
    assert str(path) in said
    assert (str(outside) if kind == "symbolic" else "2 other hard links") in said
    assert (path.read_bytes(), outside.read_bytes()) == (before, before)
    assert path.is_symlink() == (kind == "symbolic")
    assert str(path) not in done.out and str(other) in done.out
    if write:
        nothing_in(other.read_bytes(), "the other session")


@pytest.mark.parametrize("option", ["--project", "--branch", "--model", "--text", "--since"])
def test_a_linked_session_that_the_filters_leave_out_is_not_named(world: Path, tmp_path: Path, option: str) -> None:
    linked(world, tmp_path, "symbolic")
    value = "2999-01-01" if option == "--since" else "no such thing"
    done = clew("--home", world, "redact", "scrub", option, value)
    assert done.code == 1 and "not scrubbed" not in done.err and "nothing found" in done.err
    named = clew("--home", world, "redact", "scrub", "--until", "2999-01-01")
    assert "not scrubbed" in named.err


@pytest.mark.parametrize("write", WRITES, ids=["write", "dry"])
@pytest.mark.parametrize("kind", LINKS)
def test_a_linked_session_stands_in_the_json_of_a_scrub(
    world: Path, tmp_path: Path, kind: str, write: tuple[str, ...]
) -> None:
    other = with_another_session(world)
    linked(world, tmp_path, kind)
    done = nothing_said(clew("--home", world, "redact", "scrub", "--agent", "claude-code", "--json", *write), "", (1,))
    (refused,) = done.json["refused"]
    assert (refused["session"], refused["agent"]) == (SESSION, "claude-code")
    assert [file["path"] for file in refused["files"]] == [str(session_file(world))]
    assert "link" in refused["files"][0]["reason"]
    assert [row["session"] for row in done.json["sessions"]] == [other.stem]
    assert str(session_file(world)) in done.json["left"]


def test_only_a_linked_session_is_not_called_clean(world: Path, tmp_path: Path) -> None:
    linked(world, tmp_path, "hard")
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert done.code == 1
    assert "nothing found" not in done.err
    assert not (data_dir() / "rescue").exists()


def test_the_file_that_a_session_links_to_is_scrubbed_by_its_own_name(world: Path, tmp_path: Path) -> None:
    outside = linked(world, tmp_path, "symbolic")
    assert clew("--home", world, "redact", "scrub", outside, "--write").code == 0
    nothing_in(outside.read_bytes(), "the file")
    assert session_file(world).is_symlink()
    assert clew("--home", world, "redact", "scrub", SESSION, "--write").code == 1


@pytest.mark.parametrize("name", ["messages.jsonl", "metadata.json"])
@pytest.mark.parametrize("kind", LINKS)
def test_a_session_of_the_store_with_a_linked_file_is_not_scrubbed(tmp_path: Path, kind: str, name: str) -> None:
    from clew.store import Store

    secret = Planter("linked").github()
    with Store(tmp_path).session("s") as session:
        session.user(f"use {secret}")
    path, outside = session.folder / name, tmp_path / "outside"
    if kind == "symbolic":
        path.rename(outside)
        path.symlink_to(outside)
    else:
        os.link(path, outside)
    before = {file: file.read_bytes() for file in (outside, *session.folder.iterdir())}
    done = clew("--home", tmp_path, "redact", "scrub", "s", "--write")
    assert done.code == 1
    if (kind, name) == ("symbolic", "messages.jsonl"):
        assert "no session matches 's'" in done.err
        done = clew("--home", tmp_path, "redact", "scrub", "--agent", "sage-agent", "--write")
    assert f"not scrubbed: sage-agent:s: {path}" in done.err
    assert {file: file.read_bytes() for file in (outside, *session.folder.iterdir())} == before


def test_a_hard_link_to_a_clean_file_stops_no_scrub(world: Path, tmp_path: Path) -> None:
    side = session_file(world).with_suffix("")
    side.mkdir()
    (side / "note.txt").write_text("nothing\n")
    os.link(side / "note.txt", tmp_path / "outside")
    assert clew("--home", world, "redact", "scrub", SESSION, "--write").code == 0


def test_a_link_made_while_a_session_is_scrubbed_is_seen(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.migrate import scrub

    path, real = session_file(world), scrub._keep

    def keep(file: Path, kept: Path) -> Path:
        os.link(path, path.with_name("new"))
        return real(file, kept)

    monkeypatch.setattr(scrub, "_keep", keep)
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert done.code != 0 and "1 other hard link" in done.err
    assert PLANTED["prompt"].encode() in path.read_bytes()


@pytest.mark.parametrize("name", ["../../../../escape", "/escape", "..", "a/b", "x" * 300, "\x1b]0;x\x07", "nul\0"])
def test_copies_of_scrubbed_files_stay_below_the_data_folder(tmp_path: Path, name: str) -> None:
    """A session's id is what its records say."""
    lines = [{**json.loads(line), "sessionId": name} for line in histories.lines(PLANTED)[:2]]
    path = tmp_path / "home" / ".claude" / "projects" / "-srv-x" / "x.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    done = clew("--home", tmp_path / "home", "redact", "scrub", path, "--write", "--json")
    assert done.code == 0, done.err
    (copy,) = done.json["sessions"][0]["backups"]
    assert Path(copy).resolve().is_relative_to((data_dir() / "rescue").resolve())
    assert ".." not in Path(copy).parts
    new = {file for file in tmp_path.rglob("*") if file.is_file()} - before
    assert all(file.is_relative_to(data_dir()) for file in new)


def test_a_session_whose_file_has_the_longest_name_is_scrubbed(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".claude" / "projects" / "-srv-x" / f"{'n' * 249}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in histories.lines(PLANTED)[:2]))
    done = nothing_said(clew("--home", tmp_path / "home", "redact", "scrub", path, "--write"), "scrub")
    assert "File name too long" not in done.err
    nothing_in(path.read_bytes(), "the file")


def test_what_was_scrubbed_before_an_error_is_said(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.migrate import scrub

    other, real = with_another_session(world), scrub._keep
    done_before: list[Path] = []

    def keep(file: Path, kept: Path) -> Path:
        if done_before:
            raise OSError(28, "No space left on device")
        done_before.append(file)
        return real(file, kept)

    monkeypatch.setattr(scrub, "_keep", keep)
    done = nothing_said(clew("--home", world, "redact", "scrub", "--agent", "claude-code", "--write"), "scrub", (3,))
    assert str(done_before[0]) in done.out
    assert "No space left" in done.err and "are kept in" in done.err
    assert {other, session_file(world)} > {*done_before}


def test_a_writer_that_has_the_log_open_goes_on_in_the_scrubbed_one(tmp_path: Path) -> None:
    from clew.store import Store

    secret = Planter("lock").github()
    session = Store(tmp_path).session("s")
    session.user(f"use {secret}")
    assert clew("--home", tmp_path, "redact", "scrub", "s", "--write").code == 0
    session.user("not lost")
    with Store(tmp_path).session("s") as again:
        again.user("and then")
    log = (tmp_path / ".sage" / "sessions" / "s" / "messages.jsonl").read_text()
    assert secret not in log
    assert "not lost" in log and "and then" in log
    assert len(list(Store(tmp_path).get("s").messages())) == 3


HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\r\x08"


@pytest.mark.parametrize(
    "words",
    [
        ("redact", "scan"),
        ("redact", "scrub", "@last"),
        ("show", "@last"),
        ("list",),
        ("diff", "@last#2"),
        ("files", "@last"),
        ("graph", "@last"),
        ("tail", "@last"),
        ("branch", "@last"),
    ],
    ids=" ".join,
)
def test_H08_masked_text_steers_no_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    lines = [json.loads(line) for line in histories.lines(PLANTED)[:2]]
    lines[0]["message"]["content"] = f"{HOSTILE}{PLANTED['prompt']}{HOSTILE}"
    lines[0]["cwd"] = f"/srv/{HOSTILE}"
    call = {"file_path": f"/srv/{HOSTILE}.py", "content": f"{HOSTILE}{PLANTED['written']}"}
    lines[1]["message"]["content"] = [{"type": "tool_use", "id": "toolu_01z", "name": "Write", "input": call}]
    path = tmp_path / ".claude" / "projects" / "-srv-x" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = nothing_said(clew("--home", tmp_path, *words), " ".join(words), (0, 1, 2))
    for text in (done.out, done.err):
        assert not any(char in text for char in "\x1b\x07\x9b\u202e\r\x08")


@pytest.mark.slow
def test_RD08_the_catalog_forgets_what_was_scrubbed(world: Path) -> None:
    """Neither a search nor the files of the catalog, free pages included, give it back."""
    words = ("search", PLANTED["prompt"], "--json", "--redact", "none")
    assert clew("--home", world, *words).code == 0
    done = nothing_said(clew("--home", world, "redact", "scrub", SESSION, "--write"), "scrub")
    assert "catalog" not in done.err
    assert clew("--home", world, *words).code == 1
    for path in data_dir().rglob("*"):
        if path.is_file() and "rescue" not in path.parts:
            nothing_in(path.read_bytes(), str(path))
    found = clew("--home", world, "search", "tide", "--json", "--redact", "none")
    assert found.json["total"]
    nothing_in(found.raw, "search")


def archived(world: Path) -> str:
    assert clew("--home", world, "archive").code == 0
    return str(data_dir() / "archive")


@pytest.mark.parametrize("write", [("--write",), ()])
def test_RD08_an_archive_that_holds_a_scrubbed_session_is_named(world: Path, write: tuple[str, ...]) -> None:
    folder = archived(world)
    done = nothing_said(clew("--home", world, "redact", "scrub", SESSION, *write), "scrub")
    (said,) = [line for line in done.err.splitlines() if line.startswith(f"clew: not removed from {folder}")]
    assert "clew archive prune" in said


def test_RD08_what_is_said_of_the_archive_removes_it_there_too(world: Path, tmp_path: Path) -> None:
    folder = archived(world)
    assert folder in clew("--home", world, "redact", "scrub", SESSION, "--write", "--json").json["left"]
    assert clew("--home", world, "archive").code == 0
    assert clew("archive", "prune", "--keep-versions", "1", "--apply").code == 0
    assert clew("archive", "restore", "--to", tmp_path / "back").code == 0
    assert nothing_below(tmp_path / "back")


def test_RD08_an_archive_without_the_session_is_not_named(world: Path, demo: Path) -> None:
    assert clew("--home", demo, "archive").code == 0
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert "archive" not in done.err


def test_RD08_a_damaged_archive_is_named(world: Path) -> None:
    folder = archived(world)
    for pack in Path(folder, "packs").iterdir():
        pack.write_bytes(b"x")
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert done.code == 0
    assert f"not removed from {folder}" in done.err


@pytest.mark.parametrize("place", ["archived/0123/files", "remotes/box/files"])
def test_RD08_copies_among_the_files_of_clew_are_named(world: Path, place: str) -> None:
    copy = data_dir() / place / "x.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_text(json.dumps({"display": PLANTED["prompt"]}))
    done = clew("--home", world, "redact", "scrub", SESSION, "--write")
    assert f"not removed from {copy}" in done.err


def test_S01_the_folder_of_the_key_is_for_its_owner_alone(world: Path) -> None:
    clew("--home", world, "show", SESSION)
    for folder in (data_dir(), data_dir().parent, data_dir().parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700, folder


def test_S01_the_folder_of_the_copies_is_for_its_owner_alone(world: Path) -> None:
    assert clew("--home", world, "redact", "scrub", SESSION, "--write").code == 0
    for folder in (data_dir() / "rescue", *(data_dir() / "rescue").iterdir()):
        assert folder.stat().st_mode & 0o777 == 0o700, folder


# What stands beside a title


def branched(home: Path, branch: str, title: str = "sail") -> None:
    claude(home, prompt(title, gitBranch=branch), reply("m1", 1, 2, gitBranch=branch))


def synced(home: Path) -> None:
    """Titles stand in the catalog, which is asked once its files have lain a while."""
    time.sleep(0.2)
    assert clew("--home", home, "sync").code == 0


def test_RD03_a_list_is_masked_whole_when_somebody_asks(tmp_path: Path) -> None:
    secret = Planter("branch").github()
    branched(tmp_path, f"fix/{secret}")
    assert secret in clew("--home", tmp_path, "list", "--json").out
    assert secret not in clew("--home", tmp_path, "list", "--json", "--redact", "secrets").out


def test_a_list_obeys_the_rules_of_the_person(tmp_path: Path) -> None:
    branched(tmp_path, "main", "see AB-12")
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "clew" / RULES_FILE
    config.parent.mkdir(parents=True)
    config.write_text('[[rule]]\nid = "ticket"\npattern = "AB-[0-9]{2}"\n')
    synced(tmp_path)
    for words in (("list",), ("list", "--json", "--redact", "secrets"), ("stats", "--by", "session")):
        assert "AB-12" not in clew("--home", tmp_path, *words).out, words


def test_RD03_the_titles_of_statistics_are_masked(tmp_path: Path) -> None:
    secret = Planter("stats").github()
    branched(tmp_path, "main", f"use {secret}")
    synced(tmp_path)
    done = clew("--home", tmp_path, "stats", "--by", "session")
    assert "use [" in done.out
    assert secret not in done.out
    assert "masked 1" in done.err
    assert secret in clew("--home", tmp_path, "stats", "--by", "session", "--json").out


def test_sql_says_that_it_masks_nothing() -> None:
    assert "unmasked" in " ".join(clew("sql", "--help").out.split())


@pytest.fixture
def named(tmp_path: Path) -> tuple[Path, str]:
    """A home whose only project has a key in its path, and so in the name of the folder of its sessions."""
    key = Planter("project").google().replace("_", "x").replace("-", "y")
    workspace = f"/home/ada/src/shop-{key}"
    record = {**prompt("Count them."), "cwd": workspace}
    folder = tmp_path / "home" / ".claude" / "projects" / f"-home-ada-src-shop-{key}"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(json.dumps({**record, "sessionId": SESSION}) + "\n")
    return tmp_path / "home", key


def names_below(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def test_a_project_with_a_key_in_its_path_is_filed_under_its_masked_name(
    named: tuple[Path, str], tmp_path: Path
) -> None:
    home, key = named
    done = clew("--home", home, "export", "--layout", "project", "-o", tmp_path / "out", "--redact", "secrets")
    assert done.code == 0, done.err
    assert any("[REDACTED-google_api_key-" in name for name in names_below(tmp_path / "out"))
    assert not any(key in name for name in names_below(tmp_path / "out"))


@pytest.mark.parametrize("target", RECEIVERS)
def test_a_project_with_a_key_in_its_path_is_converted_under_its_masked_name(
    named: tuple[Path, str], tmp_path: Path, target: str
) -> None:
    home, key = named
    done = clew("--home", home, "convert", SESSION, "--to", target, "--home", tmp_path / "out", "--redact", "secrets")
    assert done.code == 0, done.err
    assert names_below(tmp_path / "out")
    assert not any(key in name for name in names_below(tmp_path / "out"))


def test_a_project_with_a_key_in_its_path_is_imported_under_its_masked_name(
    named: tuple[Path, str], tmp_path: Path
) -> None:
    home, key = named
    document = tmp_path / "document.json"
    assert clew("--home", home, "export", SESSION, "-o", document, "--redact", "secrets").code == 0
    done = clew("import", document, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert any("[REDACTED-google_api_key-" in name for name in names_below(tmp_path / "out"))
    assert not any(key in name for name in names_below(tmp_path / "out"))


@pytest.fixture
def without_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder that nobody can make, not even root."""
    if not Path("/proc/self").is_dir():
        pytest.skip("needs a folder that root cannot write to")
    monkeypatch.setenv("CLEW_DATA_DIR", "/proc/clew/data")


@pytest.mark.slow
@pytest.mark.usefixtures("without_data_folder")
@pytest.mark.parametrize(
    "words",
    [
        ("show", SESSION, "--detail", "full"),
        ("show", SESSION, "--json", "--redact", "secrets"),
        ("export", SESSION, "--to", "markdown"),
        ("tail", SESSION),
        ("redact", "scan"),
        ("redact", "scrub", SESSION),
    ],
    ids=" ".join,
)
def test_without_a_key_everything_is_masked_plainly(world: Path, words: tuple[str, ...]) -> None:
    done = run("--home", world, *words)
    nothing_in(done.raw, "stdout")
    nothing_in(done.err.encode(), "stderr")
    assert "[REDACTED:" not in done.out
    assert "[REDACTED]" in done.out or words[1] == "scrub"
    (said,) = [line for line in done.err.splitlines() if "without a key" in line]
    assert said.startswith("clew: /proc/clew/data/redaction.key: No such file or directory; ")
    assert "nothing found" not in done.err and "could not" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize("words", [("scan",), ("scrub", "--agent", "claude-code")], ids=" ".join)
def test_a_session_that_cannot_be_scanned_is_not_called_clean(world: Path, words: tuple[str, ...]) -> None:
    data_dir().mkdir(parents=True)
    (data_dir() / "redaction.key").write_bytes(b"short")
    done = clew("--home", world, "redact", *words)
    assert (done.code, done.out) == (3, "")
    assert "clew: 1 session could not be scanned" in done.err.splitlines() and "nothing found" not in done.err


def test_a_session_instead_of_a_file_leads_to_the_commands_for_sessions(demo: Path) -> None:
    ran = clew("--home", demo, "redact", LATEST)
    assert ran.code == 3
    assert "no such file; `clew redact scan` and `clew export --redact` take a session" in ran.err
