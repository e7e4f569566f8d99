"""What is refused in plain words before anything is written, and what is no reason to refuse anything."""

from __future__ import annotations

import datetime
import enum
import errno
import math
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clew import Host, Library
from clew.errors import TargetRefused, UnknownReference, UsageError
from clew.io.filesystem import System
from clew.store import Context, Draft, MessageBody, MessageRecord, Session, Store, ToolCall, ToolResult, ToolRun, Usage
from clew.store.doctor import examine
from clew.store.message_context import branch_of, find_head
from tests.cli.running import clew, run, state
from tests.store.support import Quick, lines, log_of

ODD: dict[str, Callable[[Session], object]] = {
    "negative tokens": lambda s: s.assistant("x", usage=Usage(input_tokens=-1)),
    "a token and a half": lambda s: s.assistant("x", usage=Usage(output_tokens=1.5)),  # type: ignore[arg-type]
    "true tokens": lambda s: s.assistant("x", usage=Usage(output_tokens=True)),
    "a cost that is no number": lambda s: s.assistant("x", usage=Usage(cost_estimate=math.nan)),
    "a cost without end": lambda s: s.assistant("x", usage=Usage(cost_estimate=math.inf)),
    "a negative cost": lambda s: s.assistant("x", usage=Usage(cost_estimate=-0.1)),
    "bytes": lambda s: s.user(b"x"),  # type: ignore[arg-type]
    "bytes in a block": lambda s: s.user([{"type": "image", "data": b"x"}]),
    "bytes in a call": lambda s: s.assistant("x", calls=[ToolCall(id="c", name="n", arguments={"a": [b"x"]})]),
    "no number in a call": lambda s: s.assistant("x", calls=[ToolCall(id="c", name="n", arguments={"a": math.nan})]),
    "bytes as a result": lambda s: s.results(ToolResult(tool_call_id="c", tool_name="n", content=b"x")),  # type: ignore[arg-type]
    "no number beside it": lambda s: s.user("x", metadata={"heat": math.inf}),
    "no number in a draft": lambda s: s.append(
        Draft(MessageRecord(type="user", uuid="", message=MessageBody(role="user", content=[{"a": math.nan}])))
    ),
    "no number in the metadata": lambda s: s.describe(state=math.nan),
    "a title of bytes": lambda s: s.title(b"x"),  # type: ignore[arg-type]
}


class Pair(NamedTuple):
    one: Any


ODD_VALUES: dict[str, Any] = {
    "no number in a dict of another kind": OrderedDict(a=math.nan),
    "no end in a tuple": {"a": (math.inf,)},
    "no number in a named tuple": {"a": Pair(math.nan)},
    "a set": {"a": {1, 2}},
    "a frozen set": {"a": frozenset({b"x"})},
    "a name of bytes": {b"k": 1},
    "a name that is a number": {1: 2},
    "a name that is no number": {"a": {math.nan: 1}},
    "a date": {"a": datetime.date(2026, 1, 1)},
    "a text of another kind": {"a": type("Text", (str,), {})("x")},
}
WAYS: dict[str, Callable[[Any], Draft]] = {
    "a call": lambda odd: _draft(MessageBody(role="assistant", content="x", tool_calls=[_call(odd)])),
    "a block": lambda odd: _draft(MessageBody(role="user", content=[odd])),
    "the metadata": lambda odd: _draft(MessageBody(role="user", content="x"), odd),
}


def _call(odd: Any) -> ToolCall:
    return ToolCall(id="c", name="n", arguments=odd)


def _draft(said: MessageBody, extra: Any = None) -> Draft:
    return Draft(MessageRecord(type="user" if said.role == "user" else "assistant", uuid="", message=said), extra=extra)


@pytest.mark.parametrize("odd", ODD_VALUES.values(), ids=ODD_VALUES.keys())
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("before", [0, 30])
def test_values_that_json_does_not_have_are_refused_on_every_way(
    tmp_path: Path, odd: Any, way: Callable[[Any], Draft], before: int
) -> None:
    """One by one in the usual way and in the quick one, and several at once."""
    session = Store(tmp_path, system=Quick()).session("s")
    for number in range(before):
        session.user(f"{number}")
    for add in (session.append, lambda draft: session.extend([_draft(MessageBody(role="user", content="y")), draft])):
        with pytest.raises(UsageError):
            add(way(odd))
    with pytest.raises(UsageError):
        session.describe(name=odd)
    assert session.user("goes on").seq == before + 1
    session.close()
    assert len(lines(log_of(tmp_path))) == before + 1


def test_what_is_the_same_in_json_is_kept_on_every_way(tmp_path: Path) -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    value = {"a": OrderedDict(b=(1, 2.5)), "c": Colour.RED, "d": Pair(None)}
    session = Store(tmp_path, system=Quick()).session("s")
    session.append(WAYS["a call"](value))
    for number in range(30):
        session.user(f"{number}")
    session.append(WAYS["a call"](value))
    session.extend([WAYS["a call"](value)])
    session.close()
    calls = [line["message"]["toolCalls"][0] for line in lines(log_of(tmp_path)) if "toolCalls" in line["message"]]
    assert [call["arguments"] for call in calls] == [{"a": {"b": [1, 2.5]}, "c": "red", "d": [None]}] * 3


@pytest.mark.parametrize("go", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("before", [0, 30])
def test_what_json_has_no_place_for_is_refused(tmp_path: Path, go: Callable[[Session], object], before: int) -> None:
    """In the usual way and in the quick one alike."""
    session = Store(tmp_path, system=Quick()).session("s")
    for number in range(before):
        session.user(f"{number}")
    with pytest.raises(UsageError):
        go(session)
    assert session.user("goes on").seq == before + 1
    session.close()
    assert len(lines(log_of(tmp_path))) == before + 1


def test_what_is_deeper_than_can_be_written_is_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(UsageError, match="nested too deeply"):
        ToolCall(id="c", name="n", arguments=deep)


@pytest.mark.parametrize(
    "odd",
    [
        {"estimated_tokens": -1},
        {"usage": {"cost": math.nan}},
        {"tool_calls": [ToolRun(name="n", args={"a": b"x"}, result="", success=True)]},
    ],
)
def test_the_same_in_a_project(tmp_path: Path, odd: dict[str, Any]) -> None:
    project = Store(tmp_path, system=Quick()).project("/home/ada")
    with pytest.raises(UsageError):
        project.append("user", "x", **odd)
    assert project.append("user", "x").seq == 1


def test_zero_is_a_number_and_absent_is_none(tmp_path: Path) -> None:
    session = Store(tmp_path, system=Quick()).session("s")
    session.assistant("x", usage=Usage(input_tokens=0, cost_estimate=0))
    assert lines(log_of(tmp_path))[0]["usage"] == {"inputTokens": 0, "costEstimate": 0}


def test_undo_of_a_session_that_is_not_there_makes_none(tmp_path: Path) -> None:
    store = Store(tmp_path, system=Quick())
    store.session("there").user("x")
    before = (state(tmp_path), sorted(tmp_path.rglob("*")))
    for go in (store.session("nosuch").undo, store.session("nosuch").redo):
        with pytest.raises(UnknownReference, match="it has no messages"):
            go()
    assert (state(tmp_path), sorted(tmp_path.rglob("*"))) == before
    fresh = Store(tmp_path / "fresh", system=Quick())
    fresh.project("/home/ada")
    with pytest.raises(UnknownReference):
        fresh.session("nosuch").undo()
    assert not (tmp_path / "fresh").exists()


def test_a_workspace_that_is_mistyped_is_refused_and_a_new_file_is_not(tmp_path: Path) -> None:
    session = Store(tmp_path / "store", system=Quick()).session("s")
    reply = session.assistant("I make it.")
    with pytest.raises(UsageError, match="no such folder"):
        session.watch(reply, root=tmp_path / "wrok")
    with session.watch(reply, ["new/file.txt"], root=tmp_path):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "file.txt").write_bytes(b"x")
    session.undo(root=tmp_path)
    assert not (tmp_path / "new").exists()


def test_a_wrong_setting_is_blamed_on_who_gave_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"invalid options for the store.*paper") as caught:
        Store(tmp_path, durability="paper")  # type: ignore[arg-type]
    assert "config.json" not in str(caught.value)
    (tmp_path / ".sage").mkdir()
    (tmp_path / ".sage" / "config.json").write_text('{"clew": {"durability": "paper"}}')
    with pytest.raises(UsageError, match=r"config\.json.*paper"):
        Store(tmp_path, durability="disk")


@pytest.mark.slow
def test_a_file_where_a_store_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="not a folder"):
            Store(place)
    ran = run("record", "--store", tmp_path / "file", "--session", "s", input=b'{"role": "user", "content": "x"}\n')
    assert ran.code == 2 and "not a folder" in ran.err


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_store_that_may_only_be_read_says_so(tmp_path: Path, number: int) -> None:
    class Forbidden(System):
        @staticmethod
        def open(path: Any, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_RDWR:
                raise OSError(number, os.strerror(number), str(path))
            return os.open(path, flags, mode)

        @staticmethod
        def mkdir(path: Any, *_: int) -> None:
            raise OSError(number, os.strerror(number), str(path))

    Store(tmp_path, system=Quick()).session("s").user("x")
    store = Store(tmp_path, system=Forbidden())
    for session in (store.session("s"), store.session("new")):
        with pytest.raises(TargetRefused, match="may only be read, and nothing was written"):
            session.user("y")
    with pytest.raises(TargetRefused, match="may only be read"):
        Store(tmp_path / "new", system=Forbidden()).session("s").user("y")
    assert len(list(store.get("s").records())) == 1


def test_a_session_that_was_not_closed_is_nothing_wrong(tmp_path: Path) -> None:
    Store(tmp_path, system=Quick()).session("s").close()
    session = Store(tmp_path, system=Quick()).session("s")
    for number in range(3):
        session.user(f"{number}")
    del session  # as a process that ends without closing it
    [finding] = examine(tmp_path)
    assert (finding.problem.code, finding.problem.severity) == ("metadata-behind", "note")
    ran = clew("doctor", tmp_path)
    assert ran.code == 0 and "metadata-behind" in ran.out
    assert clew("validate", "s", "--home", tmp_path).code == 0
    told = clew("validate", "s", "--home", tmp_path, "--level", "note")
    assert "metadata-behind" in told.out and "metadata-mismatch" not in told.out
    assert clew("doctor", tmp_path, "--fix").code == 0
    assert list(examine(tmp_path)) == []
    place = log_of(tmp_path).with_name("metadata.json")
    place.write_text(place.read_text().replace('"messageCount": 3', '"messageCount": 9'))
    assert clew("doctor", tmp_path).code == 1


@pytest.mark.slow
def test_sessions_without_token_counts_are_not_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    home = tmp_path / "home"
    with Store(home, system=Quick()).session("s") as session:
        session.user("hello")
        session.assistant("hello")
    assert run("stats", "--home", home).out.splitlines()[-1].split()[:2] == ["total", "1"]


def test_usage_is_counted_once_for_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Store(tmp_path, system=Quick()).session("s")
    session.user("x")
    session.assistant("y", usage=Usage(input_tokens=5))
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.usage.input_tokens == 5 and found.usage is found.usage
    session.assistant("z", usage=Usage(input_tokens=7))
    found.forget()
    assert found.usage.input_tokens == 12


@pytest.mark.parametrize("said", [0, 2])
def test_of_a_message_that_was_refused_nothing_stays(tmp_path: Path, said: int) -> None:
    """Not even what the metadata would have said of it, which is written with the next."""
    with Store(tmp_path).session("s") as session:
        for number in range(said):
            session.user(f"{number}")
        with pytest.raises(UsageError):
            session.assistant("x", model="\ud800")
        with pytest.raises(UsageError):
            session.extend(
                [Draft(MessageRecord(type="user", uuid="", message=MessageBody(role="user", content="\ud800")))]
            )
        assert session.user("one").seq == said + 1
    assert len(lines(log_of(tmp_path))) == said + 1
    assert session.metadata["messageCount"] == said + 1 and "model" not in session.metadata


class Tide(enum.Enum):
    HIGH = "high"


def test_what_the_log_can_spell_the_metadata_can(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("one", context=Context(cwd=Tide.HIGH, platform="linux"))  # type: ignore[arg-type]
        session.title(Tide.HIGH)  # type: ignore[arg-type]
    assert session.metadata["workingDirectory"] == "high"
    assert len(lines(log_of(tmp_path))) == 2


@pytest.mark.parametrize("name", ["sessions/one/metadata.json", "config.json"])
def test_settings_and_metadata_are_not_read_through_a_link(name: str, tmp_path: Path) -> None:
    """What the metadata say is written again: a link to somebody's settings would have them copied."""
    secret = tmp_path / "settings.json"
    secret.write_text('{"key": "not-for-others", "clew": {"redact": "all"}}')
    place = tmp_path / "repo" / ".sage" / name
    place.parent.mkdir(parents=True)
    place.symlink_to(secret)
    if name == "config.json":
        with pytest.raises(UsageError, match="not a JSON object"):
            Store(tmp_path / "repo")
        return
    with Store(tmp_path / "repo").session("one") as session:
        session.user("hello")
        session.describe(name="a name")
    written = [path for path in (tmp_path / "repo").rglob("*") if path.is_file() and not path.is_symlink()]
    assert not any(b"not-for-others" in path.read_bytes() for path in written)
    assert "not-for-others" in secret.read_text()


def test_endless_settings_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".sage").mkdir()
    os.mkfifo(tmp_path / ".sage" / "config.json")
    with pytest.raises(UsageError, match="not a JSON object"):
        Store(tmp_path)


@pytest.mark.parametrize("how", ["endless", "pipe", "share"])
def test_the_branch_is_not_read_from_what_is_no_file_of_git(how: str, tmp_path: Path) -> None:
    """An unpacked archive may bring a `.git` that leads to what never ends, or to another machine."""
    work, target = tmp_path / "work", tmp_path / "git"
    work.mkdir()
    target.mkdir()
    if how == "endless":
        (target / "HEAD").symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(target / "HEAD")
    (work / ".git").write_text(f"gitdir: {'//host/share' if how == 'share' else target}\n")
    if how == "share":
        assert find_head(work) is None
    else:
        assert branch_of(find_head(work)) is None


@pytest.mark.slow
def test_an_empty_session_id_is_refused(tmp_path: Path) -> None:
    ran = run("record", "--store", tmp_path, "--session", "", input=b'{"role": "user", "content": "x"}\n')
    assert ran.code == 2 and "not a session id" in ran.err
    assert not (tmp_path / ".sage").exists()


@pytest.mark.parametrize("value", ["[]", "null", '"disk"'])
def test_settings_that_are_not_an_object_are_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / ".sage").mkdir()
    (tmp_path / ".sage" / "config.json").write_text(f'{{"clew": {value}}}')
    with pytest.raises(UsageError, match="`clew` must be an object"):
        Store(tmp_path)
