"""What the first page of each kind would wait for: done once, while a browser is still on its way."""

from __future__ import annotations

from contextlib import suppress

from clew.catalog import queries
from clew.errors import ClewError
from clew.web.drawing import compile_templates
from clew.web.shelf import Shelf
from clew.web.transcript import Started, transcript_of


def warm(shelf: Shelf) -> None:
    """Load what shows sessions, of each agent that has some, and compile the templates; nothing is kept."""
    compile_templates(shelf.profile)
    with suppress(ClewError):
        for entry in queries.smallest(shelf.db):
            # One that cannot be read is told to whoever asks for it.
            with suppress(ClewError, OSError):
                transcript_of(shelf.session(entry, shelf.profile)).window(0, Started())
