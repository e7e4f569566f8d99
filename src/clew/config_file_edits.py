"""Changes configuration files of agents: plans an edit, makes it with a backup, and undoes it.

An edit installs or removes one addition, such as a hook; everything else in the file stays.

Before the first change, the content of the file is stored as a backup in clew's data folder. If only clew changed the
file since, a removal restores the backup byte for byte, unless the backup has the addition already.

A backup is stored before the file is changed, and deleted after the file was restored. So a process that dies in
between leaves a backup whose digests are not those of the file: such a backup is not used.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import msgspec

from clew.agents.extension_points import ConfigFile
from clew.errors import Busy, ClewError, PathRefused, SourceUnreadable, UnknownReference
from clew.host import data_dir
from clew.io import json_file
from clew.io.json_text import replace_values
from clew.io.safe_write import Change, Within

BACKUPS_FILE = "agent-config.json"
"""The file in clew's data folder with the content of agents' files before clew changed them."""
BYTE_ORDER_MARK = "\ufeff"
"""Some editors on Windows begin a file in UTF-8 with it."""
_NEW_FILE_MODE = 0o600


class UnusableContent(SourceUnreadable):
    """A file of an agent has a content that clew cannot change safely."""


class Backup(msgspec.Struct):
    """What a file held before clew changed it, and the digest of what clew wrote."""

    before: str | None
    """None if there was no file."""
    digest: str
    folders: list[str] = []
    """The folders that clew made for the file, below that of `ConfigFile`; the outermost first."""
    last_digest: str | None = None
    """The digest of what clew wrote before that: the file may still hold it if clew was interrupted."""


class Addition(ABC):
    """What clew adds to a file of an agent."""

    kind: ClassVar[str]
    """The command that installs and removes it: `clew KIND install`."""
    title: ClassVar[str]
    """How messages call it."""
    note: str = ""
    """What the user has to do after an installation."""

    def __init__(self, file: ConfigFile) -> None:
        self.file = file

    @property
    def backup_key(self) -> str:
        """The key of its backup. Several additions may be in one file, each with a backup."""
        return f"{self.kind}:{self.file.path.absolute()}"

    @abstractmethod
    def is_installed_in(self, text: str | None) -> bool:
        """True if a content of the file has the addition, also as another version of clew writes it.

        None: there is no file. Raises UnusableContent.
        """

    @abstractmethod
    def add(self, text: str | None) -> str:
        """The content with the addition. None: there is no file."""

    @abstractmethod
    def remove(self, text: str, content_before_install: str | None) -> str | None:
        """The content without the addition; None to delete the file. Raises UnknownReference if it is not installed.

        `content_before_install` is None if there was no file, or if it is not known.
        """

    @abstractmethod
    def manual_instructions(self) -> str:
        """How a person installs it, in one line."""

    def user_entry_note(self, text: str | None) -> str:
        """A message about an entry that the user wrote and that does what the addition does; empty if there is none."""
        return ""

    def not_installed_error(self) -> UnknownReference:
        """The error that the file does not have the addition."""
        return UnknownReference(f"{self.file.path} has no {self.title}")


def clew_arguments(words: Sequence[str]) -> list[str] | None:
    """The arguments of clew in a command as clew writes it, wherever it was installed; None for any other command.

    By them, all additions that run clew recognize an entry that clew added.
    """
    if words and PurePath(words[0]).stem == "clew":
        return list(words[1:])
    return list(words[4:]) if list(words[1:4]) == ["-P", "-m", "clew"] else None


class Edit(NamedTuple):
    """A change of a file. None: there is no file."""

    addition: Addition
    before: str | None
    after: str | None
    is_removal: bool = False
    backup: Backup | None = None
    """For a removal: the content before the installation; None if it is not known."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.addition.file.path

    @property
    def is_empty(self) -> bool:
        """True if nothing changes."""
        return self.before == self.after

    @property
    def outcome(self) -> str:
        """What was done, once the change is made."""
        title = self.addition.title
        if not self.is_removal:
            return f"installed; `clew {self.addition.kind} uninstall` removes it"
        if self.after is None:
            return "file removed"
        is_restored = self.backup is not None and self.after == self.backup.before
        return f"restored, without the {title}" if is_restored else f"{title} removed"

    @property
    def removable_folders(self) -> list[str]:
        """The folders that clew made for a file that the change removes."""
        if self.after is not None or self.backup is None:
            return []
        # If the file is not as clew wrote it, its folders may not be those that clew made either.
        return self.backup.folders if is_unchanged(self.backup, self.before) else []

    def diff(self) -> str:
        """The change as a unified diff."""
        # `splitlines` would also split at control characters.
        old, new = (text.removesuffix("\n").split("\n") if text else [] for text in (self.before, self.after))
        old_name, new_name = (str(self.path) if text is not None else "/dev/null" for text in (self.before, self.after))
        return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, old_name, new_name, lineterm=""))


def plan_install(addition: Addition) -> Edit:
    """The change that installs it; an addition of another version of clew, or with other options, is replaced."""
    try:
        before = read_file(addition.file)
        return Edit(addition, before, addition.add(before))
    except (UnusableContent, PathRefused) as error:
        raise type(error)(f"{error}; {addition.manual_instructions()}") from None


def plan_uninstall(addition: Addition) -> Edit:
    """The change that removes it. Raises UnknownReference if it is not installed."""
    try:
        return _plan_uninstall(addition)
    except (UnusableContent, PathRefused) as error:
        raise type(error)(f"{error}; if it has the {addition.title}, remove that by hand") from None


def _plan_uninstall(addition: Addition) -> Edit:
    before = read_file(addition.file)
    backup = load_backup(addition)
    content_before_install = backup.before if backup is not None else None
    if content_before_install is not None and addition.is_installed_in(content_before_install):
        # The installation replaced the addition of another one, which must not come back.
        backup, content_before_install = None, addition.remove(content_before_install, None)
        content_before_install = None if _is_blank(content_before_install) else content_before_install
    if backup is not None and is_unchanged(backup, before):
        return Edit(addition, before, backup.before, is_removal=True, backup=backup)
    if before is None or (backup is not None and backup.before == before):
        raise addition.not_installed_error()
    after = addition.remove(before, content_before_install)
    if content_before_install is None and _is_blank(after):
        after = None
    return Edit(addition, before, after, is_removal=True, backup=backup)


def apply_edit(edit: Edit) -> None:
    """Write the change, at once or not at all; links are refused. Raises Busy if the file changed since it was read."""
    file, key = edit.addition.file, edit.addition.backup_key
    with json_file.exclusive(data_dir() / BACKUPS_FILE, Backup) as (backups, store), _folder_of(file) as within:
        if _decoded(file, within.read(file.name)) != edit.before:
            raise Busy(f"{file.path} was changed by another program; try again")
        body = edit.after.encode() if edit.after is not None else None
        change = Change(file.name, body, _NEW_FILE_MODE if edit.before is None else None)
        if edit.is_removal:
            within.apply([change])
            store(_backups_after_removal(backups, edit))
        else:
            store({**backups, key: _new_backup(backups.get(key), edit)})
            try:
                within.apply([change])
            except BaseException:
                with suppress(ClewError):
                    store(backups)
                raise
    _remove_folders(file, edit.removable_folders)


def _new_backup(previous: Backup | None, edit: Edit) -> Backup:
    """The backup for an installation. If only clew changed the file, it keeps the content of the previous one."""
    digest = _digest(edit.after or "")
    if previous is None or edit.before is None or not is_unchanged(previous, edit.before):
        return Backup(edit.before, digest, _missing_folders(edit.addition.file))
    return Backup(previous.before, digest, previous.folders, last_digest=_digest(edit.before))


def _backups_after_removal(backups: dict[str, Backup], edit: Edit) -> dict[str, Backup]:
    """The backups of the other additions.

    If another addition was installed in the file after the removed one, its backup has the removed one in it. It gets
    the content from before both, so that its own removal restores that. Folders that clew made for the removed file
    and that have a file of another addition are removed with that file.
    """
    others = {key: backup for key, backup in backups.items() if key != edit.addition.backup_key}
    folder = edit.addition.file.folder.absolute()
    for key, other in others.items():
        path = Path(key.partition(":")[2])
        above = [name for name in edit.removable_folders if path.is_relative_to(folder / name)]
        if above:
            others[key] = msgspec.structs.replace(other, folders=list(dict.fromkeys([*above, *other.folders])))
        if path != edit.path.absolute() or edit.backup is None or edit.after is None:
            continue
        if other.before is not None and is_unchanged(edit.backup, other.before) and is_unchanged(other, edit.before):
            others[key] = Backup(edit.backup.before, _digest(edit.after), edit.backup.folders)
    return others


def _missing_folders(file: ConfigFile) -> list[str]:
    above = [str(folder) for folder in reversed(PurePosixPath(file.name).parents) if folder.name]
    return [name for name in above if not (file.folder / name).is_dir()]


def _remove_folders(file: ConfigFile, folders: list[str]) -> None:
    """Remove the folders that clew made, unless something else is in them by now."""
    for name in reversed(folders):
        with suppress(OSError):
            (file.folder / name).rmdir()


def load_backup(addition: Addition) -> Backup | None:
    """The backup from before the installation; None if clew did not install it."""
    return json_file.load(data_dir() / BACKUPS_FILE, Backup).get(addition.backup_key)


def is_unchanged(backup: Backup, text: str | None) -> bool:
    """True if a content of the file is one that clew wrote: nothing else has changed it."""
    return text is not None and _digest(text) in (backup.digest, backup.last_digest)


def read_file(file: ConfigFile) -> str | None:
    """The content of a file; None if there is none. Links are refused."""
    with _folder_of(file) as within:
        return _decoded(file, within.read(file.name))


@contextmanager
def _folder_of(file: ConfigFile) -> Iterator[Within]:
    """The folder of a file, opened. Errors in the block name the file by its full path."""
    try:
        if not file.folder.is_dir():
            raise SourceUnreadable(f"{file.folder}: no such folder")
        with Within(file.folder) as within:
            yield within
    except PathRefused as error:
        link = _first_link(file)
        what = f"{error}" if link is None else f"{link} is a link, which clew does not follow"
        raise PathRefused(what if link == file.path else f"{file.path}: {what}") from None
    except OSError as error:
        raise SourceUnreadable(f"{file.path}: {error.strerror or error}") from None


def _first_link(file: ConfigFile) -> Path | None:
    """The first link among the folders below `ConfigFile.folder` and the file itself."""
    names = [*reversed(PurePosixPath(file.name).parents), PurePosixPath(file.name)]
    return next((file.folder / name for name in names if name.name and (file.folder / name).is_symlink()), None)


def _decoded(file: ConfigFile, body: bytes | None) -> str | None:
    try:
        return body.decode() if body is not None else None
    except UnicodeDecodeError:
        raise UnusableContent(f"{file.path} is not UTF-8") from None


def _is_blank(text: str | None) -> bool:
    return (text or "").removeprefix(BYTE_ORDER_MARK).strip() in ("", "{}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class JsonAddition(Addition):
    """An entry in a JSON file. A file with comments or with a key twice is refused. A byte order mark stays."""

    container_keys: Sequence[str]
    """The keys that lead to the object or array with the entry."""

    @abstractmethod
    def is_installed_in_values(self, values: dict[str, Any]) -> bool:
        """True if the values of the file have the entry."""

    @abstractmethod
    def add_to(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values with the entry."""

    @abstractmethod
    def remove_from(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values without the entry. Containers that are empty then may stay."""

    def is_installed_in(self, text: str | None) -> bool:
        return self.is_installed_in_values(self.parse(text))

    def add(self, text: str | None) -> str:
        return _replace_values(text or "", self.add_to(self.parse(text)))

    def remove(self, text: str, content_before_install: str | None) -> str:
        values = self.parse(text)
        if not self.is_installed_in_values(values):
            raise self.not_installed_error()
        values_before_install = self.parse(content_before_install)
        values = _without_new_containers(self.remove_from(values), self.container_keys, values_before_install)
        return _replace_values(text, values)

    def manual_instructions(self) -> str:
        return f"add the {self.title} by hand: {json.dumps(self.add_to({}), ensure_ascii=False)}"

    def parse(self, text: str | None) -> dict[str, Any]:
        """The values of a content of the file; no values if there is no file."""
        content = (text or "").removeprefix(BYTE_ORDER_MARK)
        if not content.strip():
            return {}
        try:
            values = json.loads(content, object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            hint = "; it may have comments" if "//" in content or "/*" in content else ""
            raise UnusableContent(f"{self.file.path} cannot be changed: {error}{hint}") from None
        if not isinstance(values, dict):
            raise UnusableContent(f"{self.file.path} is not a JSON object")
        return values

    def member(self, values: dict[str, Any], key: str, value_type: type[Any]) -> Any:
        """The object or array of this key; an empty one without it. Raises UnusableContent for anything else."""
        found = values.get(key, value_type())
        if not isinstance(found, value_type):
            what = "an object" if value_type is dict else "an array"
            raise UnusableContent(f"{self.file.path}: `{key}` is not {what}")
        return found


def _replace_values(text: str, values: dict[str, Any]) -> str:
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    return mark + replace_values(text.removeprefix(mark), values)


def _without_new_containers(values: dict[str, Any], keys: Sequence[str], before_install: Any) -> dict[str, Any]:
    """The values without those containers along the keys that are empty and that were not there before."""
    if not keys or keys[0] not in values:
        return values
    key, is_new = keys[0], not (isinstance(before_install, dict) and keys[0] in before_install)
    container = values[key]
    if isinstance(container, dict):
        container = _without_new_containers(container, keys[1:], None if is_new else before_install[key])
    if not container and is_new:
        return {name: value for name, value in values.items() if name != key}
    return {**values, key: container}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values
