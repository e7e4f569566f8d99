"""Folder names that agents make of paths, and names that are safe to make paths of."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from clew.errors import PathRefused, UnsafeName

_CLAUDE_LIMIT = 200
_NAME_LIMIT = 200
"""Leaves room for a suffix in the 255 bytes that file systems allow."""
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_UNSAFE = re.compile(r'[/\\\x00-\x1f\x7f:*?"<>|]')
_MARKER = re.compile(r"\[REDACTED:([a-z0-9_.-]{1,64}):([a-z2-7]{8})\]")
"""What stands in a name in the place of a secret."""


MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors that say that there is no such file or folder; with others, there may be one."""
MAX_FOLDER_DEPTH = 400
"""Folders that are nested more deeply are neither read nor made."""


def encode_claude(path: str) -> str:
    """Claude Code's rule: every UTF-16 unit outside [A-Za-z0-9] becomes `-`; long names are cut and hashed."""
    slug = _NOT_ALPHANUMERIC.sub(lambda found: "--" if found[0] > "\uffff" else "-", path)
    if len(slug) <= _CLAUDE_LIMIT:
        return slug
    return f"{slug[:_CLAUDE_LIMIT]}-{_base36(abs(_java_hash(path.encode('utf-16-le', 'surrogatepass'))))}"


def _java_hash(units: bytes) -> int:
    value = 0
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits


def encode_seed_claude(path: str) -> str:
    """Claude's rule as older notes state it: `/` and `.` become `-`."""
    return re.sub(r"[/.]", "-", path)


def encode_sage_legacy(path: str) -> str:
    """sage-emacs before its encoding was aligned: `/` becomes `-`, dots stay, `-` at the end."""
    return path.rstrip("/").replace("/", "-") + "-"


def encode_sage(path: str) -> str:
    """sage-emacs as aligned with Claude Code: `/` and `.` become `-`, nothing at the end."""
    return encode_seed_claude(path.rstrip("/"))


ENCODINGS = {
    "claude-code": encode_claude,
    "claude-seed": encode_seed_claude,
    "sage-legacy": encode_sage_legacy,
    "sage": encode_sage,
}


def encode(path: str, rule: str) -> str:
    """The folder name a path gets under a named rule."""
    return ENCODINGS[rule](path)


def spellings(path: str) -> Iterator[str]:
    """Every folder name that some version of some agent makes of the path."""
    for rule in ENCODINGS.values():
        yield rule(path)
        yield rule(path).rstrip("-")
    yield path.rstrip("/").replace("/", "-")


def same_project(name: str, path: str) -> bool:
    """True when a folder name stands for the path under any rule, with or without a dash at the end."""
    return name in set(spellings(path)) or name.rstrip("-") in set(spellings(path))


def file_name(text: str) -> str:
    """A single path component made of untrusted text: what could lead elsewhere becomes `-`."""
    name = _UNSAFE.sub("-", text).encode("utf-8", "replace")[:_NAME_LIMIT].decode("utf-8", "ignore")
    return "-" * len(name) if name in (".", "..") else name or "-"


def safe_relative(name: str) -> str:
    """A single path component from untrusted text; refuses everything that could lead elsewhere.

    The markers of masked secrets lose their colons, which names may not have.
    """
    name = _MARKER.sub(r"[REDACTED-\1-\2]", name)
    if not name or name in (".", "..") or _UNSAFE.search(name) or len(name.encode("utf-8", "replace")) > 255:
        raise UnsafeName(f"not a safe file name: {name!r}")
    return name


def walk(
    folder: str | Path, on_error: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """`os.walk`, without folders nested so deeply that walking or removing them would exhaust the stack.

    `on_error` is called for each folder that cannot be read, but not for one that does not exist.
    """
    top = os.fspath(folder)

    def report(error: OSError) -> None:
        if on_error is not None and error.errno not in MISSING:
            on_error(error)

    for below, folders, files in os.walk(top, onerror=report):
        if below.count(os.sep) - top.count(os.sep) >= MAX_FOLDER_DEPTH:
            folders.clear()
        yield below, folders, files


def folder_error(path: str) -> str:
    """Why a folder cannot be listed or entered; "" where it can, and where it does not exist."""
    try:
        os.scandir(path).close()
        os.stat(os.path.join(path, "."))  # noqa: PTH116, PTH118 - a Path would drop the dot, which needs the permission
    except OSError as error:
        return "" if error.errno in MISSING else error.strerror or str(error)
    return ""


def blocking_folder(path: str) -> str:
    """The folder whose permissions keep a folder from being read: the folder itself, or one above it."""
    place = Path(path)
    for folder in (place, *place.parents):
        try:
            folder.stat()
        except PermissionError:
            continue
        except OSError:
            break
        return str(folder)
    return path


class UnreadableFolder(NamedTuple):
    """A folder that may hold sessions of an agent and cannot be read."""

    path: str
    """As `path_to_text` gives it."""
    agent: str
    reason: str
    code: str = "unreadable"
    """The code of the problem."""

    def __str__(self) -> str:
        return f"{escape_controls(path_for_display(self.path))}: {self.reason}"


def safe_below(path: str) -> str:
    """A relative path from untrusted text, each of its components safe."""
    return "/".join(safe_relative(part) for part in path.split("/"))


def is_own_home(home: Path) -> bool:
    """True for the home of the user who runs clew; any other folder may belong to another user."""
    try:
        return home.resolve() == Path.home().resolve()
    except RuntimeError:
        return False  # the home is unknown


def link_on_way(folder: Path, path: Path) -> Path | None:
    """The symbolic link on the way from a folder to a path below it, or at the path; None where there is none.

    Raises PathRefused for a path that does not lie below the folder.
    """
    folder, path = folder.absolute(), path.absolute()
    if not path.is_relative_to(folder) or ".." in path.relative_to(folder).parts:
        raise PathRefused(f"{path}: is not below {folder}")
    below = (place for place in (path, *path.parents) if place != folder and place.is_relative_to(folder))
    return next((place for place in below if place.is_symlink()), None)


def refuse_link_on_way(folder: Path, path: Path) -> None:
    """Refuse a symbolic link below a folder that the user named."""
    link = link_on_way(folder, path)
    if link is not None:
        raise PathRefused(f"{link}: is a symbolic link and is not followed")


def link_to_session(path: Path, home: Path | None = None) -> Path | None:
    """The symbolic link on the way to a session for which nothing is written to it; None where there is none.

    That is a link at or below a hidden folder, as agents have them (`.sage`, `.claude` ...), or below the `home` or
    store that the user named: either may be a repository, which can hold links that lead anywhere. Links in the
    user's own home are the user's: people keep `~/.claude` elsewhere. The path that a link leads to can always be named
    itself.
    """
    path = path.absolute()
    hidden = (place for place in (*reversed(path.parents), path) if place.name.startswith(".") and place.name != "..")
    holders = [place.parent for place in hidden]
    below_home = home is not None and path.is_relative_to(home.absolute())
    for folder in (*holders, *([home] if home is not None and below_home else ())):
        link = link_on_way(folder, path)
        if link is not None and not is_own_home(folder):
            return link
    return None


def refuse_link_to_session(path: Path, home: Path | None = None) -> None:
    """Refuse to write to a session through a symbolic link that is not in the user's own home."""
    link = link_to_session(path, home)
    if link is not None:
        raise PathRefused(link_refusal(link))


def link_refusal(link: Path) -> str:
    """Why nothing is written through a link, and what to do."""
    return f"{link}: is a symbolic link and is not followed; name the path that it leads to"


_ESCAPED_BYTES = 0x10FF00
"""Private characters that stand for bytes of a file name that are not UTF-8, in text that must be UTF-8."""
_TO_TEXT = {0xDC00 + byte: _ESCAPED_BYTES + byte for byte in range(0x80, 0x100)}
_FROM_TEXT = {private: surrogate for surrogate, private in _TO_TEXT.items()}
_TO_DISPLAY = {private: f"\\x{private - _ESCAPED_BYTES:02x}" for private in _FROM_TEXT}


def can_be_path(text: str) -> bool:
    """False for a text that no file can be called: with a NUL character or a lone surrogate."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def path_to_text(path: str) -> str:
    """A path as a database can hold it: a file name may be any bytes."""
    return path if path.isascii() else path.translate(_TO_TEXT)


def path_from_text(text: str) -> str:
    """The path that `path_to_text` was given."""
    return text if text.isascii() else text.translate(_FROM_TEXT)


def path_for_display(text: str) -> str:
    """A path of `path_to_text` as JSON and people can read it: bytes that are not UTF-8 as `\\xff`."""
    return text if text.isascii() else text.translate(_TO_DISPLAY)


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)} | {9: "\\t", 10: "\\n", 13: "\\r"}


def escape_controls(path: str) -> str:
    """A path on one line that can be copied: a newline as `\\n`, other control characters as `\\t` or `\\x1b`."""
    return path.translate(_CONTROLS)


def escape_invalid_utf8(text: str) -> str:
    """A name or text from the file system as valid text: bytes that are not UTF-8 become `\\xff`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
