"""Sessions that are held are not removed, by whatever command, and the refusal names the hold."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clew.archive.archive import open_archive
from clew.archive.holds import CatalogFacts, Held, Hold, Holds, add_hold, load_holds, remove_hold
from clew.archive.prune import DAY_US, Policy, plan, prune
from clew.archive.records import HOLDS, archive_folder
from clew.archive.writer import open_writer
from clew.errors import PathRefused, SourceUnreadable, UnknownReference, WouldLose
from tests.archive.test_clean import session as write_session
from tests.archive.test_prune import NOW_US, aged
from tests.archive.worlds import World, lines
from tests.cli.running import BELL, FORKED, LATEST, clew

NOW = datetime(2026, 11, 15, tzinfo=UTC)
WHEN = "2026-11-01T00:00:00Z"
LOG = Path("/home/ada/.claude/projects/x/1.jsonl")


TEN_DAYS_AGO = NOW - timedelta(days=10)
OLD = CatalogFacts(last_message=TEN_DAYS_AGO)
RECENT = CatalogFacts(last_message=NOW - timedelta(days=2))


def hold_on(hold: Hold, folder: Path, *, known: CatalogFacts | None = None) -> Held | None:
    """The hold on a session whose file was changed ten days ago."""
    add_hold(folder, hold)
    holds = Holds(folder, {LOG: known} if known is not None else {})
    return holds.find("claude-code", "abc", LOG, TEN_DAYS_AGO, NOW)


@pytest.mark.parametrize(
    ("hold", "known", "is_held"),
    [
        (Hold("all", WHEN), None, True),
        (Hold("session", WHEN, sessions=("claude-code:abc",)), None, True),
        (Hold("session", WHEN, sessions=("codex:abc",)), None, False),
        (Hold("agent", WHEN, agents=("claude-code",)), None, True),
        (Hold("agent", WHEN, agents=("codex",)), None, False),
        (Hold("project", WHEN, project="Tide"), CatalogFacts("/home/ada/tidepool"), True),
        (Hold("project", WHEN, project="moon"), CatalogFacts("/home/ada/tidepool"), False),
        (Hold("project", WHEN, project="moon"), None, True),
        (Hold("folder", WHEN, folders=("/home/ada",)), CatalogFacts("/home/ada/tidepool"), True),
        (Hold("folder", WHEN, folders=("/home/ada/tide",)), CatalogFacts("/home/ada/tidepool"), False),
        (Hold("since", WHEN, since="2026-11-01T00:00:00Z"), None, True),
        (Hold("since", WHEN, since="2026-11-10T00:00:00Z"), None, True),
        (Hold("since", WHEN, since="2026-11-10T00:00:00Z"), OLD, False),
        (Hold("since", WHEN, since="2026-11-10T00:00:00Z"), RECENT, True),
        (
            Hold("until", WHEN, until="2026-11-01T00:00:00Z"),
            CatalogFacts(started=datetime(2026, 10, 1, tzinfo=UTC)),
            True,
        ),
        (
            Hold("until", WHEN, until="2026-11-01T00:00:00Z"),
            CatalogFacts(started=datetime(2026, 11, 2, tzinfo=UTC)),
            False,
        ),
        (Hold("until", WHEN, until="2026-11-01T00:00:00Z"), None, True),
        (Hold("age", WHEN, min_age_days=183), OLD, True),
        (Hold("age", WHEN, min_age_days=9), OLD, False),
        (Hold("age", WHEN, min_age_days=9), RECENT, True),
        (Hold("age", WHEN, min_age_days=9), None, True),
        (Hold("removed", WHEN, removed_at=WHEN), None, False),
    ],
)
def test_what_a_hold_covers(hold: Hold, known: CatalogFacts | None, is_held: bool, tmp_path: Path) -> None:
    held = hold_on(hold, tmp_path, known=known)
    assert (held and held.hold) == (f"hold 1: {hold.reason}" if is_held else None)


def test_a_removed_hold_is_remembered(tmp_path: Path) -> None:
    assert add_hold(tmp_path, Hold("one", WHEN)) == "1"
    remove_hold(tmp_path, "1", "settled", NOW)
    assert add_hold(tmp_path, Hold("two", WHEN)) == "2"
    assert load_holds(tmp_path)["1"].removal_reason == "settled"
    with pytest.raises(UnknownReference):
        remove_hold(tmp_path, "1", "again", NOW)


def test_a_damaged_file_of_holds_lets_nothing_go(world: World) -> None:
    aged(world, 1, 400, lines(1))
    world.capture()
    (world.archive / HOLDS).write_text("{")
    with open_archive(world.archive) as archive, pytest.raises(SourceUnreadable, match=r"holds\.json"):
        plan(archive, Policy(keep_days=30), NOW_US)


def test_a_link_in_the_place_of_the_holds_is_refused(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1))
    world.capture()
    (tmp_path / "elsewhere").write_text("{}")
    (world.archive / HOLDS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathRefused):
        load_holds(world.archive)


@pytest.mark.parametrize("policy", [Policy(keep_days=30), Policy(max_size=0)])
def test_prune_refuses_what_is_held(world: World, policy: Policy) -> None:
    held, other = aged(world, 1, 400, lines(1)), aged(world, 2, 400, lines(2))
    world.capture()
    before = world.contents()
    add_hold(world.archive, Hold("case 7", WHEN, sessions=(f"claude-code:{held.stem}",)))
    with open_writer(world.archive) as writer:
        decided = plan(writer, policy, NOW_US)
        assert set(decided.held.values()) == {Held("hold 1: case 7")}
        with pytest.raises(WouldLose, match=r"files of 1 session are held \(hold 1: case 7\)"):
            prune(writer, decided)
    assert world.contents() == before
    with open_writer(world.archive) as writer:
        prune(writer, plan(writer, policy, NOW_US, skip_held=True))
    assert world.contents() == {held.name: [lines(1)]}
    assert other.name not in world.contents()


def test_old_versions_of_a_held_session_stay(world: World) -> None:
    for number in range(3):
        world.write(1, lines(number))
        world.capture()
    add_hold(world.archive, Hold("case 7", WHEN))
    with open_writer(world.archive) as writer, pytest.raises(WouldLose, match="case 7"):
        prune(writer, plan(writer, Policy(keep_versions=1), NOW_US))


def test_a_minimum_age_ends(world: World) -> None:
    """By the last message, if a catalog knows it, and else by the time of the capture."""
    known = {}
    for number, days in ((1, 100), (2, 200), (3, 200)):
        path = aged(world, number, 400, lines(number))
        if number != 3:
            known[path] = CatalogFacts(last_message=datetime.fromtimestamp(NOW_US / 1e6 - days * 86_400, UTC))
    world.host = world.host._replace(now=lambda: datetime.fromtimestamp(NOW_US / 1e6 - 10 * 86_400, UTC))
    world.capture()
    add_hold(world.archive, Hold("retention", WHEN, min_age_days=183))

    def removed(days_later: int) -> set[Path]:
        with open_archive(world.archive) as archive:
            decided = plan(archive, Policy(keep_days=30), NOW_US + days_later * DAY_US, known, skip_held=True)
        return {Path(os.fsdecode(version.path)) for version in decided.dropped}

    assert removed(0) == {world.session(2)}
    assert removed(90) == {world.session(1), world.session(2)}
    assert removed(180) == {world.session(number) for number in (1, 2, 3)}


@pytest.mark.parametrize("known_by", ["its file", "its archived copy"])
def test_activity_is_the_last_message_if_the_file_has_an_older_time(tmp_path: Path, known_by: str) -> None:
    home, words = tmp_path / "home", ("archive", "prune", "--allow-loss", "--skip-held", "--yes")
    write_session(home, "of-today", 0)
    write_session(home, "of-200-days-ago", 200)
    for path in home.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    if known_by == "its file":
        assert clew("--home", home, "list").code == 0
    assert clew("--home", home, "archive").code == 0
    shutil.rmtree(home / ".claude")
    if known_by == "its archived copy":
        assert clew("--source", "archive", "list").code == 0
    rows = clew("archive", "list", "--json").json
    assert [row["id"] for row in rows if row["last_activity"] > row["modified_at"]] == ["of-today", "of-200-days-ago"]
    assert clew(*words, "--keep-days", "300").code == 0
    assert len(clew("archive", "list", "--json").json) == 2
    assert clew("archive", "hold", "add", "--all", "--min-age", "183", "--reason", "retention").code == 0
    assert clew(*words, "--keep-days", "0").code == 0
    assert [row["id"] for row in clew("archive", "list", "--json").json] == ["of-today"]


def test_the_commands(synced_demo: Path) -> None:
    added = clew("--home", synced_demo, "archive", "hold", "add", FORKED[:8], "--reason", "case 7", "--json")
    assert added.code == 0
    assert added.json["sessions"] == [f"claude-code:{FORKED}"]
    assert clew("archive", "hold", "add", "--min-age", "183", "--reason", "retention").code == 0
    assert [row["hold"] for row in clew("archive", "hold", "list", "--json").json] == ["1", "2"]
    assert "until they are 183 days old" in clew("archive", "hold", "list").out
    assert clew("archive", "hold", "add", "--reason", "nothing chosen").code == 2
    assert clew("archive", "hold", "add", "--all", "--project", "x", "--reason", "both").code == 2
    assert clew("archive", "hold", "remove", "1", "--reason", "settled").code == 0
    assert clew("archive", "hold", "remove", "1", "--reason", "again").code == 1
    assert len(clew("archive", "hold", "list", "--json").json) == 1
    assert len(clew("archive", "hold", "list", "--removed", "--json").json) == 2


def test_prune_names_the_hold_on_a_project(synced_demo: Path) -> None:
    assert clew("--home", synced_demo, "archive").code == 0
    assert clew("archive", "hold", "add", "--project", "tidepool", "--reason", "case 7").code == 0
    words = ("archive", "prune", "--keep-days", "0", "--allow-loss")
    shown, refused = clew(*words), clew(*words, "--yes")
    assert all(line.endswith("  (held: hold 1: case 7)") for line in shown.out.splitlines())
    assert refused.code == 6
    assert refused.err == shown.err.replace("nothing would be removed", "clew: nothing was removed")
    report = clew(*words, "--json").json
    assert (report["dropped"], report["left"]) == ([], report["size"])
    assert report["refusal"] in refused.err
    planned, done = clew(*words, "--skip-held", "--json").json, clew(*words, "--skip-held", "--yes", "--json")
    assert done.code == 0
    assert (planned["dropped"], planned["held"], planned["kept"]) == tuple(
        done.json[name] for name in ("dropped", "held", "kept")
    )
    kept = {row["id"] for row in clew("archive", "list", "--json").json}
    assert LATEST in kept
    assert BELL not in kept and len(kept) > 1
    assert f"files of {len(kept)} sessions are held (hold 1: case 7)" in refused.err


def test_it_is_said_how_many_sessions_are_held_because_their_project_is_not_known(demo: Path) -> None:
    assert clew("--home", demo, "archive").code == 0
    number = len(clew("archive", "list", "--json").json)
    note = f"clew: hold 1: case 7: covers {number} archived sessions of which no catalog knows the project; `clew sync`"
    assert note in clew("archive", "hold", "add", "--project", "moon.phase", "--reason", "case 7").err
    words = ("archive", "prune", "--keep-days", "0")
    assert note in clew(*words, "--yes").err
    assert note in clew(*words).err
    assert clew(*words, "--json").json["held"][0]["unknown"] == "project"
    assert clew("--home", demo, "sync").code == 0
    assert "of which no catalog knows" not in clew(*words).err


def test_clean_keeps_what_is_held(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    for path in home.rglob("*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert clew("archive", "hold", "add", "--all", "--reason", "case 7").code == 0
    words = ("--home", home, "clean", "--older-than", "1d", "--agent", "claude", "--yes")
    done = clew(*words)
    assert done.code == 1
    assert "it is held (hold 1: case 7)" in done.err
    assert sorted(home.rglob("*.jsonl")) == sorted(home / path.relative_to(demo) for path in demo.rglob("*.jsonl"))


def test_erase_refuses_what_is_held(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    assert clew("--home", home, "archive", "hold", "add", BELL, "--reason", "case 7").code == 0
    for words in ((BELL,), (BELL, "1")):
        done = clew("--home", home, "erase", *words, "--yes")
        assert (done.code, "hold 1: case 7" in done.err) == (6, True)
    assert clew("--home", home, "show", BELL).code == 0


def test_scrub_leaves_alone_what_is_held(tmp_path: Path) -> None:
    log = tmp_path / "home/.claude/projects/-src-tide/11111111-2222-4333-8444-555555555555.jsonl"
    log.parent.mkdir(parents=True)
    text = "use " + "AKIA" + "Q3EGRJ2X5LMN7OPT"
    record = {"type": "user", "uuid": "u1", "sessionId": log.stem, "message": {"role": "user", "content": text}}
    log.write_text(json.dumps(record) + "\n")
    before = log.read_bytes()
    assert clew("archive", "hold", "add", "--all", "--reason", "case 7").code == 0
    done = clew("--home", tmp_path / "home", "redact", "scrub", "--agent", "claude", "--yes")
    assert (done.code, "is held (hold 1: case 7)" in done.err) == (1, True)
    assert log.read_bytes() == before
    assert archive_folder(None).is_dir()


def test_a_project_is_known_whatever_way_its_home_is_named(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo, tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    assert clew("--home", "home", "archive").code == 0
    assert clew("--home", "home", "sync").code == 0
    assert clew("archive", "hold", "add", "--project", "moon.phase", "--reason", "case 7").code == 0
    done = clew("archive", "prune", "--keep-days", "0", "--skip-held", "--json")
    assert any(BELL in path for path in done.json["dropped"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--min-age", "nan"), "finite"),
        (("--min-age", "inf"), "range"),
        (("--min-age", "1e308"), "range"),
        (("--reason", " "), "--reason is empty"),
    ],
)
def test_a_hold_that_makes_no_sense_is_refused(options: tuple[str, str], problem: str) -> None:
    refused = clew("archive", "hold", "add", "--all", "--reason", "audit", *options)
    assert refused.code == 2 and problem in refused.err
    assert clew("archive", "hold", "list", "--json").json == []
