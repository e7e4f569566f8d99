"""A home that is a repository can hold links: nothing is written, changed or removed through them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.errors import PathRefused, TargetRefused
from clew.host import data_dir
from clew.store import Store
from tests.cli.running import clew

SESSION = "aaaaaaaa-0000-4000-8000-0000000000a1"
SECRET = "ghp_" + "NqVwYS81VP7Hb1DX8pPd5khxE3pyIg3sJb3R"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's that no command names."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "keep.json").write_text('{"kept": 1}')
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A home with one session of Claude Code."""
    folder = tmp_path / "repository"
    line: dict[str, Any] = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": SESSION, "cwd": "/w"}
    line |= {"message": {"role": "user", "content": f"$(touch x) {SECRET}"}, "timestamp": "2026-10-01T08:00:00.000Z"}
    path = folder / ".claude/projects/-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line) + "\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def linked(place: Path, target: Path) -> None:
    """Put a link to a folder or file in a place; a folder that is there is moved to the target."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        shutil.copytree(place, target, dirs_exist_ok=True)
        shutil.rmtree(place)
    place.symlink_to(target)


@pytest.mark.parametrize(
    ("agent", "link"),
    [
        ("codex", ".codex"),
        ("codex", ".codex/sessions"),
        ("codex", ".codex/sessions/2026"),
        ("gemini", ".gemini"),
        ("gemini", ".gemini/tmp"),
        ("gemini", ".gemini/history"),
        ("sage-agent", ".sage"),
        ("sage-agent", ".sage/sessions"),
        ("sage-emacs", ".emacs.d"),
        ("sage-emacs", ".emacs.d/sage/projects/-w"),
    ],
)
def test_a_conversion_is_not_written_through_a_link(repository: Path, victim: Path, agent: str, link: str) -> None:
    linked(repository / link, victim)
    before = contents(victim)
    for words in (
        ("convert", SESSION, "--to", agent, "--home", str(repository), "--allow-loss"),
        ("resume", SESSION, "--in", agent, "--print", "--allow-loss"),
        ("resume", SESSION, "--in", agent, "--json", "--allow-loss"),
    ):
        done = clew("--home", repository, *words)
        assert done.code == PathRefused.exit_code, done
    assert contents(victim) == before


@pytest.mark.parametrize(
    ("agent", "link"), [("codex", ".codex/session_index.jsonl"), ("gemini", ".gemini/projects.json")]
)
def test_files_that_name_a_session_are_not_written_through_a_link(
    repository: Path, victim: Path, agent: str, link: str
) -> None:
    linked(repository / link, victim / "keep.json")
    done = clew("--home", repository, "convert", SESSION, "--to", agent, "--home", str(repository), "--allow-loss")
    assert done.code == PathRefused.exit_code, done
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}


@pytest.mark.parametrize("link", [".claude", ".claude/projects", ".claude/projects/-w"])
def test_a_document_is_not_imported_through_a_link(repository: Path, victim: Path, tmp_path: Path, link: str) -> None:
    document = tmp_path / "document.json"
    assert clew("--home", repository, "export", SESSION, "--to", "json", "-o", document).code == 0
    home = tmp_path / "other"
    linked(home / link, victim)
    assert clew("import", document, "-o", home).code == PathRefused.exit_code
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}


@pytest.mark.parametrize("link", [".claude", ".claude/projects", ".claude/projects/-w"])
def test_a_session_behind_a_link_is_not_scrubbed(repository: Path, victim: Path, link: str) -> None:
    linked(repository / link, victim)
    before = contents(victim)
    done = clew("--home", repository, "redact", "scrub", "--agent", "claude-code", "--write")
    assert contents(victim) == before
    assert done.code in (0, 1)


@pytest.mark.parametrize("name", ["history", ""])
def test_a_migration_does_not_follow_links(tmp_path: Path, victim: Path, name: str) -> None:
    projects = tmp_path / "repository/.emacs.d/sage/projects"
    (projects / "w.x/history").mkdir(parents=True)
    (projects / "w-x").mkdir()
    line = json.dumps({"role": "user", "content": "ring", "timestamp": "2026-10-01T08:00:00Z"}) + "\n"
    for folder in ("w.x", "w-x"):
        (projects / folder / "conversation.jsonl").write_text(line)
    (projects / "w.x/history/20260101-000000.jsonl").write_text(line)
    (projects / "w.x/history/authorized_keys").write_text("ssh-ed25519 AAAA attacker")
    if name:
        (projects / "w-x" / name).symlink_to(victim)
    else:
        shutil.rmtree(projects / "w-x")
        (projects / "w-x").symlink_to(victim)
    clew("migrate", tmp_path / "repository")
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}
    assert not list((tmp_path / "repository").rglob("w-x/**/authorized_keys"))


@pytest.mark.parametrize(
    "words",
    [("erase", "one", "--write"), ("redact", "scrub", "one", "--write"), ("migrate", "."), ("undo", "one")],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("link", [".sage", ".sage/sessions"])
def test_the_store_behind_a_link_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], link: str
) -> None:
    with Store(tmp_path / "mine").session("one") as session:
        session.user(f"key {SECRET}", uuid="q1")
    (session.folder / "metadata.json").unlink()
    before = contents(tmp_path / "mine")
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / link).parent.mkdir(exist_ok=True)
    (repository / link).symlink_to(tmp_path / "mine" / link)
    monkeypatch.chdir(repository)
    clew("--home", ".", *words)
    assert contents(tmp_path / "mine") == before


@pytest.mark.parametrize(
    "words",
    [
        ("erase", ".sage/sessions/one", "--write"),
        ("erase", ".sage/sessions/one/messages.jsonl", "#1", "--write"),
        ("redact", "scrub", ".sage/sessions/one", "--write"),
        ("redact", "scrub", ".sage/sessions/one/messages.jsonl", "--write"),
        ("redact", "scrub", ".sage", "--write"),
        ("redact", "scrub", ".claude/projects/-w", "--write"),
        ("redact", "scrub", f".claude/projects/-w/{SESSION}.jsonl", "--write"),
        ("undo", ".sage/sessions/one/messages.jsonl", "--to", "#1"),
        ("branch", ".sage/sessions/one/messages.jsonl", "main", "--name", "x"),
        ("migrate", ".sage/sessions"),
        ("doctor", ".sage", "--fix"),
    ],
    ids=lambda words: "-".join(words[:3]),
)
@pytest.mark.parametrize("home", [(), ("--home", ".")], ids=["", "home"])
def test_a_session_named_by_its_path_is_not_written_through_a_link(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], home: tuple[str, ...]
) -> None:
    """The user names a path in a repository; only the repository knows that its agent folders are links."""
    mine = tmp_path / "mine"
    shutil.copytree(repository / ".claude", mine / ".claude")
    with Store(mine).session("one") as session:
        session.user(f"key {SECRET}", uuid="q1")
        session.assistant("done")
    (session.folder / "metadata.json").unlink()
    shutil.rmtree(repository / ".claude/projects")
    (repository / ".claude/projects").symlink_to(mine / ".claude/projects")
    (repository / ".sage").symlink_to(mine / ".sage")
    before = contents(mine)
    monkeypatch.chdir(repository)
    assert clew(*home, *words).code != 0
    assert contents(mine) == before


def test_a_session_named_by_the_path_that_a_link_leads_to_is_changed(repository: Path, tmp_path: Path) -> None:
    linked(repository / ".claude/projects", tmp_path / "mine")
    assert clew("redact", "scrub", tmp_path / "mine/-w" / f"{SESSION}.jsonl", "--write").code == 0
    assert SECRET.encode() not in contents(tmp_path / "mine")[f"-w/{SESSION}.jsonl"]


@pytest.mark.parametrize(
    "words",
    [
        ("redact", "scrub", SESSION, "--write"),
        ("convert", SESSION, "--to", "codex", "--allow-loss", "--home"),
        ("resume", SESSION, "--in", "codex", "--json", "--allow-loss"),
        ("migrate",),
    ],
    ids=lambda words: words[0],
)
def test_copies_of_other_machines_are_only_read(repository: Path, words: tuple[str, ...]) -> None:
    home = data_dir() / "remotes/box/files/home/ann"
    shutil.copytree(repository, home)
    before = contents(home)
    place = [str(home)] if words[-1] == "--home" or words == ("migrate",) else []
    done = clew("--home", home, *words, *place)
    assert contents(home) == before
    assert done.code in (0, 1, TargetRefused.exit_code)


def test_links_in_the_users_own_home_are_followed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "me"
    linked(home / ".codex", tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = clew("--home", repository, "convert", SESSION, "--to", "codex", "--home", str(home), "--allow-loss")
    assert done.code == 0, done
    assert list((tmp_path / "elsewhere").rglob("rollout-*.jsonl"))


@pytest.mark.parametrize("name", ["packs", "index.sqlite", "lock"])
def test_an_archive_is_not_written_through_a_link(repository: Path, victim: Path, tmp_path: Path, name: str) -> None:
    linked(tmp_path / "archive" / name, victim)
    assert clew("--home", repository, "archive", "--archive", tmp_path / "archive").code == PathRefused.exit_code
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("index.html", ("export", "--site")),
        ("index.html", ("export", "--force", "--site")),
        (f"claude-code-{SESSION}.md", ("export", "--to", "markdown", "-o")),
        ("sessions", ("export", "--layout", "date", "-o")),
    ],
)
def test_an_export_is_not_written_through_a_link(
    repository: Path, victim: Path, tmp_path: Path, link: str, words: tuple[str, ...]
) -> None:
    target = victim if link == "sessions" else victim / "new"
    linked(tmp_path / "out" / link, target)
    clew("--home", repository, *words, tmp_path / "out")
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}


def test_masked_files_are_not_written_through_a_link(victim: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("plain\n")
    linked(tmp_path / "out" / "in.txt", victim / "new")
    assert clew("redact", tmp_path / "in.txt", "-o", tmp_path / "out").code == PathRefused.exit_code
    assert contents(victim) == {"keep.json": b'{"kept": 1}'}


def test_a_demo_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "clew-demo").symlink_to(tmp_path / "empty")
    assert clew("demo", tmp_path / "clew-demo").code == 2
    assert list((tmp_path / "empty").iterdir()) == []
