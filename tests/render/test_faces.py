"""The page, the Markdown and the terminal view of a session show the same blocks in the same order."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clew.errors import SourceUnreadable
from clew.host import Host
from clew.library import Library, StoredSession
from clew.render.branching import Forks
from clew.render.detail import DETAILS, Detail
from clew.render.markdown import markdown
from clew.render.terminal import show
from tests.demo_home import write_small_demo
from tests.render.pages import page, parse, sessions, words

TOKEN = re.compile(r"zq\d+zq")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MARKED = {"text": "text", "thinking": "thinking", "tool_use": "tool_name", "unknown": "value", "document": "document"}


def marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with a word of its own in every block."""
    numbers = count()
    for message in messages:
        for block in message["content"]:
            token = f"zq{next(numbers)}zq"
            key = _MARKED.get(block["type"])
            if block["type"] == "tool_result":
                block["output"] = token
            elif key is not None and block.get(key):
                block[key] = token if key != "text" or not block[key].startswith("<") else f"{block[key]}\n\n{token}"
    return messages


def order(text: str) -> list[str]:
    return list(dict.fromkeys(TOKEN.findall(text)))


def views(session: StoredSession, messages: list[dict[str, Any]], detail: Detail) -> Iterator[list[str]]:
    """The marks in the order in which each face shows them."""
    header, forks = session.session_object, Forks.of_tree(session.facts.tree)
    main = next(element for element in parse(page(messages, header, detail=detail, forks=forks)).iter("main"))
    yield order(words(main))
    yield order("".join(markdown(header, iter(messages), detail=detail, forks=forks)))
    yield order("".join(show(header, iter(messages), 80, False, detail, forks=forks)))
    yield order(_COLOUR.sub("", "".join(show(header, iter(messages), 80, True, detail, forks=forks))))


def check(found: list[StoredSession], details: tuple[Detail, ...]) -> int:
    blocks = 0
    for session in found:
        messages = marked([unit.value for unit in session.units() if unit.is_message])
        for detail in details:
            first, *others = views(session, copy.deepcopy(messages), detail)
            assert all(other == first for other in others), (session, detail)
            blocks += len(first)
    return blocks


@pytest.mark.slow
def test_every_face_shows_the_same_blocks_in_the_same_order(tmp_path: Path) -> None:
    write_small_demo(tmp_path)
    assert check(sessions(tmp_path), DETAILS) > 500


def test_every_face_shows_the_same_of_real_sessions(shared: Path, tmp_path: Path) -> None:
    folders = sorted((shared / "corpus").iterdir())
    found = [one for folder in folders if folder.is_dir() for one in _in(folder, tmp_path)]
    assert check(found, ("full",)) > 1_000


@pytest.mark.parametrize(("role", "first"), [("user", "one"), ("assistant", "one two")])
def test_on_a_terminal_a_prompt_keeps_its_lines(role: str, first: str) -> None:
    said = {"index": 1, "role": role, "content": [{"type": "text", "text": "one\ntwo\n\n- three"}]}
    shown = _COLOUR.sub("", "".join(show({"id": "s"}, iter([said]), 80, True)))
    found = [line.strip() for line in shown.splitlines()]
    assert first in found and "• three" in found


def _in(folder: Path, home: Path) -> list[StoredSession]:
    try:
        return [one for one in Library(Host.at(home)).find(str(folder)) if one.source.size < 300_000]
    except SourceUnreadable:
        return []


@pytest.mark.slow
@pytest.mark.parametrize("detail", DETAILS)
def test_a_page_of_full_detail_holds_every_level(tmp_path: Path, detail: Detail) -> None:
    """What a level shows in Markdown is what stays in a page when its deeper classes are hidden."""
    write_small_demo(tmp_path)
    hidden = {f"l{level}" for level in range(DETAILS.index(detail) + 1, len(DETAILS))}
    for session in sessions(tmp_path):
        messages = marked([unit.value for unit in session.units() if unit.is_message])
        header = session.session_object
        main = next(element for element in parse(page(messages, header)).iter("main"))
        shown = order(" ".join(_visible(main, hidden)))
        assert shown == order("".join(markdown(header, iter(messages), detail=detail))), session


def _visible(element: Any, hidden: set[str]) -> Iterator[str]:
    if hidden & set(element.get("class", "").split()):
        return
    yield element.text or ""
    for child in element:
        yield from _visible(child, hidden)
        yield child.tail or ""
