"""Monthly totals without rows of single people: small groups are merged until no row is about fewer than five people.

The rows of every table add up to the same total. Rows of two tables are compared too: whatever rows of both are added
and subtracted, the result is empty or about five people as well. Three or more tables are not compared: rows of them
together can still tell what a single person used, and so can any row to a reader who knows what the others used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import NamedTuple

from clew.catalog.stats import Amounts
from clew.warehouse.differences import Cells, Group, Name, by_size, groups_to_merge

MIN_PEOPLE = 5
"""Minimum number of people in a row. A person whose name is unknown does not count."""
REST = None
"""The name of the group that small groups are merged into. Names of other groups are tuples of strings."""


class PersonUsage(NamedTuple):
    """What one person used in one group of each table."""

    person: str
    """The login of the person; "" if unknown."""
    groups: tuple[Name, ...]
    """The group in each of the tables."""
    amounts: Amounts


class TotalsRow(NamedTuple):
    """A row of a table of totals."""

    name: Name
    people: int
    amounts: Amounts


def safe_totals(usage: Sequence[PersonUsage]) -> list[list[TotalsRow]]:
    """The rows of each table, sorted by name. No rows at all, if all of it is about too few people."""
    if len(_people(usage)) < MIN_PEOPLE:
        return [[] for _ in (usage[0].groups if usage else ())]
    merged = list(usage)
    for table in range(len(usage[0].groups)):
        merged = _merge_groups(merged, table, _small_groups(merged, table))
    # Merging does not undo what was done before: each sum of merged rows is a sum of the rows that were there.
    for tables in combinations(range(len(usage[0].groups)), 2):
        for table, names in zip(tables, groups_to_merge(_cells(merged, tables), MIN_PEOPLE), strict=True):
            merged = _merge_groups(merged, table, names)
    return [_sum_rows(merged, table) for table in range(len(usage[0].groups))]


def _people(usage: Sequence[PersonUsage]) -> set[str]:
    return {row.person for row in usage if row.person}


def _people_by_group(usage: Sequence[PersonUsage], table: int) -> dict[Name, set[str]]:
    found: dict[Name, set[str]] = {}
    for row in usage:
        found.setdefault(row.groups[table], set()).update([row.person] if row.person else [])
    return found


def _small_groups(usage: Sequence[PersonUsage], table: int) -> set[Name]:
    """The groups with too few people, and the next larger ones until all of these have enough together."""
    people = _people_by_group(usage, table)
    chosen, together = set[Name](), set[str]()
    for name in sorted(people, key=lambda name: by_size(name, people[name])):
        if len(people[name]) >= MIN_PEOPLE and (not chosen or len(together) >= MIN_PEOPLE):
            break
        chosen.add(name)
        together |= people[name]
    return chosen


def _merge_groups(usage: list[PersonUsage], table: int, names: set[Name]) -> list[PersonUsage]:
    """The usage with some groups of a table merged, and summed again."""
    if not names:
        return usage
    found: dict[Hashable, PersonUsage] = {}
    for row in usage:
        if row.groups[table] in names:
            row = row._replace(groups=(*row.groups[:table], REST, *row.groups[table + 1 :]))
        key = (row.person, row.groups)
        before = found.get(key)
        found[key] = row if before is None else before._replace(amounts=before.amounts + row.amounts)
    return list(found.values())


def _cells(usage: Sequence[PersonUsage], tables: tuple[int, int]) -> Cells:
    found: dict[tuple[Group, Group], set[str]] = {}
    for row in usage:
        one, other = (Group(number, row.groups[table]) for number, table in enumerate(tables))
        found.setdefault((one, other), set()).update([row.person] if row.person else [])
    return found


def _sum_rows(usage: Sequence[PersonUsage], table: int) -> list[TotalsRow]:
    people = _people_by_group(usage, table)
    sums: dict[Name, Amounts] = {}
    for row in usage:
        name = row.groups[table]
        sums[name] = sums[name] + row.amounts if name in sums else row.amounts
    names = sorted(sums, key=lambda name: (name is REST, name or ()))
    return [TotalsRow(name, len(people[name]), sums[name]) for name in names]
