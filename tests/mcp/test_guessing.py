"""What is masked cannot be found out by searching: a right guess and a wrong one get the same answers."""

import random
import re
import string
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.client import Client, ToolFailed, connect
from tests.mcp.sessions import write_session


def github_token(seed: int) -> str:
    return "ghp_" + "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=36))


TOKEN, OTHER = github_token(1), github_token(2)
LENGTHS = (5, 12, 40)

GUESSES: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "{guess}*"}),
    ("search", {"query": '"lantern {guess}"*'}),
    ("search", {"query": "lantern NOT {guess}*"}),
    ("search", {"query": "lantern OR {guess}*"}),
    ("search", {"query": "(lantern OR moth) AND ({guess}* OR wick)"}),
    ("search", {"query": "NOT {guess}*", "limit": 100}),
    ("search", {"query": "{guess}", "mode": "substring"}),
    ("search", {"query": "{regex}", "mode": "regex"}),
    ("search", {"query": "lantern ({regex}|.REDACTED)", "mode": "regex"}),
    ("search", {"query": "lantern|{regex}", "mode": "regex"}),
    ("search", {"query": "lantern", "text": "{guess}"}),
    ("search", {"query": "lantern", "file": "{guess}"}),
    ("search", {"query": "lantern", "project": "{guess}"}),
    ("list_sessions", {"text": "{guess}"}),
    ("list_sessions", {"file": "{guess}"}),
    ("list_sessions", {"project": "{guess}"}),
    ("list_sessions", {"project": "{encoded}"}),
    ("list_sessions", {"branch": "{guess}"}),
    ("stats", {"project": "{guess}"}),
    ("stats", {"branch": "{guess}", "by": "day"}),
    ("file_at", {"session": "s1#3", "path": "/p/{guess}/wick.txt"}),
    ("show", {"session": "{guess}"}),
    ("show", {"session": "Carry {guess}"}),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": f"/p/{TOKEN}/wick.txt"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"lantern {TOKEN} burns"}
    for number in range(4):
        write_session(
            home,
            ("user", f"Carry {TOKEN} in the lantern" if number else f"lantern {TOKEN}"),
            ("assistant", [{"type": "text", "text": "the lantern and the moth"}, call]),
            ("user", [result]),
            session=f"s{number}",
            cwd=f"/p/{TOKEN}" if number % 2 else "/p/plain",
            branch=f"fix/{TOKEN}" if number % 2 else "main",
        )
    write_session(home, ("user", "a lantern without anything"), session="s9")
    with connect(home) as connected:
        yield connected


def answer(client: Client, tool: str, arguments: dict[str, Any], guess: str) -> str:
    texts = {"guess": guess, "regex": f"(?-i:{re.escape(guess)})", "encoded": guess.replace("_", "-")}
    given = {name: value.format(**texts) if isinstance(value, str) else value for name, value in arguments.items()}
    try:
        found = client.text(tool, **given)
    except ToolFailed as error:
        found = str(error)
    return found.replace(guess, "GUESS").replace(texts["encoded"], "GUESS")


def test_a_guess_of_a_whole_password_gets_no_tag(tmp_path: Path) -> None:
    password = f"password: {TOKEN[10:16]}7x9q"
    write_session(tmp_path, ("user", f"the {password} of the lantern"))
    with connect(tmp_path) as client:
        assert "7x9q" not in client.text("search", query="lantern")
        right, wrong = (answer(client, "show", {"session": "{guess}"}, text) for text in (password, f"{password}x"))
    assert right == wrong


def test_the_masked_name_of_a_file_leads_to_it(client: Client) -> None:
    (path,) = {row["path"] for row in client.results("files", session="s1", changes=False)}
    assert TOKEN not in path and path.endswith("/wick.txt")
    assert client.call("file_at", session="s1#3", path=path)["path"] == path


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("tool", "arguments"), GUESSES, ids=str)
def test_a_right_guess_looks_like_a_wrong_one(
    client: Client, tool: str, arguments: dict[str, Any], length: int
) -> None:
    right = answer(client, tool, arguments, TOKEN[:length])
    assert right == answer(client, tool, arguments, OTHER[:length])
    assert TOKEN[4:12] not in right


def test_what_is_shown_is_still_found(client: Client) -> None:
    assert client.call("search", query="lantern", places=["prompts"])["total"] == 5
    assert client.call("search", query="moth NOT wick")["total"] == 4
    assert client.call("search", query="antern b", mode="substring")["total"] == 0
    assert client.call("search", query="burn", mode="substring")["total"] == 4
    assert len(client.results("list_sessions", project="plain")) == 2
    assert len(client.results("list_sessions", file="wick.txt")) == 4
    assert len(client.results("search", query="lantern", places=["prompts"], limit=2)) == 5


def test_everything_is_found_where_nothing_is_masked(tmp_path: Path) -> None:
    write_session(tmp_path, ("user", f"Carry {TOKEN} in the lantern"))
    with connect(tmp_path, "--redact", "none") as client:
        assert client.call("search", query=TOKEN[:12], mode="substring", places=["prompts"])["total"] == 1
