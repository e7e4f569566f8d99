"""A list of sessions to choose from on a terminal: filtered while typing, with a preview of the selected session."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import click
import msgspec
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Dimension, HSplit, Layout, VSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import create_output

from clew.catalog.access import OpenCatalog
from clew.cli import INTERRUPTED
from clew.cli.options import open_library
from clew.cli.redaction import redaction
from clew.filters import Filters
from clew.library import Library
from clew.model.time import parse_time
from clew.render.tables import ago, pad, short_ids, short_project, truncate
from clew.render.text_safety import one_line, visible

PREVIEW_MESSAGES = 12
PREVIEW_CHARS = 4_000
PROJECT_CELLS = 16
SIDE_BY_SIDE_COLUMNS = 120
"""On a narrower terminal the preview stands below the list."""
ACTIONS = {"enter": "show", "c-r": "resume", "c-e": "export"}
"""What `clew pick` does with the selected session, by key."""


class Choice(NamedTuple):
    """A session of the list, and the line that is shown and searched."""

    agent: str
    id: str
    line: str

    @property
    def reference(self) -> str:
        """The reference that commands take."""
        return f"{self.agent}:{self.id}"


def pick_session(context: click.Context, homes: tuple[str, ...], agent: str | None = None) -> str:
    """A reference to the session that the person chose, of one agent or of all; leaving the list aborts the command."""
    return pick(context, homes, {"enter": "choose"}, agent)[1].reference


def pick(
    context: click.Context, homes: tuple[str, ...], actions: dict[str, str], agent: str | None = None
) -> tuple[str, Choice]:
    """The action and the session that the person chose; leaving the list aborts the command."""
    library = open_library(context, homes)
    filters = library.reference_filters
    if agent is not None:
        filters = msgspec.structs.replace(filters, agent=(agent,))
    with library.catalog(filters=filters) as catalog:
        choices = _choices(context, catalog, filters, library.now())
        is_temporary = catalog.is_temporary
    if not choices:
        raise click.UsageError("there is no session to choose from", context)
    # The list is up to date: previews need no sync, and a warning would disturb the screen.
    previewed = Library(
        catalog_folder=library.catalog_folder,
        find_hosts=lambda: library.hosts,
        sync=is_temporary,
        warn=lambda _: None,
    )
    pool = ThreadPoolExecutor(1)
    try:
        chosen = Picker(choices, actions, lambda choice: _preview(context, previewed, choice), pool).run()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if chosen is None:
        raise click.exceptions.Exit(INTERRUPTED)
    return chosen


def _choices(context: click.Context, catalog: OpenCatalog, filters: Filters, now: datetime) -> list[Choice]:
    from clew.catalog.filters import catalog_condition
    from clew.catalog.queries import list_ids, list_rows

    condition = catalog_condition(catalog.db, filters, catalog.sources_with_text)
    rows = list_rows(catalog.db, condition, subagents=False)
    short = short_ids([row["id"] for row in rows], list_ids(catalog.db))
    mask = redaction(context, for_programs=False).names
    ids = mask([short[row["id"]] for row in rows])
    projects = mask([row["project"] or "" for row in rows])
    titles = mask([row["title"] or "" for row in rows])
    choices = []
    for row, name, project, title in zip(rows, ids, projects, titles, strict=True):
        start = f"{one_line(name)}  {ago(parse_time(row['ended_at']), now):<10}  {row['agent']:<11}"
        project = pad(truncate(short_project(one_line(project)), PROJECT_CELLS), PROJECT_CELLS)
        choices.append(Choice(row["agent"], row["id"], f"{start}  {project}  {one_line(title)}"))
    return choices


def _preview(context: click.Context, library: Library, choice: Choice) -> str:
    """The beginning of the conversation, masked."""
    from clew.errors import ClewError
    from clew.render.terminal import show

    try:
        session = redaction(context, for_programs=False).session(library.get(choice.reference))
        messages = (unit.value for unit in session.units() if unit.is_message)
        pieces = show(session.session_object, islice(messages, PREVIEW_MESSAGES), 80, False, "conversation")
        return "".join(pieces)[:PREVIEW_CHARS].expandtabs(4)
    except (ClewError, OSError) as error:
        return visible(redaction(context, for_programs=False).text(str(error)))
    except Exception:
        # A preview must not end the list; the command that is run on the session reports the error.
        return "cannot be previewed"


def matching(choices: Sequence[Choice], query: str) -> list[Choice]:
    """The choices whose line contains every word of the query, then those with its letters in order, closest first."""
    words = query.casefold().split()
    letters = re.compile(".*?".join(map(re.escape, "".join(words))))
    exact, fuzzy = [], []
    for choice in choices:
        line = choice.line.casefold()
        if all(word in line for word in words):
            exact.append(choice)
        elif found := letters.search(line):
            fuzzy.append((found.end() - found.start(), choice))
    return [*exact, *(choice for _, choice in sorted(fuzzy, key=lambda pair: pair[0]))]


class Picker:
    """The screen: a line to type in, the list, the preview and the keys."""

    def __init__(
        self,
        choices: Sequence[Choice],
        actions: dict[str, str],
        preview: Callable[[Choice], str],
        pool: ThreadPoolExecutor,
    ) -> None:
        self._choices, self._actions = choices, actions
        self._preview, self._pool = preview, pool
        self._previews: dict[Choice, str] = {}
        self._shown, self._selected = list(choices), 0
        self._query = Buffer(multiline=False, on_text_changed=self._filter)
        output = create_output(stdout=sys.stderr)
        self._app: Application[tuple[str, Choice] | None] = Application(
            layout=self._layout(output.get_size().columns),
            key_bindings=self._keys(),
            full_screen=True,
            output=output,
        )

    def run(self) -> tuple[str, Choice] | None:
        """Show the screen until the person chooses or leaves."""
        self._request_preview()
        return self._app.run()

    def _layout(self, columns: int) -> Layout:
        query = Window(BufferControl(self._query, [BeforeInput("> ")]), height=1)
        rows = Window(FormattedTextControl(self._rows, get_cursor_position=lambda: Point(0, self._selected)))
        preview = Window(FormattedTextControl(self._preview_text), wrap_lines=True)
        if columns >= SIDE_BY_SIDE_COLUMNS:
            body: VSplit | HSplit = VSplit([rows, Window(width=1, char="│"), preview])
        else:
            body = HSplit([rows, Window(height=1, char="─"), preview])
            preview.height = Dimension(weight=1)
        keys = " · ".join([*(f"{_key_name(key)} {action}" for key, action in self._actions.items()), "Esc quit"])
        return Layout(HSplit([query, body, Window(FormattedTextControl(keys), height=1, style="reverse")]), query)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, action in self._actions.items():
            keys.add(key)(lambda event, action=action: self._leave(event, action))
        for key, step in {"up": -1, "down": 1, "c-p": -1, "c-n": 1, "pageup": -10, "pagedown": 10}.items():
            keys.add(key)(lambda _, step=step: self._move(step))
        for key in ("escape", "c-c", "c-d"):
            keys.add(key, eager=key == "escape")(lambda event: event.app.exit(result=None))
        return keys

    def _leave(self, event: KeyPressEvent, action: str) -> None:
        if self._shown:
            event.app.exit(result=(action, self._shown[self._selected]))

    def _move(self, step: int) -> None:
        self._selected = max(0, min(len(self._shown) - 1, self._selected + step))
        self._request_preview()

    def _filter(self, _: Buffer) -> None:
        self._shown, self._selected = matching(self._choices, self._query.text), 0
        self._request_preview()

    def _rows(self) -> StyleAndTextTuples:
        return [
            ("reverse" if at == self._selected else "", f"{choice.line}\n") for at, choice in enumerate(self._shown)
        ]

    def _preview_text(self) -> str:
        return self._previews.get(self._shown[self._selected], "…") if self._shown else "no session matches"

    def _request_preview(self) -> None:
        """Load the preview in the background: a long session must not keep the person from typing."""
        if self._shown and self._shown[self._selected] not in self._previews:
            self._pool.submit(self._load_preview, self._shown[self._selected])

    def _load_preview(self, choice: Choice) -> None:
        if self._shown and self._shown[self._selected] == choice:
            self._previews[choice] = self._preview(choice)
            self._app.invalidate()


def _key_name(key: str) -> str:
    return key.replace("c-", "Ctrl-").title()
