"""What commands, outputs and messages say of commits, also if they are made to take long."""

from __future__ import annotations

import time

import pytest

from clew.analysis.git_commits import commit_mentions, listed_subjects, makes_commits, session_trailers, source_commits


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m x",
        "cd /tmp && git -C '/a b' -c user.name=\"Ada L\" --no-pager commit -qm x",
        "git.exe commit",
        "git\ncommit\n-m\nx",
        "git cherry-pick abc",
        "git merge --no-ff topic",
        "git --git-dir /x/.git --work-tree '/x y' commit -m x",
        "git --git-dir=/x/.git commit -m x",
        "git commit -m 'Explain --dry-run'",
        "git commit -m x; git push --dry-run",
        "git commit --dry-run && git commit -m x",
    ],
)
def test_commands_that_make_commits(command: str) -> None:
    assert makes_commits(command)


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "echo commit", "git log --grep commit", "gitk commit", "git show"),
        *("git merge-base main HEAD", "git commit-graph write", "git commit-tree x", "git --git-dir commit log"),
        *("git commit --dry-run", "git commit -a -m 'a b' --dry-run --short"),
    ],
)
def test_commands_that_make_none(command: str) -> None:
    assert not makes_commits(command)


def test_an_output_inside_of_json() -> None:
    output = '{"output":"[main 1a2b3c4] Add the tide\\n 1 file changed","metadata":{}}'
    (mention,) = commit_mentions("git commit -m x", output, failed=False)
    assert (mention.kind, mention.name, mention.subject) == ("made", "1a2b3c4", "Add the tide")


@pytest.mark.parametrize("command", ["git commit", "git cherry-pick x", "git revert x", "git rebase x", "git merge x"])
def test_commands_that_say_which_commit_they_made(command: str) -> None:
    assert [one.kind for one in commit_mentions(command, "[main 1a2b3c4] x", failed=False)] == ["made"]


@pytest.mark.parametrize("command", ["git pull", "git am x"])
def test_commands_that_do_not_say_which_commit_they_made(command: str) -> None:
    assert [one.kind for one in commit_mentions(command, "[main 1a2b3c4] x", failed=False)] == ["printed"]


def test_a_failed_command_made_nothing_unless_git_says_so() -> None:
    assert commit_mentions("git commit -m x", "nothing to commit", failed=True) == []
    assert [one.kind for one in commit_mentions("git commit -m x", "[main 1a2b3c4] x", failed=True)] == ["made"]


@pytest.mark.parametrize(
    "text",
    [
        "git" + " -c a" * 50_000,
        "git " * 50_000,
        "git commit " * 20_000,
        "git commit" + " a" * 100_000,
        "git commit '" * 20_000,
        "git -c '" + "a" * 200_000,
        "[" * 200_000,
        "[" + "a " * 200_000,
        "\n" * 200_000,
        " " * 200_000,
        "Claude-Session:" * 20_000,
        "Co-authored-by: " * 20_000,
        "a" * 200_000,
        "https://claude.ai/code/session_" * 10_000,
    ],
)
def test_long_text_is_read_in_a_moment(text: str) -> None:
    started = time.process_time()
    makes_commits(text)
    commit_mentions(text, text, failed=False)
    session_trailers(text)
    source_commits(text)
    list(listed_subjects(text))
    assert time.process_time() - started < 2
