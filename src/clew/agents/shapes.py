"""Structs and functions for records of one shape, compiled from the tables as dataclasses compile theirs.

A *shape* is a type of record with exactly these keys in exactly this order. Its struct has a field for each, and its
function deals the values out into structs of the unified document. The source of that function holds names from our
own tables and numbers; what a source file says never becomes code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw

from clew.agents.blocks import MAKE_TEXT, QuickBlocks
from clew.agents.jsonl import Form
from clew.agents.mapping import (
    Alias,
    Blocks,
    Context,
    Copy,
    Each,
    Field,
    Fixed,
    Leaf,
    Nest,
    Shared,
    Table,
    Time,
    place,
)
from clew.agents.orders import Order, State
from clew.agents.structs import annotation, attribute, native, output
from clew.model.json import JSON

Deal = Callable[[Any, int], Any]
"""From a line and the index of its message to the unified message or record; None: it must take the general way."""
Defaults = Mapping[str, Mapping[str, Any]]
Wanted = tuple[str, ...]
"""Paths of keys, as "message.id"; the empty one is the record itself."""
_Noted = tuple[dict[str, int], list[str]]
TYPE = "type"
"""The key that tells what a record is: all of a shape have the same."""
MAX_NOTES = 64
"""How many different states of orders a shape remembers."""
_SECTIONS = {"model": "model", "usage": "token_usage", "thinking": "thinking"}


class Outline(NamedTuple):
    """The keys of an object in their order, and the outlines of the objects inside it that have tables."""

    table: Table
    keys: Order
    inner: tuple[tuple[str, Outline], ...]


def outline(table: Table, value: Mapping[str, JSON]) -> Outline | None:
    """The outline of an object; None where its likes cannot go the quick way."""
    inner: list[tuple[str, Outline]] = []
    for key, item in value.items():
        field = table.fields.get(key)
        if isinstance(field, Alias | Copy) or (field is None and key not in table.known):
            return None
        if isinstance(field, Leaf) and type(item) not in field.accepts:
            return None
        if isinstance(field, Nest | Each):
            examples = [item] if isinstance(field, Nest) else _examples(field, item)
            if examples is None:
                return None
            for example in examples:
                found = outline(field.table, example) if type(example) is dict and example else None
                if found is None or (isinstance(field, Each) and not _is_flat(found)):
                    return None
                inner.append((key, found))
    return Outline(table, tuple(value), tuple(inner))


def _examples(field: Each, value: JSON) -> list[JSON] | None:
    """The first of several objects, if there is one; None where the value holds no such objects."""
    if field.named:
        return list(value.values())[:1] if type(value) is dict else None
    return value[:1] if type(value) is list else None


def _is_flat(lines: Outline) -> bool:
    return all(isinstance(lines.table.fields.get(key), Leaf) for key in lines.keys)


class Unfit(Exception):
    """Records of this shape must take the general way."""


class Shape:
    """The struct of records of one shape, and the maker of the function that deals their values out."""

    def __init__(
        self,
        form: Form,
        kind: str | None,
        lines: Outline,
        blocks: Callable[[Blocks], QuickBlocks],
        opaque: Any,
        defaults: Defaults,
        wanted: Wanted,
    ) -> None:
        self.form, self.outline = form, lines
        self.is_message = form.role is not None
        self.tell = _compile_tell(lines, wanted) if form.table.name in defaults else None
        """From a line to the values that are wanted of it; None where its struct may lack some."""
        dealer = _Dealer(form, blocks)
        self._make = dealer.compile(lines)
        self._shared, self._blocks = dealer.shared, dealer.blocks
        self._names = tuple(_names(lines))
        self._notes: dict[tuple[Any, ...], tuple[_Noted | None, State]] = {}
        struct = _Structs(form, self._blocks, opaque, defaults).of(lines, kind)
        self.decode = msgspec.json.Decoder(struct).decode

    def bind(self, context: Context, calls: dict[str, str], give: Callable[..., Any] | None) -> Deal | None:
        """The shape for one source; None where its records must take the general way there."""
        expected = [context.shared.get(name) for name in self._shared]
        noted = self._note(context)
        if noted is None or not all(type(value) is str for value in expected):
            return None
        order, absent = noted
        deals = self._blocks.bind(context, calls) if self._blocks is not None else None
        return self._make(context.agent, order or UNSET, absent or UNSET, deals, give, *expected)

    def _note(self, context: Context) -> _Noted | None:
        """What is noted on each record; it follows from the orders met before and from what records share."""
        names, orders = self._names, context.orders
        state = (orders.state(names), *[value is not None for value in context.shared.values()])
        if state not in self._notes:
            order: dict[str, int] = {}
            absent: list[str] = []
            noted = (order, absent) if _settle(self.outline, context, order, absent) else None
            if len(self._notes) < MAX_NOTES:
                self._notes[state] = noted, orders.state(names)
            return noted
        known, after = self._notes[state]
        orders.restore(names, after)
        return known


def _names(lines: Outline) -> Iterator[str]:
    yield lines.table.name
    for _, inner in lines.inner:
        yield from _names(inner)


def _settle(lines: Outline, context: Context, order: dict[str, int], absent: list[str]) -> bool:
    """Note what the general way would note about objects of this outline; False where it would note too much."""
    plan = lines.table.plan(lines.keys, context)
    for key, found in lines.inner:
        field = lines.table.fields[key]
        if isinstance(field, Each):
            unusual = found.table.plan(found.keys, context).unusual
            if unusual is not None:
                return False
        elif not _settle(found, context, order, absent):
            return False
    if plan.unusual is None:
        return True
    if plan.unusual.unknown or plan.unusual.aliases or isinstance(plan.unusual.order, list):
        return False
    if plan.unusual.order:
        order[lines.table.name] = plan.unusual.order
    absent += [f"{lines.table.name}.{key}" for key in plan.unusual.absent]
    return True


class _Structs:
    """Makes the structs of a shape."""

    def __init__(self, form: Form, blocks: QuickBlocks | None, opaque: Any, defaults: Defaults) -> None:
        self._form, self._blocks, self._opaque, self._defaults = form, blocks, opaque, defaults

    def of(self, lines: Outline, kind: str | None = None) -> Any:
        """The struct of objects of this outline; `kind`: of a whole record."""
        inner = dict(lines.inner)
        types = {key: self._type(lines.table.fields.get(key), inner.get(key)) for key in lines.keys}
        if kind is not None and isinstance(lines.table.fields.get(TYPE), Leaf):
            types[TYPE] = Literal[kind]
        fields = [(attribute(lines.keys, key), key, types[key]) for key in lines.keys]
        return native(fields, self._defaults.get(lines.table.name))

    def _type(self, field: Field | None, inner: Outline | None) -> Any:
        match field:
            case Leaf():
                return annotation(field.accepts, self._opaque)
            case Fixed():
                return Literal[field.value]
            case Shared() if field.name == "role":
                return Literal[self._form.role]
            case Shared():
                return str
            case Nest() if inner is not None:
                return self.of(inner)
            case Blocks() if self._blocks is not None:
                return str | list[self._blocks.struct]  # type: ignore[name-defined]
            case Each():
                item = self.of(inner) if inner is not None else Raw
                many: Any = dict[str, item] if field.named else list[item]  # type: ignore[valid-type]
                return Annotated[many, Meta(min_length=1) if inner is not None else Meta(max_length=0)]
            case None:
                return self._opaque
        return str


class _Dealer:
    """Writes the function of a shape, in the order in which the general way takes records apart."""

    def __init__(self, form: Form, blocks: Callable[[Blocks], QuickBlocks]) -> None:
        self._form, self._quick_blocks = form, blocks
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {"UNSET": UNSET, "text": MAKE_TEXT}
        self._slots: dict[str, dict[str, str]] = {"": {}, "metadata": {}}
        self.shared: list[str] = []
        self.blocks: QuickBlocks | None = None

    def compile(self, lines: Outline) -> Callable[..., Deal]:
        """make(agent, order, absent, deals, give, *shared values) -> deal(line, index)."""
        rest = self._object(lines, "line")
        self._given()
        result = self._message(rest) if self._form.role is not None else self._record(rest)
        shared = "".join(f", e{number}" for number in range(len(self.shared)))
        self._lines.append(f"return {result}")
        body = "\n".join(f"        {line}" for line in self._lines)
        head = f"def make(agent, order, absent, deals, give{shared}):\n    {self._bare()}\n    def deal(line, index):"
        exec(f"{head}\n{body}\n    return deal", self._objects)
        make: Callable[..., Deal] = self._objects["make"]
        return make

    def _bare(self) -> str:
        """What is noted on a message that leaves no rest is the same for all of a source."""
        own = self._name(output(["plain", "order", "absent"]))
        return (
            f"bare = UNSET if order is UNSET and absent is UNSET else {{agent: {own}(UNSET, order, absent)}}; "
            f"noted = {{agent: {own}(True, order, absent)}}"
        )

    def _given(self) -> None:
        """Slots that the agent fills from what it knows beside the record."""
        if self._form.given:
            self._lines += ["given = give(line, index)", "if given is None: return None"]
        for number, slot in enumerate(self._form.given):
            section, name = place(slot)
            self._slots.setdefault(section, {})[name] = f"given[{number}]"

    def _message(self, rest: dict[str, str]) -> str:
        metadata = dict(self._slots["metadata"])
        for section, name in _SECTIONS.items():
            if section in self._slots:
                metadata[name] = self._make(self._slots[section])
        main = {"index": "index", "role": repr(self._form.role), **self._slots[""]}
        main["content"] = "content" if self.blocks is not None else "()"
        if metadata:
            main["metadata"] = self._make(metadata)
        main["extensions"] = self._own(rest)
        return self._make(main)

    def _record(self, rest: dict[str, str]) -> str:
        kind = self._form.kind if self._form.kind != "unknown" else "other"
        main = {"after": "index", "kind": repr(kind), **self._slots[""]}
        if "snapshot" in self._slots:
            main["snapshot"] = self._make(self._slots["snapshot"])
        main["extensions"] = self._own(rest)
        return self._make(main)

    def _own(self, rest: dict[str, str]) -> str:
        plain = "plain" if self.blocks is not None else "UNSET"
        if rest:
            noted = {"plain": plain, "order": "order", "absent": "absent", "rest": self._make(rest)}
            return f"{{agent: {self._make(noted)}}}"
        return "bare if plain is UNSET else noted" if self.blocks is not None else "bare"

    def _name(self, item: Any) -> str:
        """A name for an object, so that it need not be spelled in the source."""
        name = f"o{len(self._objects)}"
        self._objects[name] = item
        return name

    def _make(self, slots: dict[str, str]) -> str:
        return f"{self._name(output(list(slots)))}({', '.join(slots.values())})"

    def _object(self, lines: Outline, here: str) -> dict[str, str]:
        """Lines that take one object apart; returns what is left of it."""
        rest: dict[str, str] = {}
        inner = dict(lines.inner)
        for key in sorted(lines.keys, key=lambda key: _turn(lines.table.fields.get(key))):
            field, value = lines.table.fields.get(key), f"{here}.{attribute(lines.keys, key)}"
            if field is None:
                rest[key] = value
            elif isinstance(field, Nest):
                name = f"n{len(self._objects)}"
                self._objects[name] = None
                self._lines.append(f"{name} = {value}")
                left = self._object(inner[key], name)
                if left:
                    rest[key] = self._make(left)
            else:
                self._field(field, value, inner.get(key))
        return rest

    def _field(self, field: Field, value: str, inner: Outline | None) -> None:
        match field:
            case Leaf():
                self._place(field.slot, value)
            case Time():
                self._lines.append(f"t = {value}")
                self._lines.append("if len(t) != 24 or t[10] != 'T' or t[23] != 'Z': return None")
                self._place(field.slot, value)
            case Shared() if field.name != "role":
                self._lines.append(f"if {value} != e{len(self.shared)}: return None")
                self.shared.append(field.name)
            case Each():
                self._slots.setdefault(field.section, {})[field.name] = self._each(field, value, inner)
            case Blocks():
                self._content(field, value)

    def _place(self, slot: str, value: str) -> None:
        section, name = place(slot)
        self._slots.setdefault(section, {})[name] = value

    def _each(self, field: Each, value: str, inner: Outline | None) -> str:
        if inner is None:
            return value
        slots = {place(leaf.slot)[1]: f"i.{attribute(inner.keys, key)}" for key, leaf in _leaves(inner)}
        item = self._make(slots)
        return f"{{k: {item} for k, i in {value}.items()}}" if field.named else f"[{item} for i in {value}]"

    def _content(self, field: Blocks, value: str) -> None:
        if self.blocks is not None or self._form.role is None or not field.is_content:
            raise Unfit
        self.blocks = self._quick_blocks(field)
        self._lines += [
            f"c = {value}",
            "if type(c) is str:",
            "    content = (text('text', c),)",
            "    plain = True",
            "else:",
            "    plain = UNSET",
            "    if len(c) == 1:",
            "        content = deals[c[0].type](c[0]),",
            "    else:",
            "        content = [deals[b.type](b) for b in c]",
            "    if None in content: return None",
        ]


def _compile_tell(lines: Outline, wanted: Wanted) -> Callable[[Any], tuple[Any, ...]]:
    """One function for each shape: attributes of a single struct are found much more quickly than those of many."""
    values = ", ".join(_path(lines, "line", path.split(".")) if path else "line" for path in wanted)
    objects: dict[str, Any] = {}
    exec(f"def tell(line): return ({values},)", objects)
    tell: Callable[[Any], tuple[Any, ...]] = objects["tell"]
    return tell


def _path(lines: Outline, here: str, path: list[str]) -> str:
    if path[0] not in lines.keys:
        return "None"
    here = f"{here}.{attribute(lines.keys, path[0])}"
    if len(path) == 1:
        return here
    inner = dict(lines.inner).get(path[0])
    return _path(inner, here, path[1:]) if inner is not None else "None"


def _turn(field: Field | None) -> int:
    """When the general way looks at a field: what it places, times, what is known, the rest, parts."""
    if field is None:
        return 3
    return {Leaf: 0, Time: 1, Fixed: 2, Shared: 2}.get(type(field), 4)


def _leaves(lines: Outline) -> Iterator[tuple[str, Leaf]]:
    for key in lines.keys:
        field = lines.table.fields[key]
        assert isinstance(field, Leaf)
        yield key, field
