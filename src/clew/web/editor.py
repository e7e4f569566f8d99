"""Links that open a file of a session in the user's editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from clew.agents.file_evidence import absolute
from clew.catalog.queries import Entry
from clew.errors import SourceUnreadable
from clew.render.page.fragments import FileLink
from clew.settings import EDITORS, editor_url
from clew.sources import moved_projects
from clew.web.request import PageRequest

MASK_START = "[REDACTED"


@dataclass(frozen=True)
class EditorLinks:
    """Gives links to files; none without an editor, for files of other machines and for masked paths."""

    editor: str
    """The URL scheme of the editor."""
    mask: Callable[[str], str]
    moved: dict[str, str]
    """The new folders of projects that were moved, by the old ones."""
    workspace: str
    """The folder that relative paths belong to."""

    @property
    def title(self) -> str:
        """What a link does."""
        return f"Open in {EDITORS[self.editor][0]}"

    def __call__(self, path: str) -> FileLink | None:
        """The link that opens a file as a session names it; the path it leads to is where the file is now."""
        if ".." in re.split(r"[\\/]", path) or MASK_START in path or self.mask(path) != path:
            return None
        url = editor_url(moved_projects.current_path(absolute(path, self.workspace), self.moved), None, self.editor)
        return FileLink(url, self.title) if url is not None else None


def editor_links(request: PageRequest, entry: Entry, workspace: str = "") -> EditorLinks | None:
    """Links to the files of a session; None if there are none."""
    editor = request.settings.editor
    if editor not in EDITORS or request.context.engine or entry.host:
        return None
    try:
        moved = moved_projects.load()
    except (SourceUnreadable, OSError):
        moved = {}
    return EditorLinks(editor, request.masking.text, moved, workspace)
