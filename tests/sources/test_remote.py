"""Another machine over a real sshd: read-only, one connection, and only what is new."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import clew as library
from clew.errors import RemoteFailed
from clew.host import data_dir
from clew.sources.fetch import fetch
from clew.sources.mirror import Mirror
from clew.sources.registry import chosen, sources
from clew.sources.ssh import Target
from tests.cli.running import COMMAND, FORKED, Ran, clew, state
from tests.sources.conftest import LONG_AGO, Box
from tests.unit.samples import SESSION, claude_line


def copies() -> Path:
    return data_dir() / "remotes" / "box" / "files"


def copied(box: Box, name: str) -> Path:
    """The copy of a file below the other home."""
    return copies().joinpath(*(box.home / name).parts[1:])


def put(box: Box, name: str, content: bytes, at: int = LONG_AGO) -> Path:
    """Write a file over there, with a time."""
    path = box.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at, at))
    return path


def line(uuid: str, text: str = "hello") -> bytes:
    return json.dumps(claude_line("user", uuid, None, text)).encode() + b"\n"


def fetched() -> dict[str, int]:
    ran = clew("sources", "fetch", "--json")
    assert (ran.code, ran.err) == (0, "")
    (visit,) = ran.json
    assert isinstance(visit, dict)
    return visit


@pytest.fixture
def added(box: Box) -> Box:
    """The other machine, already a source."""
    assert clew("sources", "add", "box").code == 0
    return box


@pytest.mark.slow
def test_a_file_in_the_place_of_a_folder_is_a_problem_of_that_file_alone(added: Box) -> None:
    name = ".claude/projects/-p/d.jsonl"
    put(added, f"{name}/y.jsonl", line("u1"))
    fetched()
    shutil.rmtree(added.home / name)
    put(added, name, line("u2") * 100)
    put(added, ".claude/projects/-p/new.jsonl", line("u3"))
    ran = clew("sources", "fetch", "--json")
    assert ran.code in (0, 3) and len(ran.json) == 1
    assert copied(added, ".claude/projects/-p/new.jsonl").exists()
    assert copied(added, f"{name}/y.jsonl").exists()


@pytest.mark.slow
@pytest.mark.seed("S2-17", "S2-18", "S2-19", "S2-22")
def test_a_host_is_read_and_left_as_it_is(box: Box) -> None:
    before = state(box.home)
    ran = clew("sources", "add", "box")
    assert (ran.code, ran.out) == (0, "")
    assert re.fullmatch(r"box: \d+ files, \d+ kB fetched\n", ran.err)
    assert box.connections() == 1
    rows = clew("list", "--json").json
    assert len(rows) == box.sessions()
    assert {(row["source"]["type"], row["source"]["host"]) for row in rows} == {("remote", "box")}
    source = clew("export", FORKED).json["session"]["source"]
    original = next(box.home.rglob(f"{FORKED}.jsonl"))
    assert source == {"type": "remote", "host": "box", "path": str(original)}
    assert "source_host: " in clew("export", FORKED, "--to", "markdown").out
    assert clew("verify").code == 0
    assert {"from", "box"} <= set(clew("list").out.split())
    assert state(box.home) == before
    assert box.connections() == 1
    by_path = clew("export", rows[0]["path"]).json["session"]["source"]
    assert by_path == rows[0]["source"]
    assert next(library.sessions(agent="sage-agent")).header.source.type == "remote"


@pytest.mark.slow
def test_copies_are_for_the_user_alone(added: Box) -> None:
    assert (data_dir() / "remotes" / "box").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in copies().rglob("*") if path.is_file())


@pytest.mark.slow
def test_what_has_not_changed_costs_nothing(added: Box) -> None:
    assert fetched()["received"] == 0
    assert added.connections() == 2
    (row,) = clew("sources", "check", "box", "--json").json
    assert (row["reached"], row["waiting"], row["sessions"]) == (True, 0, added.sessions())
    assert row["agents"]["sage-agent"] == 2


@pytest.mark.slow
def test_a_file_that_grows_costs_what_is_new(added: Box) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(added, name, line("u1", "x" * 500_000))
    assert fetched()["received"] == len(line("u1", "x" * 500_000))
    path = added.home / name
    with path.open("ab") as out:
        out.write(line("u2"))
    (row,) = clew("sources", "check", "box", "--json").json
    assert (row["waiting"], row["waiting_bytes"]) == (1, len(line("u2")))
    assert fetched()["received"] == len(line("u2"))
    assert copied(added, name).read_bytes() == path.read_bytes()
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert fetched()["received"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("content", [line("u3", "y" * 2000), line("u3"), b""], ids=["longer", "shorter", "empty"])
def test_a_file_that_was_rewritten_comes_whole(added: Box, content: bytes) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(added, name, line("u1", "x" * 1000))
    fetched()
    put(added, name, content, LONG_AGO + 5)
    assert fetched()["received"] == len(content)
    assert copied(added, name).read_bytes() == content


def kept(box: Box, name: str) -> Path:
    """The earlier copy of a file that became shorter over there."""
    return (data_dir() / "remotes" / "box" / "kept").joinpath(*(box.home / name).parts[1:])


@pytest.mark.slow
@pytest.mark.parametrize("content", [line("u1"), line("u3"), b""], ids=["cut", "rewritten", "empty"])
def test_an_earlier_copy_of_a_file_that_became_shorter_is_kept(added: Box, content: bytes) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    long = line("u1") + line("u2", "x" * 1000)
    put(added, name, long)
    fetched()
    put(added, name, content, LONG_AGO + 5)
    ran = clew("sources", "fetch")
    assert ran.code == 0
    folder = data_dir() / "remotes" / "box" / "kept"
    assert f"  1 files became shorter on the host; the earlier copies are in {folder}\n" in ran.err
    assert copied(added, name).read_bytes() == content
    assert kept(added, name).read_bytes() == long
    assert kept(added, name).stat().st_mode & 0o077 == 0
    assert fetched()["kept"] == 0
    assert "1 earlier copies kept" in clew("sources").out
    rows = [row["path"] for row in clew("list", "--json").json]
    assert not any("/kept/" in path for path in rows)
    refused = clew("sources", "remove", "box")
    assert refused.code == 6
    assert refused.err == "clew: box: 1 files exist only here; use --allow-loss to remove them\n"
    assert kept(added, name).read_bytes() == long


@pytest.mark.slow
def test_the_longest_of_several_earlier_copies_is_kept(added: Box) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    versions = [line("u1", "x" * 500), line("u2"), line("u3", "y" * 200), b"", line("u4", "z" * 900), b""]
    for number, content in enumerate(versions):
        before = kept(added, name).read_bytes() if kept(added, name).exists() else b""
        put(added, name, content, LONG_AGO + number)
        count = fetched()["kept"]
        longest_that_was_cut = max(versions[:number], key=len, default=b"")
        if len(content) < len(versions[number - 1]) and number:
            assert kept(added, name).read_bytes() == longest_that_was_cut
            assert count == (longest_that_was_cut != before)


@pytest.mark.slow
def test_a_file_that_cannot_be_read_any_more_keeps_its_copy(added: Box) -> None:
    """The list has it, with a new size, but its content does not come."""
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(added, name, line("u1"))
    fetched()
    put(added, name, line("u1") + line("u2"), LONG_AGO + 5)
    tools(added, "head")
    assert fetched()["kept"] == 1
    assert kept(added, name).read_bytes() == line("u1")


@pytest.mark.slow
def test_a_refresh_says_how_many_files_became_shorter(added: Box) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(added, name, line("u1") * 2)
    fetched()
    put(added, name, line("u1"), LONG_AGO + 5)
    ran = clew("sync", "--refresh")
    assert ran.code == 0
    assert "clew: box: 1 files became shorter on the host; the earlier copies are in " in ran.err


@pytest.mark.slow
def test_a_file_rewritten_in_the_second_of_the_visit_is_noticed(added: Box) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    now = int(time.time())
    put(added, name, line("u1"), now)
    fetched()
    put(added, name, line("u2"), now)
    fetched()
    assert copied(added, name).read_bytes() == line("u2")


@pytest.mark.slow
def test_a_broken_copy_is_mended(added: Box) -> None:
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(added, name, line("u1") * 3)
    fetched()
    for damage in (line("u1"), line("u1") * 3 + b"more", b"x" * 10):
        copied(added, name).write_bytes(damage)
        fetched()
        assert copied(added, name).read_bytes() == line("u1") * 3


@pytest.mark.slow
def test_what_is_gone_over_there_stays_here(added: Box) -> None:
    gone = next(added.home.rglob(f"{FORKED}.jsonl"))
    content = gone.read_bytes()
    gone.unlink()
    assert fetched()["gone"] == 1
    assert clew("show", FORKED, "--raw").raw.splitlines() == content.splitlines()
    assert "1 deleted there" in clew("sources").out
    refused = clew("sources", "remove", "box")
    assert (refused.code, refused.out) == (6, "")
    assert refused.err == "clew: box: 1 files exist only here; use --allow-loss to remove them\n"
    assert clew("sources", "remove", "box", "--allow-loss").code == 0
    assert not copies().parent.exists()
    assert clew("list").code == 1


@pytest.mark.slow
def test_what_comes_back_is_not_gone(added: Box) -> None:
    path = next(added.home.rglob(f"{FORKED}.jsonl"))
    shutil.move(path, added.home / "kept")
    assert fetched()["gone"] == 1
    shutil.move(added.home / "kept", path)
    visit = fetched()
    assert (visit["gone"], visit["received"]) == (0, 0)


@pytest.mark.slow
def test_a_host_that_is_down_is_one_line(added: Box) -> None:
    assert clew("sources", "add", "down", "--no-fetch").code == 0
    for words in (["sources", "fetch"], ["sources", "check"], ["list", "--refresh"], ["--refresh"]):
        ran = clew(*words)
        assert ran.code == 7, words
        (said,) = [text for text in ran.err.splitlines() if text.startswith("clew: ")]
        assert said.startswith("clew: down: ssh: connect to host 127.0.0.1 port ")
        assert said.endswith("Connection refused.")
    assert len(clew("list", "--refresh", "--json").json) == added.sessions()
    rows = {row["name"]: row for row in clew("sources", "check", "--json").json}
    assert {name: row["reached"] for name, row in rows.items()} == {"local": True, "box": True, "down": False}
    quiet = clew("list")
    assert (quiet.code, quiet.err) == (0, "")
    assert clew("verify").code == 0
    never = clew("list", "--source", "down")
    assert (never.code, never.out) == (7, "")
    assert never.err == "clew: down: not fetched yet; run `clew sources fetch`\n"
    assert clew("show", "@last", "--source", "down", "--refresh").code == 7


@pytest.mark.slow
def test_one_host_that_is_down_stops_no_other(added: Box) -> None:
    assert clew("sources", "add", "down", "--no-fetch").code == 0
    put(added, f".claude/projects/-p/{SESSION}.jsonl", line("u1"))
    ran = clew("sources", "fetch", "--json")
    assert ran.code == 7
    results = {row["name"]: row for row in ran.json}
    assert results["box"]["received"] == len(line("u1"))
    assert results["down"]["reached"] is False
    assert results["down"]["error"] in ran.err
    assert SESSION in {row["id"] for row in clew("list", "--json").json}


def test_a_host_that_does_not_answer_is_not_added(box: Box) -> None:
    ran = clew("sources", "add", "down")
    assert (ran.code, ran.out) == (7, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.endswith("Nothing was added; use --no-fetch to add it anyway.\n")
    assert [row["name"] for row in clew("sources", "list", "--json").json] == ["local"]
    assert not (data_dir() / "remotes" / "down").exists()


def _lost_list_of_sources() -> dict[str, tuple[int, int, str]]:
    """Delete the file that names the sources; the mirror of `box` stays. Returns its files."""
    (data_dir() / "sources.jsonl").unlink()
    before = state(data_dir() / "remotes")
    assert before
    return before


@pytest.mark.slow
def test_a_first_visit_that_fails_keeps_an_earlier_mirror(added: Box) -> None:
    before = _lost_list_of_sources()
    added.on_login("echo 'go away' >&2; exit 1")
    ran = clew("sources", "add", "box")
    assert (ran.code, ran.out) == (7, "")
    assert ran.err == "clew: box: go away. Nothing was added; use --no-fetch to add it anyway.\n"
    assert [source.name for source in sources()] == ["local"]
    assert state(data_dir() / "remotes") == before


@pytest.mark.slow
def test_a_first_visit_that_is_interrupted_keeps_an_earlier_mirror(added: Box) -> None:
    before = _lost_list_of_sources()
    connections = added.connections()
    added.on_login("sleep 30")
    process = subprocess.Popen([*COMMAND, "sources", "add", "box"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while added.connections() == connections:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert [source.name for source in sources()] == ["local"]
    assert state(data_dir() / "remotes") == before


@pytest.mark.slow
def test_a_leftover_mirror_of_the_same_host_is_used_again(added: Box) -> None:
    before = _lost_list_of_sources()
    assert clew("sources", "add", "box").code == 0
    assert set(state(data_dir() / "remotes")) == set(before)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--no-fetch"]], ids=["fetch", "no-fetch"])
@pytest.mark.parametrize("notes", ["whole", "damaged", "of an older version"])
def test_a_leftover_mirror_of_another_host_is_not_taken_over(added: Box, notes: str, options: list[str]) -> None:
    """The sessions of one machine must not be listed as those of another one, nor overwritten by them."""
    path = data_dir() / "remotes" / "box" / "state.json"
    if notes == "damaged":
        path.write_bytes(b"{")
    elif notes == "of an older version":
        path.write_text(
            json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "target"})
        )
    before = _lost_list_of_sources()
    connections = added.connections()
    ran = clew("sources", "add", "down", "--name", "box", *options)
    assert (ran.code, ran.out) == (2, "")
    assert f"{path.parent} holds the files of {'box' if notes == 'whole' else 'an unknown machine'}" in ran.err
    assert "--name" in ran.err
    assert [source.name for source in sources()] == ["local"]
    assert state(data_dir() / "remotes") == before and added.connections() == connections


def test_W09_a_host_whose_key_is_not_known_is_refused(box: Box) -> None:
    ran = clew("sources", "add", "stranger")
    assert ran.code == 7
    assert "Host key verification failed." in ran.err
    assert "Connect once by hand" in ran.err
    assert box.connections() == 0


def test_a_key_that_is_not_accepted(box: Box) -> None:
    (box.folder / "user.pub").write_text("")
    ran = clew("sources", "add", "box")
    assert ran.code == 7
    assert "Permission denied (publickey). No password is asked for here" in ran.err


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox", "zsh", "fish", "tcsh"])
def test_any_login_shell_and_what_it_sets(box: Box, shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    if shell == "busybox":
        link = box.bin / "sh-of-busybox"
        link.write_text(f'#!/bin/sh\nexec {found} sh "$@"\n')
        link.chmod(0o755)
        found = str(link)
    box.shell = found
    box.on_login("echo Welcome to the box.")
    setting = "setenv CLAUDE_CONFIG_DIR {}" if shell == "tcsh" else "export CLAUDE_CONFIG_DIR={}"
    files = {"fish": ".config/fish/config.fish", "tcsh": ".tcshrc", "zsh": ".zprofile"}
    put(box, files.get(shell, ".profile"), f"echo Good morning.\n{setting.format('~/elsewhere')}\n".encode())
    put(box, f"elsewhere/projects/-p/{SESSION}.jsonl", line("u1"))
    assert clew("sources", "add", "box").code == 0
    rows = clew("list", "--agent", "claude-code", "--json").json
    assert [row["id"] for row in rows] == [SESSION]
    assert rows[0]["source"]["path"] == str(box.home / "elsewhere" / "projects" / "-p" / f"{SESSION}.jsonl")


@pytest.mark.slow
def test_variables_of_the_host_lead_outside_its_home(box: Box) -> None:
    config = box.folder / "srv"
    box.on_login(f"CLAUDE_CONFIG_DIR='{config}'; export CLAUDE_CONFIG_DIR")
    shutil.move(box.home / ".claude", config)
    assert clew("sources", "add", "box").code == 0
    (source,) = {row["source"]["path"] for row in clew("list", "--json").json if row["id"] == FORKED}
    assert source.startswith(f"{config}/projects/")


@pytest.mark.slow
def test_our_own_variables_do_not_hold_over_there(box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert clew("sources", "add", "box").code == 0
    assert FORKED in {row["id"] for row in clew("list", "--json").json}


def tools(box: Box, *without: str) -> Path:
    """A folder with the tools of a small system."""
    folder = box.folder / "small"
    folder.mkdir()
    for name in "sh dd env sed tr find stat date head tail sha256sum cat".split():
        found = shutil.which(name)
        if name not in without and found is not None:
            (folder / name).symlink_to(found)
    box.on_login(f"PATH='{folder}'; export PATH")
    return folder


@pytest.mark.slow
def test_without_a_digest_a_file_that_grew_comes_whole(box: Box) -> None:
    tools(box, "sha256sum")
    name = f".claude/projects/-p/{SESSION}.jsonl"
    path = put(box, name, line("u1"))
    assert clew("sources", "add", "box").code == 0
    put(box, name, line("u1") * 2, LONG_AGO + 5)
    assert fetched()["received"] == 2 * len(line("u1"))
    assert copied(box, name).read_bytes() == path.read_bytes()


def test_the_tools_of_a_small_system(box: Box) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    folder = tools(box)
    for tool in list(folder.iterdir()):
        tool.unlink()
        tool.symlink_to(busybox)
    name = f".claude/projects/-p/{SESSION}.jsonl"
    put(box, name, line("u1", "x" * 100_000))
    assert clew("sources", "add", "box").code == 0
    assert len(clew("list", "--json").json) == box.sessions()
    put(box, name, line("u1", "x" * 100_000) + line("u2"), LONG_AGO + 5)
    assert fetched()["received"] == len(line("u2"))
    assert copied(box, name).read_bytes() == (box.home / name).read_bytes()


@pytest.mark.slow
def test_the_other_kind_of_stat(box: Box) -> None:
    folder = tools(box, "stat")
    (folder / "stat").write_text(
        "#!/bin/sh\n[ \"$1 $2\" = '-f %z %m %N' ] || exit 1\nshift 2\n"
        f"exec {shutil.which('stat')} -c '%s %Y %n' \"$@\"\n"
    )
    (folder / "stat").chmod(0o755)
    assert clew("sources", "add", "box").code == 0
    assert len(clew("list", "--json").json) == box.sessions()


def test_a_host_without_a_shell_for_it(box: Box) -> None:
    box.on_login("echo 'sh: not found here' >&2; exit 127")
    ran = clew("sources", "add", "box")
    assert ran.code == 7
    assert ran.err.startswith("clew: box: sh: not found here.")


@pytest.mark.slow
def test_a_host_that_falls_silent(box: Box, tmp_path: Path) -> None:
    box.on_login("exec sleep 20")
    with pytest.raises(RemoteFailed, match=r"box: no answer for 1 seconds\."):
        fetch(Target("box"), Mirror(tmp_path / "m", "box"), library.Host.local().now(), idle=1)


@pytest.mark.slow
def test_an_interrupt_ends_a_visit(box: Box) -> None:
    box.on_login("sleep 30")
    process = subprocess.Popen([*COMMAND, "sources", "add", "box"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while box.connections() == 0:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=10)
    assert (process.returncode, out, said.strip()) == (130, b"", b"clew: interrupted")
    assert [source.name for source in sources()] == ["local"]


@pytest.mark.slow
def test_a_connection_that_breaks_keeps_what_came(added: Box) -> None:
    for number in range(20):
        put(added, f".claude/projects/-p/{number:02}.jsonl", line(f"u{number:02}", "x" * 100_000))
    folder = tools(added)
    count = added.folder / "count"
    (folder / "head").unlink()
    (folder / "head").write_text(
        f"#!/bin/sh\necho x >>'{count}'\n"
        f'[ "$({shutil.which("wc")} -l <\'{count}\')" -lt 8 ] || kill -9 $PPID\nexec {shutil.which("head")} "$@"\n'
    )
    (folder / "head").chmod(0o755)
    assert clew("sources", "fetch").code == 7
    came = [path for path in copies().rglob("[0-9][0-9].jsonl") if path.is_file()]
    assert 0 < len(came) < 20
    added.on_login()
    assert fetched()["received"] == (20 - len(came)) * len(line("u00", "x" * 100_000))


@pytest.mark.slow
def test_W09_names_over_there_do_nothing(added: Box, tmp_path: Path) -> None:
    mark = added.home / "executed"
    kept = ["two  spaces ", "$(touch executed)", "`touch executed`", "; touch executed;", "-n", "é ü 漢", "'", "&x"]
    refused = ["back\\slash", 'quo"te', "co:lon", "question?", "bell\a"]
    for name in (*kept, *refused, "line\nend", "\udcff"):
        put(added, f".claude/projects/-p/{name}.jsonl", line("u1"))
    visit = clew("sources", "fetch")
    assert visit.code == 0
    assert visit.err.count("its name could lead elsewhere") == len(refused) + 1
    copies_of = {path.stem for path in copied(added, ".claude/projects/-p").iterdir()}
    assert copies_of == set(kept)
    assert not mark.exists()


@pytest.mark.slow
def test_W09_links_are_not_followed(added: Box) -> None:
    secret = added.folder / "secret.jsonl"
    secret.write_bytes(line("u1"))
    outside = added.folder / "outside"
    outside.mkdir()
    (outside / "inner.jsonl").write_bytes(line("u1"))
    folder = added.home / ".claude" / "projects" / "-p"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(secret)
    (folder / "folder").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.jsonl")
    visit = fetched()
    assert visit["received"] == 0
    assert not copied(added, ".claude/projects/-p").exists()


@pytest.mark.slow
def test_keys_are_never_copied(added: Box) -> None:
    for name in "auth.json .credentials.json oauth_creds.json .env .env.local id_ed25519 server.pem".split():
        put(added, f".claude/projects/-p/{name}", b"secret")
    assert fetched()["received"] == 0
    assert not copied(added, ".claude/projects/-p").exists()


@pytest.mark.slow
def test_what_agents_keep_beside_their_sessions_comes_too(added: Box) -> None:
    wanted = (".codex/session_index.jsonl", ".gemini/projects.json")
    for name in (
        *wanted,
        ".codex/auth.json",
        ".codex/config.toml",
        ".gemini/oauth_creds.json",
        ".claude/settings.json",
    ):
        put(added, name, b"{}\n", LONG_AGO + 5)
    fetched()
    came = {path.relative_to(copied(added, "")).as_posix() for path in copies().rglob("*") if path.is_file()}
    assert set(wanted) <= came
    assert not came & {".codex/auth.json", ".codex/config.toml", ".gemini/oauth_creds.json", ".claude/settings.json"}


@pytest.mark.slow
def test_many_sessions_come_in_one_connection(box: Box) -> None:
    for number in range(400):
        put(box, f".claude/projects/-p{number % 7}/{number:03}.jsonl", line(f"u{number}"))
    assert clew("sources", "add", "box").code == 0
    assert box.connections() == 1
    assert len(list(copies().rglob("[0-9]*.jsonl"))) >= 400


@pytest.mark.slow
def test_choosing_sources(added: Box, home: Path) -> None:
    shutil.copytree(added.home, home, dirs_exist_ok=True)
    both = clew("show", FORKED)
    assert both.code == 2
    assert "is ambiguous" in both.err
    assert clew("show", FORKED, "--source", "box").code == 0
    assert clew("--source", "local", "show", FORKED).code == 0

    def hosts(ran: Ran) -> set[str | None]:
        return {row["source"]["host"] for row in ran.json}

    assert hosts(clew("list", "--json")) == {None, "box"}
    assert hosts(clew("list", "--json", "--source", "box")) == {"box"}
    assert hosts(clew("--source", "BOX", "list", "--json")) == {"box"}
    assert hosts(clew("list", "--json", "--source", "box", "--source", "local")) == {None, "box"}
    assert hosts(clew("list", "--json", "--home", str(home))) == {None}
    assert hosts(clew("list", "--json", "--home", str(home), "--source", "box")) == {None, "box"}
    unknown = clew("list", "--source", "nowhere")
    assert unknown.code == 2
    assert unknown.err == "clew: unknown source 'nowhere'; known: local, box\n"


@pytest.mark.slow
def test_a_source_is_known_by_its_name(box: Box) -> None:
    assert clew("sources", "add", "box", "--name", "attic").code == 0
    (attic,) = chosen(sources(), ["attic"])
    assert (attic.kind, attic.where, attic.host_name) == ("ssh", "box", "box")
    assert clew("sources", "add", "box", "--name", "Attic").code == 2
    row = clew("sources", "--json").json[1]
    assert (row["name"], row["type"], row["host"], row["gone"]) == ("attic", "remote", "box", 0)
    assert row["files"] >= box.sessions()


def test_a_full_address(box: Box) -> None:
    ran = clew("sources", "add", f"ssh://127.0.0.1:{box.port}", "--no-fetch")
    assert (ran.code, ran.err) == (0, "127.0.0.1: added\n")
    assert clew("sources", "fetch").code == 7  # the configuration has no key for it
    assert box.connections() == 0
