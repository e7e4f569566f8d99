"""Prompts that a person typed while a turn was running, and that the client delivered to the model in that turn.

From 2.1.12 to 2.1.71 the client wrote only that a prompt was put into its queue (`enqueue`, with the text) and taken
out of it (`remove`, without): no record of the conversation holds it. Later clients write an attachment of the type
`queued_command` as well. A prompt that starts a turn of its own is taken out by `dequeue`, one that goes back to the
input line by `popAll`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.agents.claude_code.records import TranscriptRecord
from clew.agents.derived_ids import derived_id
from clew.analysis.prompts import typed_text
from clew.io.records import RawRecord
from clew.model.json import JSON

MAX_WAITING_PROMPTS = 1000
MAX_HELD_RECORDS = 10_000
"""How many records are read to find out whether a prompt was delivered."""

Line = tuple[int, TranscriptRecord | RawRecord]


class _Removed(NamedTuple):
    """A prompt that was taken out of the queue, with the record that says so."""

    line: int
    record: TranscriptRecord
    content: JSON


def is_typed_by_person(content: JSON) -> bool:
    """False for notifications and other text that a program put into the queue."""
    if isinstance(content, str):
        return typed_text(content.lstrip()) is not None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return any(block.get("type") != "text" or is_typed_by_person(block.get("text")) for block in blocks)


def place_delivered_prompts(lines: Iterable[Line]) -> Iterator[Line]:
    """The records of a transcript. The `remove` of a delivered prompt holds the prompt, and stands where it was read.

    That is before the first reply behind it: results of tools that the turn waited for may be written after the
    `remove`. Such a record has a uuid and a parent, and the record behind it names it as parent.
    """
    queue: list[JSON] = []
    removed: list[_Removed] = []
    held: list[Line] = []
    last_uuid: str | None = None
    for line, record in lines:
        if isinstance(record, TranscriptRecord):
            if record.type == "queue-operation":
                content = _take_out(queue, record)
                if content is not None:
                    removed.append(_Removed(line, record, content))
            elif removed or queue:
                _drop_recorded(record, queue, removed)
                if removed and _follows(record, removed[-1].record):
                    yield from _released(held, removed, record.parentUuid or None)
                    record.parentUuid = removed[-1].record.uuid
                    held, removed = [], []
            if record.uuid and record.isSidechain is not True:
                last_uuid = record.uuid
        if removed and len(held) < MAX_HELD_RECORDS:
            held.append((line, record))
        else:
            if held or removed:
                yield from held
                held, removed = [], []
            yield line, record
    yield from _released(held, removed, last_uuid)


def _take_out(queue: list[JSON], record: TranscriptRecord) -> JSON:
    """Apply an operation to the queue; gives the prompt of a person that may have been delivered."""
    content = record.content
    match record.operation:
        case "enqueue":
            queue.append(content)
            del queue[:-MAX_WAITING_PROMPTS]
        case "dequeue" if queue:
            queue.pop(queue.index(content) if content in queue else 0)
        case "popAll":
            if content in queue:
                queue.remove(content)
            else:
                queue.clear()
        case "remove" if content in queue:
            # A client that repeats the text writes an attachment when it delivers it.
            queue.remove(content)
        case "remove" if queue:
            # Notifications may stay in the queue of a client that was ended.
            typed = [number for number, waiting in enumerate(queue) if is_typed_by_person(waiting)]
            taken = queue.pop(typed[0] if typed else 0)
            return taken if typed else None
    return None


def _drop_recorded(record: TranscriptRecord, queue: list[JSON], removed: list[_Removed]) -> None:
    """Forget a prompt that a record of the conversation holds."""
    attachment = record.attachment
    if record.type == "attachment" and attachment is not None and attachment.type == "queued_command":
        content = attachment.prompt
    elif record.type == "user" and record.message is not None:
        content = record.message.content
    else:
        return
    if content in queue and record.type == "attachment":
        queue.remove(content)
    found = next((one for one in removed if one.content == content), None)
    if found is not None:
        removed.remove(found)


def _follows(record: TranscriptRecord, removed: TranscriptRecord) -> bool:
    """True for the record that a delivered prompt stands before: the next reply, or the next prompt."""
    if record.isSidechain is True or record.message is None:
        return False
    if record.type == "assistant":
        # A reply that was under way may be written late.
        times = record.timestamp, removed.timestamp
        return not all(isinstance(time, str) for time in times) or times[0] >= times[1]
    if record.type != "user" or record.isMeta is True:
        return False
    content = record.message.content
    blocks = content if isinstance(content, list) else []
    return not any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _released(held: list[Line], removed: list[_Removed], parent: str | None) -> Iterator[Line]:
    """The records that were held, and behind them the prompts, of which the first follows `parent`."""
    delivered = [one.record for one in removed]
    yield from ((line, record) for line, record in held if not any(record is one for one in delivered))
    for one in removed:
        one.record.uuid = derived_id("delivered prompt", parent, one.content)
        one.record.parentUuid, one.record.content = parent, one.content
        parent = one.record.uuid
        yield one.line, one.record
