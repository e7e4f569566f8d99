"""The system prompt and the tools that an agent gives to its model, where its records hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from clew.model.json import JSON


class ModelContext(NamedTuple):
    """What one native record says about the model's context."""

    system_prompt: str | None = None
    tools: tuple[dict[str, JSON], ...] = ()
    """Each in the form of OpenAI's function calling: `{"type": "function", "function": {...}}`."""


def model_context(system_prompt: JSON = None, tools: JSON = None) -> ModelContext | None:
    """The context in a native record; None where neither value is of the expected type."""
    prompt = system_prompt if isinstance(system_prompt, str) and system_prompt.strip() else None
    functions = tuple(_functions(tools if isinstance(tools, list) else [tools]))
    return ModelContext(prompt, functions) if prompt or functions else None


def _functions(definitions: Iterable[JSON]) -> Iterator[dict[str, JSON]]:
    """The functions among definitions of tools; a group has its functions under `tools`."""
    for definition in definitions:
        if not isinstance(definition, Mapping):
            continue
        if isinstance(definition.get("tools"), list):
            yield from _functions(definition["tools"])
        elif isinstance(definition.get("function"), Mapping):
            yield {"type": "function", "function": dict(definition["function"])}
        elif isinstance(definition.get("name"), str):
            yield {"type": "function", "function": _function(definition)}


def _function(definition: Mapping[str, JSON]) -> dict[str, JSON]:
    function: dict[str, JSON] = {"name": definition["name"]}
    if isinstance(definition.get("description"), str):
        function["description"] = definition["description"]
    names = ("parameters", "inputSchema", "input_schema")
    schema = next((definition[name] for name in names if isinstance(definition.get(name), Mapping)), None)
    return function if schema is None else {**function, "parameters": schema}
