"""Two-way tables between an agent's records and the unified document.

A `Table` says for each native key where its value goes. Reading takes a native object apart into *sections*
(message, metadata, usage, ...) and the *rest*: values with no place in the model, or of an unexpected type.
Writing puts exactly these together again. Three more facts make that exact, and are noted only where needed:
the *order* of keys (once per document, as all records of a kind agree), keys that are *absent* though the
table would write them, and whether content was *plain* text instead of a list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from clew.agents.orders import Orders
from clew.model.json import JSON
from clew.model.time import is_canonical, parse_time, spell_time

Sections: TypeAlias = dict[str, dict[str, JSON]]
Values: TypeAlias = dict[str, JSON]

TEXT = frozenset({str})
OPTIONAL_TEXT: frozenset[type] = frozenset({str, type(None)})
FLAG = frozenset({bool})
COUNT = frozenset({int})
LIST = frozenset({list})
ANY: frozenset[type] = frozenset({str, int, float, bool, type(None), dict, list})

MISSING: Any = object()
MAX_PLANS = 1000
"""How many plans a table keeps beyond one source; keys come from the sources, so there is no end to them."""

_open = msgspec.json.Decoder(dict[str, Raw]).decode


class Leaf(NamedTuple):
    """A value that has a place of its own: `slot` is "section.name", or "name" in the main section."""

    key: str
    slot: str
    accepts: frozenset[type]


class Alias(NamedTuple):
    """Another spelling of the key `of`: read where that one is missing, kept as it is."""

    key: str
    of: str


class Fixed(NamedTuple):
    """A key that always says the same; only an unexpected value is kept, in the rest."""

    key: str
    value: JSON


class Shared(NamedTuple):
    """A key that repeats what the context already knows, such as the session's id."""

    key: str
    name: str


class Time(NamedTuple):
    """A timestamp: canonical in the model; an unusual spelling is kept in the rest."""

    key: str
    slot: str


class Context:
    """What tables share while one source is read or written."""

    def __init__(self, agent: str, shared: Values, orders: Orders | None = None) -> None:
        self.agent = agent
        self.shared = shared
        self.orders = orders or Orders()
        self.plans: defaultdict[str, dict[tuple[str, ...], Plan]] = defaultdict(dict)
        self.plain_text = False
        """Write a lone text block as a string: for documents that do not come from this agent."""
        self.own: Values = {}
        """The extension of the message, record or block at hand."""
        self.unknown: Callable[[str, str], None] = lambda *_: None
        self.unknown_block: Callable[[JSON], None] = lambda _: None

    def aside(self) -> Context:
        """The same context, noting things elsewhere."""
        other = Context(self.agent, self.shared, self.orders)
        other.plans = self.plans
        return other

    def note_absent(self, table: str, key: str) -> None:
        self.own.setdefault("absent", []).append(f"{table}.{key}")

    def is_absent(self, table: str, key: str) -> bool:
        return f"{table}.{key}" in self.own.get("absent", ())


class Part:
    """A key whose value is taken apart further."""

    key: str
    stands_alone = False
    """True when the key would be written even if the document held no value for it."""

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        raise NotImplementedError

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        raise NotImplementedError


Field: TypeAlias = Leaf | Alias | Fixed | Shared | Time | Part


class Plan(NamedTuple):
    """What to do with an object of given keys; decided once for all objects of one source that have them."""

    placed: tuple[tuple[str, tuple[tuple[str, str, frozenset[type]], ...]], ...]
    """For each section the keys to take, each with its slot and the types it accepts."""
    times: tuple[tuple[str, str, str], ...]
    fixed: tuple[tuple[str, JSON], ...]
    shared: tuple[tuple[str, str], ...]
    parts: tuple[tuple[str, Part], ...]
    others: tuple[str, ...]
    unusual: Unusual | None


class Unusual(NamedTuple):
    """What has to be noted about objects of these keys."""

    order: int | list[str]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]
    aliases: tuple[tuple[str, str, str, str], ...]


def place(slot: str) -> tuple[str, str]:
    """Section and name of a slot."""
    section, _, name = slot.rpartition(".")
    return section, name


class Table:
    """The fields of one kind of native object, and the keys that are known but stay in the rest."""

    def __init__(self, name: str, *fields: Field, known: Iterable[str] = ()) -> None:
        self.name = name
        self.fields: dict[str, Field] = {field.key: field for field in fields}
        self.known = frozenset(known) | self.fields.keys()
        self.stands_alone = any(_stands_alone(field) for field in fields)
        self._shared = [field.name for field in fields if isinstance(field, Shared) and field.name != "role"]
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def take(self, value: Mapping[str, JSON], out: Sections, rest: Values, context: Context) -> None:
        """Take `value` apart into `out` and `rest`."""
        plan = self.plan(tuple(value), context)
        for section, slots in plan.placed:
            target = out[section]
            for key, name, accepts in slots:
                item = value[key]
                if type(item) in accepts:
                    target[name] = item
                else:
                    rest[key] = item
        for key, section, name in plan.times:
            item = value[key]
            if type(item) is str and len(item) == 24 and item[10] == "T" and item[23] == "Z":
                out[section][name] = item
            else:
                _take_time(item, key, out[section], name, rest)
        for key, expected in plan.fixed:
            item = value[key]
            if item != expected or type(item) is not type(expected):
                rest[key] = item
        if plan.shared:
            shared = context.shared
            for key, name in plan.shared:
                item = value[key]
                if item != shared.get(name) or type(item) is not str:
                    rest[key] = item
        for key in plan.others:
            rest[key] = value[key]
        for key, part in plan.parts:
            part.take(value[key], out, rest, context)
        if plan.unusual is not None:
            self._take_unusual(value, plan.unusual, out, rest, context)

    def plan(self, keys: tuple[str, ...], context: Context) -> Plan:
        """What to do with an object of these keys in one source."""
        plans = context.plans[self.name]
        plan = plans.get(keys)
        if plan is None:
            if len(plans) >= MAX_PLANS:
                plans.clear()
            plan = plans[keys] = self._plan(keys, context)
        return plan

    def _take_unusual(
        self, value: Mapping[str, JSON], what: Unusual, out: Sections, rest: Values, context: Context
    ) -> None:
        if what.order:
            context.own.setdefault("order", {})[self.name] = what.order
        for key in what.unknown:
            context.unknown(self.name, key)
        for key in what.absent:
            context.note_absent(self.name, key)
        for key, of, section, name in what.aliases:
            rest[key] = value[key]
            if type(value[key]) is str:
                out[section][name] = value[key]
                context.note_absent(self.name, of)

    def give(self, sections: Sections, rest: Values, context: Context) -> Values:
        """Put the native object together again."""
        result: Values = {}
        for key in self._order(rest, context):
            field = self.fields.get(key)
            if key in rest and not (isinstance(field, Nest) and is_object(rest[key])):
                value = rest[key]
            elif context.is_absent(self.name, key):
                value = MISSING
            elif isinstance(field, Part):
                value = field.give(sections, rest, context)
            else:
                value = _give(field, sections, context)
            if value is not MISSING:
                result[key] = value
        return result

    def _order(self, rest: Values, context: Context) -> Iterable[str]:
        order = dict.fromkeys(context.orders.of(self.name, context.own.get("order", {}).get(self.name, 0)))
        order.update(dict.fromkeys(self.fields))
        order.update(dict.fromkeys(rest))
        return order

    def _plan(self, keys: tuple[str, ...], context: Context) -> Plan:
        """What depends on the keys alone is decided once and for all, the rest once for each source."""
        order = context.orders.learn(self.name, keys)
        expected = tuple(context.shared.get(name) is not None for name in self._shared)
        known = (keys, order, expected) if isinstance(order, int) else None
        plan = self._plans.get(known) if known is not None else None
        if plan is None:
            plan = self._general_plan(keys, order, context)
            if known is not None and len(self._plans) < MAX_PLANS:
                self._plans[known] = plan
        return plan

    def _general_plan(self, keys: tuple[str, ...], order: int | list[str], context: Context) -> Plan:
        fields = [self.fields[key] for key in keys if key in self.fields]
        sections: dict[str, list[tuple[str, str, frozenset[type]]]] = {}
        for leaf in (field for field in fields if isinstance(field, Leaf)):
            section, name = place(leaf.slot)
            sections.setdefault(section, []).append((leaf.key, name, leaf.accepts))
        aliases = tuple(self._alias(field) for field in fields if isinstance(field, Alias) and field.of not in keys)
        placed = {f.key for f in fields if not isinstance(f, Alias)} | {alias[0] for alias in aliases}
        absent = (key for key, field in self.fields.items() if key not in keys and _expected(field, context))
        unknown = tuple(key for key in keys if key not in self.known)
        unusual = Unusual(order, unknown, tuple(absent), aliases)
        return Plan(
            placed=tuple((section, tuple(slots)) for section, slots in sections.items()),
            times=tuple((f.key, *place(f.slot)) for f in fields if isinstance(f, Time)),
            fixed=tuple((f.key, f.value) for f in fields if isinstance(f, Fixed)),
            shared=tuple((f.key, f.name) for f in fields if isinstance(f, Shared)),
            parts=tuple(sorted(((f.key, f) for f in fields if isinstance(f, Part)), key=_is_second)),
            others=tuple(key for key in keys if key not in placed),
            unusual=unusual if any(unusual) else None,
        )

    def _alias(self, alias: Alias) -> tuple[str, str, str, str]:
        original = self.fields[alias.of]
        assert isinstance(original, Leaf)
        return (alias.key, alias.of, *place(original.slot))


def _is_second(part: tuple[str, Part]) -> bool:
    """A second place is looked at when the first has been."""
    return isinstance(part[1], Copy)


def _stands_alone(field: Field) -> bool:
    return isinstance(field, Fixed | Shared) or (isinstance(field, Part) and field.stands_alone)


def _expected(field: Field, context: Context) -> bool:
    """True when the writer would write the key unless it is told not to."""
    if isinstance(field, Shared) and field.name != "role":
        return context.shared.get(field.name) is not None
    return _stands_alone(field)


def _take_time(value: JSON, key: str, section: Values, name: str, rest: Values) -> None:
    if type(value) is str and is_canonical(value):
        section[name] = value
        return
    rest[key] = value
    stamp = parse_time(value)
    if stamp is not None:
        section[name] = spell_time(stamp)


def _give(field: Field | None, sections: Sections, context: Context) -> JSON:
    match field:
        case Leaf() | Time():
            section, name = place(field.slot)
            return sections.get(section, {}).get(name, MISSING)
        case Fixed():
            return field.value
        case Shared():
            value = context.shared.get(field.name)
            return MISSING if value is None else value
    return MISSING


def is_object(value: JSON) -> bool:
    """True for a JSON object, decoded or not."""
    return isinstance(value, dict) or (isinstance(value, Raw) and bytes(value)[:1] == b"{")


def open_object(value: JSON) -> Values:
    """A JSON object whose values are left as they are."""
    return value if isinstance(value, dict) else _open(value)


class Nest(Part):
    """An object inside the object, whose values go to the same sections."""

    def __init__(self, key: str, table: Table) -> None:
        self.key, self.table = key, table
        self.stands_alone = table.stands_alone

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is not dict:
            rest[self.key] = value
            return
        inner: Values = {}
        self.table.take(value, out, inner, context)
        if inner or not value:
            rest[self.key] = inner

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        inner = open_object(rest[self.key]) if self.key in rest else None
        result = self.table.give(sections, inner or {}, context)
        return MISSING if not result and inner is None else result


class Copy(Part):
    """A second place for what the model can hold: read where the first is missing, kept whole."""

    def __init__(self, key: str, table: Table, section: str) -> None:
        self.key, self.table, self.section = key, table, section

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        rest[self.key] = value
        if type(value) is dict and not out[self.section]:
            spare = Context(context.agent, context.shared)
            self.table.take(value, out, {}, spare)
            for name in list(self.table.fields):
                context.note_absent(self.table.name, name)

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return rest.get(self.key, MISSING)


class Each(Part):
    """A list of objects of one kind, or with `named` an object of them. Anything unusual sends it to the rest."""

    def __init__(self, key: str, slot: str, table: Table, named: bool = False) -> None:
        self.key, self.table, self.named = key, table, named
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        items = value.values() if type(value) is dict and self.named else value
        objects = self._take_all(list(items), context) if type(value) is (dict if self.named else list) else None
        if objects is None:
            rest[self.key] = value
            return
        out[self.section][self.name] = dict(zip(value, objects, strict=True)) if self.named else objects

    def _take_all(self, items: list[JSON], context: Context) -> list[Values] | None:
        objects: list[Values] = []
        if not items:
            return objects
        inner = context.aside()
        for item in items:
            if type(item) is not dict:
                return None
            rest: Values = {}
            objects.append({})
            self.table.take(item, {"": objects[-1]}, rest, inner)
            if rest or inner.own:
                return None
        return objects

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        value = sections.get(self.section, {}).get(self.name)
        if value is None:
            return MISSING
        inner = context.aside()
        items = value.values() if self.named else value
        restored = [self.table.give({"": item}, {}, inner) for item in items]
        return dict(zip(value, restored, strict=True)) if self.named else restored


class Blocks(Part):
    """Message content: a string or a list of blocks. Each kind of block has a table of its own."""

    def __init__(self, key: str, kinds: Mapping[str, Kind], slot: str = "content", wrap: bool = True) -> None:
        self.key, self.kinds, self._wrap = key, kinds, wrap
        self.section, self.name = place(slot)
        self.stands_alone = wrap
        self.is_content = wrap and slot == "content"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is str:
            if self._wrap:
                value = [{"type": "text", "text": value}]
                context.own["plain"] = True
            out[self.section][self.name] = value
        elif type(value) is list:
            out[self.section][self.name] = self.take_all(value, context)
        else:
            rest[self.key] = value

    def take_all(self, items: list[JSON], context: Context) -> list[Values]:
        """The unified blocks of native ones."""
        return [self._take(item, context) for item in items]

    def _take(self, item: JSON, context: Context) -> Values:
        name = item.get("type") if type(item) is dict else None
        kind = self.kinds.get(name) if type(name) is str else None
        block = kind.take(item, context) if kind is not None else None
        if block is None:
            context.unknown_block(item)
            return {"type": "unknown", "value": item}
        return block

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        value = sections.get(self.section, {}).get(self.name)
        if value is None:
            return MISSING
        if self._wrap and self._is_plain(value, context):
            return "".join(block.get("text", "") for block in value)
        return value if isinstance(value, str | Raw) else [self._give(block, context) for block in value]

    @staticmethod
    def _is_plain(value: list[Values], context: Context) -> bool:
        if "plain" in context.own:
            return True
        return context.plain_text and len(value) == 1 and value[0]["type"] == "text"

    def _give(self, block: Values, context: Context) -> JSON:
        if block["type"] == "unknown":
            return block["value"]
        for kind in self.kinds.values():
            if kind.unified == block["type"]:
                return kind.give(block, context)
        return {name: item for name, item in block.items() if name != "extensions"}


class Kind:
    """One kind of content block: its unified name, its table, and the slots it cannot be without."""

    def __init__(self, unified: str, table: Table, needs: tuple[str, ...] = ()) -> None:
        self.unified, self.table, self.needs = unified, table, needs

    def take(self, value: Values, context: Context) -> Values | None:
        block: Values = {"type": self.unified}
        rest: Values = {}
        outer, context.own = context.own, {}
        self.table.take(value, {"": block}, rest, context)
        own, context.own = context.own, outer
        for name in self.needs:
            if name not in block:
                return None
        if rest:
            own["rest"] = rest
        if own:
            block["extensions"] = {context.agent: own}
        return block

    def give(self, block: Values, context: Context) -> Values:
        outer, context.own = context.own, (block.get("extensions") or {}).get(context.agent) or {}
        result = self.table.give({"": block}, context.own.get("rest", {}), context)
        context.own = outer
        return result
