"""Whether anything was said in a converted session since it was written: what its agent notes for itself is nothing."""

from __future__ import annotations

import hashlib

import msgspec

from clew.agents import registry
from clew.agents.base import SourceFile
from clew.analysis.titles import short_title
from clew.convert.origin import Origin
from clew.convert.origin_lines import content_hash, is_marked
from clew.convert.path import BranchSelection
from clew.io.codec import dumps
from clew.io.compress import SUFFIXES, open_source


def is_unchanged(source: SourceFile, origin: Origin) -> bool:
    """Whether the converted session says what was written: its file, its sub-agents, its title."""
    if not _says_the_same(source, origin.converted):
        return False
    for child in origin.family()[1:]:
        path = source.path.parent / child.beside
        if child.converted and path.is_file():
            below = registry.get(source.agent).locate(path)
            if below.path != path or not _says_the_same(below, child.converted):
                return False
    return isinstance(origin.title, msgspec.UnsetType) or _is_called(source, origin.title)


def _is_called(source: SourceFile, title: str | None) -> bool:
    """Whether a session has this title still, or none but its first words or its id."""
    agent = registry.get(source.agent)
    facts = agent.facts(source)
    now = agent.session(source, facts)
    derived = (None, now["id"], short_title(facts.first_prompt))
    return short_title(now.get("title")) in (short_title(title), *derived)


def _says_the_same(source: SourceFile, converted: str) -> bool:
    """Whether a file is as it was written, or begins so and nothing behind that changes what was said."""
    if source.path.suffix in SUFFIXES:
        return not source.parts and content_hash(source.path) == converted
    written, size = _written(source, converted)
    if written is None or (written == size and not source.parts):
        return written is not None
    return _said(msgspec.structs.replace(source, parts=()), written) == _said(source, size)


def _written(source: SourceFile, converted: str) -> tuple[int | None, int]:
    """How much of a file is what was written, with the lines of the original behind it; and how long it is."""
    digest, size, found = hashlib.sha256(), 0, None
    with open_source(source.path) as stream:
        for line in stream:
            is_ours = is_marked(line)
            if not is_ours:
                digest.update(line)
            if found is None or (is_ours and found == size):
                is_whole = is_ours and found is not None
                found = size + len(line) if is_whole or digest.copy().hexdigest() == converted else found
            size += len(line)
    return found, size


def _said(source: SourceFile, size: int) -> tuple[str, int]:
    """The hash of what was said on the path, up to a place in the file, and how many messages there are in all."""
    agent = registry.get(source.agent)
    source = msgspec.structs.replace(source, size=size, frozen=True)
    facts = agent.facts(source)
    receiver = agent.receiver()
    tells = receiver is not None and receiver.capacity.instructions
    path, digest, messages = BranchSelection(facts, None), hashlib.sha256(), 0
    for unit in path.in_order(agent.units(source)):
        value = unit.value
        if not unit.is_message or (value["role"] == "system" and not tells):
            continue
        messages += 1
        if path.holds(value["index"]):
            digest.update(dumps([value["role"], value["content"]]))
    return digest.hexdigest(), messages
