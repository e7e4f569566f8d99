"""Redaction over structures: sessions as unified JSON, records as an agent wrote them, JSON within strings.

A value that was found once is masked wherever it stands. So a session is best gone through twice: `learn` every part
of it, then ask for each part again. Whoever cannot (a store that is appended to) gets what was learned so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from itertools import accumulate
from threading import Lock

from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON
from clew.redact.commands import is_credential_file
from clew.redact.crowd import hider
from clew.redact.finding import Finding
from clew.redact.grouping import batches, line_around
from clew.redact.jsontext import MISSING, read, splice
from clew.redact.leaves import Collected
from clew.redact.looking import Looker, Seen, Setting, Spans
from clew.redact.placing import Placing
from clew.redact.rebuilding import rebuilt
from clew.redact.rules import CROWDED
from clew.redact.searching import ESCAPE, Fuel
from clew.redact.sieve import Sieve, Span, call_places, names_file, touched_by

__all__ = ["Redactor", "Setting"]
# What reading costs, in bytes of text: a record, so many of its bytes, of its quotes, commas and brackets, and of its
# texts; each value that is found; so many looks.
_PRICE, _SAVED, _RECORD, _BYTES, _ELEMENTS, _LEAVES, _FOUND, _LOOKS = 320, 2000, 2, 1024, 48, 3.5, 2, 3
# The same for so much as is spent on escapes; what is forfeited for each crowd of signs.
_STRIPPED, _CROWDS = 12 * ESCAPE, 300
# A file that is one document may cost half a second more: to hide all of it for one secret would be worse.
_ONE_DOCUMENT = 10_000 * _PRICE
_STRUCTURE = b'",[{'
_FEWEST_LEAVES, _MORE_LEAVES, _MEMBER, _ASKED = 64, 6, 5, 100
# A list is sifted where it is so long.
_LONG = 1 << 14
_SAMPLE, _CROWD, _CROWDED_LINE = 64, 0.3, 128
# So much of what was read is kept until it is masked.
_MOST_SEEN = 24 << 20
_MOST_TOLD = 100_000
# What it costs to search for one more value than is usual, wherever it may stand.
_VALUE, _FREE_VALUES = 5, 500
# What is found in so many texts, or in so many times so many bytes, is paid for before more records are read.
_LOT, _LOT_BYTES = 224, 128


class Redactor(Looker):
    """Masks what its setting forbids, in the parts of one session; counts the values it masked, by rule."""

    def __init__(self, setting: Setting, masked: Counter[str] | None = None) -> None:
        super().__init__(setting, masked)
        self._leaves.sift = self._sifted
        self._seen: dict[bytes, Seen] = {}
        self._seen_size = 0
        self._told: dict[bytes, list[Span]] = {}
        """Where lines must be read, in stretches that were gone through once."""
        self._room = _MOST_TOLD
        self._refused: set[bytes] = set()
        """What would have cost too much to read."""
        self._records = Fuel(_PRICE, _SAVED)
        self.is_clean = True
        """Nothing was found in all that was learned; then it need not be looked at again."""
        self._guard = Lock()

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Go through values without masking them: what is found in one is then known in all. Returns how many."""
        path = path if path is not None and is_credential_file(path) else None
        count = 0
        for batch in batches(((_spelled(value), value) for value in values), lambda record: len(record[0])):
            count += len(batch)
            texts = [text for text, _ in batch]
            self._records.earn_for(sum(map(len, texts)))
            self._learn_values([batch[number] for number in self._held(texts, path)], path)
            self._note_places(texts)
        self.settle()
        return count

    def _learn_values(self, batch: list[tuple[bytes, JSON]], path: str | None) -> None:
        collected = []
        for text, value in batch:
            texts = self._within(text, value, path)
            if texts is None:
                self.is_clean = False
                self._refused.add(_digest(text))
            else:
                collected.append(texts)
        for spans in self._look(collected):
            self._records.spend(_FOUND * _count(spans))
            self._note(spans)

    def learn_lines(self, text: bytes, path: str | None = None, *, apart: bool) -> None:
        """The same for a part of a file: lines that are records each, or, not `apart`, one text. Then `settle`."""
        path = path if path is not None and is_credential_file(path) else None
        self._records.earn_for(len(text) + (0 if apart else _ONE_DOCUMENT))
        if self._is_crowd(text, path, apart):
            self.is_clean = False
            self._refused.add(_digest(text))
            return
        for spans in self._spans_in(text, path, apart):
            self._learn_some([text[start:end] for start, end in spans], path)
        self._note_places([text])

    def _learn_some(self, raws: list[bytes], path: str | None) -> None:
        for raw, seen in zip(raws, self._looked(raws, path), strict=True):
            if seen is None:
                self.is_clean = False
                self._refused.add(_digest(raw))
                continue
            self._note(seen.spans)
            if path is None and self._seen_size < _MOST_SEEN:
                self._seen_size += len(raw)
                self._seen[_digest(raw)] = seen

    def _looked(self, raws: Sequence[bytes], path: str | None) -> Iterator[Seen | None]:
        """Records that are read and looked at together; None for what that would cost too much for."""
        lot: list[tuple[Collected, bool] | None] = []
        met = 0
        for raw in raws:
            lot.append(self._read(raw, path))
            met += len(raw) // _LOT_BYTES + (self._leaves.cost if lot[-1] else 0)
            if met >= _LOT:
                yield from self._looked_at(lot)
                lot, met = [], 0
        yield from self._looked_at(lot)

    def _looked_at(self, read: list[tuple[Collected, bool] | None]) -> Iterator[Seen | None]:
        before = self._worked()
        looked = iter(self._look([texts for texts, _ in filter(None, read)]))
        self._pay_for_looks(before)
        for each in read:
            spans = next(looked) if each else {}
            self._records.spend(_FOUND * _count(spans))
            yield Seen(each[0], spans, each[1]) if each else None

    def _worked(self) -> tuple[int, int]:
        """What all looks and escapes were worth so far, and how many crowds were hidden without a look."""
        fuel = self._fuel
        looks = fuel.spent + (fuel.numbers.spent if fuel.numbers else 0)
        return looks // _LOOKS + fuel.stripped // _STRIPPED, fuel.crowds

    def _pay_for_looks(self, before: tuple[int, int]) -> None:
        """Where signs crowd, as they do in what is built to be slow, the next records are better hidden unread."""
        worth, crowds = self._worked()
        self._records.spend(worth - before[0])
        self._records.forfeit(_CROWDS * (crowds - before[1]))

    def _note(self, spans: Spans) -> None:
        if spans:
            self.is_clean = False
            before = len(self._values)
            self._remember(spans)
            if before > _FREE_VALUES:
                self._records.spend(_VALUE * (len(self._values) - before))

    def _note_places(self, texts: Iterable[bytes]) -> None:
        if self.is_clean and self._sieve is not None and any(map(self._sieve.names_machine, texts)):
            self.is_clean = False

    def held(self, texts: Sequence[bytes], path: str | None = None) -> Iterator[int]:
        """The numbers of those of some records, given as JSON text, that must be looked at; the others hold nothing.

        A record may tell which file a later one comes from: each is to be looked at before the next is asked for.
        """
        sieve = self._sieve
        placed = {n for n, text in enumerate(texts) if sieve.names_machine(text)} if sieve and path is None else set()
        read = self._held(texts, path)
        yield from sorted(placed | set(read)) if placed else read

    def _held(self, texts: Sequence[bytes], path: str | None) -> Iterator[int]:
        """The same, but for those that only name the person's machine."""
        sieve = None if path is not None else self._sieve
        if sieve is None:
            yield from range(len(texts))
            return
        held = sieve.held(texts, self._fuel, self._known, cut=bool(self._values))
        for number, text in enumerate(texts):
            if number in held or not text or self._answers(text):
                yield number

    def _answers(self, text: bytes) -> bool:
        """True where a record has to do with a call that was about a credential file."""
        return bool(self._leaves.paths) and any(True for _ in call_places(text, self._leaves.paths))

    def _spans_in(self, text: bytes, path: str | None, apart: bool) -> Iterator[list[Span]]:
        """Where the records stand in a stretch that must be read; then those that answer calls met in them."""
        if not apart:
            if any(True for _ in self._held([text], path)):
                yield [(0, len(text))]
            return
        sieve = None if path is not None else self._sieve
        if sieve is None:
            yield _all_lines(text)
            return
        spans = self._sieved(sieve, text)
        met = set(spans)
        while True:
            if spans:
                yield spans
            calls = call_places(text, self._leaves.paths) if self._leaves.paths else ()
            spans = sorted({line_around(text, place) for place in calls} - met)
            if not spans:
                return
            met.update(spans)

    def _sieved(self, sieve: Sieve, text: bytes) -> list[Span]:
        """Where the lines stand that must be read. Told once, and then only for what is known since."""
        key = _digest(text)
        spans = self._told.get(key)
        if spans is not None:
            return sieve.lines_again(text, spans, self._known, cut=bool(self._values))
        before = self._worked()
        spans = sieve.lines(text, self._fuel, self._known, cut=bool(self._values))
        self._pay_for_looks(before)
        if len(spans) <= self._room:
            self._room -= len(spans) + 1
            self._told[key] = spans
        return spans

    def _is_crowd(self, text: bytes, path: str | None, apart: bool) -> bool:
        """True where so many of some lines hold signs that to read these would cost too much."""
        sieve, count = self._sieve, text.count(b"\n")
        if sieve is None or path is not None or not apart or count < _SAMPLE or self._records.covers(_RECORD * count):
            return False
        places = range(0, len(text), len(text) // _SAMPLE + 1)
        sample = [text[start:end] for start, end in dict.fromkeys(line_around(text, place) for place in places)]
        part = sieve.crowd(sample, count, self._fuel, self._known, cut=bool(self._values))
        signed = int(count * part)
        return not self._records.covers(_RECORD * signed) and (part > _CROWD or signed * _CROWDED_LINE > len(text))

    def _read(self, raw: bytes, path: str | None) -> tuple[Collected, bool] | None:
        """The texts of a record, and whether it is one; None where they cannot be paid for.

        With rules of a person's own, and in credential files, any price is paid.
        """
        if not self._pays(raw, path):
            return None
        value = _value(raw)
        texts = self._collected(value, path)
        return None if texts is None else (texts, type(value) is str)

    def _within(self, raw: bytes, value: JSON, path: str | None) -> Collected | None:
        """The same for a value at hand; one that has no JSON text is met at any price."""
        if not raw:
            return self._leaves.collect(value, path)
        return self._collected(value, path) if self._pays(raw, path) else None

    def _pays(self, raw: bytes, path: str | None) -> bool:
        """Pay for reading JSON text, if there is enough left."""
        if self._sieve is None or path is not None:
            return True
        is_json = raw.lstrip()[:1] in (b"{", b"[")
        elements = len(raw) - len(raw.translate(None, _STRUCTURE)) + 2 * (raw.count(b"[") + raw.count(b"{"))
        cost = _RECORD + len(raw) // _BYTES + (elements // _ELEMENTS if is_json else 0)
        # There must be some left for its texts, too; of a large object, only few may be met.
        if not self._records.covers(cost + min(_worth(elements // _MEMBER), _ASKED) if is_json else cost):
            return False
        self._records.spend(cost)
        return True

    def _collected(self, value: JSON, path: str | None) -> Collected | None:
        """The texts of a value, which are paid for by their number; None where there are too many for that."""
        if self._sieve is None or path is not None:
            return self._leaves.collect(value, path)
        records = self._records
        texts = self._leaves.collect_some(value, path, max(_FEWEST_LEAVES, int(records.looks * _LEAVES)))
        records.spend(records.looks if texts is None else _worth(self._leaves.cost))
        return texts

    def _sifted(self, items: list[JSON]) -> list[JSON]:
        """The items that may hold something; all, where one may tell that another comes from a credential file."""
        texts = list(map(_spelled, items))
        if self._leaves.paths or sum(map(len, texts)) < _LONG:
            return items
        held = list(self._held(texts, None))
        return items if any(names_file(texts[number]) for number in held) else [items[number] for number in held]

    def value(self, value: JSON, path: str | None = None) -> JSON:
        """The value with markers; the very same where nothing was found. Keys keep their order."""
        path = path if path is not None and is_credential_file(path) else None
        text = _spelled(value)
        self._records.earn_for(len(text))
        if self.setting.profile == "none" or not any(True for _ in self.held([text], path)):
            return value
        texts = None if self._refused and _digest(text) in self._refused else self._within(text, value, path)
        if texts is None:
            return self._hidden_value(text)
        [spans] = self._look([texts])
        self._records.spend(_FOUND * _count(spans))
        changes = self._applied(spans, texts) if spans else {}
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

    def masked_lines(self, text: bytes, path: str | None = None, *, apart: bool) -> Iterator[tuple[bytes, bytes]]:
        """A stretch of a file in pieces, each as it is and as it is masked; a record that changed is one by itself."""
        path = path if path is not None and is_credential_file(path) else None
        # Most of what the second pass costs was paid in the first.
        self._records.earn_for(len(text) // 2 + (0 if apart else _ONE_DOCUMENT))
        if self.setting.profile == "none":
            yield text, text
        elif self._is_crowd(text, path, apart) or (self._refused and _digest(text) in self._refused):
            yield text, self._hidden(text)
        else:
            changed: dict[Span, bytes] = {}
            for spans in self._spans_in(text, path, apart):
                raws = [text[start:end] for start, end in spans]
                changed |= zip(spans, self._masked_some(raws, path), strict=True)
            yield from self._pieces(text, changed, path)

    def _pieces(self, text: bytes, changed: dict[Span, bytes], path: str | None) -> Iterator[tuple[bytes, bytes]]:
        """What was read, as it is now, and what lies between, without what names the machine."""
        spans = sorted(changed)
        borders = [0, *[place for span in spans for place in span], len(text)]
        between = [text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True)]
        placed = between
        if path is None and self._sieve is not None and any(map(self._sieve.names_machine, between)):
            placed = self._placing.masked(between, self._line_read, self._hidden)
        for number, span in enumerate(spans):
            yield between[number], placed[number]
            yield text[span[0] : span[1]], changed[span]
        yield between[-1], placed[-1]

    def _masked_some(self, raws: list[bytes], path: str | None) -> list[bytes]:
        """Records, masked. What was read before is looked at again only for what is known since."""
        seen = {raw: each for raw in raws if path is None and (each := self._seen.get(_digest(raw)))}
        seen = {raw: each for raw, each in seen.items() if not self._answers(raw)}
        # What was found in a record is known in it.
        touched = self._with_known([raw for raw, each in seen.items() if not each.texts.cut and not each.spans])
        again = [raw for raw, each in seen.items() if raw in touched or each.texts.cut or each.spans]
        again, hidden = self._paid(again, seen)
        spans = dict(zip(again, self._again([seen[raw] for raw in again]), strict=True))
        self._records.spend(_FOUND * sum(_count(found) - _count(seen[raw].spans) for raw, found in spans.items()))
        fresh = [raw for raw in dict.fromkeys(raws) if raw not in seen and _digest(raw) not in self._refused]
        self._records.spend(2 * _RECORD * len(fresh))  # it is because of something known that they are read
        looked = dict(zip(fresh, self._looked(fresh, path), strict=True))
        masked = []
        for raw in raws:
            each = None if raw in hidden else seen.get(raw) or looked.get(raw)
            masked.append(self._spliced(raw, each, spans.get(raw, each.spans)) if each else self._hidden(raw))
        return masked

    def _paid(self, raws: list[bytes], seen: Mapping[bytes, Seen]) -> tuple[list[bytes], set[bytes]]:
        """Those of some records for which another look can be paid, which is no dearer than the first; and the rest."""
        for count, raw in enumerate(raws):
            if self._records.left <= 0 and self._sieve is not None:
                return raws[:count], set(raws[count:])
            each = seen[raw].texts
            self._records.spend(_RECORD + _worth(len(each.found) + len(each.again)))
        return raws, set()

    def _with_known(self, raws: list[bytes]) -> set[bytes]:
        """Those of some records that may hold a known value."""
        if self._known is None:
            return set()
        if len(raws) == 1:
            return set(raws)
        text = b"".join(raws)
        return {text[start:end] for start, end in touched_by([self._known.find], text)}

    def _spliced(self, raw: bytes, seen: Seen, spans: Spans) -> bytes:
        changes = self._applied(spans, seen.texts) if spans else {}
        if not changes:
            return raw
        text = _text(raw)
        masked = _bytes(changes.get(text, text) if seen.is_text else splice(text, changes))
        # A crowd that is hidden may reach over the end of a line that is no JSON.
        return masked + b"\n" if raw.endswith(b"\n") and not masked.endswith(b"\n") else masked

    def _line_read(self, raw: bytes) -> bytes:
        """A line that must be read to tell what names the machine."""
        seen = next(self._looked([raw], None))
        return self._spliced(raw, seen, seen.spans) if seen else self._hidden(raw)

    def _hidden(self, text: bytes) -> bytes:
        """Lines with every text hidden that may be a secret, without being looked at."""
        self.masked[CROWDED] += text.count(b"\n") or 1
        return self._hide(text)

    def _hidden_value(self, text: bytes) -> JSON:
        try:
            return loads(self._hidden(text))
        except NOT_JSON:
            return {}

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
    def _placing(self) -> Placing:
        return Placing(self._rules, self._mark, self._one_of_many)

    def _one_of_many(self) -> bytes:
        self.masked[CROWDED] += 1
        return self._crowd_marker

    @cached_property
    def _hide(self) -> Callable[[bytes], bytes]:
        return hider(self._crowd_marker)

    @cached_property
    def _crowd_marker(self) -> bytes:
        return self.setting.mark("", CROWDED).encode()

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


def _spelled(value: JSON) -> bytes:
    """The JSON text of a value; nothing where it has none."""
    try:
        return dumps(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()


def _worth(leaves: int) -> int:
    """What looking at the texts of a record is worth. Where there are many, few of them were met before."""
    return int(leaves / _LEAVES) + max(0, leaves - _FEWEST_LEAVES) // _MORE_LEAVES


def _count(spans: Spans) -> int:
    return sum(map(len, spans.values()))


def _all_lines(text: bytes) -> list[Span]:
    ends = list(accumulate(map(len, BytesIO(text))))
    return list(zip([0, *ends], ends, strict=False))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _value(raw: bytes) -> JSON:
    value = read(_text(raw)) if raw.lstrip()[:1] in (b"{", b"[") else MISSING
    return _text(raw) if value is MISSING else value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
