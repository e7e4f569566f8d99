"""What the time machine tells of sessions of clew's own store: from its copies, and never anything else."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from clew.file_history.blame import blame, versions
from clew.file_history.fingerprint import Fingerprint
from clew.file_history.history import FileHistory
from clew.file_history.restore import plan
from clew.io.blobs import digest_of
from tests.files.asking import body
from tests.files.storing import ALL, HIDDEN, NAMES, NOTES, Deed, World
from tests.store.support import in_memory

Step = tuple[object, ...]
HOWS = st.sampled_from(["append", "prepend", "replace", "rewrite", "drop", "delete"])
DEEDS = st.builds(Deed, HOWS, st.sampled_from(NAMES))
PERSONAL = st.builds(Deed, HOWS, st.sampled_from((*NAMES, NOTES)))
ANY_DEEDS = st.builds(Deed, HOWS, st.sampled_from(ALL))
RUNS = st.lists(st.tuples(st.lists(DEEDS, max_size=2), st.booleans()), min_size=1, max_size=2)
NUMBERS = st.integers(0, 99)
RESULTS = st.sampled_from(["one", "one", "each", "none"])
COMMON = (
    st.tuples(st.just("say"), st.sampled_from(["user", "assistant", "system"])),
    st.tuples(st.just("back"), st.sampled_from(["undo", "to", "file", "redo", "redo", "switch"]), NUMBERS),
)
WHOLE: st.SearchStrategy[Step] = st.tuples(
    st.just("whole"), st.lists(st.lists(DEEDS, max_size=2), min_size=1, max_size=2), RESULTS, st.just([])
)
NAMED: st.SearchStrategy[Step] = st.tuples(st.just("named"), RUNS, st.just([]))
BESIDE = st.one_of(
    *COMMON,
    st.tuples(st.just("person"), PERSONAL),
    # A look at the whole folder speaks for the command; one by name only for a tool that names its files.
    st.tuples(
        st.just("whole"),
        st.lists(st.lists(DEEDS, max_size=2), min_size=1, max_size=2),
        RESULTS,
        st.lists(st.one_of(st.none(), PERSONAL), max_size=3),
    ),
    st.tuples(st.just("named"), RUNS, st.lists(st.one_of(st.none(), PERSONAL), max_size=3)),
)
"""With a person who edits files at any moment."""
CUT_OFF = st.one_of(BESIDE, st.tuples(st.just("killed"), st.lists(DEEDS, max_size=2), st.just(False)))
"""The same with tools that are killed while the whole workspace is watched: nothing tells them from the person."""
ALONE = st.one_of(
    *COMMON,
    st.tuples(
        st.just("whole"), st.lists(st.lists(ANY_DEEDS, max_size=2), min_size=1, max_size=2), RESULTS, st.just([])
    ),
    st.tuples(st.just("runs"), RUNS, st.sampled_from(["bash", "my_tool", "grep"]), RESULTS),
    st.tuples(st.just("unwatched"), st.lists(ANY_DEEDS, max_size=2)),
    st.tuples(st.just("killed"), st.lists(DEEDS, max_size=2), st.booleans()),
    st.tuples(st.just("branch"), NUMBERS),
)
"""With tools that nobody watches, or that are killed, and conversations that go elsewhere without a word."""


def do(world: World, step: Step) -> None:
    match step:
        case ("say", str(role)):
            world.say(role)
        case ("back", str(how), int(number)):
            world.back(how, number)
        case ("person", Deed() as deed):
            world.person(deed)
        case ("whole", list(runs), str(results), list(persons)):
            world.reply([(deeds, False) for deeds in runs], results=results, persons=persons)
        case ("named", list(runs), list(persons)):
            world.reply([(deeds, True) for deeds, _ in runs], results="none", persons=persons)
        case ("runs", list(runs), str(tool), str(results)):
            world.reply(runs, tool=tool, results=results)
        case ("unwatched", list(deeds)):
            world.unwatched(deeds)
        case ("killed", list(deeds), bool(named)):
            world.killed(deeds, named)
        case ("branch", int(number)):
            world.say("user", number)
        case _:
            raise AssertionError(step)


def check(world: World) -> Counter[str]:
    """Everything that is called exact is right, and all ways to ask agree; returns how much is."""
    history = world.history()
    return shown(world, history) + _marks(world, history) + _lines(world, history)


def shown(world: World, history: FileHistory) -> Counter[str]:
    """The file at each message, shown and restored."""
    count: Counter[str] = Counter()
    known = {world.path(name): name for name in ALL}
    asked = [(message, answer) for message in range(1, world.index + 1) for answer in history.all_at(message)]
    states = history.contents([answer for _, answer in asked])
    with tempfile.TemporaryDirectory() as empty:
        steps = plan(
            [(answer, state) for (_, answer), state in zip(asked, states, strict=True) if answer.certainty == "exact"],
            Path(empty),
            str(world.work),
            allow_protected=True,
        )
    for (message, answer), state in zip(asked, states, strict=True):
        truth = world.moments[message].get(known[answer.path])
        # What a look at the whole folder leaves out is asked for, too, but not counted.
        count[answer.certainty if known[answer.path] != HIDDEN else "hidden"] += 1
        if answer.certainty == "exact":
            assert body(state) == truth, (message, answer)
            step = steps.pop(0)
            assert (step.verdict, body(step.state)) == ("write" if truth is not None else "same", truth)
            if not answer.is_absent:
                assert answer.how == "backup"
    return count


def _marks(world: World, history: FileHistory) -> Counter[str]:
    """What each run did, as `files` and `diff` tell it."""
    count: Counter[str] = Counter()
    doings = [evidence for evidence in history.all_evidence() if evidence.action in ("create", "change", "delete")]
    left = Counter(
        (evidence.call, evidence.path, _digest(evidence.before), _digest(evidence.after)) for evidence in doings
    )
    for did in world.did:
        key = (did.message, world.path(did.name), _of(did.before), _of(did.after))
        count["run told" if left[key] else "run not told"] += 1
        left[key] -= 1
    # No run is made up: what is left over says plainly that it is not known.
    for (call, path, before, after), number in left.items():
        assert number <= 0 or before == after or "?" in (before, after), (call, path)
    return count


def _of(truth: bytes | None) -> str:
    return "" if truth is None else digest_of(truth)


def _digest(found: Fingerprint | None) -> str:
    return "?" if found is None or found.certainty != "exact" else found.digest


def _lines(world: World, history: FileHistory) -> Counter[str]:
    """Who wrote each line of what is there now."""
    count: Counter[str] = Counter()
    for name, now in world.disk().items():
        told = [version for _, version in versions(history.agent, history.source, "s", {world.path(name)})]
        for line in blame(now, told):
            author = line.text.split()[0]
            if line.origin is not None:
                assert f"m{line.origin.message}" == author, (name, line)
                assert line.origin.how == "backup"
            if author.startswith("m") and name != HIDDEN:
                count["line told" if line.origin is not None else "line not told"] += 1
    return count


def tried(steps: st.SearchStrategy[Step], examples: int, named: bool = True) -> Counter[str]:
    """Many sessions of such steps, each between two looks at all files; returns how much is known of all of them."""
    total: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None)
    @given(st.sets(st.sampled_from((*NAMES, NOTES))), st.lists(steps, max_size=10))
    def run(there: set[str], steps: list[Step]) -> None:
        with in_memory() as home:
            world = World(home, sorted(there))
            world.look(named)
            for step in steps:
                do(world, step)
            world.look(named)
            found = check(world)
            note(str(dict(found)))
            total.update(found)

    run()
    print(_shares(total))
    return total


@pytest.mark.slow
def test_of_watched_tools_everything_is_exact() -> None:
    total = tried(st.one_of(*COMMON, WHOLE, NAMED), 60)
    assert total["exact"] > 20 * (total["unknown"] + total["unproved"])
    assert total["run not told"] == total["line not told"] == 0


@pytest.mark.slow
def test_beside_a_person_what_is_called_exact_was_there() -> None:
    total = tried(BESIDE, 60)
    assert total["exact"] > total["unknown"] + total["unproved"]
    assert total["run not told"] == total["line not told"] == 0


@pytest.mark.slow
def test_of_files_that_no_record_names_nothing_is_called_exact_across_an_edit() -> None:
    total = tried(BESIDE, 60, named=False)
    assert total["exact"] > total["unknown"] + total["unproved"]
    assert total["run not told"] == total["line not told"] == 0


@pytest.mark.slow
def test_beside_a_person_and_tools_that_are_cut_off_what_is_called_exact_was_there() -> None:
    total = tried(CUT_OFF, 60)
    assert total["run not told"] == 0


@pytest.mark.slow
def test_beside_tools_that_are_not_watched_what_is_called_exact_was_there() -> None:
    total = tried(ALONE, 60)
    assert total["run not told"] == 0
    # Where a tool was cut off, whose lines are whose is not always known.
    assert total["line told"] > 5 * total["line not told"]


def _shares(total: Counter[str]) -> str:
    asked = sum(total[name] for name in ("exact", "text", "unproved", "unknown"))
    return f"{total['exact'] / max(asked, 1):.1%} of {asked} answers exact; {dict(total)}"
