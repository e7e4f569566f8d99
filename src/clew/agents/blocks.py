"""Content blocks the quick way: one struct for all plain kinds, and a compiled function for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.mapping import Blocks, Context, Each, Kind, Leaf, Nest
from clew.agents.orders import Order, Orders
from clew.agents.structs import annotation, attribute, native, output
from clew.io.codec import dumps, loads

DealBlock = Callable[[Any], Any]
"""From a native block to the unified one; None: its record must take the general way."""
Hints = Mapping[str, list[Order]]

MAKE_TEXT = output(["type", "text"])
_QUOTE = ord('"')
_note_call = dict.__setitem__


class QuickBlocks:
    """The kinds of block that take the quick way, with the first known order of keys of each."""

    def __init__(self, kinds: Mapping[str, Kind], hints: Hints, opaque: Any) -> None:
        merged = Orders()
        types: dict[str, Any] = {}
        self._kinds: dict[str, tuple[Kind, Order]] = {}
        for name, kind in kinds.items():
            order = next(iter(hints.get(kind.table.name, ())), ())
            mine = _types(kind, order, opaque)
            fits = mine is not None and all(types.get(key, mine[key]) == mine[key] for key in mine)
            if mine is not None and fits and merged.learn("block", order) == 0:
                types.update(mine)
                self._kinds[name] = kind, order
        keys = tuple(merged.of("block")) or ("type",)
        self.names = {key: attribute(keys, key) for key in keys}
        self.struct = native([(name, key, types.get(key, str) | UnsetType, UNSET) for key, name in self.names.items()])
        self._makers = {name: self._compile(*known) for name, known in self._kinds.items()}

    def bind(self, context: Context, calls: dict[str, str]) -> Deals:
        """The functions of all kinds for one source."""
        return Deals(self, context, calls)

    def deal(self, name: str, context: Context, calls: dict[str, str]) -> DealBlock:
        """The function of one kind for one source, in which a block of it was met."""
        if name in self._kinds:
            kind, order = self._kinds[name]
            if context.orders.learn(kind.table.name, order) == 0:
                return self._makers[name](context, calls)
        return _refuse

    def _compile(self, kind: Kind, order: Order) -> Callable[..., DealBlock]:
        """make(context, calls) -> deal(b)."""
        values = {key: f"b.{self.names[key]}" for key in self.names}
        fields = kind.table.fields
        leaves = {f.slot: values[key] for key in order if isinstance(f := fields.get(key), Leaf)}
        rest = {key: values[key] for key in order if key not in fields}
        foreign = [value for key, value in values.items() if key not in order]
        objects: dict[str, Any] = {"UNSET": UNSET, "note": _note_call, "make_rest": output(list(rest))}
        lines = [f"if {' or '.join(f'{value} is not UNSET' for value in foreign)}: return None"] if foreign else []
        lines += [f"if {leaves[slot]} is UNSET: return None" for slot in kind.needs]
        slots = {"type": repr(kind.unified), **leaves}
        nested = next((f for key in order if isinstance(f := fields.get(key), Blocks)), None)
        if nested is not None:
            objects["take"] = _Content(nested)
            lines += [f"c = take({values[nested.key]}, context)", "if c is None: return None"]
            slots[nested.name] = "c"
        if rest:
            left = f"{{context.agent: {{'rest': make_rest({', '.join(rest.values())})}}}}"
            lines.append(f"own = {left} if {' or '.join(f'{v} is not UNSET' for v in rest.values())} else UNSET")
            slots["extensions"] = "own"
        if kind.unified == "tool_use":
            lines.append(f"note(calls, {leaves['tool_id']}, {leaves['tool_name']})")
        elif kind.unified == "tool_result":
            slots["tool_name"] = f"calls.get({leaves['tool_id']})"
        objects["make_block"] = output(list(slots))
        lines.append(f"return make_block({', '.join(slots.values())})")
        body = "\n".join(f"        {line}" for line in lines)
        exec(f"def make(context, calls):\n    def deal(b):\n{body}\n    return deal", objects)
        make: Callable[..., DealBlock] = objects["make"]
        return make


class Deals(dict[str, DealBlock]):
    """The functions of one source by the kind of block, each made when the first of its kind is met."""

    def __init__(self, blocks: QuickBlocks, context: Context, calls: dict[str, str]) -> None:
        self._blocks, self._context, self._calls = blocks, context, calls

    def __missing__(self, name: str) -> DealBlock:
        deal = self[name] = self._blocks.deal(name, self._context, self._calls)
        return deal


def _refuse(_block: Any) -> None:
    """For kinds of block that always take the general way."""


def _types(kind: Kind, order: Order, opaque: Any) -> dict[str, Any] | None:
    """The types of the kind's keys; None for a kind that is not plain."""
    types: dict[str, Any] = {}
    table = kind.table
    slots = [field.slot for key in order if isinstance(field := table.fields.get(key), Leaf)]
    if "type" not in order or not set(slots).issuperset(kind.needs):
        return None
    for key in order:
        field = table.fields.get(key)
        if isinstance(field, Nest | Each) or key not in table.known:
            return None
        types[key] = str if key == "type" else annotation(field.accepts, opaque) if isinstance(field, Leaf) else opaque
    return types


class _Content:
    """The content of a tool result: text goes over as it is, blocks are taken apart."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def __call__(self, content: Any, context: Context) -> Any:
        if type(content) is msgspec.Raw:
            if memoryview(content)[0] == _QUOTE:
                return content
        elif content is UNSET or type(content) is str:
            return content
        else:
            return self._blocks.take_all(content, context) if type(content) is list else None
        items = loads(content)
        # Blocks inside take the general way, so they must be spelled as we would spell them.
        if type(items) is not list or dumps(items) != bytes(content):
            return None
        return self._blocks.take_all(items, context)
