"""`clew commits`, and the filter `--commits` of other commands: output, sums, errors, hostile repositories."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from clew import Filters, Library
from clew.catalog.filters import POSTGRESQL, session_condition
from clew.errors import UsageError
from clew.filters import CommitRange
from tests.cli.running import clew
from tests.commits.git_sessions import ClaudeSession, GitRepository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FIRST, SECOND, THIRD = (f"{digit * 8}-aaaa-4bbb-8ccc-000000000001" for digit in "123")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """The repository in the current folder."""
    made = GitRepository.create(tmp_path / "tidepool")
    made.commit("Begin", -86_400 * 60, {"README.md": "tides\n"})
    monkeypatch.chdir(made.folder)
    return made


def commit_in(repository: GitRepository, session: ClaudeSession, subject: str, second: int) -> str:
    """A commit by a call of a session; returns its hash."""
    output = repository.commit(subject, second, {f"{second}.bin": f"{second}\n"})
    session.run(f"git commit -am '{subject}'", output, second)
    return repository.head()


@pytest.fixture
def branch(home: Path, repository: GitRepository) -> GitRepository:
    """Two sessions made three commits of the branch `topic`; a third session only talked."""
    repository.git("checkout", "-q", "-b", "topic")
    one, two = (ClaudeSession(home, name, repository.folder).prompt("Go", 0) for name in (FIRST, SECOND))
    commit_in(repository, one, "Add the tide", 10)
    commit_in(repository, one, "Add the moon", 20)
    commit_in(repository, two, "Add the sun", 300)
    one.save()
    two.save()
    ClaudeSession(home, THIRD, repository.folder).prompt("Hello", 400).save()
    repository.git("commit", "--amend", "-q", "-m", "Add the sun", second=90_000)
    return repository


def test_a_row_for_each_commit_and_the_sums(branch: GitRepository) -> None:
    shown = clew("commits", "main..HEAD")
    assert shown.code == 0
    head, *rows = shown.out.splitlines()
    assert head.split() == ["commit", "date", "subject", "session", "certainty", "evidence", "session", "cost"]
    assert rows[0].startswith(branch.head()[:9])
    assert [line.split("  ")[0] for line in rows[1:3]] == [branch.head("HEAD~1")[:9], branch.head("HEAD~2")[:9]]
    assert "2026-11-03" in rows[0]
    assert "claude-code:22222222" in rows[0]
    assert "likely" in rows[0]
    assert "its commit was rewritten" in rows[0]
    assert "certain" in rows[1]
    assert "$6.00" in rows[1]
    assert rows[3:] == [
        "3 commits, 3 with a session that is certain or likely",
        "cost of 2 sessions: $9.00, 3.0M tokens",
        "  certain: 1 session: $6.00, 2.0M tokens",
        "  likely: 1 session: $3.00, 1.0M tokens",
    ]


def test_sessions_of_a_range_are_listed_and_counted(branch: GitRepository) -> None:
    listed = clew("list", "--commits", "main..HEAD", "--json").json
    assert {row["id"] for row in listed} == {FIRST, SECOND}
    assert [row["id"] for row in clew("list", "--commits", "HEAD~1..HEAD", "--json").json] == [SECOND]
    assert clew("stats", "--commits", "main..HEAD", "--json").json["totals"]["cost"] == pytest.approx(9.0)
    by_session = clew("stats", "--commits", "main..HEAD", "--by", "session", "--json").json["rows"]
    assert {row["session"]: row["cost"] for row in by_session} == {
        FIRST: pytest.approx(6.0),
        SECOND: pytest.approx(3.0),
    }
    empty = clew("list", "--commits", "main")
    assert empty.code == 1
    assert "no sessions match --commits main" in empty.err
    assert clew("stats", "--commits", "main").code == 1


def test_other_commands_take_the_filter(branch: GitRepository, tmp_path: Path) -> None:
    assert clew("export", "--commits", "main..HEAD", "-o", tmp_path / "out").code == 0
    assert len(list((tmp_path / "out").iterdir())) == 2
    hits = clew("search", "Go", "--commits", "HEAD~1..HEAD", "--json").lines
    assert {hit["session"] for hit in hits if "session" in hit} <= {SECOND}


def test_filters_in_python(branch: GitRepository, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(home)
    assert {one.id for one in library.sessions(Filters.of(commits="main..HEAD"))} == {FIRST, SECOND}
    monkeypatch.chdir(tmp_path)
    wanted = Filters(commits=CommitRange(str(branch.folder), "HEAD~1..HEAD"))
    assert [one.id for one in library.sessions(wanted)] == [SECOND]
    assert library.totals(wanted)["cost"] == pytest.approx(3.0)
    report = library.commits("main..HEAD", branch.folder)
    assert [row["subject"] for row in report["commits"]] == ["Add the sun", "Add the moon", "Add the tide"]
    assert report["totals"]["linked"]["sessions"] == 2


def test_the_commits_of_a_session(branch: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branch.git("checkout", "-q", "main")
    monkeypatch.chdir(tmp_path)
    found = clew("commits", "--session", FIRST, "--json").json
    assert [row["subject"] for row in found["commits"]] == ["Add the moon", "Add the tide"]
    assert [row["id"] for row in found["sessions"]] == [FIRST]
    none = clew("commits", "--session", THIRD)
    assert none.code == 1
    assert "no commits" in none.err


def test_a_subagent_is_listed_with_its_session(home: Path, repository: GitRepository) -> None:
    ClaudeSession(home, FIRST, repository.folder).prompt("Go", 0).save()
    subagent = ClaudeSession(home, FIRST, repository.folder, agent="a1b2c3").prompt("Commit it", 6)
    commit_in(repository, subagent, "Add the tide", 10)
    subagent.save()
    assert [row["id"] for row in clew("list", "--commits", "HEAD~1..HEAD", "--json").json] == ["agent-a1b2c3", FIRST]
    assert clew("stats", "--commits", "HEAD~1..HEAD", "--json").json["totals"]["subagents"] == 1
    for name in (FIRST, "agent-a1b2c3"):
        assert [row["subject"] for row in clew("commits", "--session", name, "--json").json["commits"]] == [
            "Add the tide"
        ]


def test_a_warehouse_does_not_know_commits() -> None:
    with pytest.raises(UsageError, match="--commits cannot be combined with --engine"):
        session_condition(Filters(commits=CommitRange(".", "HEAD")), POSTGRESQL)


def test_cost_by_branch_of_a_range(branch: GitRepository) -> None:
    rows = clew("stats", "--commits", "main..HEAD", "--by", "branch", "--json").json["rows"]
    assert sum(row["cost"] for row in rows) == pytest.approx(9.0)


def test_limit(branch: GitRepository) -> None:
    assert len(clew("commits", "-n", "1", "--json").json["commits"]) == 1
    assert len(clew("commits", "HEAD", "--json").json["commits"]) == 4


def test_not_a_repository(home: Path, tmp_path: Path) -> None:
    for words in (("commits", "--repo", tmp_path), ("commits", "--repo", tmp_path / "none")):
        refused = clew(*words)
        assert refused.code == 3
        assert "not a git repository" in refused.err or "no such folder" in refused.err


def test_outside_of_a_repository_the_folder_is_named(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path}: not a git repository" in clew("commits").err


def test_a_session_whose_folder_is_not_here(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ClaudeSession(home, FIRST, tmp_path / "gone").prompt("Go", 0).save()
    refused = clew("commits", "--session", FIRST)
    assert refused.code == 3
    assert f"{tmp_path / 'gone'}: the folder of the session does not exist here" in refused.err
    assert "--repo" in refused.err
    (tmp_path / "gone").mkdir()
    assert f"{tmp_path / 'gone'}: not a git repository" in clew("commits", "--session", FIRST).err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no shell scripts")
def test_git_that_takes_too_long(repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 20\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr("clew.io.git.GIT_TIMEOUT_SECONDS", 0.2)
    refused = clew("commits")
    assert refused.code == 3
    assert "git took longer than 0.2 seconds" in refused.err


def test_the_filter_outside_of_a_repository(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = clew("list", "--commits", "main..HEAD", "--home", home)
    assert refused.code == 3
    assert "not a git repository" in refused.err


def test_an_empty_range_is_refused(repository: GitRepository) -> None:
    for words in (("commits", ""), ("list", "--commits", ""), ("stats", "--commits=")):
        refused = clew(*words)
        assert (refused.code, "is a shell variable not set?" in refused.err) == (2, True), words


@pytest.mark.parametrize("wrong", ["no-such-branch", "main..nowhere", "--output=stolen.txt", "-n1", "..\x1b[31mred"])
def test_an_unknown_range_is_refused(repository: GitRepository, wrong: str) -> None:
    refused = clew("commits", "--", wrong)
    assert refused.code == 2
    assert "is no revision or range of this repository" in refused.err
    assert "\x1b" not in refused.err
    assert not (repository.folder / "stolen.txt").exists()
    assert clew("list", f"--commits={wrong}").code == 2


def test_an_empty_repository(home: Path, tmp_path: Path) -> None:
    empty = GitRepository.create(tmp_path / "empty")
    shown = clew("commits", "--repo", empty.folder)
    assert (shown.code, shown.out) == (1, "")
    assert "no commits" in shown.err
    assert clew("commits", "main", "--repo", empty.folder).code == 2


def test_a_shallow_clone(branch: GitRepository, tmp_path: Path) -> None:
    branch.git("clone", "-q", "--depth", "2", branch.folder.as_uri(), str(tmp_path / "shallow"))
    found = clew("commits", "--repo", tmp_path / "shallow")
    assert "the clone is shallow" in found.err
    rows = clew("commits", "--repo", tmp_path / "shallow", "--json").json["commits"]
    assert [[link["certainty"] for link in row["sessions"]] for row in rows] == [["likely"], ["certain"]]


@pytest.mark.parametrize(("limit", "value"), [("MAX_COMMITS", 2), ("MAX_DIFF_BYTES", 100)])
def test_a_range_that_is_too_large_to_read(
    branch: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    whole = clew("commits", "main..HEAD")
    assert "was read" not in whole.err
    assert clew("commits", "main..HEAD", "--json").json["is_cut"] is False
    monkeypatch.setattr(f"clew.io.git.{limit}", value)
    assert clew("commits", "main..HEAD", "--json").json["is_cut"] is True
    assert "only a part of it was read" in clew("commits", "main..HEAD").err
    assert clew("commits", "main..HEAD", "-n", "2", "--json").json["is_cut"] is (limit == "MAX_DIFF_BYTES")
    for words in (("list",), ("stats",), ("export", "-o", tmp_path / "out")):
        refused = clew(*words, "--commits", "main..HEAD")
        assert (refused.code, refused.out) == (2, "")
        assert "the commit range main..HEAD has more than" in refused.err
        assert "name a smaller range" in refused.err
    assert not (tmp_path / "out").exists()


def test_a_large_commit_outside_of_the_range_does_not_refuse_it(
    home: Path, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ClaudeSession(home, FIRST, repository.folder).prompt("Go", 0)
    output = repository.commit("Add a table of tides", 10, {"table.bin": "7 m\n" * 2000})
    session.run("git commit -am 'Add a table of tides'", output, 10)
    repository.git("checkout", "-q", "-b", "topic", "main~1")
    commit_in(repository, session, "Add the tide", 200)
    session.save()
    repository.commit("By a person", 90_000, {"notes.txt": "low water\n"})
    monkeypatch.setattr("clew.io.git.MAX_DIFF_BYTES", 2000)
    listed = clew("list", "--commits", "main..topic", "--json")
    assert (listed.code, [row["id"] for row in listed.json]) == (0, [FIRST])
    assert clew("commits", "main..topic", "--json").json["is_cut"] is False
    assert clew("list", "--commits", "topic~1..main").code == 2


@pytest.mark.parametrize(("count", "is_cut"), [(10_000, False), (10_001, True)])
def test_up_to_ten_thousand_commits_are_read(home: Path, repository: GitRepository, count: int, is_cut: bool) -> None:
    commit = "commit refs/heads/long\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 0\n"
    repository.git("fast-import", "--quiet", stdin=(commit * count).encode())
    found = clew("commits", "long", "--json").json
    assert (len(found["commits"]), found["is_cut"]) == (10_000, is_cut)
    assert clew("list", "--commits", "long").code == (2 if is_cut else 1)


def test_the_newest_commits_of_a_session(branch: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.io.git.MAX_COMMITS", 2)
    cut = clew("commits", "--session", FIRST, "--json").json
    assert (len(cut["commits"]), cut["is_cut"]) == (1, True)
    whole = clew("commits", "--session", FIRST, "-n", "5", "--json").json
    assert (len(whole["commits"]), whole["is_cut"]) == (2, False)


def test_a_bare_repository(branch: GitRepository, tmp_path: Path) -> None:
    branch.git("clone", "-q", "--bare", str(branch.folder), str(tmp_path / "bare.git"))
    rows = clew("commits", "main..topic", "--repo", tmp_path / "bare.git", "--json").json["commits"]
    assert [row["sessions"][0]["id"] for row in rows] == [SECOND, FIRST, FIRST]


def test_without_git(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.folder))
    refused = clew("commits")
    assert refused.code == 3
    assert "git is not installed" in refused.err


def test_a_repository_cannot_run_commands(branch: GitRepository, tmp_path: Path) -> None:
    stolen = tmp_path / "stolen"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {stolen}\ncat\n")
    script.chmod(0o755)
    settings = ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand", "core.editor")
    for name in (*settings, "diff.evil.command", "diff.evil.textconv", "core.alternateRefsCommand"):
        branch.git("config", name, str(script))
    branch.git("config", "log.showSignature", "true")
    branch.git("config", "core.hooksPath", str(tmp_path))
    branch.git("config", "remote.origin.url", f"ext::{script}")
    branch.git("config", "remote.origin.promisor", "true")
    branch.git("config", "extensions.partialClone", "origin")
    branch.git("config", "protocol.ext.allow", "always")
    (branch.folder / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    missing = branch.git("rev-parse", "HEAD~1:20.bin").strip()
    (branch.folder / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    found = clew("commits", "main..HEAD", "--json")
    assert [row["sessions"][0]["id"] for row in found.json["commits"]] == [SECOND, FIRST, FIRST]
    assert not stolen.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no shell scripts")
@pytest.mark.parametrize(("option", "setting"), [("--ext-diff", "command"), ("--textconv", "textconv")])
def test_a_repository_cannot_run_commands_with_a_git_that_would(
    branch: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, setting: str
) -> None:
    """`git diff-tree` runs neither external diffs nor text converters by default. Here it does, as `git diff` does."""
    stolen, script, git = tmp_path / "stolen", tmp_path / "evil", tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"""#!/bin/bash
words=()
for word; do
  words+=("$word")
  if [ "$word" = diff-tree ]; then words+=({option}); fi
done
exec {shutil.which("git")} "${{words[@]}}"
""")
    script.write_text(f"#!/bin/sh\ntouch {stolen}\n")
    for path in (git, script):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    branch.git("config", f"diff.evil.{setting}", str(script))
    (branch.folder / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    branch.git("diff-tree", "-p", "HEAD")
    stolen.unlink()
    assert len(clew("commits", "main..HEAD", "--json").json["commits"]) == 3
    assert not stolen.exists()


def test_the_environment_of_a_hook_names_no_other_repository(
    branch: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitRepository.create(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert len(clew("commits", "main..HEAD", "--json").json["commits"]) == 3


def test_control_sequences_are_shown_and_not_obeyed(home: Path, repository: GitRepository) -> None:
    session = ClaudeSession(home, FIRST, repository.folder)
    commit_in(repository, session, "\x1b[31mRed\x07 and \u202ehidden", 10)
    session.save()
    repository.commit("Trailer\n\nClaude-Session: \x1b]0;title\x07", 20)
    shown = clew("commits")
    assert "\x1b" not in shown.out + shown.err
    assert "\u202e" not in shown.out
    assert "Red" in shown.out


def test_secrets_in_subjects_trailers_and_titles_are_masked(home: Path, repository: GitRepository) -> None:
    secret, other, third = ("ghp_" + "b7Xq2LmN9pRt4VwYz8KdFgHj3CsAe6Uu1oT" + end for end in "579")
    session = ClaudeSession(home, FIRST, repository.folder).prompt(f"Use the token {other}", 0)
    made = commit_in(repository, session, f"Use token {secret}", 10)
    session.save()
    repository.commit(f"More\n\nClaude-Session: https://claude.ai/code/{third}", 20)
    shown = clew("commits")
    masked = clew("commits", "--json", "--redact", "secrets")
    for text in (secret, other, third):
        assert text not in shown.out + shown.err
        assert text not in masked.out + masked.err
        assert text in clew("commits", "--json").out
    assert made[:9] in shown.out
    assert FIRST[:8] in shown.out
    assert clew("commits", "--json", "--redact", "all").json["commits"][1]["commit"] == made
    refused = clew("commits", secret)
    assert refused.code == 2
    assert secret not in refused.err


def test_nothing_is_written_to_the_repository(branch: GitRepository) -> None:
    def state() -> dict[str, float]:
        return {str(path): path.stat().st_mtime_ns for path in branch.folder.rglob("*")}

    before = state()
    assert clew("commits", "main..HEAD").code == 0
    assert state() == before


@pytest.mark.parametrize("seconds", ["253402300800", "999999999999999999", "18446744073709551615", "-5", "noon"])
def test_a_commit_with_a_time_that_no_calendar_has(home: Path, repository: GitRepository, seconds: str) -> None:
    session = ClaudeSession(home, FIRST, repository.folder).edit("tide.py", "height = 'of the tide'\n", 10).save()
    repository.commit("Later", 20, {"tide.py": "height = 'of the tide'\n"})
    repository.set_times(seconds, seconds)
    later, begin = clew("commits", "--json").json["commits"]
    assert (later["subject"], later["time"], later["author_time"]) == ("Later", None, None)
    assert (begin["subject"], begin["time"]) == ("Begin", "2026-09-03T10:00:00Z")
    assert clew("commits").out.splitlines()[1].split()[1:3] == ["(unknown)", "Later"]
    assert clew("list", "--commits", "HEAD").code == 1
    assert clew("commits", "--session", session.id).code == 1
    repository.commit("Last", 30, {"moon.py": "height = 'of the moon'\n"})
    assert [row["time"] for row in clew("commits", "--json").json["commits"]][1] is None


def test_a_commit_of_1970_has_a_time(home: Path, repository: GitRepository) -> None:
    repository.commit("Early", 20)
    repository.set_times("0", "0")
    assert clew("commits", "HEAD~1..", "--json").json["commits"][0]["time"] == "1970-01-01T00:00:00Z"


def test_one_known_time_of_a_commit_is_enough_to_compare_its_content(home: Path, repository: GitRepository) -> None:
    ClaudeSession(home, FIRST, repository.folder).edit("tide.py", "height = 'of the tide'\n", 10).save()
    repository.commit("Later", 20, {"tide.py": "height = 'of the tide'\n"})
    time = repository.git("log", "-1", "--format=%at").strip()
    for author, committer in (("noon", time), (time, "noon")):
        repository.set_times(author, committer)
        (link,) = clew("commits", "HEAD~1..", "--json").json["commits"][0]["sessions"]
        assert (link["id"], link["certainty"], link["evidence"]) == (FIRST, "likely", "content")
        repository.git("update-ref", "refs/heads/main", "HEAD~1")
        repository.commit("Later", 20)


def test_a_call_that_made_a_commit_without_a_time_is_likely(home: Path, repository: GitRepository) -> None:
    repository.commit("Compute the tide", 10)
    made = repository.set_times("noon", "noon")
    session = ClaudeSession(home, FIRST, repository.folder)
    session.run("git commit -m 'Compute the tide'", f"[main {made[:7]}] Compute the tide", 10).save()
    for words in (("HEAD~1..",), ("--session", FIRST)):
        (link,) = clew("commits", *words, "--json").json["commits"][0]["sessions"]
        assert (link["id"], link["certainty"], link["evidence"]) == (FIRST, "likely", "call")


def test_a_commit_of_a_session_before_one_without_a_time(branch: GitRepository) -> None:
    branch.git("checkout", "-q", "-B", "main")
    branch.commit("Later", 400)
    branch.set_times("noon", "noon")
    branch.git("branch", "-q", "-D", "topic")
    assert [row["subject"] for row in clew("commits", "--session", SECOND, "--json").json["commits"]] == ["Add the sun"]
