"""Names of projects on the settings page: given, suggested, removed, and shown on other pages."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from clew import project_names
from clew.agents.gemini import project_registry
from clew.agents.gemini.project_registry import hash_of
from clew.catalog import project_suggestions
from clew.catalog.database import DATABASE
from clew.catalog.project_name_rows import update_project_names
from clew.catalog.project_suggestions import ProjectFolder, suggestions
from clew.host import data_dir
from clew.io.paths import encode_claude
from clew.sources import moved_projects
from clew.web.pages import settings
from tests.cli.running import clew
from tests.unit.samples import claude_line
from tests.web.shown import Shown, named, shown, words

REPOSITORY = "/home/ada/tide"
LOST = "/home/ada/lost"
SUGGESTIONS = "/settings/project-suggestions"


def write_session(home: Path, identity: str, folder: str) -> None:
    path = home / ".claude" / "projects" / encode_claude(folder) / f"{identity}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = claude_line("user", f"u-{identity}", None, "When is high water", cwd=folder)
    path.write_text(json.dumps({**line, "sessionId": identity}) + "\n")


def write_gemini(home: Path, folder: str) -> str:
    """A session of a project that is only known by its hash."""
    name = sha256(folder.encode()).hexdigest()
    chats = home / ".gemini" / "tmp" / name / "chats"
    chats.mkdir(parents=True)
    times = {"startTime": "2026-11-01T10:00:00.000Z", "lastUpdated": "2026-11-01T10:01:00.000Z"}
    message = {"id": "m1", "timestamp": "2026-11-01T10:00:00.000Z", "type": "user", "content": "Hello"}
    chat = {"sessionId": "0f0e0d0c-0000-4000-8000-000000000001", "projectHash": name, **times, "messages": [message]}
    (chats / "session-2026-11-01T10-00-0f0e0d0c.json").write_text(json.dumps(chat))
    return name


@pytest.fixture
def home(home: Path) -> Path:
    write_session(home, "main", REPOSITORY)
    write_session(home, "calm", f"{REPOSITORY}/.claude/worktrees/calm-otter")
    write_session(home, "bold", f"{REPOSITORY}/.claude/worktrees/bold-heron")
    return home


@pytest.fixture
def app(home: Path, tmp_path: Path) -> Iterator[Shown]:
    with shown(home, tmp_path / "catalog") as running:
        yield running


def buttons(page: Element) -> dict[str, Any]:
    """What each button posts, by its text."""
    found = [button for button in named(page, "button") if button.get("data-names")]
    return {words(button): json.loads(button.get("data-names", "")) for button in found}


def post(app: Shown, body: object, status: int = 200) -> dict[str, Any]:
    answer = app.post("/settings/projects", body)
    assert answer.status == status, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


def project_of(app: Shown, identity: str) -> str:
    return str(app.catalog_row(f"SELECT project FROM session WHERE native_id = '{identity}'")[0])


def test_worktrees_are_suggested_merged_and_separated(app: Shown) -> None:
    page = app.part(SUGGESTIONS)
    assert "tide for bold-heron, calm-otter worktrees of /home/ada/tide · 2 sessions" in words(page)
    body = buttons(page)["Merge as tide"]
    assert body == {"names": {f"{REPOSITORY}/.claude/worktrees/*": "tide"}}
    assert post(app, body) == {"applied": True}
    assert {project_of(app, identity) for identity in ("main", "calm", "bold")} == {"tide"}
    assert "Suggested" not in words(app.part(SUGGESTIONS))
    assert words(named(app.page("/sessions?project=tide"), "span", "about")).count("· tide ·") == 3
    (removal,) = buttons(app.part("/settings/projects")).values()
    post(app, removal)
    assert project_of(app, "calm") == "calm-otter"
    assert project_names.load() == {}


def test_a_hash_is_named_after_the_folder_that_has_it(home: Path, tmp_path: Path) -> None:
    name = write_gemini(home, LOST)
    write_session(home, "other", f"{LOST}/src")
    with shown(home, tmp_path / "catalog") as app:
        page = app.part(SUGGESTIONS)
        assert f"the hash of {LOST}" in words(page)
        assert buttons(page)["Use as lost"] == {"names": {name: "lost"}}


def test_a_hash_that_nothing_explains_can_be_named(home: Path, tmp_path: Path) -> None:
    name = write_gemini(home, LOST)
    with shown(home, tmp_path / "catalog") as app:
        page = app.part(SUGGESTIONS)
        assert f"{name[:12]} 1 session, folder unknown" in words(page)
        (button,) = [each for each in named(page, "button") if each.get("data-project")]
        assert words(button) == f"Name {name[:12]} …"
        post(app, {"project": json.loads(button.get("data-project", "")), "name": "Lost"})
        assert "folder unknown" not in words(app.part(SUGGESTIONS))


def test_worktrees_that_git_knows_are_suggested(home: Path, tmp_path: Path) -> None:
    repository, worktree = tmp_path / "moon", tmp_path / "moon-fix"
    git = ["git", "-C", str(repository), "-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True)
    write_session(home, "fix", str(worktree))
    with shown(home, tmp_path / "catalog") as app:
        page = app.part(SUGGESTIONS)
        assert f"worktrees of {repository.resolve()}" in words(page)
        assert buttons(page)["Use as moon"] == {"names": {str(worktree): "moon"}}


def test_suggestions_are_looked_for_when_they_are_shown(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()

    def folders(db: object) -> list[ProjectFolder]:
        asked.append(db)
        return []

    monkeypatch.setattr(settings, "project_folders", folders)
    app.page("/settings")
    app.part("/settings/projects")
    assert asked == []
    app.part(SUGGESTIONS)
    assert len(asked) == 1


def test_each_folder_is_hashed_once_and_few_are_looked_for_on_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed, looked_at = list[str](), list[Path]()

    def counted_hash(path: str) -> str:
        hashed.append(path)
        return hash_of(path)

    monkeypatch.setattr(project_registry, "hash_of", counted_hash)
    monkeypatch.setattr(project_suggestions, "same_folder_in_main_worktree", looked_at.append)
    monkeypatch.setattr(project_suggestions, "MAX_FOLDERS_ON_DISK", 3)
    names = [f"{number:064x}" for number in range(5)] + [hash_of(LOST)]
    known = ["lost/src", *(f"p{number}" for number in range(9))]
    folders = [ProjectFolder("gemini", name, name, name, True, 1) for name in names]
    folders += [ProjectFolder("claude-code", f"/home/ada/{name}", name, name, True, 1) for name in known]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE session (id, header)")
    db.execute("CREATE TABLE change (id, path)")
    (found,) = suggestions(db, folders, {})
    db.close()
    assert (found.name, found.keys) == ("lost", (hash_of(LOST),))
    assert len(hashed) == len(set(hashed)) > 9
    assert len(looked_at) <= 3


def test_a_name_that_is_typed(app: Shown) -> None:
    assert post(app, {"project": f" {REPOSITORY}/ ", "name": " Tide  tables "}) == {"applied": True}
    assert project_names.load() == {REPOSITORY: "Tide tables"}
    assert project_of(app, "main") == "Tide tables"
    assert "Merge as Tide tables" in buttons(app.part(SUGGESTIONS))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"names": {"": "x"}}, "'' cannot be a project"),
        ({"project": " ", "name": "x"}, "'' cannot be a project"),
        ({"project": "x", "name": " "}, "a project name needs at least one character"),
        ({"project": "x", "name": "a\u202eb"}, "a project name has no control or invisible characters"),
        ({"remove": ["x"]}, "x: no name was given to this project"),
        ({}, "a project name needs"),
    ],
)
def test_what_cannot_be_done_is_explained(app: Shown, body: object, reason: str) -> None:
    assert reason in post(app, body, 400)["error"]
    assert not project_names.names_path().exists()


def test_a_folder_is_found_under_every_path_that_sessions_know(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `clew sources name`: by the home, by a link, by the folder where it was before, and for all below it."""
    new = tmp_path / "new"
    new.mkdir()
    (tmp_path / "link").symlink_to(new)
    moved_projects.add(REPOSITORY, str(new))
    monkeypatch.setenv("HOME", str(tmp_path))
    with shown(home, tmp_path / "catalog") as app:
        for typed in (str(new), "~/new", "~/link", REPOSITORY):
            post(app, {"project": typed, "name": "Tide tables"})
            assert project_of(app, "main") == "Tide tables", typed
            assert clew("sources", "unname", typed).code == 0
            assert project_names.load() == {}, typed
        post(app, {"project": "~/link/.claude/worktrees/*", "name": "Springs"})
        assert project_of(app, "calm") == project_of(app, "bold") == "Springs"


def test_the_folder_of_a_windows_machine(app: Shown) -> None:
    post(app, {"project": "c:\\ada\\tide\\", "name": "Tide"})
    assert project_names.load() == {"C:/ada/tide": "Tide"}
    assert project_names.name_of("c:\\ada\\tide", "tide", project_names.load()) == "Tide"


def test_a_folder_that_cannot_be_written_is_explained(app: Shown) -> None:
    data_dir().parent.mkdir(parents=True, exist_ok=True)
    data_dir().write_text("a file")
    assert "Not a directory" in post(app, {"names": {"x": "y"}}, 400)["error"]
    answer = app.post("/settings", {"changes": {"theme": "dark"}})
    assert answer.status == 400 and b"settings.json" in answer.body


def test_a_broken_file_is_reported_and_kept(app: Shown) -> None:
    path = project_names.names_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{")
    assert "correct or delete the file" in words(app.page("/settings"))
    assert "correct or delete the file" in post(app, {"names": {"x": "y"}}, 400)["error"]
    assert path.read_text() == "{"


def test_names_with_hostile_text_are_text(app: Shown) -> None:
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    post(app, {"names": {REPOSITORY: hostile, hostile: "x' onclick='alert(1)"}})
    for path in ("/settings", "/sessions", "/usage?by=project", "/search?q=water"):
        assert hostile in words(app.page(path)) or path.startswith("/usage")
    removals = [body["remove"][0] for body in buttons(app.page("/settings")).values() if "remove" in body]
    assert set(removals) == {REPOSITORY, hostile}


def test_a_masked_page_names_projects_that_it_does_not_show(home: Path, tmp_path: Path) -> None:
    with shown(home, tmp_path / "catalog", profile="all") as app:
        page = app.part(SUGGESTIONS)
        for path in ("/settings", SUGGESTIONS):
            assert "/home/ada" not in app.get(path).body.decode()
        (body,) = buttons(page).values()
        post(app, body)
        assert project_names.load() == {f"{REPOSITORY}/.claude/worktrees/*": "tide"}


def test_a_file_of_names_that_breaks_during_a_sync_changes_nothing(app: Shown) -> None:
    project_names.add({REPOSITORY: "Tide tables"})
    with sqlite3.connect(app.context.folder / DATABASE) as db:
        update_project_names(db)
        project_names.names_path().write_text("{")
        update_project_names(db)
    db.close()
    assert project_of(app, "main") == "Tide tables"
