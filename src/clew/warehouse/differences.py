"""Find sums of rows of two tables that are about few people, and groups to merge so that there are none.

Two tables are a graph: their groups are nodes, and what people used in one group of each table is an edge, a *cell*.
To leave out people means to remove the cells of these people alone. Two groups are *inseparable* if they stay connected
whichever `min_people` - 1 people are left out.

Rows may be added or subtracted, each any number of times. That gives each group a factor, and a cell counts unless both
of its groups have the same one. If few people are all that a sum is about, groups that are connected without the cells
of these people have the same factor. So a sum can be about fewer than `min_people` people only if a cell has two groups
that are not inseparable. Such groups are merged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

Name = tuple[str, ...] | None
"""The name of a group; None for the group that small groups are merged into."""


class Group(NamedTuple):
    """A group of one of the two tables."""

    table: int
    name: Name


Cells = Mapping[tuple[Group, Group], Set[str]]
"""The known people of each cell. The table of its first group is 0, that of its second group is 1."""


def groups_to_merge(cells: Cells, min_people: int) -> tuple[set[Name], set[Name]]:
    """The groups of each table to merge, so that no sum of rows of both is about 1 to `min_people` - 1 people."""
    compared = _Comparison(cells, min_people)
    for one, other, people in compared.cells_breadth_first():
        while not compared.are_inseparable(one, other):
            separated = compared.find_separated_groups(one, other, people)
            if separated is None:
                compared.mark_inseparable([one, other])
            else:
                compared.merge_smallest_across(separated)
    return compared.merged


class _Comparison:
    """Two tables, and the sets of their groups that are known to be inseparable.

    Groups that are merged are in one such set. If a group is inseparable from a second one, and that from a third one,
    so is the first from the third. So two groups of a set need not be compared.
    """

    def __init__(self, cells: Cells, min_people: int) -> None:
        self.merged: tuple[set[Name], set[Name]] = (set(), set())
        self._min_people = min_people
        self._neighbours: dict[Group, list[tuple[Group, Set[str]]]] = {}
        people_by_group: dict[Group, set[str]] = {}
        for (one, other), people in cells.items():
            for group, neighbour in ((one, other), (other, one)):
                self._neighbours.setdefault(group, []).append((neighbour, people))
                people_by_group.setdefault(group, set()).update(people)
        groups = sorted(people_by_group, key=lambda group: by_size(group.name, people_by_group[group]))
        self._by_size = [[group for group in groups if group.table == table] for table in (0, 1)]
        self._rank = {group: rank for rank, group in enumerate(groups)}
        self._set_of = self._rank.copy()
        self._sets = {number: [group] for number, group in enumerate(groups)}
        for (one, other), people in cells.items():
            if len(people) >= min_people:
                self.mark_inseparable([one, other])

    def cells_breadth_first(self) -> Iterator[tuple[Group, Group, Set[str]]]:
        """All cells, from those of the largest set of groups outwards: paths to a large set are short."""
        seen = set[Group]()
        for first in sorted(self._rank, key=lambda group: -len(self._sets[self._set_of[group]])):
            queue = deque([first] if first not in seen else [])
            seen.add(first)
            while queue:
                group = queue.popleft()
                for neighbour, people in self._neighbours[group]:
                    yield group, neighbour, people
                    if neighbour not in seen:
                        seen.add(neighbour)
                        queue.append(neighbour)

    def are_inseparable(self, one: Group, other: Group) -> bool:
        """True if two groups are known to be inseparable."""
        return self._set_of[one] == self._set_of[other]

    def mark_inseparable(self, groups: Sequence[Group]) -> None:
        """Record that these groups are inseparable."""
        first, *others = groups
        for other in others:
            small, large = sorted(
                (self._set_of[first], self._set_of[other]), key=lambda number: len(self._sets[number])
            )
            if small != large:
                moved = self._sets.pop(small)
                self._sets[large] += moved
                self._set_of.update(dict.fromkeys(moved, large))

    def find_separated_groups(self, one: Group, other: Group, people: Set[str]) -> set[Group] | None:
        """The groups that stay connected with one of two groups, and not with the other, if some people are left out.

        `people` are those of the cell of both groups, who have to be among them. None: the groups are inseparable.
        """
        start, end = sorted((self._set_of[one], self._set_of[other]), key=lambda number: len(self._sets[number]))
        # To interrupt a path that is left, all people of one of its cells have to be left out too.
        untried, tried = [frozenset(people)], set[frozenset[str]]()
        while untried:
            left_out = untried.pop()
            tried.add(left_out)
            path, reached = self._find_path(start, end, left_out)
            if path is None:
                return {group for number in reached for group in self._sets[number]}
            more = (left_out | cell for cell in path)
            untried += [people for people in more if len(people) < self._min_people and people not in tried]
        return None

    def _find_path(self, start: int, end: int, left_out: Set[str]) -> tuple[list[Set[str]] | None, Iterable[int]]:
        """The people of each cell of a shortest path between two sets, or None and the sets that were reached."""
        came_from: dict[int, tuple[int, Set[str]]] = {start: (start, left_out)}
        queue = deque([start])
        while queue and end not in came_from:
            current = queue.popleft()
            for group in self._sets[current]:
                for neighbour, people in self._neighbours[group]:
                    found = self._set_of[neighbour]
                    if found not in came_from and not people <= left_out:
                        came_from[found] = (current, people)
                        queue.append(found)
        if end not in came_from:
            return None, came_from
        path, at = [], end
        while at != start:
            at, people = came_from[at]
            path.append(people)
        return path, came_from

    def merge_smallest_across(self, separated: set[Group]) -> None:
        """Merge the smallest separated group with the smallest other one, in the table where these are smaller."""
        pairs = []
        for table in (0, 1):
            before = [Group(table, name) for name in self.merged[table]]
            inside = next((group for group in chain(before, self._by_size[table]) if group in separated), None)
            outside = next((group for group in chain(before, self._by_size[table]) if group not in separated), None)
            if inside is not None and outside is not None:
                pairs.append((inside, outside))
        # All cells together are of enough people, so that at least one table has both separated and other groups.
        chosen = min(pairs, key=lambda pair: max(self._rank[group] for group in pair))
        table = chosen[0].table
        self.merged[table].update(group.name for group in chosen)
        if Group(table, None) in self._rank:
            self.merged[table].add(None)
        self.mark_inseparable([Group(table, name) for name in self.merged[table]])


def by_size(name: Name, people: Set[str]) -> tuple[bool, int, tuple[str, ...]]:
    """The key that sorts groups by the number of people, the group of merged ones before all others."""
    return name is not None, len(people), name or ()
