"""Fields of a newer minor version, kept while a document is held as typed values.

On loading, what a type does not know moves into the extensions of the nearest object that has them:
`extensions.clew.fields`, a list of `{"at": path, "values": fields}`. A block of an unknown kind becomes an
`unknown` block. On dumping, both go back to where they stood.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec
from msgspec import inspect

from clew.errors import InvalidDocument
from clew.model.base import Part
from clew.model.json import JSON

_OURS, _FIELDS, _BLOCK = "clew", "fields", "block"
_Path = list[str | int]


class _Shape(NamedTuple):
    """What a type knows of: its fields, and those that are typed objects themselves."""

    known: frozenset[str]
    children: dict[str, _Child]
    has_extensions: bool


class _Child(NamedTuple):
    """A field with objects in it: one, a list, or an object of them by name; of several types by their tag."""

    container: type | None
    types: dict[str | None, type[msgspec.Struct]]


def move_unknown_to_extensions(value: JSON, part: type[Part]) -> JSON:
    """The value with every unknown field moved into extensions; itself unchanged."""
    return _stow(value, _shape(part), [], [])


def restore_unknown(value: JSON, part: type[Part]) -> JSON:
    """The value with every stowed field back in its place; changes the value it is given."""
    _hoist(value, _shape(part))
    return value


@cache
def _shape(part: type[msgspec.Struct]) -> _Shape:
    struct = inspect.type_info(part)
    assert isinstance(struct, inspect.StructType)
    children = {field.encode_name: child for field in struct.fields if (child := _child(field.type))}
    known = {field.encode_name for field in struct.fields} | ({struct.tag_field} if struct.tag_field else set())
    return _Shape(frozenset(known), children, "extensions" in known)


def _child(info: inspect.Type, container: type | None = None) -> _Child | None:
    match info:
        case inspect.Metadata():
            return _child(info.type, container)
        case inspect.ListType():
            return _child(info.item_type, list)
        case inspect.DictType():
            return _child(info.value_type, dict)
        case inspect.StructType():
            return _Child(container, {_tag(info): info.cls})
        case inspect.UnionType():
            structs = [member for member in info.types if isinstance(member, inspect.StructType)]
            return _Child(container, {_tag(member): member.cls for member in structs}) if structs else None
    return None


def _tag(struct: inspect.StructType) -> str | None:
    return struct.tag if isinstance(struct.tag, str) else None


def _stow(value: JSON, shape: _Shape, path: _Path, kept: list[JSON]) -> JSON:
    if not isinstance(value, dict):
        return value
    if shape.has_extensions:
        path, kept = [], []
    result: dict[str, JSON] = {}
    unknown = {name: item for name, item in value.items() if name not in shape.known}
    if unknown:
        kept.append({"at": path, "values": unknown})
    for name, item in value.items():
        if name in shape.children:
            result[name] = _stow_child(item, shape.children[name], [*path, name], kept)
        elif name not in unknown:
            result[name] = item
    if shape.has_extensions and kept:
        result["extensions"] = _with_kept(value.get("extensions", {}), kept)
    return result


def _stow_child(value: JSON, child: _Child, path: _Path, kept: list[JSON]) -> JSON:
    if child.container is list and isinstance(value, list):
        return [_stow_one(item, child, [*path, at], kept) for at, item in enumerate(value)]
    if child.container is dict and isinstance(value, dict):
        return {name: _stow_one(item, child, [*path, name], kept) for name, item in value.items()}
    return _stow_one(value, child, path, kept) if child.container is None else value


def _stow_one(value: JSON, child: _Child, path: _Path, kept: list[JSON]) -> JSON:
    part = _type_of(value, child)
    if part is not None:
        return _stow(value, _shape(part), path, kept)
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return {"type": "unknown", "value": value, "extensions": {_OURS: {_BLOCK: True}}}
    return value


def _type_of(value: JSON, child: _Child) -> type[msgspec.Struct] | None:
    if None in child.types:
        return child.types[None]
    tag = value.get("type") if isinstance(value, dict) else None
    return child.types.get(tag) if isinstance(tag, str) else None


def _with_kept(extensions: JSON, kept: list[JSON]) -> JSON:
    if not isinstance(extensions, dict):
        return extensions
    own = extensions.get(_OURS, {})
    if not isinstance(own, dict) or not isinstance(own.get(_FIELDS, []), list):
        raise InvalidDocument(f"extensions.{_OURS} is not of the form clew gives it")
    return {**extensions, _OURS: {**own, _FIELDS: [*own.get(_FIELDS, []), *kept]}}


def _hoist(value: dict[str, JSON], shape: _Shape) -> None:
    if shape.has_extensions:
        _put_back(value)
    for name, child in shape.children.items():
        items = value.get(name)
        if child.container is None:
            items = {name: items} if items is not None else {}
        places = enumerate(items or ()) if isinstance(items, list) else (items or {}).items()
        for at, item in list(places):
            if _is_foreign_block(item):
                value[name][at] = item["value"]
            elif (part := _type_of(item, child)) is not None:
                _hoist(item, _shape(part))


def _is_foreign_block(item: dict[str, JSON]) -> bool:
    own = (item.get("extensions") or {}).get(_OURS) if item.get("type") == "unknown" else None
    return isinstance(own, dict) and own.get(_BLOCK) is True


def _put_back(value: dict[str, JSON]) -> None:
    own = (value.get("extensions") or {}).get(_OURS)
    if not isinstance(own, dict) or _FIELDS not in own:
        return
    entries = own.pop(_FIELDS)
    lost = [entry for entry in entries if not _put(value, entry)]
    if lost:
        own[_FIELDS] = lost
    elif not own:
        del value["extensions"][_OURS]
        if not value["extensions"]:
            del value["extensions"]


def _put(value: JSON, entry: dict[str, JSON]) -> bool:
    """Put fields back; False where the object they belong to is no longer there."""
    try:
        for step in entry["at"]:
            value = value[step]
        value.update({name: item for name, item in entry["values"].items() if name not in value})
    except (KeyError, IndexError, TypeError, AttributeError):
        return False
    return True


def to_builtins(part: Part) -> dict[str, JSON]:
    """A typed value as plain JSON, with all stowed fields back in their places."""
    plain: dict[str, JSON] = msgspec.to_builtins(part)
    restore_unknown(plain, type(part))
    return plain
