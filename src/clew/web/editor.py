"""Links that open a file of a session in the user's editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from clew.agents.file_evidence import absolute
from clew.catalog.queries import Entry
from clew.errors import SourceUnreadable
from clew.render.page.fragments import FileLink
from clew.render.text_safety import visible
from clew.sources import moved_projects

if TYPE_CHECKING:
    from clew.web.request import PageRequest

_FILE_URL = "{scheme}://file{path}"
_OPEN_URL = "{scheme}://open?file={path}"
EDITORS = {
    "vscode": ("VS Code", _FILE_URL),
    "vscode-insiders": ("VS Code Insiders", _FILE_URL),
    "vscodium": ("VSCodium", _FILE_URL),
    "cursor": ("Cursor", _FILE_URL),
    "windsurf": ("Windsurf", _FILE_URL),
    "zed": ("Zed", _FILE_URL),
    "idea": ("IntelliJ IDEA", _OPEN_URL),
    "pycharm": ("PyCharm", _OPEN_URL),
    "webstorm": ("WebStorm", _OPEN_URL),
    "goland": ("GoLand", _OPEN_URL),
    "rubymine": ("RubyMine", _OPEN_URL),
    "phpstorm": ("PhpStorm", _OPEN_URL),
    "txmt": ("TextMate", "{scheme}://open?url=file://{path}"),
}
"""Editors by the URL scheme that they register: the name, and the address that opens a file or folder."""
MAX_PATH_CHARS = 4_000
MASK_START = "[REDACTED"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def editor_url(path: str, editor: str) -> str | None:
    """The address that opens a file in an editor, which is named by its URL scheme.

    None for an unknown editor, and for a path that is not absolute or could lead elsewhere than it seems.
    """
    if editor not in EDITORS or not _is_plain_absolute_path(path):
        return None
    plain = f"/{path}".replace("\\", "/") if _DRIVE.match(path) else path
    _, template = EDITORS[editor]
    return template.format(scheme=editor, path=quote(plain, safe="/"))


def _is_plain_absolute_path(path: str) -> bool:
    if len(path) > MAX_PATH_CHARS or visible(path) != path or "\n" in path:
        return False
    if not _DRIVE.match(path) and (not path.startswith("/") or path.startswith("//")):
        return False
    return ".." not in re.split(r"[\\/]", path)


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
        url = editor_url(moved_projects.current_path(absolute(path, self.workspace), self.moved), self.editor)
        return FileLink(url, self.title) if url is not None else None


def editor_links(request: PageRequest, entry: Entry, workspace: str = "") -> EditorLinks | None:
    """Links to the files of a session; None if there are none."""
    editor = request.settings.editor
    if editor not in EDITORS or request.context.engine or entry.host:
        return None
    try:
        moved = moved_projects.load()
    except SourceUnreadable:
        moved = {}
    return EditorLinks(editor, request.masking.text, moved, workspace)
