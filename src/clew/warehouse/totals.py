"""Monthly totals without rows of single people: small groups are merged until no row is about fewer than five people.

The rows of every table add up to the same total, so that nothing is left to subtract. Rows of two tables are compared
too: where some rows of one table lie within a row of another one, such as the projects of a team, or within several
rows that share them, the difference must be empty or about five people as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from clew.catalog.stats import Amounts

MIN_PEOPLE = 5
"""Of whom a row tells. A person whose name is unknown does not count."""
REST = None
"""The name of the group that small groups are merged into. Names of other groups are tuples of strings."""

Name = tuple[str, ...] | None


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
    while unsafe := _revealing_group(merged):
        merged = _merge_groups(merged, *unsafe)
    return [_sum_rows(merged, table) for table in range(len(usage[0].groups))]


def _people(usage: Sequence[PersonUsage]) -> set[str]:
    return {row.person for row in usage if row.person}


def _people_by_group(usage: Sequence[PersonUsage], table: int) -> dict[Name, set[str]]:
    found: dict[Name, set[str]] = {}
    for row in usage:
        found.setdefault(row.groups[table], set()).update([row.person] if row.person else [])
    return found


def _by_size(people: Mapping[Name, set[str]]) -> list[Name]:
    """The groups with the fewest people first, the group of merged ones before all others."""
    return sorted(people, key=lambda name: (name is not REST, len(people[name]), name or ()))


def _small_groups(usage: Sequence[PersonUsage], table: int) -> set[Name]:
    """The groups with too few people, and the next larger ones until all of these have enough together."""
    people = _people_by_group(usage, table)
    chosen, together = set[Name](), set[str]()
    for name in _by_size(people):
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


def _revealing_group(usage: Sequence[PersonUsage]) -> tuple[int, set[Name]] | None:
    """A table, and groups of it to merge, because another table minus them would be about too few people."""
    tables = range(len(usage[0].groups))
    for inner in tables:
        for outer in tables:
            if inner != outer and (names := _groups_that_reveal(usage, inner, outer)):
                return inner, names
    return None


def _groups_that_reveal(usage: Sequence[PersonUsage], inner: int, outer: int) -> set[Name]:
    """Groups of `inner` to merge, so that no sum of `outer` minus the groups of `inner` within it is too small.

    The sums that are checked are those which hold a group of `inner` exactly: one group of `outer`, or several.
    """
    people: dict[Name, dict[Name, set[str]]] = {}
    containers: dict[Name, set[Name]] = {}
    for row in usage:
        people.setdefault(row.groups[outer], {}).setdefault(row.groups[inner], set()).add(row.person)
        containers.setdefault(row.groups[inner], set()).add(row.groups[outer])
    by_size = _by_size(_people_by_group(usage, inner))
    chosen = set[Name]()
    for names in {frozenset(found) for found in containers.values()}:
        if _is_revealing(names, people, containers):
            # Merged with a group that is not within the sum, a group within it becomes a part of the difference.
            inside = next(group for group in by_size if containers[group] <= names)
            chosen |= {REST, inside, next(group for group in by_size if not containers[group] <= names)}
    return chosen


def _is_revealing(
    names: frozenset[Name], people: Mapping[Name, Mapping[Name, set[str]]], containers: Mapping[Name, set[Name]]
) -> bool:
    """True if the sum of some groups, minus the groups of another table within it, is about somebody but few people."""
    is_inside: dict[Name, bool] = {}
    remainder = set[str]()
    for name in names:
        for group, found in people[name].items():
            if group not in is_inside:
                is_inside[group] = containers[group] <= names
            if not is_inside[group]:
                remainder |= found
                if len(remainder - {""}) >= MIN_PEOPLE:
                    return False
    return bool(remainder)


def _sum_rows(usage: Sequence[PersonUsage], table: int) -> list[TotalsRow]:
    people = _people_by_group(usage, table)
    sums: dict[Name, Amounts] = {}
    for row in usage:
        name = row.groups[table]
        sums[name] = sums[name] + row.amounts if name in sums else row.amounts
    names = sorted(sums, key=lambda name: (name is REST, name or ()))
    return [TotalsRow(name, len(people[name]), sums[name]) for name in names]
