"""Commits and the sessions that made them: each kind of evidence, with real repositories."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import clew
from tests.commits.git_sessions import BEGIN, ClaudeSession, GitRepository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FIRST, SECOND = "11111111-aaaa-4bbb-8ccc-000000000001", "22222222-aaaa-4bbb-8ccc-000000000002"
CODE = "".join(f"def tide_at_hour_{hour}():\n    return {hour} * HEIGHT\n\n" for hour in range(12))


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository.create(tmp_path / "tidepool")
    made.commit("Begin", -86_400 * 60, {"README.md": "tides\n"})
    return made


@pytest.fixture
def session(home: Path, repository: GitRepository) -> ClaudeSession:
    return ClaudeSession(home, FIRST, repository.folder).prompt("Compute the tide", 0)


def report(repository: GitRepository, *arguments: str) -> Any:
    return clew("commits", "--repo", repository.folder, "--json", *arguments).json


def links(repository: GitRepository, *arguments: str) -> dict[str, list[tuple[str | None, str, str]]]:
    """Session, certainty and evidence of each commit, by subject."""
    return {
        row["subject"]: [(link["id"], link["certainty"], link["evidence"]) for link in row["sessions"]]
        for row in report(repository, *arguments)["commits"]
    }


def committed(
    repository: GitRepository, session: ClaudeSession, subject: str, second: int, files: dict[str, str]
) -> None:
    """A commit by a call of a session."""
    output = repository.commit(subject, second, files)
    session.run(f'git add -A && git commit -m "{subject}"', output, second)


def test_a_commit_of_the_agents_own_call_is_certain(repository: GitRepository, session: ClaudeSession) -> None:
    committed(repository, session, "Compute the tide", 10, {"tide.py": CODE})
    session.save()
    found = report(repository)
    assert links(repository) == {"Compute the tide": [(FIRST, "certain", "call")], "Begin": []}
    (link,) = found["commits"][0]["sessions"]
    assert (link["message"], link["agent"], link["subagent"]) == (2, "claude-code", None)
    assert found["totals"]["certain"] == found["totals"]["linked"]
    assert found["totals"]["linked"]["sessions"] == 1
    assert found["totals"]["linked"]["cost"] == pytest.approx(3.0)
    assert found["totals"]["likely"]["sessions"] == 0


def test_the_first_commit_of_a_repository(home: Path, tmp_path: Path) -> None:
    repository = GitRepository.create(tmp_path / "new")
    session = ClaudeSession(home, FIRST, repository.folder)
    committed(repository, session, "Begin", 5, {"a.txt": "a\n"})
    session.save()
    assert links(repository) == {"Begin": [(FIRST, "certain", "call")]}


def test_a_hash_that_was_printed_after_a_quiet_commit(repository: GitRepository, session: ClaudeSession) -> None:
    repository.commit("Compute the tide", 10, {"tide.py": CODE})
    log = repository.git("log", "--oneline", "-2")
    session.run("git commit -qam 'Compute the tide' && git log --oneline -2", log, 10).save()
    assert links(repository) == {"Compute the tide": [(FIRST, "certain", "call")], "Begin": []}


def test_a_quiet_commit_is_known_by_its_time(repository: GitRepository, session: ClaudeSession) -> None:
    repository.commit("Compute the tide", 10, {"tide.bin": "1\n"})
    session.run("git -c user.name=ada commit -qam 'Compute the tide'", "", 10).save()
    assert links(repository)["Compute the tide"] == [(FIRST, "likely", "commit-time")]


def test_commits_that_a_session_only_listed_are_not_its_own(repository: GitRepository, session: ClaudeSession) -> None:
    repository.commit("By a colleague", 10, {"tide.bin": "1\n"})
    listed = repository.git("log", "--format=[%an %h] %s")
    session.run("git pull -q; git log --format='[%an %h] %s'", listed, 9_000)
    session.run("git merge -q topic; git log --format='[%an %h] %s'", listed, 9_010).save()
    assert links(repository) == {"By a colleague": [], "Begin": []}


def test_a_commit_by_a_call_without_times_is_likely(repository: GitRepository, session: ClaudeSession) -> None:
    output = repository.commit("Compute the tide", 10, {"tide.bin": "1\n"})
    session.run("git commit -m 'Compute the tide'", output, 9_000, seconds=0).save()
    assert links(repository)["Compute the tide"] == [(FIRST, "likely", "call")]


@pytest.mark.parametrize("first_day", ["1970-01-02", "2026-11-01"])
def test_a_call_with_damaged_times_is_no_evidence(
    repository: GitRepository, session: ClaudeSession, first_day: str
) -> None:
    repository.commit("By hand", 10, {"tide.bin": "1\n"})
    begin = int((datetime.fromisoformat(f"{first_day}T00:00Z") - BEGIN).total_seconds())
    end = int((datetime(9999, 1, 1, tzinfo=UTC) - BEGIN).total_seconds())
    for number in range(2):
        session.run("git commit -q", "", begin + number, seconds=end - begin)
    session.save()
    report(repository)
    started = time.process_time()
    assert links(repository) == {"By hand": [], "Begin": []}
    assert time.process_time() - started < 5


def test_a_short_hash_in_another_repository_is_no_evidence(
    repository: GitRepository, home: Path, tmp_path: Path
) -> None:
    repository.commit("Compute the tide", 10, {"tide.py": CODE})
    other = ClaudeSession(home, FIRST, tmp_path / "other")
    other.run("git commit -m Other", f"[main {repository.head()[:7]}] Other\n 1 file changed", 10).save()
    assert links(repository)["Compute the tide"] == []


def test_only_shell_commands_commit(repository: GitRepository, session: ClaudeSession) -> None:
    output = repository.commit("Compute the tide", 10, {"tide.bin": "1\n"})
    session.run("git commit -m x", output, 900, tool="Task")
    session.run("cat commit.log", output, 910).save()
    assert links(repository)["Compute the tide"] == []


@pytest.mark.parametrize("tool", ["PowerShell", "run_terminal_cmd", "container.exec", "developer__shell"])
def test_the_shells_of_all_agents_commit(repository: GitRepository, session: ClaudeSession, tool: str) -> None:
    output = repository.commit("Compute the tide", 10, {"tide.bin": "1\n"})
    session.run("git commit -m 'Compute the tide'", output, 10, tool=tool).save()
    assert links(repository)["Compute the tide"] == [(FIRST, "certain", "call")]


@pytest.mark.parametrize("new_subject", ["Compute the tide", "Compute the height of the tide"])
def test_an_amended_commit_is_likely(repository: GitRepository, session: ClaudeSession, new_subject: str) -> None:
    committed(repository, session, "Compute the tide", 10, {"tide.py": CODE})
    session.save()
    repository.write("tide.bin", "2\n")
    repository.git("add", "-A")
    repository.git("commit", "--amend", "-m", new_subject, second=90_000)
    assert links(repository)[new_subject] == [(FIRST, "likely", "rewritten")]


def test_rebased_and_picked_commits_are_likely(repository: GitRepository, session: ClaudeSession) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    committed(repository, session, "Compute the tide", 10, {"tide.bin": "1\n"})
    committed(repository, session, "Compute the moon", 20, {"moon.bin": "1\n"})
    session.save()
    made = repository.head("HEAD~1")
    repository.git("checkout", "-q", "main")
    repository.commit("By hand", 50_000, {"hand.txt": "by hand\n"})
    repository.git("cherry-pick", made, second=60_000)
    repository.git("rebase", "-q", "main", "topic", second=70_000)
    found = links(repository, "topic")
    assert found["Compute the tide"] == [(FIRST, "likely", "rewritten")]
    assert found["Compute the moon"] == [(FIRST, "likely", "rewritten")]
    assert found["By hand"] == []


def test_a_rebase_by_the_agent_does_not_make_commits_of_others_its_own(
    repository: GitRepository, session: ClaudeSession
) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("By a colleague", 10, {"work.txt": "some work by hand\n"})
    repository.git("checkout", "-q", "main")
    repository.commit("Other", 20, {"other.txt": "other work by hand\n"})
    repository.git("rebase", "-q", "main", "topic", second=9_000)
    log = repository.git("log", "--oneline")
    session.run("git rebase main topic && git log --oneline", log, 9_000)
    session.run("git rebase -q main topic", "", 9_001).save()
    assert links(repository)["By a colleague"] == []


def test_a_commit_with_the_same_patch_is_likely(repository: GitRepository, session: ClaudeSession) -> None:
    committed(repository, session, "Compute the tide", 10, {"tide.bin": "1\n"})
    session.save()
    repository.git("commit", "--amend", "--reset-author", "-m", "By me", second=90_000)
    assert links(repository)["By me"] == [(FIRST, "likely", "patch")]


def test_squashed_commits_name_both_sessions(repository: GitRepository, session: ClaudeSession, home: Path) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    committed(repository, session, "Compute the tide", 10, {"tide.bin": "1\n"})
    session.save()
    other = ClaudeSession(home, SECOND, repository.folder)
    committed(repository, other, "Compute the moon", 200, {"moon.bin": "1\n"})
    other.save()
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--squash", "topic")
    repository.git("commit", "-q", "--no-edit", second=5_000)
    (squashed, _) = links(repository).values()
    assert squashed == [(FIRST, "likely", "squashed"), (SECOND, "likely", "squashed")] or squashed == [
        (SECOND, "likely", "squashed"),
        (FIRST, "likely", "squashed"),
    ]
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.git("merge", "-q", "--squash", "topic")
    repository.git("commit", "-q", "-m", "Tides (#7)\n\n* Compute the tide\n\n* Compute the moon", second=6_000)
    assert {link[0] for link in links(repository)["Tides (#7)"]} == {FIRST, SECOND}


def test_a_revert_by_hand_is_no_commit_of_the_session(repository: GitRepository, session: ClaudeSession) -> None:
    committed(repository, session, "Compute the tide", 10, {"tide.bin": "1\n"})
    session.save()
    repository.git("revert", "--no-edit", "HEAD", second=90_000)
    assert links(repository)['Revert "Compute the tide"'] == []


def test_two_sessions_that_wrote_a_file(repository: GitRepository, session: ClaudeSession, home: Path) -> None:
    half = CODE[: len(CODE) // 2]
    session.edit("tide.py", half, 10).save()
    ClaudeSession(home, SECOND, repository.folder).edit("tide.py", CODE[len(half) :], 100, old="").save()
    repository.commit("Commit by hand", 50_000, {"tide.py": CODE, "notes.txt": "Some notes by hand\n"})
    found = links(repository)["Commit by hand"]
    assert sorted(found, key=lambda link: str(link[0])) == [
        (FIRST, "likely", "content"),
        (SECOND, "likely", "content"),
    ]
    assert report(repository)["totals"]["likely"]["sessions"] == 2


def test_a_session_that_only_changed_the_same_file_is_possible(
    repository: GitRepository, session: ClaudeSession
) -> None:
    session.edit("tide.py", "nothing_that_stays = 1\n", 10).save()
    repository.commit("Commit by hand", 5_000, {"tide.py": CODE})
    repository.commit("Again", 9_000, {"tide.py": "other = 'content of the file'\n"})
    found = report(repository)
    assert links(repository) == {"Again": [], "Commit by hand": [(FIRST, "possible", "time")], "Begin": []}
    assert found["totals"]["linked"]["sessions"] == 0
    assert found["totals"]["possible"]["sessions"] == 1


@pytest.mark.parametrize("name", ['say "tide".py', "back\\slash.py", "tab\there.py", "h\u00f6he.py", "b b/b b.py"])
def test_a_file_whose_name_git_quotes(repository: GitRepository, session: ClaudeSession, name: str) -> None:
    session.edit(name, CODE, 10).save()
    repository.commit("By hand", 20, {name: CODE})
    assert links(repository)["By hand"] == [(FIRST, "likely", "content")]


@pytest.mark.parametrize("content", ["", "\0binary\0"])
def test_a_file_without_lines_is_linked_by_time(
    repository: GitRepository, session: ClaudeSession, content: str
) -> None:
    session.edit("tide.bin", content, 10).save()
    repository.commit("By hand", 20, {"tide.bin": content})
    assert links(repository)["By hand"] == [(FIRST, "possible", "time")]


def test_another_binary_content_is_not_the_same_patch(repository: GitRepository, session: ClaudeSession) -> None:
    committed(repository, session, "Compute the tide", 10, {"tide.bin": "\0one\0"})
    session.save()
    repository.git("commit", "--amend", "--reset-author", "-m", "The same", second=90_000)
    assert links(repository)["The same"] == [(FIRST, "likely", "patch")]
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.commit("Another", 90_000, {"tide.bin": "\0two\0"})
    assert links(repository)["Another"] == []


@pytest.mark.parametrize("new_text", ["", "# The tide was removed here.\n", "before = 1\nafter = 2\n"])
def test_removed_lines_are_not_written(repository: GitRepository, session: ClaudeSession, new_text: str) -> None:
    old = CODE if not new_text.startswith("before") else f"before = 1\n{CODE}after = 2\n"
    session.edit("tide.py", new_text, 10, old=old).save()
    repository.commit("Removed", 20, {"tide.py": new_text})
    repository.commit("Restored by hand", 172_800, {"tide.py": CODE})
    assert "likely" not in {link[1] for link in links(repository)["Restored by hand"]}


def test_unchanged_lines_of_a_patch_are_not_written(repository: GitRepository, session: ClaudeSession) -> None:
    context = "".join(f" {line}\n" for line in CODE.splitlines())
    patch = f"*** Begin Patch\n*** Update File: tide.py\n@@\n{context}+# A single line more.\n*** End Patch"
    session.run(patch, "Done", 10, tool="apply_patch").save()
    repository.commit("By hand", 20, {"tide.py": CODE})
    assert "likely" not in {link[1] for link in links(repository)["By hand"]}


def test_the_new_path_of_a_file_that_a_patch_moves(repository: GitRepository, session: ClaudeSession) -> None:
    lines = [f"height_{number} = {number}" for number in range(5)]
    body = "".join(f"+{line}\n" for line in lines)
    patch = f"*** Begin Patch\n*** Update File: README.md\n*** Move to: tide.py\n@@\n-tides\n{body}*** End Patch"
    session.run(patch, "Done", 10, tool="apply_patch").save()
    repository.commit("Move it", 20, {"tide.py": "\n".join(lines)})
    assert links(repository)["Move it"] == [(FIRST, "likely", "content")]


def test_changes_after_a_commit_are_no_evidence(repository: GitRepository, session: ClaudeSession) -> None:
    repository.commit("Commit by hand", 5, {"tide.py": CODE})
    session.edit("tide.py", CODE, 500).save()
    assert links(repository)["Commit by hand"] == []


def test_a_session_whose_work_another_session_commits(
    repository: GitRepository, session: ClaudeSession, home: Path
) -> None:
    session.edit("tide.py", CODE, 10).save()
    other = ClaudeSession(home, SECOND, repository.folder)
    committed(repository, other, "Compute the tide", 500, {"tide.py": CODE})
    other.save()
    assert links(repository)["Compute the tide"] == [(SECOND, "certain", "call"), (FIRST, "likely", "content")]


def test_a_commit_of_a_subagent_counts_for_its_session(
    repository: GitRepository, session: ClaudeSession, home: Path
) -> None:
    session.run("ls", "tide.py", 5).save()
    subagent = ClaudeSession(home, FIRST, repository.folder, agent="a1b2c3").prompt("Commit it", 6)
    committed(repository, subagent, "Compute the tide", 10, {"tide.py": CODE})
    subagent.save()
    found = report(repository)
    (link,) = found["commits"][0]["sessions"]
    assert (link["id"], link["certainty"], link["subagent"]) == (FIRST, "certain", "agent-a1b2c3")
    assert found["totals"]["certain"]["cost"] == pytest.approx(6.0)


def test_a_session_in_a_worktree(repository: GitRepository, home: Path, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "elsewhere"))
    tree = GitRepository(tmp_path / "elsewhere")
    ClaudeSession(home, FIRST, tree.folder).edit("tide.py", CODE, 10).save()
    tree.commit("Commit by hand", 500, {"tide.py": CODE})
    assert links(repository, "main..topic") == {"Commit by hand": [(FIRST, "likely", "content")]}


@pytest.mark.skipif(sys.platform != "linux", reason="file names must be valid text")
def test_a_repository_in_a_folder_whose_name_is_not_utf_8(home: Path, tmp_path: Path) -> None:
    repository = GitRepository.create(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    session = ClaudeSession(home, FIRST, tmp_path)
    committed(repository, session, "Compute the tide", 10, {"tide.py": CODE})
    session.save()
    assert links(repository) == {"Compute the tide": [(FIRST, "certain", "call")]}
    assert report(repository)["repository"].endswith("/caf\\xe9")
    assert clew("commits", "--repo", repository.folder).code == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_a_worktree_that_does_not_name_the_repository_is_none_of_it(
    repository: GitRepository, home: Path, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "elsewhere"))
    other = GitRepository.create(tmp_path / "other")
    other.commit("Begin", 0)
    other.git("worktree", "add", "-q", str(tmp_path / "other-tree"))
    (tmp_path / "plain").mkdir()
    kept = repository.folder / ".git" / "worktrees"
    for name in ("other", "other-tree", "plain", "missing"):
        (kept / name).mkdir()
        (kept / name / "gitdir").write_text(f"{tmp_path / name / '.git'}\n")
    (kept / "large").mkdir()
    (kept / "large" / "gitdir").write_text("x" * 1_000_000)
    (kept / "pipe").mkdir()
    os.mkfifo(kept / "pipe" / "gitdir")
    for number, name in enumerate(("elsewhere", "other", "other-tree", "plain", "missing")):
        identity = f"{number}{FIRST[1:]}"
        ClaudeSession(home, identity, tmp_path / name).edit("tide.py", CODE, 10).save()
    repository.commit("By hand", 500, {"tide.py": CODE})
    assert links(repository)["By hand"] == [(f"0{FIRST[1:]}", "likely", "content")]


def test_a_session_in_a_removed_worktree_inside_of_the_repository(repository: GitRepository, home: Path) -> None:
    inner = repository.folder / ".claude" / "worktrees" / "calm-tide"
    ClaudeSession(home, FIRST, inner).edit("src/tide.py", CODE, 10).save()
    repository.commit("Commit by hand", 500, {"src/tide.py": CODE})
    assert links(repository)["Commit by hand"] == [(FIRST, "likely", "content")]


def test_a_merge_by_the_agent(repository: GitRepository, session: ClaudeSession) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("Work", 10, {"work.txt": "some work by hand\n"})
    repository.git("checkout", "-q", "main")
    repository.commit("Other", 20, {"other.txt": "other work by hand\n"})
    output = repository.git("merge", "--no-edit", "topic", second=600)
    session.run("git merge --no-edit topic", output, 600).save()
    found = report(repository)
    assert (found["commits"][0]["subject"], found["commits"][0]["is_merge"]) == ("Merge branch 'topic'", True)
    assert links(repository)["Merge branch 'topic'"] == [(FIRST, "likely", "commit-time")]
    assert links(repository)["Work"] == []


def test_a_commit_by_a_colleague_during_a_pull_is_not_the_agents(
    repository: GitRepository, session: ClaudeSession
) -> None:
    repository.commit("By a colleague", 10, {"work.txt": "some work by hand\n"})
    session.run("git pull -q --rebase", "", 9, seconds=5).save()
    assert links(repository)["By a colleague"] == []


TRAILERS = {
    f"Entire-Session: {FIRST}": "Entire-Session",
    f"Entire-Session: 2026-11-02-{FIRST}": "Entire-Session",
    f"Claude-Session: https://claude.ai/code/{FIRST}": "Claude-Session",
}


@pytest.mark.parametrize("trailer", TRAILERS)
def test_a_trailer_that_names_a_known_session_is_certain(
    repository: GitRepository, session: ClaudeSession, trailer: str
) -> None:
    session.save()
    repository.commit(f"Compute the tide\n\nText.\n\n{trailer}\nSigned-off-by: Ada <ada@example.org>", 90_000)
    assert links(repository)["Compute the tide"] == [(FIRST, "certain", "trailer")]
    assert report(repository)["commits"][0]["sessions"][0]["detail"] == f"{TRAILERS[trailer]}: {FIRST}"


@pytest.mark.parametrize(
    "line",
    [
        "Claude-Session: https://claude.ai/code/session_01AbCdEf",
        "https://claude.ai/code/session_01AbCdEf",
        "Amp-Thread-ID: https://ampcode.com/threads/T-0a1b2c3d-1111-4222-8333-444455556666",
        "agent-logs-url: https://github.com/ada/tidepool/sessions/0a1b2c3d-1111-4222-8333-444455556666",
        "Entire-Checkpoint: 76636eb4103a",
    ],
)
def test_a_trailer_that_names_an_unknown_session_is_stated(repository: GitRepository, home: Path, line: str) -> None:
    repository.commit(f"Compute the tide\n\n{line}", 10)
    found = report(repository, "--home", str(home))
    (link,) = found["commits"][0]["sessions"]
    assert (link["id"], link["certainty"], link["evidence"]) == (None, "stated", "trailer")
    assert found["totals"]["stated"] == {"commits": 1}
    assert found["totals"]["linked"]["sessions"] == 0
    shown = clew("commits", "--repo", repository.folder)
    assert shown.code == 1, "the session is not known here"
    assert "(unknown)" in shown.out


def test_the_session_that_wrote_a_trailer_into_its_command_is_known(
    repository: GitRepository, session: ClaudeSession
) -> None:
    message = "Compute the tide\n\nClaude-Session: https://claude.ai/code/session_01AbCdEf"
    session.run(f"git commit -q -F - <<'EOF'\n{message}\nEOF", "", 10).save()
    repository.commit(f"Tides (#7)\n\n{message}", 90_000)
    assert links(repository)["Tides (#7)"] == [(FIRST, "certain", "trailer")]


def test_a_checkpoint_of_entire_leads_to_its_session(repository: GitRepository, session: ClaudeSession) -> None:
    session.save()
    repository.commit("Compute the tide\n\nEntire-Checkpoint: 76636eb4103a", 90_000)
    metadata = json.dumps({"checkpoint_id": "76636eb4103a", "session_id": FIRST}).encode()
    blob = repository.git("hash-object", "-w", "--stdin", stdin=metadata).strip()
    repository.git("read-tree", "--empty")
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},76/636eb4103a/0/metadata.json")
    tree = repository.git("write-tree").strip()
    repository.git("branch", "entire/checkpoints/v1", repository.git("commit-tree", "-m", "Checkpoint", tree).strip())
    repository.git("read-tree", "HEAD")
    assert links(repository)["Compute the tide"] == [(FIRST, "certain", "trailer")]


def test_a_co_author_names_an_agent_but_no_session(repository: GitRepository, session: ClaudeSession) -> None:
    session.save()
    repository.commit("Compute the tide\n\nCo-Authored-By: Claude Opus 4.5 <noreply@anthropic.com>", 90_000)
    row = report(repository)["commits"][0]
    assert (row["co_authors"], row["sessions"]) == (["Claude"], [])
    assert "co-author Claude, no session" in clew("commits", "--repo", repository.folder).out


def test_a_subject_that_is_not_utf_8(repository: GitRepository, session: ClaudeSession) -> None:
    repository.commit("Cafe", 10)
    # `git commit` would convert the subject.
    raw = repository.git("cat-file", "commit", "HEAD").encode().replace(b"Cafe", b"Caf\xe9")
    made = repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw).strip()
    repository.git("reset", "-q", "--hard", made)
    session.run("git commit -F message", f"[main {made[:7]}] Caf\ufffd\n", 10).save()
    assert links(repository)["Caf\ufffd"] == [(FIRST, "certain", "call")]
    assert clew("commits", "--repo", repository.folder).code == 0
