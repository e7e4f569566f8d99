"""What a session taught is masked in all that is printed about it: names, folders, models, ids, messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.export.html import carried_document
from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.redact.planted import Planter
from tests.web.shown import shown

PLANT = Planter("session masking")
VALUES = {
    name: PLANT.chars(6) + "7" + PLANT.chars(8) for name in ("title", "branch", "model", "file", "folder", "todo")
}
SESSION = "1a12b43d-8dac-417e-8742-00000000000a"
FOLDER = f"/home/ada/src/shop-{VALUES['folder']}"
FILE = f"{FOLDER}/a-{VALUES['file']}.py"


def session(home: Path) -> Path:
    """A session whose first prompt tells that some words are passwords, which then name things."""
    path = home / ".claude" / "projects" / FOLDER.replace("/", "-") / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    told = "\n".join(f"export X{number}_PASS" + f"WORD={value}" for number, value in enumerate(VALUES.values()))
    todos = [{"content": f"do {VALUES['todo']}", "status": "pending", "activeForm": "doing"}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": told},
        {"role": "assistant", "content": [call("Write", {"file_path": FILE, "content": "x = 1\n"})]},
        {"role": "user", "content": [result("Write")]},
        {"role": "assistant", "content": [call("TodoWrite", {"todos": todos})]},
        {"role": "user", "content": [result("TodoWrite")]},
    ]
    lines = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            message |= {"id": f"msg_{number}", "type": "message", "model": f"claude-{VALUES['model']}"}
            message["usage"] = {"input_tokens": 5, "output_tokens": 7}
        lines.append(
            {
                "parentUuid": uuid(number - 1) if number else None,
                "isSidechain": False,
                "cwd": FOLDER,
                "sessionId": SESSION,
                "version": "2.0.1",
                "gitBranch": f"fix-{VALUES['branch']}",
                "type": message["role"],
                "uuid": uuid(number),
                "timestamp": f"2026-10-20T10:00:0{number}.000Z",
                "message": message,
            }
        )
    create: dict[str, Any] = {
        "type": "create",
        "filePath": FILE,
        "content": "x = 1\n",
        "structuredPatch": [],
        "originalFile": None,
    }
    lines[2]["toolUseResult"] = create
    lines.append({"type": "custom-title", "customTitle": f"about {VALUES['title']}", "sessionId": SESSION})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return home


def uuid(number: int) -> str:
    return f"1a12b43d-8dac-417e-8742-0000000000{number:02d}"


def call(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}01", "name": name, "input": values}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{name}01", "content": "ok"}


def left_in(text: str) -> list[str]:
    return [name for name, value in VALUES.items() if value in text]


@pytest.mark.parametrize(
    "command",
    [
        ["files", SESSION],
        ["files", SESSION, "--json", "--redact", "secrets"],
        ["files", SESSION, "--copies"],
        ["diff", f"{SESSION}#1..5", "--unproved"],
        ["diff", f"{SESSION}#2", "--unproved"],
        ["diff", f"{SESSION}#2", "--json", "--unproved", "--redact", "secrets"],
        ["diff", f"{SESSION}#1..5"],
        ["redact", "scrub", SESSION],
        ["redact", "scrub", SESSION, "--json", "--redact", "secrets"],
        ["restore", f"{SESSION}#5", "--into", "{out}"],
        ["show", SESSION, "--detail", "full"],
        ["graph", SESSION],
        ["todos", SESSION],
    ],
)
def test_commands_about_a_session_know_its_secrets(tmp_path: Path, command: list[str]) -> None:
    home = session(tmp_path / "home")
    (tmp_path / "out").mkdir()
    done = clew("--home", home, *[word.replace("{out}", str(tmp_path / "out")) for word in command])
    assert done.out
    assert left_in(done.out + done.err) == []


def test_pages_of_a_session_know_its_secrets(tmp_path: Path) -> None:
    home = session(tmp_path / "home")
    base = f"/session/claude-code/{SESSION}"
    with shown(home, tmp_path / "catalog", "secrets") as app:
        panels = [f"/panel/{name}" for name in ("files", "todos", "usage", "timeline", "problems", "record?message=1")]
        for place in ("", "/print", "/outline", "/graph", "/window/0", *panels):
            answer = app.get(base + place)
            assert answer.status == 200, place
            assert left_in(answer.body.decode()) == [], place


@pytest.mark.parametrize(
    "command",
    [
        ["branch", "{id}", "#1", "--compare", "#3"],
        ["branch", "{id}", "#1", "--compare", "#3", "--json", "--redact", "secrets"],
        ["erase", "{id}", "#1"],
        ["erase", "{id}", "#1", "--json", "--redact", "secrets"],
        ["undo", "{id}", "--to", "#1", "--dry-run", "--in", "{out}"],
        ["undo", "{id}", "--to", "#1", "--dry-run", "--in", "{out}", "--json", "--redact", "secrets"],
    ],
)
def test_ids_of_messages_are_printed_without_a_token_in_them(tmp_path: Path, command: list[str]) -> None:
    home, token = tmp_path / "home", "gl" + "pat-" + PLANT.chars(20)
    write_small_demo(home)
    (tmp_path / "out").mkdir()
    name = "65e3e58a-4436-41d2-b07c-28cc2b6f97b8"
    (path,) = home.rglob(f"{name}/messages.jsonl")
    lines = path.read_text()
    first = next(record["uuid"] for record in map(json.loads, lines.splitlines()) if record.get("type") == "user")
    path.write_text(lines.replace(first, f"{first}-{token}"))
    words = [word.replace("{id}", name).replace("{out}", str(tmp_path / "out")) for word in command]
    done = clew("--home", home, *words)
    assert done.out, done.err
    assert token not in done.out + done.err


@pytest.mark.parametrize(
    "command",
    [
        ["-o", "{out}", "--redact", "secrets"],
        ["-o", "{out}", "--to", "json", "--redact", "secrets"],
        ["-o", "{out}", "--to", "markdown"],
        ["--site", "{out}"],
        ["-o", "{out}", "--layout", "date", "--redact", "secrets"],
    ],
)
def test_the_files_of_an_export_are_named_without_a_token(tmp_path: Path, command: list[str]) -> None:
    home, token = session(tmp_path / "home"), "gl" + "pat-" + PLANT.chars(20)
    (path,) = home.rglob("*.jsonl")
    for number in (1, 2):
        name = f"{uuid(40 + number)}-{token}"
        path.with_name(f"{name}.jsonl").write_text(path.read_text().replace(SESSION, name))
    out = tmp_path / "out"
    out.mkdir()
    done = clew("--home", home, "export", *[word.replace("{out}", str(out)) for word in command])
    assert done.code == 0, done.err
    files = [file for file in out.rglob("*") if file.is_file()]
    assert len(files) >= 3
    assert not [file for file in files if token in str(file.relative_to(out)) or token in file.read_text()]


def test_a_session_in_which_an_id_and_a_count_are_passwords_is_shown_without_them(tmp_path: Path) -> None:
    home, digits = session(tmp_path / "home"), "8273" + "64551"
    key = "-".join(PLANT.chars(length, "0123456789abcdef") for length in (8, 4, 4, 4, 12))
    (path,) = home.rglob("*.jsonl")
    records = [json.loads(line) for line in path.read_text().replace(uuid(2), key).splitlines()]
    records[0]["message"]["content"] += f"\nexport HEROKU_API_KEY={key}\nexport DB_PASS" + f"WORD={digits}"
    records[1]["message"]["usage"]["input_tokens"] = int(digits)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    masked = ["--redact", "secrets"]
    for command in (
        ["show", SESSION],
        ["show", SESSION, "--json", *masked],
        ["graph", SESSION],
        ["graph", SESSION, "--as", "mermaid"],
        ["graph", SESSION, "--json", *masked],
        ["graph", SESSION, "--json", "--tree", *masked],
        ["export", SESSION, "--to", "json", *masked],
        ["export", SESSION, "--to", "html"],
        ["export", SESSION, "--to", "markdown", "--detail", "full"],
    ):
        done = clew("--home", home, *command)
        assert done.code == 0, done.err
        assert key not in done.out, command
        assert digits not in done.out, command
    links = json.loads(clew("--home", home, "export", SESSION, "--to", "json", *masked).out)["messages"]
    assert [message["parent_uuid"] for message in links[1:]] == [message["uuid"] for message in links[:-1]]


@pytest.mark.parametrize("target", ["codex", "gemini", "sage-agent", "claude-code"])
def test_what_a_sub_agent_teaches_is_masked_in_the_title_of_its_session(tmp_path: Path, target: str) -> None:
    home, value = tmp_path / "home", PLANT.chars(6) + "7" + PLANT.chars(8)
    folder = home / ".claude" / "projects" / "-w"
    (folder / SESSION / "subagents").mkdir(parents=True)
    own = {
        "parentUuid": None,
        "cwd": "/w",
        "sessionId": SESSION,
        "version": "2.1.0",
        "timestamp": "2026-10-20T10:00:00Z",
    }
    call_of_agent = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "go"}}
    answered = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": uuid(1), "message": {"role": "user", "content": f"use {value}"}},
        {"type": "assistant", "uuid": uuid(2), "message": {"id": "m", "role": "assistant", "content": [call_of_agent]}},
        {
            "type": "user",
            "uuid": uuid(3),
            "message": {"role": "user", "content": [answered]},
            "toolUseResult": {"agentId": "a1b2c3d4e5f60718a", "status": "completed"},
        },
    ]
    for number, line in enumerate(lines):
        line.update(own, isSidechain=False, parentUuid=uuid(number) if number else None)
    (folder / f"{SESSION}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = {"role": "user", "content": "export SHOP_PASS" + f"WORD={value}"}
    child = {
        **own,
        "type": "user",
        "uuid": uuid(9),
        "isSidechain": True,
        "agentId": "a1b2c3d4e5f60718a",
        "message": said,
    }
    (folder / SESSION / "subagents" / "agent-a1b2c3d4e5f60718a.jsonl").write_text(json.dumps(child) + "\n")
    out = tmp_path / "out"
    words = ("convert", SESSION, "--to", target, "--home", out, "--allow-loss", "--redact", "secrets")
    done = clew("--home", home, *words)
    assert done.code == 0, done.err
    assert not [path for path in out.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]
    page = clew("--home", home, "export", SESSION, "--to", "html")
    assert page.code == 0 and value not in page.out


def gemini_session(home: Path, session_id: str, form: str) -> Path:
    """A chat of Gemini whose messages have ids that are not random, so that the ids of calls hold the session's id."""
    head = {"sessionId": session_id, "projectHash": "p", "startTime": "2026-10-20T10:00:00.000Z"}
    tokens = {"input": 5, "output": 7, "cached": 0, "thoughts": 0, "tool": 0, "total": 12}
    messages: list[dict[str, Any]] = [
        {"id": "m1", "timestamp": "2026-10-20T10:00:00.000Z", "type": "user", "content": "hello"},
        {"id": "m2", "timestamp": "2026-10-20T10:00:01.000Z", "type": "gemini", "content": "hi", "model": "gemini-x"},
    ]
    messages[1]["tokens"] = tokens
    folder = home / ".gemini" / "tmp" / "shop" / "chats"
    path = folder / ("session-2026-10-20T10-00-build000." + ("json" if form == "json" else "jsonl"))
    if form == "subagent":
        head["kind"] = "subagent"
        path = folder / "0a0b0c0d-parent" / "agent0.jsonl"
    path.parent.mkdir(parents=True)
    if form == "json":
        path.write_text(json.dumps({**head, "messages": messages}))
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in [head, *messages]))
    return path


@pytest.mark.parametrize("form", ["jsonl", "json", "subagent"])
@pytest.mark.parametrize(
    "command",
    [
        ["show", "{path}", "--json"],
        ["export", "{path}", "--to", "json"],
        ["export", "{path}", "--to", "ndjson"],
        ["export", "{path}", "--to", "json", "--no-native"],
    ],
    ids=lambda command: " ".join(command[2:]) or command[0],
)
def test_ids_of_calls_do_not_repeat_a_token_in_the_id_of_a_session(
    tmp_path: Path, command: list[str], form: str
) -> None:
    token = "gh" + "p_" + PLANT.chars(36)
    path = gemini_session(tmp_path / "home", f"build-{token}", form)
    done = clew("--home", tmp_path / "home", *[word.format(path=path) for word in command], "--redact", "secrets")
    assert done.code == 0, done.err
    assert token not in done.out + done.err
    assert "m2" in done.out


def test_a_page_does_not_carry_a_token_in_the_id_of_a_session(tmp_path: Path) -> None:
    token = "gh" + "p_" + PLANT.chars(36)
    path = gemini_session(tmp_path / "home", f"build-{token}", "jsonl")
    page = tmp_path / "page.html"
    words = ("export", path, "--to", "html", "--carry", "-o", page, "--redact", "secrets")
    assert clew("--home", tmp_path / "home", *words).code == 0
    with page.open("rb") as stream, carried_document(stream, "page") as document:
        carried = document.read().decode()
    assert "m2" in carried
    assert token not in page.read_text() + carried


def test_derived_ids_of_messages_do_not_repeat_a_token_in_the_name_of_a_file(tmp_path: Path) -> None:
    """A rollout of Codex without a thread id gives its messages ids made of its file name."""
    token = "gh" + "p_" + PLANT.chars(36)
    path = tmp_path / "home" / ".codex" / "sessions" / "2026" / "10" / "20" / f"rollout-build-{token}.jsonl"
    path.parent.mkdir(parents=True)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    path.write_text(json.dumps({"timestamp": "2026-10-20T10:00:00Z", "type": "response_item", "payload": item}) + "\n")
    done = clew("--home", tmp_path / "home", "show", path, "--json", "--redact", "secrets")
    assert done.code == 0, done.err
    assert "hello" in done.out
    assert token not in done.out + done.err
