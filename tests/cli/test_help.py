"""The help of the commands, suggestions for wrong names, and options that mean the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clew.cli import COMMAND_GROUPS, COMMANDS, OTHER_NAMES
from clew.cli.main import main
from tests.cli.running import clew, run

SHARED_OPTIONS = ("--home", "--source", "--refresh", "--no-sync", "--json")
WITHOUT_SESSIONS = {
    "clew annotate",
    "clew annotate export",
    "clew annotate import",
    "clew archive hold",
    "clew archive hold list",
    "clew archive hold remove",
    "clew archive list",
    "clew archive prune",
    "clew archive restore",
    "clew archive verify",
    "clew bundle",
    "clew bundle verify",
    "clew completion",
    "clew hook",
    "clew hook install",
    "clew hook run",
    "clew hook status",
    "clew hook uninstall",
    "clew lake",
    "clew lake compact",
    "clew lake spark-job",
    "clew lake verify",
    "clew mcp install",
    "clew mcp uninstall",
    "clew redact",
    "clew skill",
    "clew skill install",
    "clew skill show",
    "clew skill uninstall",
    "clew sources add",
    "clew sources check",
    "clew sources fetch",
    "clew sources map",
    "clew sources remove",
    "clew totals",
    "clew sources name",
    "clew sources unmap",
    "clew sources unname",
}
"""Commands that read no sessions of a home, and groups that do nothing by themselves."""
WITHOUT_JSON = (
    ("clew completion", ("completion", "bash")),
    ("clew hook install", ("hook", "install", "--agent", "codex", "--dry-run")),
    ("clew hook uninstall", ("hook", "uninstall", "--agent", "codex", "--dry-run")),
    ("clew lake spark-job", ("lake", "spark-job")),
    ("clew mcp", ("mcp",)),
    ("clew mcp install", ("mcp", "install", "--agent", "codex", "--dry-run")),
    ("clew mcp uninstall", ("mcp", "uninstall", "--agent", "codex", "--dry-run")),
    ("clew pick", ("pick",)),
    ("clew redact files", ("redact", "files", "-")),
    ("clew skill install", ("skill", "install", "--agent", "codex", "--dry-run")),
    ("clew skill show", ("skill", "show")),
    ("clew skill uninstall", ("skill", "uninstall", "--agent", "codex", "--dry-run")),
    ("clew web", ("web", "--port", "0")),
)
"""Commands without JSON output, and how to run them."""
TARGET_HOME = {
    "clew convert",
    "clew resume",
    *(f"clew {group} {verb}" for group in ("hook", "mcp", "skill") for verb in ("install", "uninstall")),
    *("clew hook run", "clew hook status"),
}
TARGETS = {"--agent", "--home", "--project"}
"""Options that name the target in these commands, and choose sessions in others."""


def every_command(command: click.Command = main, name: str = "clew") -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from every_command(found, f"{name} {below}")


def option_names(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def refused(*words: str) -> str:
    ran = clew(*words)
    assert (ran.code, ran.out) == (2, "")
    return ran.err


def test_help_lists_commands_in_groups_with_one_line_each() -> None:
    shown = clew("--help").out
    for title, commands in COMMAND_GROUPS.items():
        assert f"\n{title}:\n" in shown
        for name, text in commands.items():
            assert re.search(rf"\n  {name} +{re.escape(text)}\n", shown)


@pytest.mark.parametrize(("wrong", "right"), [("lst", "list"), ("serach", "search"), ("statz", "stats")])
def test_an_unknown_command_is_answered_with_similar_ones(wrong: str, right: str) -> None:
    ran = clew(wrong)
    assert ran.code == 2
    assert f"No such command '{wrong}'. Did you mean '{right}'" in ran.err


@pytest.mark.parametrize(
    ("other", "ours"),
    [("find", "search"), ("grep", "search"), ("cost", "stats"), ("continue", "resume"), ("move", "sources map")],
)
def test_the_name_that_another_tool_has_for_a_command_is_answered_with_ours(other: str, ours: str) -> None:
    ran = clew(other, "x")
    assert ran.code == 2
    assert f"No such command '{other}'. Did you mean '{ours}'?" in ran.err


def test_every_other_name_leads_to_a_command() -> None:
    known = {name.removeprefix("clew ") for name, _ in every_command()}
    assert set(OTHER_NAMES.values()) <= known
    assert not set(OTHER_NAMES) & set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "ours"),
    [(("list", "--after", "2026"), "--since"), (("show", "@last", "--full"), "--detail")],
)
def test_the_name_that_another_tool_has_for_an_option_is_answered_with_ours(words: tuple[str, ...], ours: str) -> None:
    ran = clew(*words)
    assert ran.code == 2
    assert f"Did you mean '{ours}'?" in ran.err


def test_help_with_a_command_is_the_help_of_the_command() -> None:
    assert clew("help", "list").out == clew("list", "--help").out
    assert clew("help", "sources", "map").out == clew("sources", "map", "--help").out
    assert clew("help").out == clew("--help").out
    assert clew("help", "lst").code == 2


def test_the_example_of_record_can_be_recorded(tmp_path: Path) -> None:
    help_text = clew("record", "--help").out
    lines = [line.strip() for line in help_text.splitlines() if line.startswith('  {"role"')]
    ran = run("record", "--store", tmp_path, "--session", "s", input="\n".join(lines).encode())
    assert (ran.code, ran.err, len(ran.lines)) == (0, "", 3)
    assert "ada" in clew("--home", tmp_path, "show", "s", "--detail", "full").out


@pytest.mark.parametrize("group", ["annotate", "archive", "bundle", "hook", "lake", "redact", "skill", "sources"])
def test_the_help_of_a_subcommand_fits_on_its_line(group: str) -> None:
    assert not re.search(r"\.\.\.$", clew(group, "--help").out.split("Commands:")[1], re.MULTILINE)


def test_an_unknown_option_is_answered_with_similar_ones() -> None:
    ran = clew("list", "--projct", "x")
    assert ran.code == 2
    assert "'--project'" in ran.err


def test_every_command_that_reads_sessions_has_the_shared_options() -> None:
    for name, command in every_command():
        if name in WITHOUT_SESSIONS:
            continue
        assert {*SHARED_OPTIONS} - {"--json"} <= option_names(command), name


def test_every_command_has_json_or_refuses_it() -> None:
    """`clew hook run` does neither: it prints nothing, and takes any option."""
    missing = {name for name, command in every_command() if "--json" not in option_names(command)}
    assert missing == {"clew archive hold", "clew bundle", "clew hook", "clew hook run", "clew lake", "clew skill"} | {
        name for name, _ in WITHOUT_JSON
    }
    for _, words in WITHOUT_JSON:
        assert "No such option '--json'" in refused(*words, "--json")
        assert "has no JSON output; leave out --json" in refused("--json", *words)
    assert "has no JSON output" in refused("redact", "--json", "files", "-")


def test_an_option_has_the_same_help_in_every_command() -> None:
    shared = (*SHARED_OPTIONS, "--agent", "--project", "--model", "--since", "--until", "--tool", "--has", "--text")
    texts: dict[str, set[str | None]] = {}
    for name, command in every_command():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not (name in TARGET_HOME and TARGETS & {*parameter.opts}):
                for option in parameter.opts:
                    texts.setdefault(option, set()).add(parameter.help)
    for option in shared:
        assert len(texts[option]) == 1, (option, texts[option])


@pytest.mark.parametrize("words", [("sources",), ("sources", "list")])
def test_sources_of_a_home_are_that_home(demo: Path, words: tuple[str, ...]) -> None:
    rows = clew(*words, "--home", demo, "--json").json
    assert [(row["kind"], row["where"]) for row in rows] == [("home", str(demo))]
    assert clew("--home", demo, *words, "--json").json == rows


def test_archive_list_of_a_home_lists_only_its_sessions(demo: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    assert clew("archive", "--home", demo, "--archive", archive).code == 0
    (tmp_path / "other").mkdir()
    assert len(clew("archive", "list", "--archive", archive, "--home", demo, "--json").json) > 20
    assert clew("archive", "list", "--archive", archive, "--home", tmp_path / "other", "--json").json == []
