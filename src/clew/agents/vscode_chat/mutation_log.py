"""Replays the log of changes that VS Code keeps of a chat.

A line is `{kind, k, v, i}`: kind 0 gives the whole state, 1 sets a value, 2 cuts an array at `i` and appends to it, 3
deletes a value. `k` is the path of the value. After many changes VS Code writes the file anew, as one line. Until then
the log holds the requests that the person took back.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.model.json import JSON

INITIAL, SET, PUSH, DELETE = range(4)
REQUESTS, RESPONSE = "requests", "response"


class Request:
    """A request of a chat as it was last, and the records that it comes from."""

    def __init__(self, value: dict[str, JSON], record: int, before: Request | None) -> None:
        self.before = before
        """The request that it follows."""
        self.replace(value, record)

    def replace(self, value: dict[str, JSON], record: int) -> None:
        """Take over another version of the request, from one record."""
        self.value = value
        self._record = record
        self._records: dict[JSON, int] = {}
        """By member: the record that set it last, where that is not the one of the whole request."""
        parts = value.get(RESPONSE)
        self.response_records = [record] * len(parts) if isinstance(parts, list) else []
        """For each part of the response the record that holds it."""

    @property
    def id(self) -> JSON:
        return self.value.get("requestId")

    def record_of(self, member: str) -> int:
        """The record that holds a member."""
        return self._records.get(member, self._record)

    def change(self, kind: int, path: Sequence[JSON], entry: dict[str, JSON], record: int) -> bool:
        """Apply a change to a member; False where that is not possible."""
        if not apply(self.value, kind, path, entry):
            return False
        self._records[path[0]] = record
        if path[0] == RESPONSE:
            parts = self.value.get(RESPONSE)
            count = len(parts) if isinstance(parts, list) else 0
            if len(path) == 1:
                cut = entry.get("i") if kind == PUSH else 0
                del self.response_records[cut if type(cut) is int else len(self.response_records) :]
            elif type(path[1]) is int and 0 <= path[1] < len(self.response_records):
                self.response_records[path[1]] = record
            del self.response_records[count:]
            self.response_records += [record] * (count - len(self.response_records))
        return True


class Chat:
    """The state of a chat, and all requests that there ever were."""

    def __init__(self) -> None:
        self.state: dict[str, JSON] = {}
        """The state but for the requests."""
        self.requests: list[Request] = []
        """Those that the chat shows."""
        self.all_requests: list[Request] = []
        """Those and the ones that were taken back, in the order in which they came."""

    def apply(self, entry: dict[str, JSON], record: int) -> bool:
        """Apply a line of the log; False for one that cannot be applied."""
        kind, path, value = entry.get("kind"), entry.get("k"), entry.get("v")
        if kind == INITIAL and isinstance(value, dict):
            self.state = {name: item for name, item in value.items() if name != REQUESTS}
            self._replace_from(0, value.get(REQUESTS), record)
            return True
        if kind not in (SET, PUSH, DELETE) or type(kind) is not int or not isinstance(path, list) or not path:
            return False
        if type(entry.get("i")) is int and entry["i"] < 0:
            return False
        if path[0] != REQUESTS:
            return apply(self.state, kind, path, entry)
        if len(path) == 1:
            return self._change_requests(kind, entry, record)
        number = path[1]
        if type(number) is not int or not 0 <= number < len(self.requests):
            return False
        if len(path) == 2:
            return kind == SET and self._replace_request(number, value, record)
        return self.requests[number].change(kind, path[2:], entry, record)

    def add_request(self, value: dict[str, JSON], record: int) -> None:
        """Append a request."""
        request = Request(value, record, self.requests[-1] if self.requests else None)
        self.requests.append(request)
        self.all_requests.append(request)

    def _change_requests(self, kind: int, entry: dict[str, JSON], record: int) -> bool:
        cut = entry.get("i", len(self.requests)) if kind == PUSH else 0
        self._replace_from(cut if type(cut) is int else len(self.requests), entry.get("v"), record)
        return True

    def _replace_from(self, start: int, values: JSON, record: int) -> None:
        """Replace the requests from a number on; those that are not among the new ones were taken back.

        A request that has changed is cut off and appended again.
        """
        removed = self.requests[start:]
        del self.requests[start:]
        known = {request.id: request for request in removed if isinstance(request.id, str)}
        for value in values if isinstance(values, list) else ():
            name = value.get("requestId") if isinstance(value, dict) else None
            if isinstance(name, str) and name in known:
                request = known.pop(name)
                request.replace(value, record)
                request.before = self.requests[-1] if self.requests else None
                self.requests.append(request)
            elif isinstance(value, dict):
                self.add_request(value, record)

    def _replace_request(self, number: int, value: JSON, record: int) -> bool:
        if not isinstance(value, dict):
            return False
        request = self.requests[number]
        if request.id != value.get("requestId"):
            self.requests[number] = Request(value, record, request.before)
            self.all_requests.append(self.requests[number])
        else:
            request.replace(value, record)
        return True


def apply(target: JSON, kind: int, path: Sequence[JSON], entry: dict[str, JSON]) -> bool:
    """Apply a change to the value at a path inside of an object or an array; False where there is no such place."""
    *above, last = path
    for step in above:
        target = _member(target, step)
    if kind == PUSH:
        array, added = _member(target, last), entry.get("v")
        if array is None and isinstance(target, dict) and isinstance(last, str):
            array = target[last] = []
        if not isinstance(array, list):
            return False
        if type(entry.get("i")) is int:
            del array[entry["i"] :]
        array += added if isinstance(added, list) else []
        return True
    if isinstance(target, dict) and isinstance(last, str):
        if kind == DELETE:
            target.pop(last, None)
        else:
            target[last] = entry.get("v")
        return True
    if isinstance(target, list) and type(last) is int and 0 <= last <= len(target):
        target[last : last + 1] = [None if kind == DELETE else entry.get("v")]
        return True
    return False


def _member(target: JSON, step: JSON) -> JSON:
    if isinstance(target, dict) and isinstance(step, str):
        return target.get(step)
    if isinstance(target, list) and type(step) is int and 0 <= step < len(target):
        return target[step]
    return None
