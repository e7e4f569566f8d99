"""The quick way for regular messages: values move inside typed structs, and so in C.

A struct is made for each order of keys that the general way has met, and with it a function that deals its values out.
A line takes the quick way only if decoding it into that struct and encoding it again gives the same bytes: then
nothing in it is unknown, of an unexpected type, out of order or oddly spelled. Every other line takes the general
way; the same bytes come back from both. Values without a place in the model are not looked into: their text goes
over as it is, and is taken back as it is from a document that nobody has spelled anew.

The functions are compiled from the tables, as dataclasses compile theirs. Their source holds attribute names and
numbers of our own making; what a source file says never becomes code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.jsonl import Form
from clew.agents.mapping import (
    ANY,
    LIST,
    Blocks,
    Context,
    Each,
    Field,
    Fixed,
    Kind,
    Leaf,
    Nest,
    Shared,
    Table,
    Time,
    place,
)
from clew.agents.orders import Order, Orders
from clew.io.codec import dumps, loads

MAX_FAMILIES = 256
"""How many structs are kept; orders come from the sources, so there is no end to them."""
MAX_LEARNED = 32
"""How often one source may teach a new order; each costs the making of a struct."""
MAX_TRIED = 5
"""How many families are tried for a line."""

_encode = msgspec.json.Encoder().encode
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Ordered = tuple[tuple[str, Order], ...]
"""The order of keys of each table."""
Deal = Callable[..., Any]


def tables_of(table: Table) -> Iterator[Table]:
    """The table and every table nested in it."""
    yield table
    for field in table.fields.values():
        if isinstance(field, Nest):
            yield from tables_of(field.table)


def _annotation(accepts: frozenset[type]) -> Any:
    """The type a struct gives to values that a leaf accepts."""
    if accepts == ANY:
        return Raw | UnsetType
    if accepts == LIST:
        return list[Raw] | UnsetType
    result: Any = UnsetType
    for kind in accepts:
        result |= kind
    return result


def _struct(fields: list[tuple[str, str, Any]]) -> Any:
    """A struct with an attribute, a key and a type for each field; all may be absent, none may be added."""
    renames = {name: key for name, key, _ in fields}
    typed = [(name, kind, UNSET) for name, _, kind in fields]
    return msgspec.defstruct("Native", typed, rename=renames, forbid_unknown_fields=True, gc=False)


def _output(names: list[str]) -> Any:
    """A struct to be written: any value under each name."""
    attributes = {f"v{number}": name for number, name in enumerate(names)}
    return msgspec.defstruct("Output", [(name, Any, UNSET) for name in attributes], rename=attributes, gc=False)


class _Code:
    """A function in the making: its lines, and the objects it speaks of."""

    def __init__(self, head: str) -> None:
        self.lines = [f"def deal({head}):"]
        self.objects: dict[str, Any] = {"UNSET": UNSET}

    def add(self, *lines: str) -> None:
        self.lines += ["    " + line for line in lines]

    def name(self, item: Any) -> str:
        """A name for an object, so that it need not be spelled in the source."""
        name = f"o{len(self.objects)}"
        self.objects[name] = item
        return name

    def compile(self) -> Deal:
        exec("\n".join(self.lines), self.objects)
        deal: Deal = self.objects["deal"]
        return deal


def _all_unset(values: list[str]) -> str:
    return " and ".join(f"{value} is UNSET" for value in values) or "True"


class _QuickBlocks:
    """Content blocks of the plain kinds, in the usual order of their keys."""

    def __init__(self, kinds: Mapping[str, Kind], orders: dict[str, tuple[str, ...]]) -> None:
        merged = Orders()
        types: dict[str, Any] = {}
        plain = {name: kind for name, kind in kinds.items() if orders.get(kind.table.name) and _note_types(kind, types)}
        consistent = all(merged.learn("block", orders[kind.table.name]) == 0 for kind in plain.values())
        keys = [key for key in merged.of("block") if key in types] if consistent else ["type"]
        self.names = {key: f"b{number}" for number, key in enumerate(keys)}
        self.struct = _struct([(name, key, types.get(key, str)) for key, name in self.names.items()])
        self.type_name = self.names["type"]
        self.deals = {name: self._deal(kind) for name, kind in plain.items() if consistent and self._complete(kind)}

    def _complete(self, kind: Kind) -> bool:
        slots = {f.slot for k, f in kind.table.fields.items() if isinstance(f, Leaf) and k in self.names}
        return slots.issuperset(kind.needs)

    def _deal(self, kind: Kind) -> Deal:
        """Compile deal(block, context, calls): the unified block, or None where it must take the general way."""
        code = _Code("b, context, calls")
        fields = kind.table.fields
        leaves = {f.slot: f"b.{self.names[k]}" for k, f in fields.items() if isinstance(f, Leaf) and k in self.names}
        foreign = [f"b.{name}" for key, name in self.names.items() if key not in kind.table.known]
        needed = [leaves[slot] for slot in kind.needs]
        code.add(f"if not ({_all_unset(foreign)}): return None")
        code.add(*(f"if {value} is UNSET: return None" for value in needed))
        rest = {key: f"b.{name}" for key, name in self.names.items() if key in kind.table.known and key not in fields}
        make_rest = code.name(_output(list(rest)))
        own = f"{{context.agent: {{'rest': {make_rest}({', '.join(rest.values())})}}}}"
        code.add(f"own = UNSET if {_all_unset(list(rest.values()))} else {own}")
        names = ["type", *leaves, "extensions"]
        values = [repr(kind.unified), *leaves.values(), "own"]
        blocks = next((f for k, f in fields.items() if isinstance(f, Blocks) and k in self.names), None)
        if kind.unified == "tool_use":
            code.add(f"calls[{leaves['tool_id']}] = {leaves['tool_name']}")
        if blocks is not None:
            code.add(f"output = {code.name(_Content(blocks))}(b.{self.names[blocks.key]}, context)")
            code.add("if output is None: return None")
            names += ["tool_name", blocks.name]
            values += [f"calls.get({leaves['tool_id']})", "output"]
        code.add(f"return {code.name(_output(names))}({', '.join(values)})")
        return code.compile()


def _note_types(kind: Kind, types: dict[str, Any]) -> bool:
    """Note the types of the kind's keys; False for a kind that is not plain."""
    mine: dict[str, Any] = {}
    for key in kind.table.known:
        field = kind.table.fields.get(key)
        if isinstance(field, Nest | Each):
            return False
        mine[key] = str if key == "type" else _annotation(field.accepts) if isinstance(field, Leaf) else Raw | UnsetType
    if any(types.get(key, expected) != expected for key, expected in mine.items()):
        return False
    types.update(mine)
    return True


class _Content:
    """The content of a tool result: text goes over as it is, blocks are taken apart."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def __call__(self, content: Any, context: Context) -> Any:
        if content is UNSET or bytes(memoryview(content)[:1]) == b'"':
            return content
        items = loads(content)
        # Blocks inside take the general way, so they must be spelled as we would spell them.
        if type(items) is not list or dumps(items) != bytes(content):
            return None
        return self._blocks.take_all(items, context)


class _Family:
    """The struct of one kind of message in one order of keys, and the function that deals its values out."""

    def __init__(self, table: Table, kinds: Mapping[str, Kind], ordered: Ordered) -> None:
        self._orders = dict(ordered)
        self._names: dict[tuple[str, str], str] = {}
        self._blocks = _QuickBlocks(kinds, self._orders)
        self.decode = msgspec.json.Decoder(self._struct(table)).decode
        self.deal = _Dealer(table, self._names, self._blocks).compile()
        names = {each.name for each in tables_of(table)}
        self.message_orders = [(name, order) for name, order in ordered if order and name in names]
        self.block_orders = [(name, order) for name, order in ordered if order and name not in names]

    def _struct(self, table: Table) -> Any:
        fields: list[tuple[str, str, Any]] = []
        for number, key in enumerate(self._orders.get(table.name, ())):
            kind = self._type(table, key, table.fields.get(key))
            if kind is not None:
                self._names[table.name, key] = f"k{number}"
                fields.append((f"k{number}", key, kind))
        return _struct(fields)

    def _type(self, table: Table, key: str, field: Field | None) -> Any:
        """The type a value must have to go the quick way; None: a record with this key cannot."""
        match field:
            case Leaf():
                return _annotation(field.accepts)
            case Time() | Shared():
                return str | UnsetType
            case Fixed():
                return Literal[field.value] | UnsetType
            case Nest():
                return self._struct(field.table) | UnsetType
            case Blocks():
                return str | list[self._blocks.struct] | UnsetType  # type: ignore[name-defined]
            case Each():
                return list[Raw] | UnsetType
            case None:
                return Raw | UnsetType if key in table.known else None
        return None


class _Dealer:
    """Compiles deal(line, index, role, context, calls, order): the unified message, or None."""

    def __init__(self, table: Table, names: dict[tuple[str, str], str], blocks: _QuickBlocks) -> None:
        self._table, self._names, self._blocks = table, names, blocks
        self._code = _Code("line, index, role, context, calls, order")
        self._slots: dict[str, dict[str, str]] = {"": {}, "metadata": {}}
        self._content: str | None = None

    def compile(self) -> Deal:
        code = self._code
        code.add("shared = context.shared", "absent = []", "plain = UNSET")
        rest = self._object(self._table, "line", optional=False)
        if self._content is None:
            code.add("return None")
            return code.compile()
        self._take_content(self._content)
        for section, name in (("model", "model"), ("usage", "token_usage"), ("thinking", "thinking")):
            if section in self._slots:
                self._slots["metadata"][name] = self._section(section)
        code.add("own = {}", "if order is not UNSET: own['order'] = order", "if absent: own['absent'] = absent")
        code.add("if plain is not UNSET: own['plain'] = plain", f"if {rest} is not UNSET: own['rest'] = {rest}")
        self._slots[""].update(content="content", index="index", role="role", metadata=self._section("metadata"))
        self._slots[""]["extensions"] = "{context.agent: own} if own else UNSET"
        code.add(f"return {self._make(self._slots[''])}")
        return code.compile()

    def _make(self, slots: dict[str, str]) -> str:
        return f"{self._code.name(_output(list(slots)))}({', '.join(slots.values())})"

    def _section(self, section: str) -> str:
        slots = self._slots[section]
        self._code.add(f"s_{section} = UNSET if {_all_unset(list(slots.values()))} else {self._make(slots)}")
        return f"s_{section}"

    def _object(self, table: Table, here: str, optional: bool) -> str:
        """Lines that take one object apart; returns the name of its rest."""
        if optional:
            # An object without values leaves no trace in the model.
            values = [f"{here}.{attribute}" for (name, _), attribute in self._names.items() if name == table.name]
            self._code.add(f"if {here} is not UNSET and ({_all_unset(values)}): return None")
        rest = {
            k: self._value(table, k, here, optional)
            for t, k in self._names
            if t == table.name and k not in table.fields
        }
        for key, field in table.fields.items():
            label = self._code.name(f"{table.name}.{key}")
            if (table.name, key) not in self._names:
                self._missing(field, label, here, optional)
            elif isinstance(field, Nest):
                rest[key] = self._nest(field, self._value(table, key, here, optional), label)
            else:
                self._field(field, self._value(table, key, here, optional), label, here, optional)
        name = f"rest_{len(self._code.objects)}"
        self._code.add(f"{name} = UNSET if {_all_unset(list(rest.values()))} else {self._make(rest)}")
        return name

    def _value(self, table: Table, key: str, here: str, optional: bool) -> str:
        """A local variable with the value of a key."""
        name = f"{here}_{self._names[table.name, key]}"
        value = f"{here}.{self._names[table.name, key]}"
        self._code.add(f"{name} = UNSET if {here} is UNSET else {value}" if optional else f"{name} = {value}")
        return name

    def _nest(self, field: Nest, value: str, label: str) -> str:
        if field.stands_alone:
            # Whether such an object is there cannot be told from its values.
            self._code.add(f"if {value} is UNSET: return None")
        return self._object(field.table, value, optional=not field.stands_alone)

    def _missing(self, field: Field, label: str, here: str, optional: bool) -> None:
        """A key that the struct does not have: note that it is absent, where it would be written."""
        there = f"{here} is not UNSET" if optional else "True"
        if isinstance(field, Shared):
            if here == "line" and field.name == "role":
                self._code.add("return None")
            self._code.add(f"if {there} and {self._expected(field)} is not None: absent.append({label})")
        elif isinstance(field, Fixed) or (isinstance(field, Nest | Blocks) and field.stands_alone):
            self._code.add(f"if {there}: absent.append({label})")

    @staticmethod
    def _expected(field: Shared) -> str:
        return "role" if field.name == "role" else f"shared.get({field.name!r})"

    def _field(self, field: Field, value: str, label: str, here: str, optional: bool) -> None:
        there = f"{here} is not UNSET and " if optional else ""
        code = self._code
        match field:
            case Leaf():
                section, name = place(field.slot)
                self._slots.setdefault(section, {})[name] = value
            case Time():
                code.add(
                    f"if {value} is not UNSET and (len({value}) != 24 or {value}[10] != 'T' or {value}[23] != 'Z'):"
                )
                code.add("    return None")
                section, name = place(field.slot)
                self._slots.setdefault(section, {})[name] = value
            case Each():
                code.add(f"if {value} is not UNSET and {value}: return None")
                self._slots.setdefault(field.section, {})[field.name] = value
            case Shared():
                if here == "line" and field.name == "role":
                    # Without its type a record is no message.
                    code.add(f"if {value} is UNSET: return None")
                code.add(
                    f"if {value} is UNSET:",
                    f"    if {there}{self._expected(field)} is not None: absent.append({label})",
                )
                code.add(f"elif {value} != {self._expected(field)}: return None")
            case Fixed():
                code.add(f"if {there}{value} is UNSET: absent.append({label})")
            case Blocks():
                self._content = value

    def _take_content(self, value: str) -> None:
        deals = self._code.name(self._blocks.deals)
        text = self._code.name(_output(["type", "text"]))
        self._code.add(
            f"if {value} is UNSET: return None",
            f"if type({value}) is str:",
            f"    content = [{text}('text', {value})]",
            "    plain = True",
            "else:",
            "    content = []",
            f"    for b in {value}:",
            f"        deal = {deals}.get(b.{self._blocks.type_name})",
            "        if deal is None: return None",
            "        block = deal(b, context, calls)",
            "        if block is None: return None",
            "        content.append(block)",
        )


class _Kinds:
    """The kinds of block of an agent, as something a cache can hold."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds


@lru_cache(MAX_FAMILIES)
def _family(table: Table, kinds: _Kinds, ordered: Ordered) -> _Family:
    return _Family(table, kinds.kinds, ordered)


Generations = Mapping[str, Iterable[Mapping[str, Order]]]
"""Orders that occur together, by the type of the record."""
_KINDS: dict[int, _Kinds] = {}
_KNOWN: dict[int, dict[str, list[_Family]]] = {}


class Quick:
    """Takes lines of one source the quick way, in orders that are known beforehand or that the general way has met."""

    def __init__(
        self,
        context: Context,
        forms: Mapping[str, Form],
        kinds: Mapping[str, Kind],
        generations: Generations,
        calls: dict[str, str],
    ) -> None:
        self._context, self._calls = context, calls
        self._kinds = _KINDS.setdefault(id(kinds), _Kinds(kinds))
        self._families = {name: list(known) for name, known in self._known(forms, generations).items()}
        self._numbers: dict[_Family, Any] = {}
        self._learned: set[tuple[Any, ...]] = set()

    def _known(self, forms: Mapping[str, Form], generations: Generations) -> dict[str, list[_Family]]:
        """The families of the generations; they are the same for every source of an agent."""
        known = _KNOWN.get(id(generations))
        if known is None:
            known = _KNOWN[id(generations)] = {
                name: [self._family(forms[name].table, orders) for orders in each] for name, each in generations.items()
            }
        return known

    def _family(self, table: Table, orders: Mapping[str, Order]) -> _Family:
        named = [*tables_of(table), *(kind.table for kind in self._kinds.kinds.values())]
        return _family(table, self._kinds, tuple((each.name, orders.get(each.name, ())) for each in named))

    def learn(self, role: str, table: Table, own: Mapping[str, Any]) -> None:
        """A line of this kind took the general way; from its orders on, the like can go the quick way."""
        numbers = own.get("order", {})
        orders = self._context.orders
        state = (role, orders.changes, *sorted(numbers.items(), key=str))
        if any(isinstance(number, list) for number in numbers.values()) or state in self._learned:
            return
        if len(self._learned) >= MAX_LEARNED:
            return
        self._learned.add(state)
        named = [*tables_of(table), *(kind.table for kind in self._kinds.kinds.values())]
        family = self._family(table, {t.name: tuple(orders.of(t.name, numbers.get(t.name, 0))) for t in named})
        families = self._families.setdefault(role, [])
        if family not in families:
            families.insert(0, family)
            del families[MAX_TRIED:]

    def take(self, role: str, text: bytes, index: int) -> bytes | None:
        """The message in a line as JSON of the unified document; None where the general way is needed."""
        families = self._families.get(role)
        if not families or not _is_utf8(text):
            return None
        for number, family in enumerate(families):
            try:
                line = family.decode(text)
                spelled = _encode(line)
                if len(spelled) + 1 != len(text) or not text.startswith(spelled):
                    continue
                del spelled
                order = self._numbers[family] if family in self._numbers else self._register(family)
                if order is None:
                    continue
                message = family.deal(line, index, role, self._context, self._calls, order)
                encoded = None if message is None else _encode(message)
            except _ERRORS:
                continue
            if number:
                families.insert(0, families.pop(number))
            return encoded
        return None

    def _register(self, family: _Family) -> Any:
        """The numbers of a family's orders in this document that are not the usual ones; None: it cannot be used."""
        orders = self._context.orders
        blocks = [orders.number(name, order) for name, order in family.block_orders]
        numbers = {name: orders.number(name, order) for name, order in family.message_orders}
        usable = not any(blocks) and None not in blocks and None not in numbers.values()
        self._numbers[family] = ({name: n for name, n in numbers.items() if n} or UNSET) if usable else None
        return self._numbers[family]


def _is_utf8(text: bytes) -> bool:
    """Text that is not looked into must still be text."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
