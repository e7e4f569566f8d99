"""The generated pages of the reference are up to date."""

import json
import re
from pathlib import Path

import click
import pytest

from clew.cli import COMMAND_GROUPS
from clew.cli.main import main
from clew.model.codes import CODES
from scripts import docs
from scripts.docs_tables import COLUMNS, JSON_EXAMPLES
from tests.cli.test_help import every_command, option_names
from tests.docs.examples import demo_shell

CONTEXT = click.Context(main)
OVERVIEW = (docs.REFERENCE / "commands" / "index.md").read_text(encoding="utf-8")
STALE = "the page is stale: run `make docs`"


def plain(text: str) -> str:
    """The words of a text: layout, Markdown escapes and \\b, which keeps line ends in help, do not count."""
    return re.sub(r"[\s\b]+|```text", " ", text.replace("\\", "")).replace("  ", " ")


def section(name: str) -> str:
    [group] = [group for group, names in COMMAND_GROUPS.items() if name in names]
    page = (docs.REFERENCE / "commands" / docs.group_file(group)).read_text(encoding="utf-8")
    return plain(page.partition(f"## clew {name}\n")[2].partition("\n## ")[0])


@pytest.mark.parametrize("name", main.list_commands(CONTEXT))
def test_every_option_is_explained_as_in_the_help(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    text = section(name)
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    missing = [option.name for option in options if plain(option.help or "") not in text + plain(OVERVIEW)]
    missing += [word for option in options for word in option.opts if word not in text]
    assert not missing, STALE
    assert all(plain(part).strip() in text for part in re.split(r"\n\n", command.help or "")), STALE


def test_the_pages_of_problems_and_tables_are_current() -> None:
    for name, text in (("problems.md", docs.problems_page()), ("tables.md", docs.tables_page())):
        assert (docs.REFERENCE / name).read_text(encoding="utf-8") == text, STALE
    assert all(f"| `{name}` | {code.severity} |" in docs.problems_page() for name, code in CODES.items())


def test_the_page_of_tables_names_the_values_of_columns_with_few_values(tmp_path: Path) -> None:
    columns = ["sources.state", "messages.kind", "messages.role", "blocks.kind", "file_changes.op", "todos.status"]
    with demo_shell(tmp_path) as shell:
        shell.run("clew sync")
        next(tmp_path.rglob("rollout-*.jsonl")).unlink()
        for view, column in (name.split(".") for name in columns):
            lines = shell.run(f"clew sql 'SELECT DISTINCT {column} AS value FROM {view}' --json").splitlines()
            values = [json.loads(line)["value"] for line in lines]
            described = COLUMNS.get(f"{view}.{column}") or COLUMNS[column]
            assert [value for value in values if value and f"`{value}`" not in described] == []


def test_the_page_of_json_has_every_command_with_json() -> None:
    with_json = {
        name
        for name, command in every_command()
        if "--json" in option_names(command) and not (isinstance(command, click.Group) and command.no_args_is_help)
    }
    page = (docs.REFERENCE / "json.md").read_text(encoding="utf-8")
    assert docs.json_commands() == with_json
    assert [title for title, *_ in JSON_EXAMPLES if f"\n## {title}\n" not in page] == [], STALE


def test_the_page_of_json_has_a_type_for_every_key() -> None:
    page = (docs.REFERENCE / "json.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(.*)` \| null \|$", page, re.MULTILINE) == [], "add a run, or the type, to docs_tables.py"


@pytest.mark.slow
def test_the_types_of_commits_are_those_of_all_kinds_of_links() -> None:
    page = (docs.REFERENCE / "json.md").read_text(encoding="utf-8")
    section = page.partition("\n## clew commits\n")[2].partition("\n## ")[0]
    for key in ("range", "commits[].time", "commits[].sessions[].message", "sessions[].cost", "totals.linked.cost"):
        assert re.search(rf"\| `{re.escape(key)}` \| (null or \w+|\w+ or null) \|", section), key
    assert "| null |" not in section


def test_the_page_of_json_keys_is_current() -> None:
    assert (docs.REFERENCE / "json.md").read_text(encoding="utf-8") == docs.json_page(), STALE
