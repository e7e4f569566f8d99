"""Redaction over structures: sessions as unified JSON, records as an agent wrote them, JSON within strings.

A value that was found once is masked wherever it stands. So a session is best gone through twice: `learn` every part
of it, then ask for each part again. Whoever cannot (a store that is appended to) gets what was learned so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice
from threading import Lock

from clew.model.json import JSON
from clew.redact import paying
from clew.redact.commands import is_credential_file
from clew.redact.crowd import covered, hider
from clew.redact.finding import Finding, Spans
from clew.redact.flat import to_bytes
from clew.redact.grouping import all_lines, batches, line_around, stretches
from clew.redact.jsontext import MISSING, all_spelled, parsed, read, spelled, splice, to_raw, to_text
from clew.redact.leaves import Collected
from clew.redact.looking import Looker, Seen, Setting
from clew.redact.placing import Placing
from clew.redact.rebuilding import rebuilt
from clew.redact.rules import CROWDED
from clew.redact.sieve import Sieve, Span, call_places, names_file

__all__ = ["Redactor", "Setting"]
# A list is sifted where it is so long.
_LONG = 1 << 14
# Of some items, each of so many is looked at first, or so many of them.
_EACH, _FEW_ITEMS, _MANY_ITEMS, _SAMPLED_ITEMS = 8, 8, 1024, 256
# So much of what was read is kept until it is masked.
_MOST_SEEN = 24 << 20
_MOST_TOLD = 100_000
# What is found in so many texts, or in so many times so many bytes, is paid for before more records are read.
_LOT, _LOT_BYTES = 224, 128
Read = tuple[Collected, bool]
"""The texts of a record, and whether it is one, no JSON."""
_NOTHING = Seen(Collected([], [], [], [], [], []), {}, is_text=False)


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
        self._passed: set[bytes] = set()
        """Records that showed no sign."""
        self._refused: set[bytes] = set()
        """What would have cost too much to read."""
        self.is_clean = True
        """Nothing was found in all that was learned; then it need not be looked at again."""
        self._guard = Lock()

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Go through values without masking them: what is found in one is then known in all. Returns how many."""
        path = path if path is not None and is_credential_file(path) else None
        count = 0
        for batch in batches(((spelled(value), value) for value in values), lambda record: len(record[0])):
            count += len(batch)
            texts = [text for text, _ in batch]
            self._records.earn_for(sum(map(len, texts)))
            held = {number for number in self._held(texts, path) if not paying.is_closed(texts[number], path)}
            self._learn_values([batch[number] for number in sorted(held)], path)
            self._note_places(texts)
            if path is None and len(self._passed) < _MOST_TOLD:
                self._passed.update(_digest(text) for number, text in enumerate(texts) if number not in held)
        self.settle()
        return count

    def _learn_values(self, batch: list[tuple[bytes, JSON]], path: str | None) -> None:
        met = (self._within(text, value, path) for text, value in batch)
        read = (None if texts is None else (texts, False) for texts in met)
        raws = [text for text, _ in batch]
        self._learn_some(raws, self._in_lots(raws, read), path)

    def learn_lines(self, text: bytes, path: str | None = None, *, apart: bool) -> None:
        """The same for a part of a file: lines that are records each, or, not `apart`, one text. Then `settle`."""
        path = path if path is not None and is_credential_file(path) else None
        self._records.earn_for(len(text))
        if paying.is_closed(text, path) or self._is_crowd(text, path, apart):
            self._refuse(text)
            return
        for spans in self._spans_in(text, path, apart):
            raws = [text[start:end] for start, end in spans]
            self._learn_some(raws, self._looked(raws, path), path)
        self._note_places([text])

    def _learn_some(self, raws: list[bytes], looked: Iterator[Seen | None], path: str | None) -> None:
        for raw, seen in zip(raws, looked, strict=True):
            if seen is None:
                self._refuse(raw)
            else:
                self._keep(raw, seen, path)

    def _refuse(self, raw: bytes) -> None:
        self.is_clean = False
        self._records.owe(paying.for_hiding(raw))
        self._refused.add(_digest(raw))

    def _keep(self, raw: bytes, seen: Seen, path: str | None) -> None:
        """Note what was found in a record, which is then not read again."""
        self._note(seen.spans)
        if path is None and self._seen_size < _MOST_SEEN:
            self._seen_size += len(raw)
            self._seen[_digest(raw)] = seen

    def _looked(self, raws: Sequence[bytes], path: str | None) -> Iterator[Seen | None]:
        """Records that are read and looked at together; None for what that would cost too much for."""
        return self._in_lots(raws, (self._read(raw, path) for raw in raws))

    def _in_lots(self, raws: Sequence[bytes], read: Iterator[Read | None]) -> Iterator[Seen | None]:
        lot: list[Read | None] = []
        met = 0
        for raw, each in zip(raws, read, strict=True):
            lot.append(each)
            met += len(raw) // _LOT_BYTES + (self._leaves.cost if each else 0)
            if met >= _LOT:
                yield from self._looked_at(lot)
                lot, met = [], 0
        yield from self._looked_at(lot)

    def _looked_at(self, read: list[Read | None]) -> Iterator[Seen | None]:
        looked = iter(self._paid_look([texts for texts, _ in filter(None, read)]))
        for each in read:
            spans = next(looked) if each else None
            yield Seen(each[0], spans, each[1]) if each and spans is not None else None

    def _note(self, spans: Spans) -> None:
        if spans:
            self.is_clean = False
            before = len(self._values)
            self._remember(spans)
            self._records.spend(paying.for_values(islice(self._values, before, None)))

    def _note_places(self, texts: Iterable[bytes]) -> None:
        if self.is_clean and self._sieve is not None and any(map(self._sieve.names_machine, texts)):
            self.is_clean = False

    def held(self, texts: Sequence[bytes], path: str | None = None) -> Iterator[int]:
        """The numbers of those of some records, given as JSON text, that must be looked at; the others hold nothing.

        A record may tell which file a later one comes from: each is to be looked at before the next is asked for.
        """
        sieve = self._sieve
        placed = sieve.placed(texts) if sieve and path is None else set()
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
            if number in held or not text or (self._leaves.paths and self._answers(text)):
                yield number

    def _answers(self, text: bytes) -> bool:
        """True where a record has to do with a call that was about a credential file."""
        return bool(self._leaves.paths) and any(True for _ in call_places(text, self._leaves.paths))

    def _spans_in(self, text: bytes, path: str | None, apart: bool) -> Iterator[list[Span]]:
        """Where the records stand in a stretch that must be read; then those that answer calls met in them."""
        sieve = None if path is not None else self._sieve
        if not apart:
            if sieve is None or not text or self._sieved(sieve, text, apart) or self._answers(text):
                yield [(0, len(text))]
            return
        if sieve is None:
            yield all_lines(text)
            return
        spans = self._sieved(sieve, text, apart)
        met = set(spans)
        while True:
            if spans:
                yield spans
            calls = call_places(text, self._leaves.paths) if self._leaves.paths else ()
            spans = sorted({line_around(text, place) for place in calls} - met)
            if not spans:
                return
            met.update(spans)

    def _sieved(self, sieve: Sieve, text: bytes, apart: bool) -> list[Span]:
        """Where the lines stand that must be read, or the whole. Told once, and then only for what is known since."""
        key = _digest(text) + bytes([apart])
        spans = self._told.get(key)
        before = self._worked()
        if spans is not None:
            again = sieve.lines_again(text, spans, self._known, cut=bool(self._values)) if apart or not spans else spans
            self._pay_for_looks(before)
            return again if apart or not again else [(0, len(text))]
        if apart:
            spans = sieve.lines(text, self._fuel, self._known, cut=bool(self._values))
        else:
            is_held = sieve.held([text], self._fuel, self._known, cut=bool(self._values))
            spans = [(0, len(text))] if is_held else []
        self._pay_for_looks(before)
        if len(spans) <= self._room:
            self._room -= len(spans) + 1
            self._told[key] = spans
        return spans

    def _read(self, raw: bytes, path: str | None) -> Read | None:
        """The texts of a record, and whether it is one; None where they cannot be paid for.

        With rules of a person's own, and in credential files, any price is paid.
        """
        if not self._pays(raw, path):
            return None
        value = parsed(raw)
        is_text = type(value) is str
        self._leaves.plain = value if is_text else ""
        texts = self._collected(value, path)
        return None if texts is None else (texts, is_text)

    def _within(self, raw: bytes, value: JSON, path: str | None) -> Collected | None:
        """The same for a value at hand; one that has no JSON text is met at any price."""
        if not raw:
            return self._leaves.collect(value, path)
        return self._collected(value, path) if self._pays(raw, path, is_read=True) else None

    def _sifted(self, items: list[JSON]) -> list[JSON] | None:
        """The items that may hold something; all, where one may tell that another comes from a credential file.

        None where a sample tells that to meet them would cost too much.
        """
        if self._leaves.paths or self._sieve is None:
            return items
        sample = all_spelled(items[:: max(_EACH, len(items) // _SAMPLED_ITEMS)])
        if sum(map(len, sample)) * len(items) < _LONG * len(sample):
            return items
        if len(sample) >= _FEW_ITEMS:
            signed = len(list(self.held(sample))) * len(items) // len(sample)
            if len(items) >= _MANY_ITEMS and not self._records.covers(paying.AGAIN * signed):
                return None
            if 2 * signed > len(items):
                return items  # most are met anyway
        texts = all_spelled(items)
        # A sample does not tell of crowds.
        most = max(_MANY_ITEMS, self._records.looks // paying.AGAIN)
        found = self._sieve.held(texts, self._fuel, self._known, cut=bool(self._values), most=most)
        placed = self._sieve.placed(texts) if len(found) <= most else set()
        held = sorted(found | placed | {number for number, text in enumerate(texts) if not text})
        if len(held) > most:
            return None
        is_told = held and (not all(texts) or names_file(b"\n".join([texts[number] for number in held])))
        return items if is_told else [items[number] for number in held]

    def value(self, value: JSON, path: str | None = None) -> JSON:
        """The value with markers; the very same where nothing was found. Keys keep their order."""
        path = path if path is not None and is_credential_file(path) else None
        if self.setting.profile == "none":
            return value
        text = spelled(value)
        if paying.is_closed(text, path):
            return read(to_text(self._covered(text)))
        own = _digest(text)
        key = own if path is None and text and not self._answers(text) else b""
        passed, seen = key in self._passed, self._seen.get(key)
        is_learned = passed or seen is not None or key in self._refused
        self._records.earn_for(len(text) // 2 if is_learned else len(text))
        if seen is None and (own in self._refused or (passed and self._is_spent)):
            return self._hidden_value(text)
        since = passed and self._since(text)
        named = passed and self._sieve is not None and self._sieve.names_machine(text)
        if passed and not since:
            placed = self._placing.value(text, value, self._lines_read, self._hidden) if named else value
            if placed is not MISSING:
                return placed
        if seen is None:
            seen = self._seen_now(text, value, path, only_known=passed and not named)
        elif seen.spans or seen.texts.cut or self._with_known({text: seen}):
            seen = self._seen_again(text, seen)
        if seen is None:
            return self._hidden_value(text)
        changes = self._applied(seen.spans, seen.texts) if seen.spans else {}
        return rebuilt(value, changes) if changes else value

    def _seen_again(self, text: bytes, seen: Seen) -> Seen | None:
        """A record that was learned from, with what is known since; None where it cannot be looked at again."""
        again, _ = self._paid([text], {text: seen})
        if not again:
            return None
        [spans] = self._again([seen])
        self._records.spend(paying.for_found(spans, paying.count_of(seen.spans)))
        return seen._replace(spans=spans)

    def _seen_now(self, text: bytes, value: JSON, path: str | None, *, only_known: bool) -> Seen | None:
        """A value that is looked at for the first time; None where it cannot be."""
        if not only_known and not any(True for _ in self.held([text], path)):
            return _NOTHING
        texts = self._within(text, value, path)
        if texts is None:
            return None
        if only_known:
            self._records.spend(4 * paying.AGAIN)
            return self._seen_again(text, Seen(texts, {}, is_text=False))
        [spans] = self._paid_look([texts])
        return None if spans is None else Seen(texts, spans, is_text=False)

    def text(self, text: str, path: str | None = None) -> str:
        """A text with markers: plain, or JSON that stays JSON."""
        return self.lines([text], path)[0]

    def lines(self, texts: Sequence[str], path: str | None = None) -> list[str]:
        """JSON records with markers, spelled as they were but for the strings that hold them; other text as text."""
        raws = list(map(to_bytes, texts))
        pairs = zip(raws, self.records(raws, path), texts, strict=True)
        return [text if new is raw else new.decode("utf-8", "surrogatepass") for raw, new, text in pairs]

    def records(self, raws: Sequence[bytes], path: str | None = None) -> list[bytes]:
        """Records, documents or texts, masked with what is known so far; those that hold nothing are the very same."""
        if self.setting.profile == "none":
            return list(raws)
        path = path if path is not None and is_credential_file(path) else None
        self._records.earn_for(sum(map(len, raws)))
        bare = [raw.removesuffix(b"\n") for raw in raws]
        text = b"\n".join(bare) + b"\n" if bare else b""
        if text.count(b"\n") == len(raws):
            pieces = (new for piece in stretches([(text, True)]) for _, new in self._masked(piece, path, apart=True))
            masked = b"".join(pieces).split(b"\n")[:-1]
        else:
            masked = [b"".join([new for _, new in self._masked(raw, path, b"\n" not in raw)]) for raw in bare]
        pairs = zip(raws, bare, masked, strict=True)
        return [raw if new == old else new + raw[len(old) :] for raw, old, new in pairs]

    def masked_lines(self, text: bytes, path: str | None = None, *, apart: bool) -> Iterator[tuple[bytes, bytes]]:
        """A stretch of a file in pieces, each as it is and as it is masked; a record that changed is one by itself."""
        path = path if path is not None and is_credential_file(path) else None
        # Most of what the second pass costs was paid in the first.
        self._records.earn_for(len(text) // 2)
        if self.setting.profile == "none":
            yield text, text
        else:
            yield from self._masked(text, path, apart)

    def _masked(self, text: bytes, path: str | None, apart: bool) -> Iterator[tuple[bytes, bytes]]:
        if paying.is_closed(text, path):
            yield text, self._covered(text, apart)
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
            placed = self._placing.masked(between, self._lines_read, self._hidden)
        for number, span in enumerate(spans):
            yield between[number], placed[number]
            yield text[span[0] : span[1]], changed[span]
        yield between[-1], placed[-1]

    def _masked_some(self, raws: list[bytes], path: str | None) -> list[bytes]:
        """Records, masked. What was read before is looked at again only for what is known since."""
        seen = {raw: each for raw in raws if path is None and (each := self._seen.get(_digest(raw)))}
        seen = {raw: each for raw, each in seen.items() if not self._answers(raw)}
        # What was found in a record is known in it.
        touched = self._with_known({raw: each for raw, each in seen.items() if not each.texts.cut and not each.spans})
        again = [raw for raw, each in seen.items() if raw in touched or each.texts.cut or each.spans]
        again, hidden = self._paid(again, seen)
        spans = dict(zip(again, self._again([seen[raw] for raw in again]), strict=True))
        self._records.spend(
            sum(paying.for_found(found, paying.count_of(seen[raw].spans)) for raw, found in spans.items())
        )
        fresh = [raw for raw in dict.fromkeys(raws) if raw not in seen and _digest(raw) not in self._refused]
        if self._settled:  # it is because of something known that they are read
            self._records.spend(2 * paying.AGAIN * len(fresh))
        looked = dict(zip(fresh, self._looked(fresh, path), strict=True))
        self._records.spend(sum(paying.for_nested(each.texts) for each in looked.values() if each and each.spans))
        read = {raw: each for raw in raws if raw not in hidden and (each := seen.get(raw) or looked.get(raw))}
        return self._as_read(raws, {raw: (each, spans.get(raw, each.spans)) for raw, each in read.items()})

    def _as_read(self, raws: list[bytes], read: Mapping[bytes, tuple[Seen, Spans]]) -> list[bytes]:
        """Records with markers; those that could not be read are hidden, all at once."""
        hidden = iter(self._all_hidden([raw for raw in raws if raw not in read]))
        return [self._spliced(raw, *read[raw]) if raw in read else next(hidden) for raw in raws]

    def _all_hidden(self, raws: list[bytes]) -> list[bytes]:
        """Lines, or one text, hidden all at once."""
        if len(raws) < 2:
            return list(map(self._hidden, raws))
        ends = [raw[-1:] for raw in raws]
        lines = self._hidden(b"\n".join([raw.removesuffix(b"\n") for raw in raws]) + b"\n").split(b"\n")[:-1]
        return [line + end if end == b"\n" else line for line, end in zip(lines, ends, strict=True)]

    def _spliced(self, raw: bytes, seen: Seen, spans: Spans) -> bytes:
        changes = self._applied(spans, seen.texts) if spans else {}
        if not changes:
            return raw
        text = to_text(raw)
        masked = to_raw(changes.get(text, text) if seen.is_text else splice(text, changes))
        # A crowd that is hidden may reach over the end of a line that is no JSON.
        return masked + b"\n" if raw.endswith(b"\n") and not masked.endswith(b"\n") else masked

    def _lines_read(self, raws: list[bytes]) -> list[bytes]:
        """Lines that must be read to tell what names the machine."""
        self._records.spend(paying.AGAIN * len(raws))
        looked = dict(zip(raws, self._looked(raws, None), strict=True))
        return self._as_read(raws, {raw: (seen, seen.spans) for raw, seen in looked.items() if seen})

    def _hidden(self, text: bytes) -> bytes:
        """Lines with every text hidden that may be a secret, without being looked at."""
        self.masked[CROWDED] += text.count(b"\n") or 1
        self._records.owe(paying.for_hiding(text))
        return self._hide(text)

    def _covered(self, text: bytes, apart: bool = False) -> bytes:
        self.masked[CROWDED] += 1
        return covered(text, self._crowd_marker, apart)

    def unread(self) -> str:
        """The marker in the place of a record that is too long to be looked at."""
        self.is_clean = False
        self.masked[CROWDED] += 1
        return self._crowd_marker.decode()

    def _hidden_value(self, text: bytes) -> JSON:
        value = read(to_text(self._hidden(text)))
        return {} if value is MISSING else value

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
        return Placing(self._rules, self._mark, self._some_of_many)

    def _some_of_many(self, count: int) -> bytes:
        if count:
            self.masked[CROWDED] += count
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
        """What is found in the texts of a value, each with its text; nothing is masked.

        A value that would cost too much to look at is a crowd, all of it.
        """
        text = spelled(value)
        own = _digest(text)
        key = own if text and not self._answers(text) else b""
        passed, seen = key in self._passed, self._seen.get(key)
        is_refused = own in self._refused
        self._records.earn_for(len(text) // 2 if passed or seen or is_refused else len(text))
        now = seen
        if seen is not None:
            now = self._seen_again(text, seen)
        elif not is_refused and not (passed and self._is_spent):
            named = passed and self._sieve is not None and self._sieve.names_machine(text)
            if passed and not named and not self._since(text):
                return []
            now = self._seen_now(text, value, None, only_known=passed and not named)
        if now is None:
            whole = to_text(text)
            return [(whole, Finding(0, len(whole), CROWDED, "secret", 0.3))]
        return [(text, finding) for text, found in now.spans.items() for finding in found]


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()
