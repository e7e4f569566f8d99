"""Files that sessions changed: one file is one, however its path was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.web.shown import Shown, links, named, shown, words

FOLDER = "/home/ada/live"
SPELLINGS = ["/home/ada/live/src/bell.py", "src/bell.py", "./src/../src/bell.py", f"file://{FOLDER}/src/bell.py"]
BELL = f"{FOLDER}/src/bell.py"


def session(number: int) -> str:
    return f"0f6a1c52-0000-4000-8000-00000000f{number:03}"


def write_session(home: Path, number: int, path: str, folder: str = FOLDER) -> None:
    """A session that writes one file."""
    given = {"file_path": path, "content": f"ring({number})\n"}
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Write", "input": given}
    told = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "File created"}
    lines = []
    for at, (who, block) in enumerate((("assistant", call), ("user", told)), 1):
        value = {
            "type": who,
            "uuid": f"0f6a1c52-{number:04}-4000-8000-{at:012}",
            "parentUuid": f"0f6a1c52-{number:04}-4000-8000-{at - 1:012}" if at > 1 else None,
            "sessionId": session(number),
            "timestamp": f"2026-11-0{number + 1}T10:00:0{at}.000Z",
            "cwd": folder,
            "message": {"role": who, "content": [block]},
        }
        lines.append(json.dumps(value) + "\n")
    place = home / ".claude" / "projects" / folder.replace("/", "-") / f"{session(number)}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(lines))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("files")
    for number, path in enumerate(SPELLINGS):
        write_session(folder / "home", number, path)
    for number, path in enumerate(("", ".", "/"), len(SPELLINGS)):
        write_session(folder / "home", number, path)
    write_session(folder / "home", 7, "src/bell.py", "/home/ada/other")
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def test_a_file_is_listed_once_however_its_path_was_recorded(app: Shown) -> None:
    rows = [[words(cell) for cell in row] for row in named(app.page("/files"), "tr")]
    paths = {row[0]: row for row in rows[1:]}
    assert set(paths) == {BELL, "/home/ada/other/src/bell.py"}
    assert str(len(SPELLINGS)) in paths[BELL] and str(len(SPELLINGS)) not in paths["/home/ada/other/src/bell.py"]


def test_its_history_has_the_sessions_that_spelled_it_otherwise(app: Shown) -> None:
    found = {href for href in links(app.page(f"/files/history?path={quote(BELL)}")) if href.startswith("/session/")}
    assert {href.partition("#")[0].rpartition("/")[2] for href in found} == {session(n) for n in range(len(SPELLINGS))}
    blame = words(app.page(f"/files/blame?path={quote(BELL)}"))
    assert f"ring({len(SPELLINGS) - 1})" in blame


def test_the_panel_of_a_session_leads_to_the_one_history(app: Shown) -> None:
    for number in range(len(SPELLINGS)):
        panel = app.part(f"/session/claude-code/{session(number)}/panel/files")
        assert f"/files/history?path={quote(BELL, safe='')}" in links(panel)
