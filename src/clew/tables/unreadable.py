"""What is told of a source that cannot be read: one line, the file first, and nothing secret."""

from __future__ import annotations

from clew.errors import ClewError
from clew.tables.levels import told


def unreadable(path: str, error: BaseException) -> str:
    """The line for an error. Those of ours say in full words what is wrong, and most of them where."""
    said = str(getattr(error, "strerror", None) or error)
    where, _, why = said.partition(": ")
    if not isinstance(error, ClewError | OSError):
        said = f"cannot be read ({said or type(error).__name__})"
    elif why and where.endswith(path.lstrip("/")):
        # Also where a copy of the file was read, from a folder of its own.
        said = why
    return told(f"{path}: {said}").encode(errors="backslashreplace").decode()
