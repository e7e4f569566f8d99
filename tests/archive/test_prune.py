"""What is pruned goes for good; what some version needs stays."""

import os
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.archive.archive import open_archive
from clew.archive.packs import open_pack, read_chunks
from clew.archive.prune import DAY_US, MAX_SMALL_PACKS, Plan, Policy, plan, prune
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from clew.errors import Busy
from tests.archive.worlds import World, lines

NOW_US = 1_800_000_000_000_000


def pruned(world: World, policy: Policy, repack: bool = False) -> Plan:
    with open_writer(world.archive) as writer:
        decided = plan(writer, policy, NOW_US)
        prune(writer, decided, repack)
        return decided


def aged(world: World, number: int, days: float, content: bytes) -> Path:
    path = world.write(number, content)
    stamp = (NOW_US - round(days * DAY_US)) * 1000
    os.utime(path, ns=(stamp, stamp))
    return path


def test_sessions_go_by_age_with_all_their_files(world: World) -> None:
    old = aged(world, 1, 40, lines(1))
    backup = world.home / ".claude" / "file-history" / old.stem / "0123456789abcdef@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"before")
    os.utime(backup, ns=(1, 1))
    young = aged(world, 2, 2, lines(2))
    world.capture()
    decided = pruned(world, Policy(keep_days=30))
    assert len(decided.dropped) == 2
    assert world.contents() == {young.name: [lines(2)]}
    assert verify(world.archive).problems == []


def test_a_young_file_keeps_its_old_session(world: World) -> None:
    old = aged(world, 1, 40, lines(1))
    backup = world.home / ".claude" / "file-history" / old.stem / "0123456789abcdef@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"before")
    os.utime(backup, ns=(NOW_US * 1000, NOW_US * 1000))
    world.capture()
    assert not pruned(world, Policy(keep_days=30)).dropped


def test_only_so_many_versions_stay(world: World) -> None:
    for number in range(5):
        world.write(1, lines(number))
        world.capture()
    pruned(world, Policy(keep_versions=2))
    assert world.contents() == {world.session(1).name: [lines(3), lines(4)]}


@pytest.mark.slow
def test_the_oldest_go_until_it_fits(world: World) -> None:
    for number in range(10):
        aged(world, number, 10 - number, os.urandom(5000).hex().encode())
        world.capture()
    decided = pruned(world, Policy(max_size=world.stored() // 2))
    assert 4 <= len(decided.dropped) <= 6
    assert world.stored() <= decided.size * 0.65
    assert set(world.contents()) == {world.session(number).name for number in range(len(decided.dropped), 10)}


def test_what_went_is_on_the_disk_no_more(world: World) -> None:
    secret, kept = os.urandom(600).hex().encode(), os.urandom(600).hex().encode()
    aged(world, 1, 40, kept + b"\n" + secret + b"\n")
    aged(world, 2, 1, kept + b"\n")
    world.capture()
    pruned(world, Policy(keep_days=30))
    assert world.contents() == {world.session(2).name: [kept + b"\n"]}
    with open_archive(world.archive) as archive:
        for name, offset in archive.index.db.execute("SELECT pack, offset FROM blocks"):
            with open_pack(world.archive, name) as pack:
                assert secret not in read_chunks(pack, name, offset)
    name = world.session(1).name.encode()
    assert not any(name in path.read_bytes() for path in world.archive.rglob("*") if path.is_file())


def test_a_plan_changes_nothing(world: World) -> None:
    aged(world, 1, 40, lines(1))
    world.capture()
    before = {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()}
    with open_archive(world.archive) as archive:
        assert plan(archive, Policy(keep_days=1), NOW_US).dropped
    assert {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()} == before


def test_a_prune_waits_for_nobody_and_disturbs_no_capture(world: World) -> None:
    world.write(1, lines(1))
    world.capture()
    with open_writer(world.archive), pytest.raises(Busy), open_writer(world.archive, wait=0):
        pass


def test_a_reader_goes_on_after_blocks_moved(world: World) -> None:
    for number in range(4):
        aged(world, number, 40 * (number == 0), os.urandom(3000).hex().encode())
        world.capture()
    with open_archive(world.archive) as archive:
        kept = [version for version in archive.newest() if b"00000000-" not in version.path]
        pruned(world, Policy(keep_days=30), repack=True)
        assert len(world.packs()) == 1
        assert [archive.content(version) for version in kept] == [world.session(at).read_bytes() for at in (1, 2, 3)]


@pytest.mark.slow
def test_many_small_packs_are_merged_by_a_capture(world: World) -> None:
    path = world.session(1)
    for number in range(2 * MAX_SMALL_PACKS + 2):
        with path.open("ab") as out:
            out.write(lines(number))
        world.capture()
        assert len(world.packs()) <= MAX_SMALL_PACKS + 1
    assert world.contents()[path.name] == [path.read_bytes()]
    with open_archive(world.archive) as archive:
        assert len(archive.captures) == 2 * MAX_SMALL_PACKS + 2
    assert verify(world.archive).problems == []


@pytest.mark.slow
def test_small_blocks_become_one_when_they_are_repacked(world: World) -> None:
    for number in range(20):
        world.write(number, lines(number))
        world.capture()
    before = world.contents()
    assert verify(world.archive).blocks == 20
    decided = pruned(world, Policy(), repack=True)
    assert verify(world.archive).blocks == 1
    assert world.stored() < decided.size / 3
    assert world.contents() == before
    world.write(30, lines(30))
    world.capture()
    assert verify(world.archive).problems == []


def test_a_pruned_record_that_comes_again_is_kept_again(world: World) -> None:
    aged(world, 1, 40, lines(1))
    world.capture()
    pruned(world, Policy(keep_days=30))
    assert world.contents() == {}
    world.session(1).unlink()
    world.write(2, lines(1))
    world.capture()
    assert world.contents() == {world.session(2).name: [lines(1)]}


_STEP = st.tuples(st.integers(0, 3), st.lists(st.integers(0, 12), min_size=1, max_size=6), st.booleans())


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_STEP, min_size=1, max_size=6), st.integers(1, 3))
def test_S10_no_chunk_that_is_needed_goes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[int], bool]], keep: int
) -> None:
    world = World(tmp_path_factory.mktemp("prune"))
    for number, records, again in steps:
        if again and world.session(number).exists():
            with world.session(number).open("ab") as out:
                out.write(lines(*records))
        else:
            world.write(number, lines(*records))
        world.capture()
    before = world.contents()
    pruned(world, Policy(keep_versions=keep))
    assert world.contents() == {name: versions[-keep:] for name, versions in before.items()}
    assert verify(world.archive).problems == []


@pytest.mark.slow
def test_captures_and_prunes_beside_each_other(world: World) -> None:
    problems: list[BaseException] = []

    def capture() -> None:
        try:
            for number in range(15):
                with world.session(1).open("ab") as out:
                    out.write(lines(number))
                while True:
                    try:
                        world.capture()
                        break
                    except Busy:
                        continue
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=capture)
    thread.start()
    while thread.is_alive():
        try:
            if world.versions():
                pruned(world, Policy(keep_versions=1), repack=True)
        except Exception as error:
            assert "lock" in str(error) or "no archive" in str(error), error
    thread.join()
    assert not problems
    world.capture()
    assert world.contents() == {world.session(1).name: [world.session(1).read_bytes()]}
    assert verify(world.archive).problems == []


def test_a_clock_that_went_back_swaps_no_versions(world: World) -> None:
    for number, day in ((1, 3), (2, 2), (3, 1)):
        world.host = world.host._replace(now=partial(datetime, 2026, 11, day, tzinfo=UTC))
        world.write(1, lines(number))
        world.capture()
    assert world.contents() == {world.session(1).name: [lines(1), lines(2), lines(3)]}
    pruned(world, Policy(keep_versions=2), repack=True)
    assert world.contents() == {world.session(1).name: [lines(2), lines(3)]}
    assert verify(world.archive).problems == []


def test_the_largest_that_may_stay_is_chosen_by_what_was_written_and_not_by_what_was_touched(world: World) -> None:
    """An old session that somebody touched, or copied back, is an old session; its files go together."""
    for number in range(4):
        path = aged(world, number, 40 - number, os.urandom(5000).hex().encode())
        backup = world.home / ".claude" / "file-history" / path.stem / "0123456789abcdef@v1"
        backup.parent.mkdir(parents=True)
        backup.write_bytes(os.urandom(2000))
        stamp = (NOW_US - round((40 - number) * DAY_US)) * 1000
        os.utime(backup, ns=(stamp, stamp))
    world.capture()
    os.utime(world.session(0), ns=(NOW_US * 1000, NOW_US * 1000))
    world.capture()
    decided = pruned(world, Policy(max_size=world.stored() // 2 + 2500))
    gone = {version.main for version in decided.dropped}
    assert gone == {os.fsencode(world.session(number)) for number in (0, 1)}
    assert len(decided.dropped) == 4
    assert not gone & {version.main for version in decided.kept}
