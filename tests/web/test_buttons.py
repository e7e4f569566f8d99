"""What the buttons of a session fetch and post."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown

SESSIONS = (
    "claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b",
    "claude-code/f005c7db-1dcc-4692-bc16-77f2521cfb4b",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buttons") / "home"
    write_small_demo(folder)
    return folder


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[Shown]:
    with shown(home, home.parent / "catalog") as running:
        yield running


@pytest.mark.parametrize("session", SESSIONS)
def test_copied_messages_are_those_of_the_markdown_export(home: Path, app: Shown, session: str) -> None:
    reference = session.replace("/", ":")
    exported = clew("--home", home, "export", reference, "--format", "markdown", "--redact", "none").out
    page = app.get(f"/session/{session}").body.decode()
    numbers = [int(number) for number in re.findall(r'<a class="n" href="#m(\d+)"', page)]
    copied = [app.get(f"/session/{session}/message/{number}.md") for number in numbers]
    assert len(copied) > 3 and {answer.headers["content-type"] for answer in copied} == {"text/markdown; charset=utf-8"}
    end = 0
    for answer in copied:
        end = exported.index(answer.body.decode(), end) + len(answer.body.decode())
    assert exported[end:].strip() == ""


def test_a_message_that_does_not_exist_is_not_copied(app: Shown) -> None:
    for number in ("0", "999999"):
        assert app.get(f"/session/{SESSIONS[0]}/message/{number}.md").status == 404
