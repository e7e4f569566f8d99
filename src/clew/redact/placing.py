"""What names the person's machine, masked in JSON text itself: records that hold nothing else need not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from clew.model.json import JSON
from clew.redact.json_text import MISSING, read, spelled, to_text
from clew.redact.machine_names import with_users
from clew.redact.matcher import BORDER
from clew.redact.prefilter import Span
from clew.redact.scanner import Rules

Edit = tuple[int, int, bytes]
Close = Callable[[list[bytes]], list[bytes]]


class Placing:
    """Masks users, hosts and private addresses in stretches of lines."""

    def __init__(self, rules: Rules, mark: Callable[[str, str], str]) -> None:
        self._rules, self._mark = rules, mark
        self._users = _Shown(self._user)
        """What stands in the place of users, by their names."""

    def masked(self, stretches: list[bytes], close: Close) -> list[bytes]:
        """The stretches without what names the machine. `close` masks lines that must be read for that."""
        whole = self._without(BORDER.join(stretches), close).split(BORDER)
        if len(whole) == len(stretches):
            return whole
        return [self._without(stretch, close) for stretch in stretches]

    def value(self, text: bytes, value: JSON, close: Close) -> JSON:
        """A value, given with its JSON text as well, without what names the machine; MISSING where it must be met."""
        [masked] = self.masked([text], close)
        if masked == text:
            return value
        new = read(to_text(masked))
        # Two names may have become one, and a number may have no JSON text.
        return new if spelled(new) == masked and read(to_text(text)) == value else MISSING

    def _without(self, text: bytes, close: Close) -> bytes:
        text = with_users(text, self._users)
        hits, nested = self._rules.places(text)
        lines = _joined(_lines(text, ((place, place) for place in nested)))
        read = close([text[start:end] for start, end in lines]) if lines else []
        edits: list[Edit] = [(*span, new) for span, new in zip(lines, read, strict=True)]
        edits += [(start, end, self._mark(to_text(text[start:end]), rule).encode()) for start, end, rule, _ in hits]
        return _edited(text, edits)

    def _user(self, user: bytes) -> bytes:
        return self._mark(to_text(user), "user_name").encode() if self._rules.hides_user(user) else user


class _Shown(dict[bytes, bytes]):
    """Values as they are to be shown, each worked out once."""

    def __init__(self, show: Callable[[bytes], bytes]) -> None:
        self._show = show

    def __missing__(self, value: bytes) -> bytes:
        shown = self[value] = self._show(value)
        return shown


def _lines(text: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """The lines that some spans touch, which are in order."""
    stop = 0
    for start, end in sorted(spans):
        if end <= stop and start < stop:
            continue
        begin = text.rfind(b"\n", 0, start) + 1
        stop = text.find(b"\n", end) + 1 or len(text)
        yield begin, stop


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans without overlaps."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _edited(text: bytes, edits: list[Edit]) -> bytes:
    """The text with some spans replaced; what lies within another is left out."""
    pieces, last = [], 0
    for start, end, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= last:
            pieces += [text[last:start], new]
            last = end
    return b"".join([*pieces, text[last:]])
