"""What a page shows, and how: contents, levels, calls with results, diffs, tasks, forks, sub-agents."""

from __future__ import annotations

import copy
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.analysis.actions import exit_code
from clew.analysis.pair_tool_results import WINDOW, joined
from clew.library import StoredSession
from clew.model import ForkBranch, ForkPoint
from clew.render.branching import Forks
from clew.render.detail import DETAILS, Detail
from clew.render.markdown import markdown
from clew.render.outline import by_section, parts
from clew.render.page.fragments import MAX_OPEN_CHARS, MAX_TEXT_CHARS, Fragments
from clew.render.page.index import Entry, index
from clew.render.page.session import Contents
from clew.render.parts import Call, Fork, Output, Result, Section, Tasks
from clew.render.terminal import show
from tests.cli.running import FORKED, LATEST
from tests.demo_home import write_small_demo
from tests.render.pages import elements, faults, page, page_of, parse, reply, sessions, words

EDIT = {"file_path": "/a/b.py", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_small_demo(folder)
    return folder


def the(home: Path, identity: str) -> StoredSession:
    return next(session for session in sessions(home) if session.id == identity)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(key: str, name: str = "T", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_id": key, "tool_name": name, "input": given}


def result(key: str, output: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": key, "output": output, **more}


# Calls and results


def test_a_result_stands_with_its_call_wherever_it_came() -> None:
    messages = [
        reply(call("a"), index=1),
        reply(call("b"), index=2),
        reply(result("b", "of b"), index=3, role="user"),
        reply(result("a", "of a"), index=4, role="user"),
    ]
    calls = [part for part in parts({"id": "s"}, messages) if isinstance(part, Call)]
    answers = [part.result for part in calls if part.result is not None]
    assert [answer.index for answer in answers] == [4, 3]
    assert [answer.pieces for answer in answers] == [(Output("of a"),), (Output("of b"),)]
    html = page(messages)
    assert html.index("of a") < html.index('id="m2"') < html.index("of b")


def test_a_late_result_links_to_its_call() -> None:
    between = [reply(text(f"word {number}"), index=number) for number in range(2, WINDOW + 9)]
    messages = [reply(call("a")), *between, reply(result("a"), index=WINDOW + 9, role="user")]
    shown = list(parts({"id": "s"}, messages))
    assert [part.call for part in shown if isinstance(part, Result)] == [1]
    assert '<a href="#m1">of call 1</a>' in page(messages)
    assert "[call 1](#m1)" in "".join(markdown({"id": "s"}, iter(messages)))


def test_messages_wait_only_for_results() -> None:
    taken = 0

    def source() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield reply(call(f"c{taken}"), index=taken)

    stream = joined(source())
    assert next(stream).message["index"] == 1 and taken == WINDOW + 1
    assert next(stream).message["index"] == 2 and taken == WINDOW + 2


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Exit code 2\nboom", 2),
        ("Exit code: 0\nWall time: 1 s\nOutput:\nx", 0),
        ("Process exited with code 7\nx", 7),
        ("x\n" * 500 + "Exit Code: 3\nSignal: 0", 3),
        ([{"type": "text", "text": "Exit code 1"}], 1),
        ("fine", None),
        (None, None),
    ],
)
def test_the_exit_state_is_told(output: Any, code: int | None) -> None:
    assert exit_code(output) == code


def test_errors_are_open_and_said() -> None:
    tree = parse(page([reply(call("a", command="false")), reply(result("a", "Exit code 1", is_error=True), index=2)]))
    (failed,) = elements(tree, kind="err")
    assert failed.tag == "details" and "open" in failed.attrib and words(failed).startswith("Error, exit 1")
    assert "bad" in next(elements(tree, kind="c")).get("class", "")


def test_long_results_are_folded() -> None:
    tree = parse(page([reply(call("a")), reply(result("a", "x\n" * 100), index=2, role="user")]))
    (folded,) = elements(tree, kind="r")
    assert "open" not in folded.attrib and "100 lines" in words(folded)


# Pieces


def test_a_change_is_a_pair_of_runs() -> None:
    tree = parse(page([reply(call("a", "Edit", **EDIT))]))
    (diff,) = elements(tree, kind="d")
    assert [(child.tag, child.get("class")) for child in diff] == [("div", "s"), ("div", "ch"), ("div", "s")]
    assert [(one.tag, words(one)) for one in diff[1]] == [("del", "-two"), ("ins", "+2")]
    assert "/a/b.py" in words(next(elements(tree, kind="f")))


@pytest.mark.parametrize(
    ("old", "new", "tags"), [("", "a", ["ins"]), ("a", "", ["del"]), ("a\nb", "c\nd", ["del", "ins"])]
)
def test_one_sided_changes_are_whole_too(old: str, new: str, tags: list[str]) -> None:
    tree = parse(page([reply(call("a", "Edit", file_path="x", old_string=old, new_string=new))]))
    (change,) = elements(tree, kind="ch")
    assert [child.tag for child in change] == tags


@pytest.mark.seed("S1-48")
def test_todo_progress_is_drawn_in_every_face() -> None:
    before = [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "pending"}]
    after = [{"content": "a", "status": "completed"}, {"content": "c", "status": "pending"}]
    messages = [reply(call("x", todos=before)), reply(call("y", todos=after), index=2)]
    _, last = (piece for part in parts({"id": "s"}, messages) if isinstance(part, Call) for piece in part.pieces)
    assert isinstance(last, Tasks) and (last.done, last.total) == (1, 2)
    assert [(task.text, task.change) for task in last.tasks] == [("a", "changed"), ("c", "added"), ("b", "removed")]
    tree = parse(page(messages))
    bars = [(bar.get("value"), bar.get("max")) for bar in elements(tree, tag="progress")]
    assert bars == [("0", "2"), ("1", "2")]
    assert "1 of 2 done" in "".join(show({"id": "s"}, iter(messages), 80, False))
    assert "- [x] a *(completed, changed)*" in "".join(markdown({"id": "s"}, iter(messages)))


@pytest.mark.seed("S1-48")
def test_tasks_that_come_one_by_one_are_a_list_too() -> None:
    messages = [
        reply(call("x", "TaskCreate", subject="a", description="all of a")),
        reply(result("x", "Task #1 created successfully: a"), index=2, role="user"),
        reply(call("y", "TaskCreate", subject="b"), index=3),
        reply(result("y", "Task #2 created successfully: b"), index=4, role="user"),
        reply(call("z", "TaskUpdate", taskId="1", status="completed"), index=5),
        reply(result("z", "Updated task #1 status"), index=6, role="user"),
        reply(call("f", "TaskUpdate", taskId="2", status="completed"), index=7),
        reply(result("f", "No such task", is_error=True), index=8, role="user"),
    ]
    calls = [part for part in parts({"id": "s"}, messages) if isinstance(part, Call)]
    lists = [[piece for piece in part.pieces if isinstance(piece, Tasks)] for part in calls]
    assert [[(one.done, one.total) for one in found] for found in lists] == [[(0, 1)], [(0, 2)], [(1, 2)], []]
    assert [(task.text, task.status, task.change) for task in lists[2][0].tasks] == [("a", "completed", "changed")]
    bars = [(bar.get("value"), bar.get("max")) for bar in elements(parse(page(messages)), tag="progress")]
    assert bars == [("0", "1"), ("0", "2"), ("1", "2")]
    assert "1 of 2 done" in "".join(show({"id": "s"}, iter(messages), 80, False))


def test_injected_text_is_marked_as_not_the_users_words() -> None:
    said = reply(text("<system-reminder>be kind</system-reminder>\nhello"), role="user")
    tree = parse(page([said]))
    (injected,) = elements(tree, kind="inj")
    assert injected.tag == "details" and "not the user’s words" in words(injected) and "l3" in injected.get("class", "")
    assert "hello" in words(next(elements(tree, kind="p")))


def test_only_prompts_are_said_by_the_user() -> None:
    said = [
        reply(text("hello"), role="user"),
        reply(text("<command-name>/clear</command-name>"), index=2, role="user"),
        {**reply(text("all of it"), index=3, role="user"), "metadata": {"is_compact_summary": True}},
        {**reply(text("look"), index=4, role="user"), "metadata": {"is_sidechain": True}},
    ]
    heads = [words(one) for article in elements(parse(page(said)), tag="article") for one in article.iter("h2")]
    assert heads == ["You", "Agent", "Agent", "Agent"]


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (text("<command-name>/clear</command-name>"), "(command)"),
        (text("<local-command-stdout>x</local-command-stdout>"), "(injected text)"),
        ({"type": "tool_use", "tool_id": "a", "tool_name": "Bash", "input": {}}, "(tool call)"),
        ({"type": "text", "text": "words"}, "words"),
    ],
)
def test_a_branch_without_words_is_called_by_what_it_begins_with(block: dict[str, Any], name: str) -> None:
    table = Contents()
    said = reply(block, index=2, role="user" if block["type"] == "text" else "assistant")
    (shown,) = by_section({"id": "s"}, [said])
    first = shown[0]
    assert isinstance(first, Section)
    shown[0] = Section(first.index, first.who, first.time, first.marks, first.speaker, first.level, 2)
    table.add_section(shown)
    assert table.labels == {2: name}


# The frame


@pytest.mark.slow
def test_every_message_counts(home: Path) -> None:
    for session in sessions(home):
        counted = len([unit for unit in session.units() if unit.is_message])
        foot = words(next(elements(parse(page_of(session)), tag="footer")))
        assert foot.startswith(f"{counted} message{'s' * (counted != 1)}, "), session


def test_prompts_are_the_table_of_contents(home: Path) -> None:
    session = the(home, LATEST)
    tree = parse(page_of(session))
    (contents,) = elements(tree, kind="toc")
    links = [link.get("href") for link in elements(contents, tag="a")]
    prompts = [
        f"#m{shown[0].index}"
        for shown in by_section(session.session_object, (unit.value for unit in session.units() if unit.is_message))
        if isinstance(shown[0], Section) and shown[0].speaker == "prompt"
    ]
    assert links == prompts and len(links) > 1
    ids = {element.get("id") for element in tree.iter()}
    assert all(str(link)[1:] in ids for link in links)


def test_every_message_can_be_linked_to(home: Path) -> None:
    for session in sessions(home):
        shown = [unit.value for unit in session.units() if unit.is_message and unit.value["content"]]
        ids = {element.get("id") for element in parse(page_of(session)).iter()}
        missing = [message for message in shown if f"m{message['index']}" not in ids]
        assert not [message for message in missing if not _is_empty(message)], session


def _is_empty(message: dict[str, Any]) -> bool:
    """True where there is nothing to be shown, or where results went to calls of which one bears the id."""
    return all(
        block["type"] in ("text", "thinking") and not block[block["type"]].strip() for block in message["content"]
    )


def test_thinking_of_which_only_a_signature_was_kept_is_not_shown() -> None:
    empty = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    html = page([reply(text("ask"), role="user"), reply(empty, index=2), reply(empty, text("answer"), index=3)])
    assert "hinking" not in html.partition("<main")[2]


@pytest.mark.parametrize("detail", DETAILS)
def test_a_page_holds_no_more_than_was_asked_for(detail: Detail) -> None:
    messages = [
        reply(text("ask"), role="user"),
        reply(text("answer"), {"type": "thinking", "thinking": "ponder"}, call("a", pattern="seek"), index=2),
        reply(result("a", "found"), index=3, role="user"),
    ]
    html = page(messages, detail=detail)
    words_of = ("ask", "answer", "seek", "found")
    assert [word for word in words_of if f">{word}<" in html] == list(words_of[: DETAILS.index(detail) + 1])
    assert ("ponder" in html) is (detail == "full")
    assert html.count('name="detail"') == DETAILS.index(detail) + 1


def test_a_reply_shows_as_soon_as_any_of_it_does() -> None:
    lines = [{"type": "thinking", "thinking": "hm"}, call("a", command="ls"), text("There.")]
    messages = [reply(line, index=number) | {"metadata": {"message_id": "r"}} for number, line in enumerate(lines, 1)]
    (article,) = elements(parse(page(messages)), tag="article")
    assert article.get("class") == "m reply l1"


# Branches


@pytest.mark.seed("S1-35", "S1-60")
def test_the_tree_of_branches_is_drawn_and_can_be_switched(home: Path) -> None:
    session = the(home, FORKED)
    tree = parse(page_of(session))
    (fork,) = elements(tree, kind="fork")
    ways = [link.get("data-go") for link in elements(fork, tag="a")]
    assert len(ways) == 2 and len(list(elements(fork, kind="now"))) == 1
    (drawn,) = elements(tree, kind="tree")
    assert [link.get("data-go") for link in elements(drawn, tag="a") if link.get("data-go")] == ways
    branches = {article.get("data-b") for article in elements(tree, tag="article")}
    assert branches == {None, *ways}
    assert len(list(elements(tree, kind="left"))) > 0


def test_forks_are_said_in_every_face(home: Path) -> None:
    session = the(home, FORKED)
    messages = [unit.value for unit in session.units() if unit.is_message]
    forks, header = Forks.of_tree(session.facts.tree), session.session_object
    (fork,) = [part for part in parts(header, messages, forks=forks) if isinstance(part, Fork)]
    assert [branch.is_active for branch in fork.branches] == [False, True]
    for face in (
        "".join(markdown(header, iter(messages), forks=forks)),
        "".join(show(header, iter(messages), 80, False, forks=forks)),
    ):
        assert "The conversation forks here" in face and "active branch" in face
    document = session.document()
    again = Forks.of_graph({"fork_points": [copy.deepcopy(_plain(point)) for point in document.graph.fork_points],  # type: ignore[union-attr]
                            "active_path": document.graph.active_path})  # type: ignore[union-attr]  # fmt: skip
    assert again.fork(fork.index) == fork


def _plain(point: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(point)


def test_deep_forks_do_not_recurse() -> None:
    messages, points = [], []
    for number in range(1, 3001):
        message = reply(text(f"w{number}"), index=number, role="user" if number % 2 else "assistant")
        messages.append(message | {"uuid": f"u{number}", "parent_uuid": f"u{number - 1}" if number > 1 else None})
        if number < 2999:
            branches = [
                {"uuid": f"u{number + 1}", "index": number + 1},
                {"uuid": f"u{number + 2}", "index": number + 2},
            ]
            points.append({"uuid": f"u{number}", "index": number, "branches": branches})
    html = page(messages, forks=Forks.of_graph({"fork_points": points, "active_path": ["u1"]}))
    assert html.count('class="fork') == 2998


# Sub-agents


def test_sub_agents_are_linked_or_stand_inside() -> None:
    session = {"id": "s", "subagents": [{"session_id": "child", "tool_id": "a"}]}
    messages = [reply(call("a", "Task", prompt="look")), reply(result("a"), index=2, role="user")]
    assert '<a href="child.html">' in page(messages, session, links={"child": "child.html"})

    def nested(identity: str, prefix: str) -> Any:
        assert identity == "child"
        return iter([f'<article class="m" id="{prefix}1">inside</article>'])

    tree = parse(page(messages, session, nested=nested))
    (inside,) = elements(tree, kind="sub")
    assert inside.tag == "details" and next(elements(inside, tag="article")).get("id") == "s1m1"
    assert "Sub-agent in session" in page(messages, session)


def test_every_sub_agent_of_a_call_is_shown() -> None:
    links: list[dict[str, Any]] = [{"session_id": name, "tool_id": "a"} for name in ("first", "second")]
    session = {"id": "s", "subagents": [*links, {"session_id": "third", "tool_id": None}]}
    messages = [reply(call("a", "Task", prompt="look")), reply(result("a"), index=2, role="user")]

    def nested(identity: str, prefix: str) -> Any:
        return iter([f'<article class="m" id="{prefix}1">{identity}</article>'])

    tree = parse(page(messages, session, nested=nested))
    inside = [next(elements(each, tag="article")) for each in elements(tree, kind="sub")]
    assert [(each.text, each.get("id")) for each in inside] == [
        ("first", "s1m1"),
        ("second", "s2m1"),
        ("third", "s3m1"),
    ]
    assert page(messages, session).count("Sub-agent in session") == 3


# The index of a site


def entry(name: str, parent: str | None = None, time: str = "2026-11-01") -> Entry:
    return Entry(f"{name}.html", name, f"title {name}", "claude-code", "tide", "/srv/tide", time, 1, 1, parent)


def linked(*entries: Entry) -> list[str | None]:
    tree = parse("".join(index(entries)))
    return [link.get("href") for link in elements(tree, tag="a") if link.get("href") != "#talk"]


def test_an_index_says_where_a_session_was_if_it_is_known() -> None:
    known, unknown = entry("a", ""), msgspec.structs.replace(entry("b", ""), workspace="")
    html = "".join(index([known, unknown]))
    assert html.count("claude-code · 1 prompt, 1 message · /srv/tide</span>") == 1
    assert html.count("claude-code · 1 prompt, 1 message</span>") == 1


def test_an_index_names_the_sub_agents_of_sub_agents() -> None:
    found = linked(entry("a"), entry("b", "a"), entry("c", "b"), entry("d", "c"), entry("e"))
    assert found == ["a.html", "b.html", "c.html", "d.html", "e.html"]


def test_sessions_that_name_each_other_as_parent_stay_in_the_index() -> None:
    found = linked(entry("a", "b"), entry("b", "a", "2026-11-03"), entry("c", "c"), entry("d", "b", "2026-11-02"))
    assert sorted(map(str, found)) == ["a.html", "b.html", "c.html", "d.html"]
    assert found[0] == "b.html"


def test_H11_where_a_text_is_cut_the_page_says_what_prints_the_rest() -> None:
    long = "x" * (MAX_TEXT_CHARS + 1_234)
    said = [
        reply({"type": "text", "text": long}, {"type": "thinking", "thinking": long}, call("a", "Bash", command=long)),
        reply(result("a", long), index=2, role="user"),
        reply(call("b", "Edit", file_path="f", old_string="y", new_string=long), index=3),
        reply({"type": "image", "image": long, "encoding": "url"}, index=4),
    ]
    html = page(said, {"id": "the-session"})
    told = re.findall(r"… ([0-9,]+) more characters are not in this page; <code>clew show ([^<]*)</code>", html)
    assert [where for _, where in told] == [f"the-session#{index}" for index in (1, 1, 1, 2, 3, 4)]
    assert all(int(left.replace(",", "")) in range(1_234, 1_250) for left, _ in told)
    assert faults(html) == []


def test_H11_a_text_that_is_cut_is_known_by_its_message_beside_sub_agents_too() -> None:
    said = [reply(text("short")), reply(text("x" * (MAX_TEXT_CHARS + 1)), index=7)]
    html = page(said, {"id": "the-session"}, nested=lambda *_: None)
    assert re.findall(r"<code>clew show ([^<]*)</code>", html) == ["the-session#7"]


def test_a_page_is_written_section_by_section() -> None:
    said = [
        reply(text(f"words {index} \u200b <b>"), result(f"r{index}", "\u202eout"), index=index) for index in range(300)
    ]
    fragments = Fragments()
    pieces = [piece for section in by_section({"id": "s"}, said) for piece in fragments.write(section)]
    assert len(pieces) == 300 and max(map(len, pieces)) < 3_000


def test_colours_of_what_was_printed_are_in_the_page() -> None:
    html = page([reply(result("a", "\x1b[31mred\x1b[0m\nplain"), role="user")])
    assert '<span class="f1">red</span>\nplain' in html


def test_what_became_of_a_task_is_in_the_page() -> None:
    todos = [{"content": "Sweep", "status": "completed"}, {"content": "Rest", "status": "w" * 50}]
    html = page([reply(call("a", "TodoWrite", todos=todos[:1])), reply(call("b", "TodoWrite", todos=todos), index=2)])
    assert html.count('<span class="k">new</span>') == 2 and "w" * 50 in html


@pytest.mark.parametrize("parent", [None, "torn"])
def test_what_a_conversation_goes_back_to_is_on_no_branch_that_was_left(parent: str | None) -> None:
    links = [("a", None), ("b", "a"), ("c", "b"), ("d", "b"), ("e", parent), ("f", "e")]
    said = [
        reply(text(uuid), index=index, role="user") | {"uuid": uuid, "parent_uuid": above}
        for index, (uuid, above) in enumerate(links, 1)
    ]
    ways = [ForkBranch(uuid="c", index=3), ForkBranch(uuid="d", index=4)]
    forks = Forks([ForkPoint(uuid="b", index=2, branches=ways)], ["e", "f"])
    sections = [part for part in parts({"id": "s"}, said, forks=forks) if isinstance(part, Section)]
    assert [part.index for part in sections if part.on_abandoned_branch] == [3, 4]
    assert [part.branch for part in sections] == [None, None, 3, 4, None, None]


def test_a_message_without_a_word_is_no_prompt() -> None:
    html = page([reply(text(""), role="user"), reply(text("Hello"), role="user", index=2)])
    assert re.findall(r'<li><a href="#m(\d+)">', html) == ["2"]


def test_a_failed_result_shows_with_the_actions_where_a_tool_speaks() -> None:
    failed = result("a", "broken", is_error=True)
    assert "broken" in page([reply(failed, role="user")], detail="actions")
    assert "broken" not in page([reply(result("a", "broken"), role="user")], detail="actions")
    aside = reply(failed, role="user") | {"metadata": {"is_sidechain": True}}
    assert "broken" not in page([aside], detail="actions")
    assert "broken" in page([aside])


def test_H01_a_command_that_a_page_names_runs_nothing_else() -> None:
    html = page([reply(text("a" * (MAX_TEXT_CHARS + 1)))], {"id": "x; touch owned; echo $(id)"})
    (told,) = re.findall(r"<code>(clew show [^<]*)</code>", html)
    assert shlex.split(unescape(told)) == ["clew", "show", "x; touch owned; echo $(id)#1"]


@pytest.mark.parametrize(
    ("output", "words"),
    [("a\nb\n\n", "3 lines"), ("\n\na", "3 lines"), ("→ a\n→ b", "2 lines"), ("\x1b[1ma\x1b[0m\nb\n", "2 lines")],
)
def test_a_result_says_how_many_lines_were_printed(output: str, words: str) -> None:
    html = page([reply(call("a", "Bash", command="ls")), reply(result("a", output), index=2, role="user")])
    assert f"<span>{words}</span>" in html


def test_a_result_with_wide_characters_is_open_by_its_characters_and_not_by_its_bytes() -> None:
    def is_open(text: str) -> bool:
        said = [reply(call("a", "Bash", command="ls")), reply(result("a", text), index=2, role="user")]
        return '<details class="r l3" id="m2" open>' in page(said)

    around = len('<pre class="o"></pre>\n')
    assert is_open("→" * (MAX_OPEN_CHARS - around)) and is_open("a" * (MAX_OPEN_CHARS - around))
    assert not is_open("→" * (MAX_OPEN_CHARS - around + 1)) and not is_open("a" * (MAX_OPEN_CHARS - around + 1))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\nb", "a\nc", '<div class="s"> a</div><div class="ch"><del>-b</del><ins>+c</ins></div>'),
        ("", "x\ny", '<div class="ch"><ins>+x\n+y</ins></div>'),
        ("x\nz", "z", '<div class="ch"><del>-x</del></div><div class="s"> z</div>'),
        ("a", "a", '<div class="s"> a</div>'),
    ],
)
def test_a_change_is_runs_of_lines(old: str, new: str, expected: str) -> None:
    html = page([reply(call("a", "Edit", file_path="f", old_string=old, new_string=new))])
    assert f'<div class="d">{expected}</div>' in html
