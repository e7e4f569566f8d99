"""The task list over the messages of a session, in every era."""

import json
from pathlib import Path

import pytest

from clew.analysis.todos import TodoChange, as_todo, compare_todos, progression, todos_at
from clew.model import Todo
from tests.unit.samples import Record, call, claude_line, demo_transcripts, read_lines, read_source, result, say, seed

A, B = Todo(content="a", status="pending"), Todo(content="b", status="pending")


def statuses(messages: list[Record]) -> list[tuple[int, dict[object, object]]]:
    return [(state.index, {todo.content: todo.status for todo in state.todos}) for state in progression(messages)]


@pytest.mark.seed("SX-8")
def test_both_forms_of_an_item_are_one_model() -> None:
    sage = as_todo({"content": "x", "status": "pending", "activeForm": "Doing x"})
    claude = as_todo({"content": "x", "status": "pending", "priority": "high", "id": 1})
    assert sage == Todo(content="x", status="pending", active_form="Doing x")
    assert claude == Todo(content="x", status="pending", priority="high", id="1")
    assert as_todo({"content": 3, "status": None}) == Todo()
    assert as_todo("just text") == Todo(content="just text")
    assert as_todo(None) == Todo()


def test_changes_are_by_id_then_by_content() -> None:
    done = Todo(content="a", status="completed")
    assert compare_todos([A, B], [B, done]) == [TodoChange("changed", A, done)]
    assert compare_todos([A], [A, A]) == [TodoChange("added", None, A)]
    assert compare_todos([A, B], [B]) == [TodoChange("removed", A, None)]
    first, renamed = Todo(id="1", content="a"), Todo(id="1", content="b")
    assert compare_todos([first], [renamed]) == [TodoChange("changed", first, renamed)]


@pytest.mark.seed("S1-46", "SX-8")
def test_lists_on_messages() -> None:
    one, two = seed("seed-001/user"), seed("seed-001/assistant")
    messages = [
        say(1, todos=[as_plain(todo) for todo in one["todos"]]),
        say(2, "assistant", todos=[as_plain(todo) for todo in two["todos"]]),
        say(3, "user"),
        say(4, "assistant", todos=[]),
    ]
    states = progression(messages)
    assert [state.index for state in states] == [2, 4]
    assert [todo.status for todo in states[0].todos] == ["completed", "in_progress"]
    assert [change.kind for change in states[1].changes] == ["removed", "removed"]
    assert todos_at(messages, 3) == states[0].todos
    assert todos_at(messages, 1) == []


def as_plain(todo: Record) -> Record:
    return {"content": todo["content"], "status": todo["status"], "active_form": todo["activeForm"]}


@pytest.mark.seed("S3-18", "SX-8")
def test_the_example_result_becomes_state(tmp_path: Path) -> None:
    (state,) = progression(read_lines(tmp_path, seed("seed-003/todos")).messages)
    assert state.todos == [Todo(content="Description de la tâche", status="completed", priority="high", id="1")]
    assert [change.kind for change in state.changes] == ["added"]


def test_a_call_counts_once_it_succeeded() -> None:
    todos = [{"content": "a", "status": "pending"}]
    messages = [
        say(1, "assistant", call("t1", "TodoWrite", todos=todos)),
        say(2, "user", result("t1", "rejected", is_error=True)),
        say(3, "assistant", call("t2", "TodoWrite", todos=todos)),
        say(4, "user", result("t2")),
        say(5, "assistant", call("t3", "TodoWrite", todos=[])),
    ]
    assert statuses(messages) == [(4, {"a": "pending"})]


def test_tasks_are_replayed() -> None:
    messages = [
        say(1, "assistant", call("t1", "TaskCreate", subject="a", activeForm="Doing a")),
        say(2, "user", result("t1", "Task #7 created successfully: a")),
        say(
            3,
            "assistant",
            call("t2", "TaskCreate", subject="b"),
            call("t3", "TaskUpdate", taskId="7", status="in_progress"),
        ),
        say(4, "user", result("t2", "Task #8 created successfully: b"), result("t3")),
        say(5, "assistant", call("t4", "TaskUpdate", taskId="7", status="completed")),
        say(6, "user", result("t4", "Task not found", is_error=True)),
        say(7, "assistant", call("t5", "TaskUpdate", taskId="8", status="deleted")),
        say(8, "user", result("t5")),
    ]
    states = progression(messages)
    assert [(state.index, len(state.todos)) for state in states] == [(2, 1), (4, 2), (4, 2), (8, 1)]
    assert states[-1].todos == [Todo(content="a", status="in_progress", active_form="Doing a", id="7")]


def test_a_reminder_states_the_whole_list(tmp_path: Path) -> None:
    content = [{"id": "1", "subject": "a", "status": "completed", "description": "long", "blocks": []}]
    reminder = {"type": "task_reminder", "content": content, "itemCount": 1}
    other = {"type": "diagnostics", "content": [1]}
    lines = [claude_line("attachment", f"a{n}", None, attachment=each) for n, each in enumerate((reminder, other))]
    states = progression(read_lines(tmp_path, *lines).messages)
    assert [state.todos for state in states] == [[Todo(content="a", status="completed", id="1")]]


def test_a_reminder_that_is_no_text_states_nothing(tmp_path: Path) -> None:
    reminder = {"type": "task_reminder", "content": [{"id": "1", "subject": "a?", "status": "completed"}]}
    line = json.dumps(claude_line("attachment", "a1", None, attachment=reminder)).encode()
    read = read_lines(tmp_path, line.replace(b"a?", b"a\xff"), claude_line("user", "u1", "a1"))
    assert [message["uuid"] for message in read.messages] == ["a1", "u1"]
    assert progression(read.messages) == []


def test_a_subagent_keeps_its_own_list() -> None:
    messages = [say(1, todos=[{"content": "a"}]), say(2, todos=[{"content": "b"}], is_sidechain=True)]
    assert [state.index for state in progression(messages)] == [1]
    assert [state.index for state in progression(messages[1:])] == [2]


def test_odd_values_change_nothing() -> None:
    messages = [
        say(
            1,
            "assistant",
            call("t1", "TodoWrite"),
            {"type": "tool_use", "tool_id": "t2", "tool_name": "TaskCreate", "input": 3},
        ),
        say(2, "user", result("t1"), result("t2")),
        say(3, "user", result("t9")),
        say(4, "user", extensions={"claude-code": 3}),
    ]
    assert progression(messages) == []


@pytest.mark.seed("S1-46")
def test_the_demo_shows_progress(tmp_path: Path) -> None:
    shown = [statuses(read.messages) for read in demo_transcripts(tmp_path / "demo")]
    ends = [states[-1][1] for states in shown if len(states) > 1]
    assert any(set(end.values()) == {"completed"} for end in ends)


@pytest.mark.seed("S1-46", "S3-18")
def test_replayed_tasks_agree_with_the_agents_own_reminders(shared: Path) -> None:
    from clew.agents.claude_code import ClaudeCode

    compared = 0
    for path in sorted((shared / "corpus" / "claude-code").rglob("*.jsonl")):
        text = path.read_bytes()
        if b"task_reminder" not in text or b'"TaskCreate"' not in text:
            continue
        read = read_source(ClaudeCode().locate(path))
        for at, message in enumerate(read.messages):
            rest = message.get("extensions", {}).get("claude-code", {}).get("rest", {})
            attachment = rest.get("attachment") or {}
            if attachment.get("type") == "task_reminder" and attachment["content"]:
                replayed = {todo.id: todo.status for todo in todos_at(read.messages[:at], message["index"])}
                stated = {task["id"]: task["status"] for task in attachment["content"]}
                assert replayed == stated, f"{path}: message {message['index']}"
                compared += 1
    if not compared:
        pytest.skip("no session with tasks and reminders")


def test_a_line_of_the_old_era_is_read(tmp_path: Path) -> None:
    todos = [{"content": "a", "status": "in_progress", "activeForm": "Doing a"}]
    read = read_lines(tmp_path, claude_line("user", "u1", None, todos=todos))
    assert statuses(read.messages) == [(1, {"a": "in_progress"})]
