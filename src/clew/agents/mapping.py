"""Two-way tables between an agent's records and the unified document.

A `Table` says for each native key where its value goes. Reading takes a native object apart into *sections*
(message, metadata, usage, ...) and the *rest*: values with no place in the model, or of an unexpected type.
Writing puts exactly these together again. Three more facts make that exact, and are noted only where needed:
the *order* of keys (once per document, as all records of a kind agree), keys that are *absent* though the
table would write them, and whether content was *plain* text instead of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from clew.agents.orders import Orders
from clew.model.json import JSON
from clew.model.time import is_canonical, parse_time, spell_time

Sections: TypeAlias = dict[str, dict[str, JSON]]
Values: TypeAlias = dict[str, JSON]

TEXT = frozenset({str})
OPTIONAL_TEXT = frozenset({str, type(None)})
FLAG = frozenset({bool})
COUNT = frozenset({int})
LIST = frozenset({list})
ANY = frozenset({str, int, float, bool, type(None), dict, list})

MISSING: Any = object()


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
        self.plain_text = False
        """Write a lone text block as a string: for documents that do not come from this agent."""
        self.own: Values = {}
        """The extension of the message, record or block at hand."""
        self.unknown: Callable[[str, str], None] = lambda table, key: None
        self.unknown_block: Callable[[JSON], None] = lambda block: None

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


class _Plan(NamedTuple):
    """What to do with an object of given keys and value types; decided once for all objects of that form."""

    placed: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """For each section the slots to fill, each with its key."""
    times: tuple[tuple[str, str, str], ...]
    fixed: tuple[tuple[str, JSON], ...]
    shared: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    others: tuple[str, ...]
    unknown: tuple[str, ...]
    aliases: tuple[tuple[str, str, str, str], ...]
    absent: tuple[str, ...]
    unshared: tuple[tuple[str, str], ...]
    """Shared keys that are not there, with the name of what they would have said."""


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
        self._plans: dict[tuple[str, ...], dict[tuple[type, ...], _Plan]] = {}

    def take(self, value: Mapping[str, JSON], out: Sections, rest: Values, context: Context) -> None:
        """Take `value` apart into `out` and `rest`."""
        keys = tuple(value)
        types = tuple(map(type, value.values()))
        plans = self._plans.get(keys)
        plan = (plans.get(types) if plans is not None else None) or self._plan(keys, types)
        if not context.orders.admits(self.name, keys):
            context.own.setdefault("order", {})[self.name] = keys
        for section, slots in plan.placed:
            target = out[section]
            for name, key in slots:
                target[name] = value[key]
        for key, section, name in plan.times:
            _take_time(value[key], key, out[section], name, rest)
        for key, expected in plan.fixed:
            if value[key] != expected:
                rest[key] = value[key]
        for key, name in plan.shared:
            item = value[key]
            if item is None or item != context.shared.get(name):
                rest[key] = item
        for key in plan.others:
            rest[key] = value[key]
        if plan.unknown or plan.absent or plan.unshared or plan.aliases:
            self._take_unusual(value, plan, out, rest, context)
        for part in plan.parts:
            part.take(value[part.key], out, rest, context)

    def _take_unusual(self, value: Mapping[str, JSON], plan: _Plan, out: Sections, rest: Values, context: Context) -> None:
        for key in plan.unknown:
            context.unknown(self.name, key)
        for key in plan.absent:
            context.note_absent(self.name, key)
        for key, name in plan.unshared:
            if context.shared.get(name) is not None:
                context.note_absent(self.name, key)
        for key, of, section, name in plan.aliases:
            out[section][name] = rest[key] = value[key]
            context.note_absent(self.name, of)

    def give(self, sections: Sections, rest: Values, context: Context) -> Values:
        """Put the native object together again."""
        result: Values = {}
        for key in self._order(rest, context):
            field = self.fields.get(key)
            if isinstance(field, Part) and (key not in rest or isinstance(rest[key], dict)):
                absent = field.stands_alone and context.is_absent(self.name, key)
                value = MISSING if absent else field.give(sections, rest, context)
            elif key in rest:
                value = rest[key]
            else:
                value = MISSING if context.is_absent(self.name, key) else _give(field, sections, context)
            if value is not MISSING:
                result[key] = value
        return result

    def _order(self, rest: Values, context: Context) -> Iterable[str]:
        own = context.own.get("order", {}).get(self.name)
        order = dict.fromkeys(own if own is not None else context.orders.of(self.name))
        order.update(dict.fromkeys(self.fields))
        order.update(dict.fromkeys(rest))
        return order

    def _plan(self, keys: tuple[str, ...], types: tuple[type, ...]) -> _Plan:
        kinds = dict(zip(keys, types, strict=True))
        fields = [self.fields[key] for key in keys if key in self.fields and _fits(self.fields[key], kinds[key])]
        sections: dict[str, list[tuple[str, str]]] = {}
        for leaf in (field for field in fields if isinstance(field, Leaf)):
            section, name = place(leaf.slot)
            sections.setdefault(section, []).append((name, leaf.key))
        aliases = tuple(self._alias(field) for field in fields if isinstance(field, Alias) and field.of not in kinds)
        placed = {f.key for f in fields if not isinstance(f, Alias)} | {alias[0] for alias in aliases}
        missing = [field for key, field in self.fields.items() if key not in kinds]
        plan = _Plan(
            placed=tuple((section, tuple(slots)) for section, slots in sections.items()),
            times=tuple((f.key, *place(f.slot)) for f in fields if isinstance(f, Time)),
            fixed=tuple((f.key, f.value) for f in fields if isinstance(f, Fixed)),
            shared=tuple((f.key, f.name) for f in fields if isinstance(f, Shared)),
            parts=tuple(f for f in fields if isinstance(f, Part)),
            others=tuple(key for key in keys if key not in placed),
            unknown=tuple(key for key in keys if key not in self.known),
            aliases=aliases,
            absent=tuple(f.key for f in missing if _stands_alone(f) and not isinstance(f, Shared)),
            unshared=tuple((f.key, f.name) for f in missing if isinstance(f, Shared)),
        )
        self._plans.setdefault(keys, {})[types] = plan
        return plan

    def _alias(self, alias: Alias) -> tuple[str, str, str, str]:
        original = self.fields[alias.of]
        assert isinstance(original, Leaf)
        return (alias.key, alias.of, *place(original.slot))


def _fits(field: Field, kind: type) -> bool:
    """True when a value of this type can go where the field sends it; 1 == True must not pass for it."""
    match field:
        case Leaf():
            return kind in field.accepts
        case Fixed():
            return kind is type(field.value)
        case Shared():
            return kind in OPTIONAL_TEXT
        case Alias():
            return kind is str
    return True


def _stands_alone(field: Field) -> bool:
    return isinstance(field, Fixed | Shared) or (isinstance(field, Part) and field.stands_alone)


def _take_time(value: JSON, key: str, section: Values, name: str, rest: Values) -> None:
    if type(value) is str and ((len(value) == 24 and value[10] == "T" and value[23] == "Z") or is_canonical(value)):
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
        inner = rest.get(self.key)
        result = self.table.give(sections, inner or {}, context)
        return MISSING if not result and inner is None else result


class Copy(Part):
    """An object that says what the model can hold, but in a second place: read where the first is missing, kept whole."""

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
    """A list of objects of one kind, or with `named` an object of such objects. Anything unusual sends it to the rest."""

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
        inner = Context(context.agent, context.shared, context.orders)
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
        inner = Context(context.agent, context.shared, context.orders)
        items = value.values() if self.named else value
        restored = [self.table.give({"": item}, {}, inner) for item in items]
        return dict(zip(value, restored, strict=True)) if self.named else restored


class Blocks(Part):
    """Message content: a string or a list of blocks. Each kind of block has a table of its own."""

    def __init__(self, key: str, kinds: Mapping[str, Kind], slot: str = "content", wrap: bool = True) -> None:
        self.key, self._kinds, self._wrap = key, kinds, wrap
        self.section, self.name = place(slot)
        self.stands_alone = wrap

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is str:
            if self._wrap:
                value = [{"type": "text", "text": value}]
                context.own["plain"] = True
            out[self.section][self.name] = value
        elif type(value) is list:
            out[self.section][self.name] = [self._take(item, context) for item in value]
        else:
            rest[self.key] = value

    def _take(self, item: JSON, context: Context) -> Values:
        name = item.get("type") if type(item) is dict else None
        kind = self._kinds.get(name) if type(name) is str else None
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
        return value if isinstance(value, str) else [self._give(block, context) for block in value]

    @staticmethod
    def _is_plain(value: list[Values], context: Context) -> bool:
        if "plain" in context.own:
            return True
        return context.plain_text and len(value) == 1 and value[0]["type"] == "text"

    def _give(self, block: Values, context: Context) -> JSON:
        if block["type"] == "unknown":
            return block["value"]
        for kind in self._kinds.values():
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
