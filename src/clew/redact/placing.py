"""What names the person's machine, masked in JSON text itself: records that hold nothing else need not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from clew.model.json import JSON
from clew.redact.jsontext import MISSING, read, spelled, to_text
from clew.redact.places import with_users
from clew.redact.rules import CROWDED, Rules
from clew.redact.searching import BORDER, Fuel
from clew.redact.sieve import Span

_MOST_USERS = 1000
# What looking at a host or an address costs, in bytes of text, and how many looks are saved up.
_PRICE, _SAVED = 512, 2000
Edit = tuple[int, int, bytes]
Mask = Callable[[bytes], bytes]
Close = Callable[[list[bytes]], list[bytes]]


class Placing:
    """Masks users, hosts and private addresses in stretches of lines."""

    def __init__(self, rules: Rules, mark: Callable[[str, str], str], crowd: Callable[[int], bytes]) -> None:
        self._rules, self._mark, self._crowd = rules, mark, crowd
        self._fuel = Fuel(_PRICE, _SAVED)

    def masked(self, stretches: list[bytes], close: Close, hide: Mask) -> list[bytes]:
        """The stretches without what names the machine.

        `close` masks lines that must be read for that; `hide` takes lines of which too many name it.
        """
        whole = self._without(BORDER.join(stretches), close, hide).split(BORDER)
        if len(whole) == len(stretches):
            return whole
        return [self._without(stretch, close, hide) for stretch in stretches]

    def value(self, text: bytes, value: JSON, close: Close, hide: Mask) -> JSON:
        """A value, given with its JSON text as well, without what names the machine; MISSING where it must be met."""
        [masked] = self.masked([text], close, hide)
        if masked == text:
            return value
        new = read(to_text(masked))
        # Two names may have become one, and a number may have no JSON text.
        return new if spelled(new) == masked and read(to_text(text)) == value else MISSING

    def _without(self, text: bytes, close: Close, hide: Mask) -> bytes:
        text = with_users(text, self._users)
        self._crowd(self._users.count_others())
        hits, nested = self._rules.places(text, self._fuel)
        crowds = [hit for hit in hits if hit.rule == CROWDED]
        edits: list[Edit] = [
            (*span, hide(text[span[0] : span[1]])) for span in _joined(_lines(text, [hit[:2] for hit in crowds]))
        ]
        lines = _joined(_lines(text, ((place, place) for place in nested)), apart=True)
        read = close([text[start:end] for start, end in lines]) if lines else []
        edits += [(*span, new) for span, new in zip(lines, read, strict=True)]
        for start, end, rule, _ in hits:
            if rule != CROWDED:
                edits.append((start, end, self._mark(to_text(text[start:end]), rule).encode()))
        return _edited(text, edits)

    @cached_property
    def _users(self) -> _Shown:
        """What stands in the place of users, by their names."""
        return _Shown(self._user, self._crowd(0))

    def _user(self, user: bytes) -> bytes:
        return self._mark(to_text(user), "user_name").encode() if self._rules.hides_user(user) else user


class _Shown(dict[bytes, bytes]):
    """Values as they are to be shown, each worked out once; where there are too many, the others are alike."""

    def __init__(self, show: Callable[[bytes], bytes], other: bytes) -> None:
        self._show, self._other, self._others = show, other, 0

    def __missing__(self, value: bytes) -> bytes:
        if len(self) >= _MOST_USERS:
            self._others += 1
            return self._other
        shown = self[value] = self._show(value)
        return shown

    def count_others(self) -> int:
        """How often another was asked for since this was last asked."""
        count, self._others = self._others, 0
        return count


def _lines(text: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """The lines that some spans touch, which are in order."""
    stop = 0
    for start, end in sorted(spans):
        if end <= stop and start < stop:
            continue
        begin = text.rfind(b"\n", 0, start) + 1
        stop = text.find(b"\n", end) + 1 or len(text)
        yield begin, stop


def _joined(spans: Iterable[Span], *, apart: bool = False) -> list[Span]:
    """Spans without overlaps; those that touch are one, unless they are to stay apart."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and (start < joined[-1][1] or (start == joined[-1][1] and not apart)):
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
