"""What a tool call brought: the `result` of a call record, as the output of a tool result."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.gemini.parts import give_part, take_part
from clew.agents.mapping import MISSING, Context, Part, Sections, Values
from clew.io.codec import dumps
from clew.model.json import JSON

_KEYS = ("id", "name", "response")
_WITH_PARTS = (*_KEYS, "parts")


class Result(Part):
    """Nearly always a list of one response with the call's own id and name and one text.

    Attachments behind the response, or in it, become blocks. Any other shape stays in the rest, and its text is shown.
    """

    key = "result"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        call = out[""]
        if type(value) is str:
            call["output"], context.own["form"] = value, "text"
            return
        response = _own_response(value, call) if type(value) is list else None
        if response is None:
            rest["result"] = value
            shown = _shown(value, call, context)
            if shown is not None:
                call["output"] = shown
            return
        ((word, text),) = response["response"].items()
        if word == "error":
            context.own["error"] = True
        call["output"] = text
        nested = response.get("parts", [])
        if nested or len(value) > 1:
            blocks = [{"type": "text", "text": text}]
            blocks += [take_part(part, _aside(context)) for part in (*nested, *value[1:])]
            call["output"] = blocks
        if "parts" in response:
            context.own["nested"] = len(nested)

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        call, own = sections[""], context.own
        output = call.get("output")
        if output is None:
            return MISSING
        if own.get("form") == "text":
            return output
        blocks = output[1:] if isinstance(output, list) else []
        text = output[0]["text"] if isinstance(output, list) else output
        response: Values = {"id": call.get("tool_id"), "name": call.get("tool_name")}
        response["response"] = {"error" if own.get("error") else "output": text}
        parts = [give_part(block, _aside(context)) for block in blocks]
        nested = own.get("nested", 0)
        if "nested" in own:
            response["parts"] = parts[:nested]
        return [{"functionResponse": response}, *parts[nested:]]


def _aside(context: Context) -> Context:
    """Blocks inside of an output note things on themselves."""
    other = context.aside()
    other.unknown, other.unknown_block = context.unknown, context.unknown_block
    return other


def _own_response(parts: list[JSON], call: Values) -> Values | None:
    """The response to this call, if it is plainly that, and alone with attachments."""
    if not parts or type(parts[0]) is not dict or tuple(parts[0]) != ("functionResponse",):
        return None
    response = parts[0]["functionResponse"]
    if type(response) is not dict or tuple(response) not in (_KEYS, _WITH_PARTS):
        return None
    if response["id"] != call.get("tool_id") or response["name"] != call.get("tool_name"):
        return None
    said = response["response"]
    if type(said) is not dict or len(said) != 1 or next(iter(said)) not in ("output", "error"):
        return None
    if type(next(iter(said.values()))) is not str or type(response.get("parts", [])) is not list:
        return None
    if any(type(part) is dict and "functionResponse" in part for part in parts[1:]):
        return None
    return response


def _shown(value: JSON, call: Values, context: Context) -> JSON:
    """A result of another shape: the response with the call's id, else its name, else all, and what stands beside."""
    parts = value if type(value) is list else [value]
    responses = [part["functionResponse"] for part in parts if type(part) is dict and "functionResponse" in part]
    responses = [response for response in responses if type(response) is dict]
    for key, wanted in (("id", call.get("tool_id")), ("name", call.get("tool_name"))):
        mine = [response for response in responses if wanted is not None and response.get(key) == wanted]
        if mine:
            responses = mine
            break
    texts = [*_said(responses), *(part["text"] for part in parts if _has_text(part))]
    attached = [part for part in _beside(parts, responses) if _is_attached(part)]
    if attached:
        said = [{"type": "text", "text": "\n".join(texts)}] if texts else []
        return said + [take_part(part, _aside(context)) for part in attached]
    if texts or value is None:
        return "\n".join(texts) if texts else None
    return dumps(value).decode() if not responses else None


def _has_text(part: JSON) -> bool:
    return type(part) is dict and type(part.get("text")) is str


def _is_attached(part: JSON) -> bool:
    return type(part) is dict and ("inlineData" in part or "fileData" in part)


def _beside(parts: list[JSON], responses: list[Values]) -> Iterator[JSON]:
    """The parts within responses, and those behind them."""
    for response in responses:
        nested = response.get("parts")
        yield from nested if type(nested) is list else ()
    yield from parts


def _said(responses: list[Values]) -> Iterator[str]:
    for response in responses:
        said = response.get("response")
        yield said if type(said) is str else _answer_text(said) if type(said) is dict else dumps(said).decode()


def _answer_text(said: Values) -> str:
    """The texts of a response, and whatever else it holds as JSON."""
    texts = [said[name] for name in ("output", "error") if type(said.get(name)) is str]
    others = {name: item for name, item in said.items() if name not in ("output", "error") or type(item) is not str}
    return "\n".join([*texts, *([dumps(others).decode()] if others or not texts else [])])
