"""Redaction over structures: sessions as unified JSON, records as an agent wrote them, JSON within strings.

A value that was found once is masked wherever it stands. So a session is best gone through twice: `learn` every part
of it, then ask for each part again. Whoever cannot (a store that is appended to) gets what was learned so far.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import NamedTuple, TypeVar

from clew.io.codec import dumps
from clew.model.json import JSON
from clew.redact.commands import is_credential_file
from clew.redact.crowd import hider
from clew.redact.finding import Finding, kinds_of
from clew.redact.flat import to_bytes
from clew.redact.jsontext import MISSING, read, splice
from clew.redact.known import Known
from clew.redact.leaves import Collected, Joint, Leaves
from clew.redact.places import with_users
from clew.redact.rebuilding import add, rebuilt, whole, within
from clew.redact.rebuilding import parts as parts_of
from clew.redact.rules import Rules, standard
from clew.redact.scan import apply
from clew.redact.searching import BORDER, Fuel
from clew.redact.sieve import Sieve, calls, names_file, placed_otherwise

_MOST_CLEAN = 20_000
_BATCH, _FEW, _MANY = 1 << 18, 8, 256
_LONG, _MOST_LONG = 1 << 14, 1000
# What reading a record closely costs, in bytes of text.
_BYTES_PER_RECORD, _USUAL_QUOTES, _QUOTES = 1280, 160, 8
_SAMPLE, _CROWD = 64, 0.3
_MOST_USERS = 1000
_LONGEST_CLEAN = 256
_REMEMBERED = frozenset({"secret", "pii"})
SHORTEST_KNOWN = 6
"""Shorter values are masked where they are found, and nowhere else."""
SHORTEST_HALF, _LONGEST_HALF = 6, 512
KNOWN = "known_value"
"""The rule that finds what another found before."""
CROWDED = "crowded"
"""The rule of what was hidden without being looked at."""
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
        self._long: dict[bytes, list[Finding]] = {}
        self._values: dict[str, str] = {}
        self._known: Known | None = None
        self._sorted: list[str] = []
        self._beginnings: set[str] = set()
        self._fuel, self._records, self._places = Fuel(), Fuel(_BYTES_PER_RECORD), Fuel(_BYTES_PER_RECORD)
        self.is_clean = True
        """Nothing was found in all that was learned; then it need not be looked at again."""
        self._settled = 0
        self._marked: set[str] = set()
        self._guard = Lock()

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Go through values without masking them: what is found in one is then known in all. Returns how many."""
        return self.learn_records(((_spelled(value), value) for value in values), itemgetter(1), path)

    def learn_lines(self, lines: Iterable[bytes], value_of: Callable[[bytes], JSON], path: str | None = None) -> int:
        """The same for records of which only the JSON text is at hand; those that may hold something are read."""
        return self._learn(batches(lines, len), list, value_of, path)

    def learn_records(
        self, records: Iterable[Record], value_of: Callable[[Record], JSON], path: str | None = None
    ) -> int:
        """The same for records of which the JSON text is at hand."""
        return self._learn(batches(records, lambda record: len(record[0])), _texts, value_of, path)

    def _learn(
        self,
        lots: Iterable[list[_T]],
        texts_of: Callable[[list[_T]], list[bytes]],
        value_of: Callable[[_T], JSON],
        path: str | None,
    ) -> int:
        path = path if path is not None and is_credential_file(path) else None
        count = 0
        for batch in lots:
            count += len(batch)
            texts = texts_of(batch)
            if self._is_crowd(texts, path):
                self.is_clean = False
                continue
            held = self._worth(texts, self._held(texts, path))
            for spans in self._look([self._leaves.collect(value_of(batch[number]), path) for number in held]):
                if spans:
                    self.is_clean = False
                    self._remember(spans)
            self.is_clean = self.is_clean and not self.placed(texts)
        self._settle()
        return count

    def held(self, texts: Sequence[bytes], path: str | None = None) -> Iterator[int]:
        """The numbers of those of some records, given as JSON text, that must be looked at; the others hold nothing.

        A record may tell which file a later one comes from: each is to be looked at before the next is asked for.
        """
        placed = self.placed(texts) if path is None else set()
        read = self._held(texts, path)
        yield from sorted(placed | set(read)) if placed else read

    def _held(self, texts: Sequence[bytes], path: str | None) -> Iterator[int]:
        """The same, but for those that only name the person's machine."""
        sieve = None if path is not None else self._sieve
        if sieve is None:
            yield from range(len(texts))
            return
        held = sieve.held(texts, self._fuel, self._known, cut=bool(self._values))
        paths = self._leaves.paths
        for number, text in enumerate(texts):
            if number in held or not text or (paths and any(call in paths for call in calls(text))):
                yield number

    def placed(self, texts: Sequence[bytes]) -> set[int]:
        """The numbers of those that may name the person's machine."""
        sieve = self._sieve
        return sieve.placed(texts) if sieve is not None else set()

    def _is_crowd(self, texts: Sequence[bytes], path: str | None) -> bool:
        """True where most of some records hold signs, and there are more of them than can be read closely."""
        count = len(texts)
        self._records.earn(sum(map(len, texts)))
        sieve = self._sieve
        if sieve is None or path is not None or count < _SAMPLE or self._records.covers(count):
            return False
        sample = texts[:: count // _SAMPLE][:_SAMPLE]
        part = sieve.crowd(sample, count, self._fuel, self._known, cut=bool(self._values))
        return part > _CROWD and not self._records.covers(int(count * part))

    def _worth(self, texts: Sequence[bytes], numbers: Iterable[int]) -> Iterator[int]:
        """The numbers of those that are read closely. Where there are too many of them, the rest are hidden whole."""
        if self._sieve is None:
            yield from numbers
            return
        for number in numbers:
            if self._records.left <= 0 and len(texts) > 1:
                self.is_clean = False
                continue
            # One with many texts is worth as much as several.
            self._records.spend(1 + max(0, texts[number].count(b'"') - _USUAL_QUOTES) // _QUOTES)
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
        return rebuilt(value, changes) if changes else value

    def text(self, text: str, path: str | None = None) -> str:
        """A text with markers: plain, or JSON that stays JSON."""
        return self._changes(text, path).get(text, text)

    def line(self, text: str, path: str | None = None) -> str:
        """A JSON record with markers, or another text."""
        return self.lines([text], path)[0]

    def lines(self, texts: Sequence[str], path: str | None = None) -> list[str]:
        """JSON records with markers, spelled as they were but for the strings that hold them; other text as text."""
        if self.setting.profile == "none":
            return list(texts)
        values = [read(text) if text.lstrip()[:1] in ("{", "[") else MISSING for text in texts]
        pairs = zip(texts, values, strict=True)
        collected = [self._leaves.collect(text if value is MISSING else value, path) for text, value in pairs]
        masked = []
        for text, value, texts_of, spans in zip(texts, values, collected, self._look(collected), strict=True):
            changes = self._applied(spans, texts_of) if spans else {}
            masked.append(changes.get(text, text) if value is MISSING or not changes else splice(text, changes))
        return masked

    def changed(self, batch: Sequence[bytes], path: str | None = None) -> dict[int, bytes]:
        """Those of some records that change, by number: JSON text in, JSON text out."""
        if self._is_crowd(batch, path):
            return dict(enumerate(self._hidden(batch)))
        held = list(self._held(batch, path))
        read = list(self._worth(batch, held))
        texts = [_text(batch[number]) for number in read]
        masked = dict(zip(read, map(_bytes, self.lines(texts, path)), strict=True))
        rest = [number for number in held if number not in masked]
        masked |= zip(rest, self._hidden([batch[number] for number in rest]), strict=True)
        placed = sorted((self.placed(batch) if path is None else set()) - masked.keys())
        masked |= zip(placed, self._all_without_places([batch[number] for number in placed]), strict=True)
        return {number: text for number, text in masked.items() if text != batch[number]}

    def _all_without_places(self, records: list[bytes]) -> list[bytes]:
        """Records that hold nothing else, without what names the machine: they need not be read for that."""
        self._places.earn(sum(map(len, records)))
        joined = with_users(BORDER.join(records), self._users).split(BORDER)
        texts = joined if len(joined) == len(records) else [with_users(record, self._users) for record in records]
        others = sorted(placed_otherwise(texts))
        paid = others[: self._places.looks]
        self._places.spend(len(paid))
        quick = {number: self._without_places(texts[number]) for number in paid}
        close = [number for number, text in quick.items() if text is None]
        for number, line in zip(close, self.lines([_text(texts[number]) for number in close]), strict=True):
            quick[number] = _bytes(line)
        rest = others[len(paid) :]
        hidden = self._hidden([texts[number] for number in rest])
        for number, text in (*quick.items(), *zip(rest, hidden, strict=True)):
            texts[number] = texts[number] if text is None else text
        return texts

    def _without_places(self, record: bytes) -> bytes | None:
        """None for a record that must be read."""
        hits = self._rules.places(record, Fuel())
        if hits is None or any(hit.rule == CROWDED for hit in hits):
            return None
        pieces, last = [], 0
        for start, end, rule, _ in hits:
            pieces += [record[last:start], self._mark(_text(record[start:end]), rule).encode()]
            last = end
        return b"".join([*pieces, record[last:]])

    def _hidden(self, records: Sequence[bytes]) -> list[bytes]:
        """Records with every text hidden that may be a secret, without being looked at."""
        self.masked[CROWDED] += len(records)
        return self._hide(records) if records else []

    def once(self, value: JSON) -> JSON:
        """A value that stands alone: learned from, then masked."""
        self.learn([value])
        return self.value(value)

    def stream(self, value: dict[str, JSON]) -> dict[str, JSON]:
        """A record that is written down now: masked with what is known so far. Any thread may ask."""
        with self._guard:
            masked: dict[str, JSON] = self.once(value)
        return masked

    @cached_property
    def _users(self) -> Mapping[bytes, bytes]:
        """What stands in the place of users, by their names."""
        return _Shown(self._user)

    def _user(self, user: bytes) -> bytes:
        if len(self._users) >= _MOST_USERS:
            self.masked[CROWDED] += 1
            return self._crowd_marker
        return self._mark(_text(user), "user_name").encode() if self._rules.hides_user(user) else user

    @cached_property
    def _hide(self) -> Callable[[Sequence[bytes]], list[bytes]]:
        return hider(self._crowd_marker)

    @cached_property
    def _crowd_marker(self) -> bytes:
        return self.setting.mark("", CROWDED).encode()

    @property
    def values(self) -> Mapping[str, str]:
        """Every value that was found, with the rule that found it first."""
        return self._values

    @property
    def version(self) -> str:
        """That of the rules."""
        return self._rules.version

    @property
    def _sieve(self) -> Sieve | None:
        return self._rules.sieve(kinds_of(self.setting.profile))

    @property
    def _rules(self) -> Rules:
        return self.setting.rules or standard()

    def stamp(self) -> dict[str, JSON]:
        """What a document says of its redaction."""
        return {"profile": self.setting.profile, "rules": self.version, "masked": self.masked.total()}

    def findings(self, value: JSON) -> list[tuple[str, Finding]]:
        """What is found in the texts of a value, each with its text; nothing is masked."""
        [spans] = self._look([self._leaves.collect(value)])
        return [(text, finding) for text, found in spans.items() for finding in found]

    def _changes(self, value: JSON, path: str | None) -> dict[str, str]:
        """The texts of a value that hold something, as they are to be."""
        if self.setting.profile == "none":
            return {}
        texts = self._leaves.collect(value, path)
        [spans] = self._look([texts])
        return self._applied(spans, texts) if spans else {}

    def _applied(self, spans: dict[str, list[Finding]], texts: Collected) -> dict[str, str]:
        changes = {text: apply(text, found, self._mark) for text, found in spans.items()}
        for text in reversed(texts.nested):
            if (spliced := splice(text, changes)) != text:
                changes[text] = spliced
        return changes

    def _look(self, values: Sequence[Collected]) -> list[dict[str, list[Finding]]]:
        """The findings in each text, for each of some values. All texts are searched as one."""
        numbers: dict[tuple[str, str | None], int] = {}
        for leaves in values:
            for text, before, behind, path in leaves.found:
                numbers.setdefault((before + text + behind, path), len(numbers))
            for joint in leaves.joints:
                numbers.setdefault((whole(joint), None), len(numbers))
        found = self._scan(numbers) if numbers else {}
        looked = [self._spans(leaves, numbers, found) for leaves in values]
        if len(self._leaves.clean) > _MOST_CLEAN:
            self._leaves.clean.clear()
        return looked

    def _spans(
        self, leaves: Collected, numbers: Mapping[tuple[str, str | None], int], found: Mapping[int, list[Finding]]
    ) -> dict[str, list[Finding]]:
        """What was found in the texts of one value."""
        spans: dict[str, list[Finding]] = {}
        clean = self._leaves.clean
        for text, before, behind, path in leaves.found:
            number = numbers[before + text + behind, path]
            if number in found:
                add(spans, text, within(found[number], len(before), len(text)))
            elif path is None and not before and len(text) <= _LONGEST_CLEAN:
                clean.add(text)
        for joint in leaves.joints:
            for finding in found.get(numbers[whole(joint), None], ()):
                self._spread(spans, joint, finding)
        for text in leaves.cut if self._values else ():
            half = self._half(text)
            if half is not None:
                add(spans, text, [half])
                clean.discard(text)
        return spans

    def _scan(self, numbers: Mapping[tuple[str, str | None], int]) -> dict[int, list[Finding]]:
        """The findings of texts by their number; each may come from a credential file."""
        long = {number: self._in_long(*key) for key, number in numbers.items() if len(key[0]) >= _LONG}
        paths = {number: path for (_, path), number in numbers.items() if path is not None and number not in long}
        texts = ["" if number in long else text for (text, _), number in numbers.items()]
        kinds = kinds_of(self.setting.profile)
        found = self._rules.findings(texts, kinds, known=self._known, paths=paths, fuel=self._fuel)
        return found | {number: findings for number, findings in long.items() if findings}

    def _in_long(self, text: str, path: str | None) -> list[Finding]:
        """The findings of a long text, which is searched for signs only once, and then for what is known since."""
        key = blake2b(to_bytes(text), digest_size=20, key=(path or "").encode("utf-8", "replace")[:64]).digest()
        found = self._long.get(key)
        if found is None:
            paths = {0: path} if path is not None else None
            kinds = kinds_of(self.setting.profile)
            found = self._rules.findings([text], kinds, paths=paths, fuel=self._fuel).get(0, [])
            if len(self._long) < _MOST_LONG:
                self._long[key] = found
        return self._rules.with_known(text, found, self._known) if self._known else found

    def _spread(self, spans: dict[str, list[Finding]], joint: Joint, finding: Finding) -> None:
        """Deal a finding in joined texts out to them."""
        parts = list(parts_of(joint, finding))
        if not joint.is_seam or (len(parts) > 1 and finding.confidence >= SURE):
            for text, part in parts:
                add(spans, text, [part])

    def _half(self, text: str) -> Finding | None:
        """A known value of which only the beginning stands at the end of a text, as somebody cut it there."""
        whole = text.rstrip(".… ")
        for start in range(max(0, len(whole) - _LONGEST_HALF), len(whole) - SHORTEST_HALF + 1):
            if whole[start : start + SHORTEST_HALF] in self._beginnings:
                half = whole[start:]
                number = bisect_left(self._sorted, half)
                if number < len(self._sorted) and self._sorted[number].startswith(half):
                    return Finding(start, len(whole), self._values[self._sorted[number]], "secret", 1.0)
        return None

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
                if (
                    finding.kind in _REMEMBERED
                    and finding.rule not in (KNOWN, CROWDED)
                    and len(value) >= SHORTEST_KNOWN
                ):
                    self._values.setdefault(value, finding.rule)

    def _settle(self) -> None:
        """From here on everything that was learned is known."""
        new = list(islice(self._values, self._settled, None))
        if not new:
            return
        self._settled = len(self._values)
        if self._known is None:
            self._known = Known()
        self._known.add(new)
        # Already sorted but for the new ones, which is quick.
        self._sorted = sorted(self._sorted + new)
        self._beginnings.update(value[:SHORTEST_HALF] for value in new)
        self._leaves.clean.clear()


class _Shown(dict[bytes, bytes]):
    """Values as they are to be shown, each worked out once."""

    def __init__(self, show: Callable[[bytes], bytes]) -> None:
        self._show = show

    def __missing__(self, value: bytes) -> bytes:
        shown = self._show(value)
        if len(self) < _MOST_USERS:
            self[value] = shown
        return shown


def _spelled(value: JSON) -> bytes:
    """The JSON text of a value; nothing where it has none."""
    try:
        return dumps(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""


def _texts(records: list[Record]) -> list[bytes]:
    return [text for text, _ in records]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def batches(records: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Records in lists that are worth one search."""
    rest = iter(records)
    while some := list(islice(rest, _FEW)):
        size = sum(map(size_of, some))
        # Short ones are taken many at a time.
        while size <= _BATCH:
            more = list(islice(rest, min(_MANY, len(some) * (_BATCH - size) // (size + 1) + 1)))
            if not more:
                break
            some += more
            size += sum(map(size_of, more))
        yield some
