"""Totals without single people: no row, and no difference between rows, is about fewer than five people."""

from __future__ import annotations

import random
from functools import reduce
from itertools import chain, combinations
from operator import xor

from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.stats import Amounts
from clew.warehouse.totals import MIN_PEOPLE, REST, PersonUsage, TotalsRow, safe_totals


def used(person: str, *groups: str, cost: int = 1) -> PersonUsage:
    return PersonUsage(person, tuple((name,) for name in groups), Amounts(1, 1, cost_nano=cost))


def names(rows: list[TotalsRow]) -> dict[object, int]:
    return {row.name and row.name[0]: row.people for row in rows}


def team(name: str, size: int, project: str) -> list[PersonUsage]:
    return [used(f"{name}{number}", name, project) for number in range(size)]


def test_groups_with_enough_people_are_shown_as_they_are() -> None:
    teams, projects = safe_totals([*team("a", 5, "p"), *team("b", 6, "p")])
    assert names(teams) == {"a": 5, "b": 6}
    assert names(projects) == {"p": 11}


def test_small_groups_are_merged() -> None:
    (teams,) = safe_totals(
        [used(f"{name}{n}", name) for name, size in (("a", 3), ("b", 2), ("c", 9)) for n in range(size)]
    )
    assert names(teams) == {"c": 9, REST: 5}


def test_one_small_group_takes_the_next_larger_one_with_it() -> None:
    """Alone it would be the total minus all others."""
    (teams,) = safe_totals(
        [used(f"{name}{n}", name) for name, size in (("a", 1), ("b", 6), ("c", 9)) for n in range(size)]
    )
    assert names(teams) == {"c": 9, REST: 7}
    assert sum(row.amounts.cost_nano for row in teams) == 16


def test_too_few_people_are_not_shown_at_all() -> None:
    assert safe_totals([*team("a", 4, "p")]) == [[], []]
    assert safe_totals([]) == []


def test_usage_of_unknown_people_counts_but_makes_no_group_larger() -> None:
    (teams,) = safe_totals([*(used(f"a{n}", "a") for n in range(5)), used("", "b"), *(used("", "c") for _ in range(9))])
    assert names(teams) == {REST: 5}
    assert teams[0].amounts.calls == 15


def test_the_projects_of_a_team_do_not_reveal_what_else_one_of_it_did() -> None:
    """All of project p is work of team a; the rest of the team's work is that of one person."""
    usage = [*team("a", 6, "p"), used("a0", "a", "secret"), *team("b", 7, "q"), *team("c", 5, "secret")]
    teams, projects = safe_totals(usage)
    assert not ("a" in names(teams) and "p" in names(projects)), "a - p is a0 alone"
    assert not ("c" in names(teams) and "secret" in names(projects)), "so is secret - c"
    assert names(teams)["b"] == names(projects)["q"] == 7, "all of q is all of b"


def test_the_projects_that_two_teams_share_do_not_reveal_it_either() -> None:
    usage = [*team("a", 6, "p"), *team("b", 6, "p"), used("a0", "a", "secret"), *team("c", 9, "secret")]
    teams, projects = safe_totals(usage)
    assert not ({"a", "b"} <= names(teams).keys() and "p" in names(projects)), "a + b - p is a0 alone"


def test_sums_of_several_rows_of_both_tables_do_not_reveal_it_either() -> None:
    """Each cell has six people, but x + y + z - a - b is one of team c."""
    cells = ["ax", "ay", "by", "bz", "cv", "cw", "dw", "du", "eu", "ev"]
    usage = [used(f"{cell}{number}", *cell) for cell in cells for number in range(6)]
    teams, projects = safe_totals([*usage, used("cv0", "c", "z", cost=777)])
    assert not ({"x", "y", "z"} <= names(projects).keys() and {"a", "b"} <= names(teams).keys())
    assert (len(teams), len(projects)) in ((4, 6), (5, 5)), "two groups are merged, and no more"


def test_four_people_in_several_cells_between_rows_are_few() -> None:
    usage = [*team("a", 6, "p"), *team("b", 6, "q")]
    four = [used("a0", "a", "q"), used("a1", "a", "q"), used("b0", "b", "p"), used("b1", "b", "p")]
    assert [len(rows) for rows in safe_totals([*usage, *four])] in ([1, 2], [2, 1])
    assert [len(rows) for rows in safe_totals([*usage, *four, used("b2", "b", "p")])] == [2, 2]


def test_three_tables_together_can_single_out_a_person() -> None:
    """A known limit, which the guide names: only two tables are compared at a time."""
    usage = [used(f"{cell}{number}", *cell) for cell in ("adx", "bdy", "aey") for number in range(6)]
    tables = safe_totals([*usage, used("adx0", "b", "e", "y", cost=777)])
    costs = {row.name[0]: row.amounts.cost_nano for rows in tables for row in rows if row.name is not None}
    assert costs["b"] + costs["e"] - costs["y"] == 777


def test_unknown_costs_stay_unknown() -> None:
    usage = [PersonUsage(f"a{n}", (("a",),), Amounts(2, 0, input_tokens=3)) for n in range(5)]
    ((row,),) = safe_totals(usage)
    assert (row.amounts.calls, row.amounts.priced_calls, row.amounts.input_tokens) == (10, 0, 15)
    assert row.amounts.output_tokens is None


@given(st.integers(0, 2**32))
def test_no_row_and_no_difference_of_two_tables_is_about_few_people(seed: int) -> None:
    """Checked against the usage itself: every row is found by its cost, which names what is in it."""
    dice = random.Random(seed)
    count = dice.randrange(1, 40)
    people = [f"p{number}" for number in range(dice.randrange(1, 14))]
    usage = [
        used(dice.choice(people), *(dice.choice("abcdef"[: dice.randrange(1, 7)]) for _ in range(3)), cost=1 << number)
        for number in range(count)
    ]
    tables = safe_totals(usage)
    assert all(sum(row.amounts.cost_nano for row in rows) in (0, (1 << count) - 1) for rows in tables)
    for rows in tables:
        for row in rows:
            assert len(_people_in(usage, row.amounts.cost_nano)) == row.people >= MIN_PEOPLE
    for one, other in combinations(tables, 2):
        costs = [row.amounts.cost_nano for row in (*one, *other)]
        for chosen in chain.from_iterable(combinations(costs, size) for size in range(len(costs) + 1)):
            # What is in a row of each table is subtracted.
            left = reduce(xor, chosen, 0)
            assert not left or len(_people_in(usage, left)) >= MIN_PEOPLE


def _people_in(usage: list[PersonUsage], cost: int) -> set[str]:
    return {row.person for row in usage if row.amounts.cost_nano & cost}
