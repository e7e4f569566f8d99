"""What a source tells, in the few words that the catalog keeps. Loads nothing heavy: a quick sync begins here too."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    Arguments: TypeAlias = dict[str, Any]

PROMPT, ANSWER, THINKING, INPUT, OUTPUT, TITLE, FILE = "prompt answer thinking input output title file".split()
"""The kinds of text that can be searched for."""


class Odd(Exception):
    """What was read is not regular: only the general way can tell what it means."""


class Block(namedtuple("Block", "type kind text call_id name given is_error", defaults=("", "", None, False))):
    """One block of a message. `kind` is that of its text, "" where it has none; `given` are the arguments of a call."""

    __slots__ = ()


class Message(namedtuple("Message", "uuid parent time role model git_branch is_sidechain is_meta is_summary blocks")):
    """One message of a source; `time` as the source spells it."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """What the message is, by role and content."""
        for block in self.blocks:
            if block.type == "tool_result":
                return "tool_result"
        if self.is_summary:
            return "summary"
        return "meta" if self.is_meta and self.role == "user" else self.role


class Call(namedtuple("Call", "key model counts seq")):
    """What one request to a model used.

    `key` is the same in every file that repeats the request; `counts` are in the order of `derive.usage.FIELDS`, None
    where nothing is known; `seq` is the number of the message that it stands with, or 0.
    """

    __slots__ = ()


def merged(calls: Iterable[Call]) -> list[Call]:
    """Each call once: the lines of a call repeat its counts, and the largest of each is the last."""
    found: dict[str, Call] = {}
    for call in calls:
        known = found.get(call.key)
        if known is None:
            found[call.key] = call
        elif known.counts != call.counts:
            pairs = zip(known.counts, call.counts, strict=True)
            found[call.key] = known._replace(counts=tuple([most(one, other) for one, other in pairs]))
    return list(found.values())


def most(one: int | None, other: int | None) -> int | None:
    """The larger of two counts; unknown is less than any."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def words_of(value: Any) -> str:
    """Every text inside a JSON value, a line for each."""
    if isinstance(value, str):
        return value
    return "\n".join(strings_in(value))


def strings_in(value: Any) -> Iterator[str]:
    """Every string inside a value, in its order, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif type(item) in (int, float):
            yield str(item)
