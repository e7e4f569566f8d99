"""What the file formats of Sage Agent and sage-emacs have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import UNSET, UnsetType

from clew.agents.backups import read_inside
from clew.agents.base import SourceFile
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model import Problem
from clew.model.blocks import Block, Text, Unknown
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

METADATA = "metadata.json"
_MAX_OBJECT_BYTES = 16 << 20


def subfolders(root: Path) -> list[Path]:
    """The folders in a folder, without links; none where it cannot be read."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def source_with_size(agent: str, path: Path, parts: tuple[str, ...], sides: tuple[str, ...]) -> SourceFile:
    """A source file with its size and time; both are 0 where it cannot be read."""
    try:
        stat = path.stat()
        size, mtime = stat.st_size, stat.st_mtime
    except OSError:
        size, mtime = 0, 0.0
    return SourceFile(agent, path, parts, sides, size, mtime)


def read_metadata(folder: Path) -> dict[str, JSON] | None:
    """The object in metadata.json; empty where there is no such file, None where it cannot be read."""
    return read_object(folder / METADATA)


def read_object(path: Path) -> dict[str, JSON] | None:
    """A small JSON object; empty where there is no such file, None where it cannot be read. Follows no link."""
    text = read_inside(path.parent, path.name, _MAX_OBJECT_BYTES)
    if text is None:
        return None if os.path.lexists(path) else {}
    try:
        value = loads(text)
    except NOT_JSON:
        return None
    return value if isinstance(value, dict) else None


def encode_metadata(metadata: Mapping[str, JSON]) -> bytes:
    """The bytes of metadata.json."""
    return (json.dumps(metadata, indent=2, ensure_ascii=False) + "\n").encode()


def check_metadata(
    source: SourceFile, find_errors: Callable[[Mapping[str, JSON]], Iterator[tuple[str, str]]]
) -> Iterator[Problem]:
    """Problems of metadata.json beside a source: missing, damaged, or what `find_errors` finds in it."""
    place = str(source.path.parent / METADATA)
    metadata = read_metadata(source.path.parent)
    if metadata is None:
        yield problem("metadata-damaged", file=place)
    elif not metadata and not source.sides:
        yield problem("metadata-missing", file=place)
    else:
        yield from (problem(code, detail, file=place) for code, detail in find_errors(metadata))


def normalized_time(value: JSON) -> str | None:
    """A time in its canonical form, as short as its precision allows; None where it is none."""
    stamp = parse_time(value)
    return spell_time(stamp) if stamp is not None else None


def content_blocks(content: JSON) -> list[Block]:
    """The blocks of a message whose content is a text or a list."""
    if type(content) is str:
        return [Text(text=content)] if content else []
    return [_content_block(item) for item in content] if type(content) is list else []


def _content_block(item: JSON) -> Block:
    if type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str:
        return Text(text=item["text"])
    return Unknown(value=item)


def text_objects(content: JSON) -> list[JSON]:
    """The native text blocks of a message whose content is a list."""
    items = content if type(content) is list else []
    return [item for item in items if type(item) is dict and item.get("type") == "text"]


def decode_output(content: JSON) -> JSON:
    """What a tool returned, as text."""
    return UNSET if content is None else content if type(content) is str else dumps(content).decode()


def is_error(success: bool | None | UnsetType) -> bool | UnsetType:
    """Whether a call failed; one whose success is null did."""
    return UNSET if success is UNSET else not success


class SessionIds:
    """Replaces the ids in copied records by those of the new session."""

    def __init__(self, session: Mapping[str, JSON], *keys: str) -> None:
        self._new, self._keys = session["id"], keys
        self._old: JSON = None
        """The session that the first record names; records of other sessions keep their id."""

    def replace(self, record: dict[str, JSON]) -> None:
        """Replace the session id."""
        for key in self._keys:
            if isinstance(record.get(key), str):
                self._old = self._old or record[key]
                record[key] = self._new if record[key] == self._old else record[key]


def replace_links(record: dict[str, JSON], message: Mapping[str, JSON]) -> None:
    """Give a copied record the uuid and parent of its message, where the record has such keys."""
    if isinstance(record.get("uuid"), str):
        record["uuid"] = message["uuid"]
    if "parentUuid" in record and (record["parentUuid"] is None or isinstance(record["parentUuid"], str)):
        record["parentUuid"] = message.get("parent_uuid")
