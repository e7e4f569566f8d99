"""Redaction over structures: sessions as unified JSON, records as an agent wrote them, JSON within strings.

A value that was found once is masked wherever it stands. So a session is best gone through twice: `learn` every part
of it, then ask for each part again. Whoever cannot (a store that is appended to) gets what was learned so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from threading import Lock
from typing import NamedTuple, TypeVar

from clew.io.codec import dumps
from clew.model.json import JSON
from clew.redact.commands import is_credential_file
from clew.redact.finding import Finding, kinds_of
from clew.redact.jsontext import MISSING, read, splice
from clew.redact.known import Known
from clew.redact.leaves import LEAST_NUMBER, Joint, Leaves, is_count
from clew.redact.rules import Rules, standard
from clew.redact.scan import apply, scan, scan_all
from clew.redact.sieve import calls, names_file
from clew.redact.untouched import is_left, picture

_MOST_CLEAN = 20_000
_BATCH = 1 << 18
_LONG = 1 << 14
_LONGEST_CLEAN = 256
_REMEMBERED = frozenset({"secret", "pii"})
SHORTEST_KNOWN = 6
"""Shorter values are masked where they are found, and nowhere else."""
SHORTEST_HALF = 6
KNOWN = "known_value"
"""The rule that finds what another found before."""
SURE = 0.8
"""How sure a finding must be that lies across two texts: the seam may have made it."""


_T = TypeVar("_T")
Record = tuple[bytes, JSON]
"""JSON text, and what it means where that is known; no text for what has none."""


class Setting(NamedTuple):
    """What is masked, and how."""

    profile: str
    mark: Callable[[str, str], str]
    """From a value and the rule that found it to what stands in its place."""
    rules: Rules | None = None


class Redactor:
    """Masks what its setting forbids, in the parts of one session; counts the values it masked, by rule."""

    def __init__(self, setting: Setting, masked: Counter[str] | None = None) -> None:
        self.setting = setting
        self.masked: Counter[str] = Counter() if masked is None else masked
        self._leaves = Leaves()
        self._leaves.sift = self._sifted
        self._values: dict[str, str] = {}
        self._known: Known | None = None
        self.is_clean = True
        """Nothing was found in all that was learned; then it need not be looked at again."""
        self._settled = 0
        self._marked: set[str] = set()
        self._guard = Lock()

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Go through values without masking them: what is found in one is then known in all. Returns how many."""
        return self.learn_records(((_spelled(value), value) for value in values), itemgetter(1), path)

    def learn_records(
        self, records: Iterable[Record], value_of: Callable[[Record], JSON], path: str | None = None
    ) -> int:
        """The same for records of which the JSON text is at hand; only those that may hold something are read."""
        path = path if path is not None and is_credential_file(path) else None
        count = 0
        for batch in batches(records, lambda record: len(record[0])):
            count += len(batch)
            for number in self.held([record[0] for record in batch], path):
                spans = self._look(value_of(batch[number]), path)
                if spans:
                    self.is_clean = False
                    self._remember(spans)
        self._settle()
        return count

    def held(self, texts: Sequence[bytes], path: str | None = None) -> Iterator[int]:
        """The numbers of those of some records, given as JSON text, that must be looked at; the others hold nothing.

        A record may tell which file a later one comes from: each is to be looked at before the next is asked for.
        """
        sieve = None if path is not None else (self.setting.rules or standard()).sieve(kinds_of(self.setting.profile))
        if sieve is None:
            yield from range(len(texts))
            return
        held = sieve.held(texts, self._known, cut=bool(self._values))
        paths = self._leaves.paths
        for number, text in enumerate(texts):
            if number in held or not text or (paths and any(call in paths for call in calls(text))):
                yield number

    def _sifted(self, items: list[JSON]) -> list[JSON]:
        """The items that may hold something; all, where one may tell that another comes from a credential file."""
        texts = list(map(_spelled, items))
        if self._leaves.paths or sum(map(len, texts)) < _LONG:
            return items
        held = list(self.held(texts))
        return items if any(names_file(texts[number]) for number in held) else [items[number] for number in held]

    def value(self, value: JSON, path: str | None = None) -> JSON:
        """The value with markers; the very same where nothing was found. Keys keep their order."""
        path = path if path is not None and is_credential_file(path) else None
        if not any(True for _ in self.held([_spelled(value)], path)):
            return value
        changes = self._changes(value, path)
        return _rebuilt(value, changes) if changes else value

    def text(self, text: str, path: str | None = None) -> str:
        """A text with markers: plain, or JSON that stays JSON."""
        return self._changes(text, path).get(text, text)

    def line(self, text: str, path: str | None = None) -> str:
        """A JSON record with markers, spelled as it was but for the strings that hold them; other text as text."""
        value = read(text) if text.lstrip()[:1] in ("{", "[") else MISSING
        if value is MISSING:
            return self.text(text, path)
        changes = self._changes(value, path)
        return splice(text, changes) if changes else text

    def once(self, value: JSON) -> JSON:
        """A value that stands alone: learned from, then masked."""
        self.learn([value])
        return self.value(value)

    def stream(self, value: dict[str, JSON]) -> dict[str, JSON]:
        """A record that is written down now: masked with what is known so far. Any thread may ask."""
        with self._guard:
            masked: dict[str, JSON] = self.once(value)
        return masked

    @property
    def values(self) -> Mapping[str, str]:
        """Every value that was found, with the rule that found it first."""
        return self._values

    @property
    def version(self) -> str:
        """That of the rules."""
        return (self.setting.rules or standard()).version

    def stamp(self) -> dict[str, JSON]:
        """What a document says of its redaction."""
        return {"profile": self.setting.profile, "rules": self.version, "masked": self.masked.total()}

    def findings(self, value: JSON) -> list[tuple[str, Finding]]:
        """What is found in the texts of a value, each with its text; nothing is masked."""
        return [(text, finding) for text, found in self._look(value, None).items() for finding in found]

    def _changes(self, value: JSON, path: str | None) -> dict[str, str]:
        """The texts of a value that hold something, as they are to be."""
        if self.setting.profile == "none":
            return {}
        spans = self._look(value, path)
        if not spans:
            return {}
        changes = {text: apply(text, found, self._mark) for text, found in spans.items()}
        for text in reversed(self._leaves.nested):
            if (spliced := splice(text, changes)) != text:
                changes[text] = spliced
        return changes

    def _look(self, value: JSON, path: str | None) -> dict[str, list[Finding]]:
        """The findings in each text of a value."""
        leaves = self._leaves
        leaves.collect(value, path)
        texts = [*(before + text + behind for text, before, behind, _ in leaves.found), *map(_whole, leaves.joints)]
        found = self._scan(texts)
        spans: dict[str, list[Finding]] = {}
        for index, leaf in enumerate(leaves.found):
            if index in found:
                _add(spans, leaf.text, _within(found[index], len(leaf.before), len(leaf.text)))
            elif leaf.path is None and not leaf.before and len(leaf.text) <= _LONGEST_CLEAN:
                leaves.clean.add(leaf.text)
        for index, joint in enumerate(leaves.joints, len(leaves.found)):
            for finding in found.get(index, ()):
                self._spread(spans, joint, finding)
        for text in leaves.cut if self._values else ():
            for finding in self._half(text):
                _add(spans, text, [finding])
                leaves.clean.discard(text)
        if len(leaves.clean) > _MOST_CLEAN:
            leaves.clean.clear()
        return spans

    def _scan(self, texts: list[str]) -> dict[int, list[Finding]]:
        """The findings of texts by their number; those that come from a credential file are looked at one by one."""
        profile, _, rules = self.setting
        found = scan_all(texts, profile, rules=rules, known=self._known)
        for index, leaf in enumerate(self._leaves.found):
            if leaf.path is not None:
                found[index] = scan(texts[index], profile, path=leaf.path, rules=rules, known=self._known)
        return found

    def _spread(self, spans: dict[str, list[Finding]], joint: Joint, finding: Finding) -> None:
        """Deal a finding in joined texts out to them."""
        parts = list(_parts(joint, finding))
        if not joint.is_seam or (len(parts) > 1 and finding.confidence >= SURE):
            for text, part in parts:
                _add(spans, text, [part])

    def _half(self, text: str) -> Iterator[Finding]:
        """A known value of which only the beginning stands at the end of a text, as somebody cut it there."""
        whole = text.rstrip(".… ")
        for value, rule in self._values.items():
            for length in range(min(len(value) - 1, len(whole)), SHORTEST_HALF - 1, -1):
                if whole.endswith(value[:length]):
                    yield Finding(len(whole) - length, len(whole), rule, "secret", 1.0)
                    break

    def marker(self, value: str, rule: str) -> str:
        """The marker of a value; what was found before keeps the name it got then."""
        return self.setting.mark(value, self._values.get(value, rule))

    def _mark(self, value: str, rule: str) -> str:
        if value not in self._marked:
            self._marked.add(value)
            self.masked[self._values.get(value, rule)] += 1
        return self.marker(value, rule)

    def _remember(self, spans: dict[str, list[Finding]]) -> None:
        for text, found in spans.items():
            for finding in found:
                value = text[finding.start : finding.end]
                if finding.kind in _REMEMBERED and finding.rule != KNOWN and len(value) >= SHORTEST_KNOWN:
                    self._values.setdefault(value, finding.rule)

    def _settle(self) -> None:
        """From here on everything that was learned is known."""
        if self._known is None or len(self._values) != self._settled:
            self._settled = len(self._values)
            self._known = Known(self._values) if self._values else None
            self._leaves.clean.clear()


def _spelled(value: JSON) -> bytes:
    """The JSON text of a value; nothing where it has none."""
    try:
        return dumps(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""


def batches(records: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Records in lists that are worth one search."""
    batch: list[_T] = []
    size = 0
    for record in records:
        batch.append(record)
        size += size_of(record) + 1
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _whole(joint: Joint) -> str:
    return joint.between.join(text[start:stop] for text, start, stop in joint.windows)


def _parts(joint: Joint, finding: Finding) -> Iterator[tuple[str, Finding]]:
    """A finding in joined texts, as findings in each of them."""
    at = 0
    for text, first, last in joint.windows:
        start, end = max(finding.start - at, 0), min(finding.end - at, last - first)
        if start < end:
            yield text, finding._replace(start=first + start, end=first + end)
        at += last - first + len(joint.between)


def _within(found: list[Finding], start: int, length: int) -> list[Finding]:
    """The part of findings that lies in a text which begins at `start`."""
    if not start:
        return found
    moved = (
        finding._replace(start=max(finding.start - start, 0), end=min(finding.end - start, length)) for finding in found
    )
    return [finding for finding in moved if finding.start < finding.end]


def _add(spans: dict[str, list[Finding]], text: str, found: list[Finding]) -> None:
    """Add findings to those of a text; where they overlap, they become one."""
    merged: list[Finding] = []
    for finding in sorted([*spans.get(text, ()), *found]):
        if merged and finding.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, finding.end))
        else:
            merged.append(finding)
    spans[text] = merged


def _rebuilt(value: JSON, changes: Mapping[str, str], key: str = "") -> JSON:
    """The value with some of its texts replaced; the same where there is none."""
    kind = type(value)
    if kind is str:
        return value if is_left(key, value) else changes.get(value, value)
    if kind is list:
        items = [_rebuilt(item, changes, key) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if kind is int and value >= LEAST_NUMBER and not is_count(key):
        return changes.get(str(value), value)
    return _rebuilt_object(value, changes, key) if kind is dict else value


def _rebuilt_object(value: dict[str, JSON], changes: Mapping[str, str], own: str) -> dict[str, JSON]:
    members: dict[str, JSON] = {}
    is_new = False
    body = picture(value)
    for key, item in value.items():
        name = changes.get(key, key)
        while name != key and name in members:
            name += "'"  # plain markers are alike, keys must not be
        members[name] = (
            item if key == body else _rebuilt(item, changes, own if type(item) is int and is_count(own) else key)
        )
        is_new = is_new or name != key or members[name] is not item
    return members if is_new else value
