"""clew tail -n counts the messages that are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import clew


@pytest.mark.parametrize(
    ("detail", "wanted"), [("conversation", [17, 19, 22]), ("prompts", [1, 19]), ("full", [20, 22])]
)
def test_hidden_messages_do_not_count(demo: Path, detail: str, wanted: list[int]) -> None:
    done = clew("--home", demo, "tail", "71960", "-n", "3", "--detail", detail)
    # Message 21, the result of a tool, is shown with its call in message 20.
    assert [int(number) for number in re.findall(r"^── (\d+)", done.out, re.MULTILINE)] == wanted


def test_json_counts_every_message(demo: Path) -> None:
    found = clew("--home", demo, "tail", "71960", "-n", "3", "--json").lines
    assert [message["index"] for message in found] == [20, 21, 22]


def test_nothing_is_wanted(demo: Path) -> None:
    assert clew("--home", demo, "tail", "71960", "-n", "0").out == ""
