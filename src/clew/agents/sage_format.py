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
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

METADATA = "metadata.json"
_MAX_OBJECT_BYTES = 16 << 20


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


def encode_call(block: Mapping[str, JSON], arguments_key: str) -> dict[str, JSON]:
    """A `tool_use` block as a call; what is not known is left out."""
    call = {"id": block["tool_id"], "name": block["tool_name"], arguments_key: block["input"]}
    return {name: item for name, item in call.items() if item is not None}


def replace_links(record: dict[str, JSON], message: Mapping[str, JSON]) -> None:
    """Give a copied record the uuid and parent of its message, where the record has such keys."""
    if isinstance(record.get("uuid"), str):
        record["uuid"] = message["uuid"]
    if "parentUuid" in record and (record["parentUuid"] is None or isinstance(record["parentUuid"], str)):
        record["parentUuid"] = message.get("parent_uuid")
