"""Values for shell completion: session ids with titles, agents, models and projects, from the catalog as it is.

Completion must be fast and silent: nothing is synced, and any error means that there is nothing to complete.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

COMPLETE_VARIABLE = "_CLEW_COMPLETE"
"""The environment variable by which the script of a shell asks for completions."""
MAX_SESSIONS = 100
"""More session ids would only fill the screen."""
_SAFE_VALUE = re.compile(r"(?!-)[\w.:@/+ -]+")
"""Characters without a meaning for a shell; a value that begins with - would be an option."""

ShellComplete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class BashCompletion(BashComplete):
    """Completion in bash, also of words with `:`, `@` and `=`.

    bash splits a line at these characters too, and replaces only what follows the last of them. So the script passes
    the line as it was typed, and removes from each answer what bash leaves on the line.
    """

    source_template = r"""
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" answer kind value
    local word="${line##*[[:space:]]}" breaks="${COMP_WORDBREAKS//[^:@=]/}" kept=""
    if [[ -n $breaks ]]; then
        kept="${word%%"${word##*[$breaks]}"}"
        kept="${kept%%@}"  # readline replaces an @ together with what follows it
    fi
    COMPREPLY=()
    while IFS= read -r answer; do
        kind="${answer%%%%,*}" value="${answer#*,}"
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$kept"}") ;;
        esac
    done < <(COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words of the line, and the one to complete, which is empty after a space."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words, incomplete


add_completion_class(BashCompletion)


def complete_session(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Session ids that begin with the text, newest first, with titles where the shell shows descriptions."""
    agent, colon, start = incomplete.rpartition(":")
    if start.startswith("@"):
        return [CompletionItem(f"{agent}{colon}@last", help="the newest session")] if "@last".startswith(start) else []
    if any(char in incomplete for char in "/.~"):
        return [CompletionItem(incomplete, type="file")]
    return _from_catalog(context, lambda db: _session_items(db, agent, start))


def _session_items(db: sqlite3.Connection, agent: str, start: str) -> list[CompletionItem]:
    """Items of session ids that begin with `start`, as `agent:id` where an agent is named."""
    from clew.agents import registry
    from clew.catalog.queries import list_ids, sessions_with_id_prefix
    from clew.render.tables import short_ids

    found = sessions_with_id_prefix(db, start, MAX_SESSIONS, agent=registry.match(agent) if agent else "")
    short = short_ids([name for name, _, _ in found], list_ids(db))
    prefix = f"{agent}:" if agent else ""
    ids = [prefix + (short[name] if short[name].startswith(start) else name) for name, _, _ in found]
    return _safe_items(ids, [" · ".join(filter(None, (title, project))) for _, title, project in found])


def complete_filter(name: str) -> ShellComplete:
    """Completion of the values of --agent, --project or --model."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from clew.catalog.queries import names

        return _from_catalog(
            context, lambda db: _safe_items([value for value in names(db)[name] if value.startswith(incomplete)])
        )

    return complete


def _safe_items(values: list[str], descriptions: list[str] | None = None) -> list[CompletionItem]:
    """Items of values from sessions. Those that a shell could run, that hide something, or with secrets are left out.

    bash inserts a value as it is, so it is quoted for it; other shells quote by themselves. bash shows no descriptions.
    """
    from clew.cli.redaction import Redaction
    from clew.render.shell import shell_word
    from clew.render.text_safety import one_line

    # Plain markers need no key, which would be created in the data folder.
    mask = Redaction(plain=True).names
    is_bash = os.environ.get(COMPLETE_VARIABLE) == "bash_complete"
    texts = mask(list(map(one_line, descriptions))) if descriptions and not is_bash else [None] * len(values)
    return [
        CompletionItem(shell_word(value) if is_bash else value, help=text)
        for value, masked, text in zip(values, mask(values), texts, strict=True)
        if value == masked == one_line(value) and _SAFE_VALUE.fullmatch(value)
    ]


def complete_has(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion of the values of --has."""
    from clew.filters import HAS

    return [CompletionItem(value) for value in HAS if value.startswith(incomplete)]


def complete_label(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion of the values of --label."""
    from clew.annotations import Annotations
    from clew.errors import ClewError

    try:
        return _safe_items([label for label in Annotations().labels() if label.startswith(incomplete)])
    except ClewError:
        return []


def _from_catalog(
    context: click.Context, items: Callable[[sqlite3.Connection], list[CompletionItem]]
) -> list[CompletionItem]:
    """Items from the catalog over the homes that were named; none if there is no catalog, or it cannot be read.

    Also none with --source: finding the catalog of named sources may ask other machines.
    """
    from clew.catalog import database
    from clew.cli.options import wanted_sources

    if wanted_sources(context):
        return []
    named = (*context.find_root().params.get("homes", ()), *context.params.get("homes", ()))
    try:
        db = database.open_reader(database.catalog_folder(dict.fromkeys(named)))
        if db is None:
            return []
        with closing(db):
            return items(db)
    except Exception:
        # A message in the middle of the command line would only disturb.
        return []
