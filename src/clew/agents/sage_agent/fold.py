"""Between a record of Sage Agent and the document: calls and results join the content, two file maps become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from clew.agents.folding import Chain, Message, Step, note, own_extension, without_derived
from clew.agents.sage_agent.locate import AGENT
from clew.agents.sage_agent.tables import BACKUPS, CALLS, ERROR, OLD_ROLE, OUTER_RESULTS, RESULTS, SEQUENCE, TRACKED
from clew.model.json import JSON

_BACKUP_SLOTS = frozenset({"backup", "original_hash"})
_MARKS = (SEQUENCE, OLD_ROLE, ERROR)
_OUTER = "outer"

Files = dict[str, dict[str, Any]]


def folding(chain: Chain, model: str | None) -> Callable[[bool, dict[str, JSON]], Iterator[Step]]:
    """The fold of one source. Only the session's metadata name the model, so all replies are put down to it."""

    def fold(is_message: bool, value: dict[str, JSON]) -> Iterator[Step]:
        if is_message:
            _fold_message(value, chain)
            if model is not None and value["role"] == "assistant":
                value.setdefault("metadata", {})["model"] = {"name": model}
        elif "snapshot" in value:
            _fold_snapshot(value)
        yield is_message, value

    return fold


def _fold_message(message: Message, chain: Chain) -> None:
    for mark in _MARKS:
        if mark in message:
            note(message, AGENT, **{mark: message.pop(mark)})
    own = own_extension(message, AGENT)
    content = message["content"]
    if own.get("plain") and content[0]["text"] == "":
        content.clear()
    outer = message.pop(OUTER_RESULTS, [])
    results = [*message.pop(RESULTS, ()), *outer]
    for result in results:
        _show_error(result)
    content += [*message.pop(CALLS, ()), *results]
    if outer:
        note(message, AGENT, outer=len(outer))
    _chain(message, chain)


def _show_error(result: Message) -> None:
    """A tool that failed says so in a key of its own, and its content is empty."""
    error = (own_extension(result, AGENT).get("rest") or {}).get("error")
    if result.get("output") == "" and isinstance(error, str) and error:
        result["output"] = error
        note(result, AGENT, shows_error=True)


def _hide_error(result: Message) -> Message:
    return {**result, "output": ""} if own_extension(result, AGENT).get("shows_error") else result


def _chain(message: Message, chain: Chain) -> None:
    """Messages of the older form have no ids; what follows them without naming a parent continues them."""
    after_old = chain.gave_last
    if chain.identify(message) or after_old:
        chain.attach(message)
    chain.last = message["uuid"]


def unfolded(units: Iterator[Step]) -> Iterator[Step]:
    """The units as the tables know them."""
    for is_message, value in units:
        if is_message:
            yield True, unfold_message(value)
        else:
            yield False, unfold_snapshot(value) if "snapshot" in value else value


def unfold_message(message: Message) -> Message:
    """A message with its calls and results beside the content again."""
    own = own_extension(message, AGENT)
    message = without_derived(message, AGENT)
    blocks = message["content"]
    results = [_hide_error(block) for block in blocks if block["type"] == "tool_result"]
    inner = len(results) - own.get(_OUTER, 0)
    message |= {RESULTS: results[:inner], OUTER_RESULTS: results[inner:]}
    message[CALLS] = [block for block in blocks if block["type"] == "tool_use"]
    message["content"] = [block for block in blocks if block["type"] not in ("tool_use", "tool_result")]
    message |= {mark: own[mark] for mark in _MARKS if mark in own}
    return message


def _fold_snapshot(record: dict[str, JSON]) -> None:
    snapshot = record["snapshot"]
    maps = {name: snapshot.pop(name) for name in (TRACKED, BACKUPS) if name in snapshot}
    if maps:
        snapshot["files"] = _merge(maps.get(TRACKED, {}), maps.get(BACKUPS, {}))
        if list(maps) != [TRACKED, BACKUPS] or not _same(_split(snapshot["files"]), maps):
            note(record, AGENT, maps=maps)
    for slot, name in (("timestamp", "timestamp"), ("message_uuid", "message_uuid")):
        if snapshot.get(slot) is not None:
            record[name] = snapshot[slot]


def _merge(tracked: Files, backups: Files) -> Files:
    return {path: {**tracked.get(path, {}), **backups.get(path, {})} for path in {**tracked, **backups}}


def _split(files: Files) -> dict[str, Files]:
    tracked: Files = {}
    backups: Files = {}
    for path, file in files.items():
        for name, item in file.items():
            (backups if name in _BACKUP_SLOTS else tracked).setdefault(path, {})[name] = item
    return {TRACKED: tracked, BACKUPS: backups}


def _same(split: dict[str, Files], maps: dict[str, Files]) -> bool:
    return split == maps and all(list(split[name]) == list(maps[name]) for name in maps)


def unfold_snapshot(record: dict[str, JSON]) -> dict[str, JSON]:
    """A snapshot with its two maps again."""
    snapshot = dict(record["snapshot"])
    files = snapshot.pop("files", None)
    if files is not None:
        snapshot |= own_extension(record, AGENT).get("maps") or _split(files)
    return {**record, "snapshot": snapshot}
