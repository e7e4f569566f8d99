"""Two-way parts for agents that keep tool calls and their results beside the text instead of among it."""

from __future__ import annotations

from clew.agents.mapping import MISSING, Context, Kind, Part, Sections, Values, place
from clew.io.codec import dumps
from clew.model.json import JSON


class Listed(Part):
    """A list of objects that each become a block of one kind; an empty or mixed list stays in the rest.

    `fill` names slots that a block must have: they are None where the object does not say, and then not written.
    """

    def __init__(self, key: str, slot: str, kind: Kind, fill: tuple[str, ...] = ()) -> None:
        self.key, self.kind, self._fill = key, kind, fill
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is not list or not value or any(type(item) is not dict for item in value):
            rest[self.key] = value
            return
        out[self.section][self.name] = [self._take(item, context) for item in value]

    def _take(self, item: Values, context: Context) -> Values:
        block = self.kind.take(item, context) or {}
        return {"type": self.kind.unified, **dict.fromkeys(self._fill), **block}

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        blocks = sections.get(self.section, {}).get(self.name)
        if not blocks:
            return MISSING
        return [self.kind.give(self._unfilled(block), context) for block in blocks]

    def _unfilled(self, block: Values) -> Values:
        return {name: item for name, item in block.items() if item is not None or name not in self._fill}


class Spelled(Part):
    """A value that the model shows as text: anything but a string stays in the rest, and its JSON is shown."""

    def __init__(self, key: str, slot: str) -> None:
        self.key = key
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is str:
            out[self.section][self.name] = value
            return
        rest[self.key] = value
        if value is not None:
            out[self.section][self.name] = dumps(value).decode()

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return rest[self.key] if self.key in rest else sections.get(self.section, {}).get(self.name, MISSING)


class Inverse(Part):
    """A flag that says the opposite of the model's; null counts as false."""

    def __init__(self, key: str, slot: str) -> None:
        self.key = key
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is bool:
            out[self.section][self.name] = not value
            return
        rest[self.key] = value
        if value is None:
            out[self.section][self.name] = True

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        value = sections.get(self.section, {}).get(self.name)
        return MISSING if value is None else not value
