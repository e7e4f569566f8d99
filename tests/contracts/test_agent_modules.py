"""The modules of an agent's package have what the defaults of `Agent` call, with the types that they pass.

mypy checks each function against its annotations; that they are those of the convention is checked here.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec

import pytest

from clew.agents import registry
from clew.agents.base import Agent
from clew.agents.target_profile import TargetProfile
from clew.agents.tool_file_changes import ToolFileChanges
from clew.agents.tools import FILE_CHANGE_TOOLS

FUNCTIONS = {
    "events": ("events", "read_events", ["SourceFile", "Iterator[Event]"]),
    "unknown_keys": ("records", "find_unknown_keys", ["Mapping[str, JSON]", "Iterator[str]"]),
    "model_context": ("records", "read_model_context", ["Mapping[str, JSON]", "ModelContext | None"]),
    "check": ("check", "check", ["SourceFile", "Iterator[Problem]"]),
    "file_changes": ("file_changes", "file_changes", ["SourceFile", "Iterator[Unit]", "Iterator[Event]"]),
    "encode": ("encode", "encode", ["Header", "Iterable[Unit]", "Iterator[tuple[str, bytes]]"]),
}
"""By method: the module and function that its default calls, and the types of its arguments and its result."""


@pytest.mark.parametrize("name", sorted(registry.OWN))
@pytest.mark.parametrize("method", FUNCTIONS)
def test_a_function_of_a_package_has_the_types_of_the_method(name: str, method: str) -> None:
    module, function, types = FUNCTIONS[method]
    agent = registry.get(name)
    assert agent.package == type(agent).__module__
    if find_spec(f"{agent.package}.{module}") is None or getattr(type(agent), method) is not getattr(Agent, method):
        return
    found = getattr(import_module(f"{agent.package}.{module}"), function, None)
    if found is None:
        assert method in ("unknown_keys", "model_context"), "only these are optional"
        return
    signature = inspect.signature(found)
    assert [*(each.annotation for each in signature.parameters.values()), signature.return_annotation] == types


@pytest.mark.parametrize("name", sorted(registry.OWN))
def test_tools_that_change_files_are_known_to_the_catalog(name: str) -> None:
    package = registry.get(name).package
    if find_spec(f"{package}.file_changes") is None:
        return
    classes = vars(import_module(f"{package}.file_changes")).values()
    found = [one for one in classes if isinstance(one, type) and issubclass(one, ToolFileChanges)]
    tools = {tool.lower() for one in found for tool in (*one.writes, *one.edits, *one.deletes)}
    # By its name alone, this tool of Goose may also only show a file.
    assert tools <= FILE_CHANGE_TOOLS | {"text_editor", "text_editor write"}


@pytest.mark.parametrize("name", sorted(registry.OWN))
def test_a_target_profile_is_one(name: str) -> None:
    agent = registry.get(name)
    if find_spec(f"{agent.package}.target_profile") is None:
        assert agent.target_profile() is None
    elif type(agent).target_profile is Agent.target_profile:
        assert isinstance(agent.target_profile(), TargetProfile)
