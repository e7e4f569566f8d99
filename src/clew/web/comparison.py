"""Two conversations side by side: what they have in common at their beginning, and their turns after it, aligned."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import NamedTuple

from msgspec import structs

from clew.render.parts import Call, Continued, Divider, Fork, Part, Result, Section

MAX_ALIGNED_TURNS = 1_000
"""Conversations with more turns are paired turn by turn."""
SECTIONS_PER_ROW = 12
"""A longer turn that differs takes several rows."""

ShownSection = Sequence[Part]
Turn = list[ShownSection]


class Row(NamedTuple):
    """Sections that stand side by side."""

    left: Sequence[ShownSection]
    right: Sequence[ShownSection]
    is_same: bool = False
    """Both sides are equal."""


def branch_sections(
    sections: Sequence[ShownSection], forks: Sequence[tuple[int | None, Fork]], branch: int | None
) -> list[ShownSection]:
    """The sections from the first message to the end of a branch, which its first message names.

    None stands for the branch that the conversation is on. `forks` have the branch that they are on.
    """
    chosen = _branches_on_path(forks, branch)
    found: list[ShownSection] = []
    is_chosen = True
    for section in sections:
        first = section[0]
        if isinstance(first, Section):
            is_chosen = first.branch in chosen
        if is_chosen:
            found.append(section)
    return found


def _branches_on_path(forks: Sequence[tuple[int | None, Fork]], branch: int | None) -> set[int | None]:
    parents = {each.index: parent for parent, fork in forks for each in fork.branches}
    active = {each.index for _, fork in forks for each in fork.branches if each.is_active}
    path: set[int | None] = {None}
    at = branch
    while at not in path:
        path.add(at)
        at = parents.get(at) if at is not None else None
    # After the branch point follow the active branch; on an abandoned branch, the newest.
    at, is_abandoned = branch, branch is not None and branch not in active
    while True:
        following = [each.index for parent, fork in forks if parent == at for each in fork.branches]
        next_branches = [index for index in following if index in active] or (following if is_abandoned else [])
        if not next_branches or next_branches[-1] in path:
            return path
        at = next_branches[-1]
        path.add(at)


def messages_of(sections: Sequence[ShownSection]) -> set[int]:
    """The numbers of all messages in some sections."""
    found: set[int] = set()
    for part in (part for section in sections for part in section):
        if isinstance(part, Section | Continued | Divider | Result):
            found.add(part.index)
        elif isinstance(part, Call) and part.result is not None:
            found.add(part.result.index)
    return found


def count_common(left: Sequence[ShownSection], right: Sequence[ShownSection]) -> int:
    """How many sections two conversations have in common at their beginning."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _content(pair[0]) == _content(pair[1]), pairs))


def aligned_rows(left: Sequence[ShownSection], right: Sequence[ShownSection]) -> list[Row]:
    """The turns of two conversations side by side; equal prompts are in the same row where that is possible."""
    rows: list[Row] = []
    for one, other in _aligned_turns(_turns(left), _turns(right)):
        is_same = bool(one) and list(map(_content, one)) == list(map(_content, other))
        if is_same:
            rows.append(Row(one, other, is_same=True))
            continue
        for start in range(0, max(len(one), len(other)), SECTIONS_PER_ROW):
            end = start + SECTIONS_PER_ROW
            rows.append(Row(one[start:end], other[start:end]))
    return rows


def _turns(sections: Sequence[ShownSection]) -> list[Turn]:
    turns: list[Turn] = []
    for section in sections:
        first = section[0]
        if not turns or (isinstance(first, Section) and first.speaker == "prompt"):
            turns.append([])
        turns[-1].append(section)
    return turns


def _aligned_turns(left: list[Turn], right: list[Turn]) -> list[tuple[Turn, Turn]]:
    if max(len(left), len(right)) > MAX_ALIGNED_TURNS:
        return list(zip_longest(left, right, fillvalue=[]))
    left_prompts, right_prompts = ([_content(turn[0]) for turn in turns] for turns in (left, right))
    matcher = SequenceMatcher(None, left_prompts, right_prompts, autojunk=False)
    pairs: list[tuple[Turn, Turn]] = []
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        pairs += zip_longest(left[start:end], right[other_start:other_end], fillvalue=[])
    return pairs


def _content(section: ShownSection) -> tuple[Hashable, ...]:
    """What a section says, without its place in the session and its time."""
    return tuple(_without_position(part) for part in section if not isinstance(part, Fork | Continued))


def _without_position(part: Part) -> Hashable:
    if isinstance(part, Section):
        return part.who, part.speaker
    if isinstance(part, Divider):
        return "divider"
    if isinstance(part, Result):
        return structs.replace(part, index=0, call=None)
    if isinstance(part, Call):
        result = structs.replace(part.result, index=0, call=None) if part.result is not None else None
        return structs.replace(part, result=result, subagents=(), seconds=None)
    return part
