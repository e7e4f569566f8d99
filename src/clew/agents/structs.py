"""Structs made while the program runs: of native objects, and of what is written."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any

import msgspec

from clew.agents.mapping import ANY, LIST
from clew.agents.orders import Order


def attribute(keys: Order, key: str) -> str:
    """The name of a key in its struct: the key itself wherever Python allows."""
    usable = key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("_")
    return key if usable else f"k{keys.index(key)}"


def native(fields: list[tuple[Any, ...]], defaults: Mapping[str, Any] | None = None) -> Any:
    """A struct with an attribute, a key, a type and maybe a default for each field; no key may be added.

    The other `defaults` are no fields, but can be asked for.
    """
    renames = {name: key for name, key, *_ in fields}
    typed = [(name, *rest) for name, _, *rest in fields]
    others = {name: value for name, value in (defaults or {}).items() if name not in renames}
    return msgspec.defstruct("Native", typed, rename=renames, namespace=others, forbid_unknown_fields=True, gc=False)


def output(names: list[str]) -> Any:
    """A struct to be written: any value under each name; an unset one is left out."""
    attributes = {f"v{number}": name for number, name in enumerate(names)}
    return msgspec.defstruct("Output", [(name, Any) for name in attributes], rename=attributes, gc=False)


def annotation(accepts: frozenset[type], opaque: Any) -> Any:
    """The type a struct gives to values of which a leaf accepts these types."""
    if accepts == ANY:
        return opaque
    if accepts == LIST:
        return list[opaque]
    kinds = sorted(accepts, key=str)
    result: Any = kinds[0]
    for kind in kinds[1:]:
        result |= kind
    return result
