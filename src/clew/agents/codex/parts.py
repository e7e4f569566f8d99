"""Two-way parts for what Codex spells in its own way: arguments inside strings, summaries, data addresses."""

from __future__ import annotations

import re

from clew.agents.codex.item_content import parse_arguments
from clew.agents.mapping import MISSING, Context, Kind, Part, Sections, Values
from clew.io.codec import dumps
from clew.model.json import JSON

_ADDRESS = re.compile(r"data:([^;,]*);base64,")
_THOUGHT = ("type", "text")


def spoken_type(role: JSON) -> str:
    """How the texts of a message are called: what the model says is output, all else is input."""
    return "output_text" if role == "assistant" else "input_text"


class SpokenType(Part):
    """The type of a text block, which follows from who speaks; any other is kept."""

    key = "type"
    stands_alone = True

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if value != spoken_type(context.shared.get("role")):
            rest[self.key] = value

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return rest.get(self.key) or spoken_type(context.shared.get("role"))


class Arguments(Part):
    """Arguments as a string of JSON. The string is kept beside them where it is not spelled as we would."""

    key = "arguments"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is not str:
            rest[self.key] = value
            out[""]["input"] = value if type(value) is dict else {}
            return
        out[""]["input"] = parsed = parse_arguments(value)
        if type(parsed) is not str and dumps(parsed) != value.encode("utf-8", "replace"):
            rest[self.key] = value

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        value = sections[""].get("input", MISSING)
        return value if value is MISSING or isinstance(value, str) else dumps(value).decode()


class FreeText(Part):
    """Input that is text and no JSON; the model wants an object, so the text gets the name of its key."""

    key = "input"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        out[""]["input"] = {self.key: value}
        if type(value) is not str:
            rest[self.key] = value

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return rest[self.key] if self.key in rest else sections[""].get("input", {}).get(self.key, MISSING)


class Summary(Part):
    """The thoughts of a reasoning item, one text each; a list with anything else in it stays in the rest."""

    key = "summary"
    stands_alone = True

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if not value or not _all_thoughts(value):
            rest[self.key] = value
        if type(value) is list:
            out[""]["thoughts"] = [t["text"] for t in value if type(t) is dict and type(t.get("text")) is str]

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        thoughts = sections[""].get("thoughts")
        return MISSING if thoughts is None else [{"type": "summary_text", "text": text} for text in thoughts]


def _all_thoughts(value: JSON) -> bool:
    return type(value) is list and all(
        type(item) is dict and tuple(item) == _THOUGHT and item["type"] == "summary_text" and type(item["text"]) is str
        for item in value
    )


class DataAddress(Part):
    """A picture or sound by its address, which may hold the bytes themselves."""

    def __init__(self, key: str, slot: str) -> None:
        self.key, self._slot = key, slot

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is not str:
            rest[self.key] = value
            return
        found = _ADDRESS.match(value)
        if found:
            out[""] |= {"media_type": found[1], "encoding": "base64", self._slot: value[found.end() :]}
        else:
            out[""] |= {"encoding": "url", self._slot: value}

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        if self.key in rest:
            return rest[self.key]
        return data_address(sections[""], self._slot) or MISSING


def data_address(block: Values, slot: str) -> str | None:
    """The address of a picture or sound: its place, or its bytes spelled as one."""
    content = block.get(slot)
    if not isinstance(content, str):
        return None
    if block.get("encoding") != "base64":
        return content
    return f"data:{block.get('media_type') or ''};base64,{content}"


class Opaque(Kind):
    """A kind of block that is known, and that nobody can look into."""

    def take(self, value: Values, context: Context) -> Values | None:
        return {"type": "unknown", "value": value}
