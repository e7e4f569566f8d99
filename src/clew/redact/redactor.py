"""Redaction over structures: sessions as unified JSON, records as an agent wrote them, JSON within strings.

A value that was found once is masked wherever it stands. So a session is best gone through twice: `learn` every part
of it, then ask for each part again. Whoever cannot (a store that is appended to) gets what was learned so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from threading import Lock

from clew.io.records import MAX_RECORD_BYTES
from clew.model.json import JSON
from clew.redact.batching import all_lines, batches, line_around, stretches
from clew.redact.credential_files import is_credential_file
from clew.redact.findings import Finding, Spans
from clew.redact.flat import to_bytes
from clew.redact.json_text import MISSING, literals, parsed, spelled, splice, to_raw, to_text
from clew.redact.json_walk import Collected
from clew.redact.looking import Looker, Seen, Setting
from clew.redact.matcher import TOO_MANY
from clew.redact.placing import Placing
from clew.redact.prefilter import Sieve, Span, call_places
from clew.redact.rebuilding import kept_texts, masked_whole, rebuilt, texts_of

__all__ = ["Redactor", "Setting"]
# So much of what was read is kept until it is masked.
_MOST_SEEN = 24 << 20
_MOST_TOLD = 100_000
MOST_BYTES = max(64 << 20, MAX_RECORD_BYTES)
"""A JSON record of more bytes is masked whole. Whoever raises CLEW_MAX_LINE to read longer records has them scanned."""
Read = tuple[Collected, bool]
"""The texts of a record, and whether it is one, no JSON."""
_NOTHING = Seen(Collected([], [], [], [], [], [], []), {}, is_text=False)


class Redactor(Looker):
    """Masks what its setting forbids, in the parts of one session; counts the values it masked, by rule."""

    def __init__(self, setting: Setting, masked: Counter[str] | None = None) -> None:
        super().__init__(setting, masked)
        self._seen: dict[bytes, Seen] = {}
        self._seen_size = 0
        self._told: dict[bytes, list[Span]] = {}
        """Where lines must be read, in stretches that were gone through once."""
        self._room = _MOST_TOLD
        self._passed: set[bytes] = set()
        """Records that showed no sign."""
        self.has_origin = False
        """What was learned may hold the packed original of a converted session."""
        self.is_clean = True
        """Nothing was found in all that was learned."""
        self._guard = Lock()

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Go through values without masking them: what is found in one is then known in all. Returns how many."""
        path = path if path is not None and is_credential_file(path) else None
        count = 0
        for batch in batches(((spelled(value), value) for value in values), lambda record: len(record[0])):
            count += len(batch)
            texts = [text for text, _ in batch]
            held = set(self._held(texts, path))
            self._learn_values([batch[number] for number in sorted(held)], path)
            self._note_places(texts)
            if path is None and len(self._passed) < _MOST_TOLD:
                self._passed.update(_digest(text) for number, text in enumerate(texts) if number not in held)
        self.settle()
        return count

    def _learn_values(self, batch: list[tuple[bytes, JSON]], path: str | None) -> None:
        read = [self._within(text, value, path) for text, value in batch]
        self._learn_some([text for text, _ in batch], read, path)

    def learn_lines(self, text: bytes, path: str | None = None, *, apart: bool) -> None:
        """The same for a part of a file: lines that are records each, or, not `apart`, one text. Then `settle`."""
        path = path if path is not None and is_credential_file(path) else None
        for spans in self._spans_in(text, path, apart):
            raws = [text[start:end] for start, end in spans]
            self._learn_some(raws, [self._read(raw, path) for raw in raws], path)
        self._note_places([text])

    def _learn_some(self, raws: list[bytes], read: list[Read | None], path: str | None) -> None:
        for raw, seen in zip(raws, self._looked_at(read), strict=True):
            if seen is None:
                self.is_clean = False
            else:
                self._keep(raw, seen, path)

    def _keep(self, raw: bytes, seen: Seen, path: str | None) -> None:
        """Note what was found in a record, which is then not read again."""
        self._note(seen.spans)
        if path is None and self._seen_size < _MOST_SEEN:
            self._seen_size += len(raw)
            self._seen[_digest(raw)] = seen

    def _looked_at(self, read: list[Read | None]) -> Iterator[Seen | None]:
        """Records that are searched together; None for those that must be masked whole."""
        looked = iter(self._look([texts for texts, _ in filter(None, read)]))
        for each in read:
            yield Seen(each[0], next(looked), each[1]) if each else None

    def _note(self, spans: Spans) -> None:
        if spans:
            self.is_clean = False
            self._remember(spans)

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
        held = sieve.held(texts, self._known, cut=bool(self._values))
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
        if spans is not None:
            again = sieve.lines_again(text, spans, self._known, cut=bool(self._values)) if apart or not spans else spans
            return again if apart or not again else [(0, len(text))]
        if apart:
            spans = sieve.lines(text, self._known, cut=bool(self._values))
        else:
            is_held = sieve.held([text], self._known, cut=bool(self._values))
            spans = [(0, len(text))] if is_held else []
        if len(spans) <= self._room:
            self._room -= len(spans) + 1
            self._told[key] = spans
        return spans

    def _read(self, raw: bytes, path: str | None) -> Read | None:
        """The texts of a record, and whether it is one; None where it must be masked whole."""
        value = parsed(raw)
        is_text = type(value) is str
        if len(raw) > MOST_BYTES and not is_text:
            return None
        self._leaves.plain = value if is_text else ""
        texts = self._leaves.collect(value, path)
        return None if texts is None else (texts, is_text)

    def _within(self, raw: bytes, value: JSON, path: str | None) -> Read | None:
        """The same for a value at hand."""
        texts = self._leaves.collect(value, path) if len(raw) <= MOST_BYTES else None
        return None if texts is None else (texts, False)

    def value(self, value: JSON, path: str | None = None) -> JSON:
        """The value with markers; the very same where nothing was found. Keys keep their order."""
        path = path if path is not None and is_credential_file(path) else None
        if self.setting.profile == "none":
            return value
        text = spelled(value)
        key = _digest(text) if path is None and text and not self._answers(text) else b""
        passed, seen = key in self._passed, self._seen.get(key)
        since = passed and self._since(text)
        named = passed and self._sieve is not None and self._sieve.names_machine(text)
        if passed and not since:
            placed = self._placing.value(text, value, self._lines_read) if named else value
            if placed is not MISSING:
                return placed
        if seen is None:
            seen = self._seen_now(text, value, path, only_known=passed and not named)
        elif seen.spans or seen.texts.cut or self._with_known({text: seen}):
            seen = self._seen_again(seen)
        if seen is None:
            self.masked[TOO_MANY] += 1
            return self._masked_whole(value)
        spans = self._all_spans(text, value, seen)
        return rebuilt(value, self._applied(spans, seen.texts)) if spans else value

    def _all_spans(self, text: bytes, value: JSON, seen: Seen) -> Spans:
        """What was found in a value, and the known values where rules do not look."""
        if text and not self._holds_known(text):
            return seen.spans
        return self._with_unsearched(seen.spans, seen.texts, texts_of(value))

    def _seen_again(self, seen: Seen) -> Seen:
        """A record that was learned from, with what is known since."""
        [spans] = self._again([seen])
        return seen._replace(spans=spans)

    def _seen_now(self, text: bytes, value: JSON, path: str | None, *, only_known: bool) -> Seen | None:
        """A value that is looked at for the first time; None where it must be masked whole."""
        if not only_known and not any(True for _ in self.held([text], path)):
            return _NOTHING
        read = self._within(text, value, path)
        if read is None:
            return None
        if only_known:
            return self._seen_again(Seen(read[0], {}, is_text=False))
        [seen] = self._looked_at([read])
        return seen

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
        if self.setting.profile == "none":
            yield text, text
        else:
            yield from self._masked(text, path, apart)

    def _masked(self, text: bytes, path: str | None, apart: bool) -> Iterator[tuple[bytes, bytes]]:
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
            placed = self._placing.masked(between, self._lines_read)
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
        spans = dict(zip(again, self._again([seen[raw] for raw in again]), strict=True))
        fresh = [raw for raw in dict.fromkeys(raws) if raw not in seen]
        looked = dict(zip(fresh, self._looked_at([self._read(raw, path) for raw in fresh]), strict=True))
        return [
            (self._spliced(raw, each, spans.get(raw, each.spans)) if raw in spans or raw in looked else raw)
            if (each := seen.get(raw) or looked[raw])
            else self._masked_record(raw)
            for raw in raws
        ]

    def _masked_record(self, raw: bytes) -> bytes:
        """A record that has too many strings, or bytes, to be looked at."""
        self.masked[TOO_MANY] += 1
        masked = spelled(self._masked_whole(parsed(raw)))
        return masked + b"\n" if raw.endswith(b"\n") else masked

    def _masked_whole(self, value: JSON) -> JSON:
        """A value that cannot be looked at, without its texts. Its keys and ids are searched, and stay if they can."""
        kept = sorted(kept_texts(value))
        found = self._rules.findings(kept, self._kinds, known=self._known)
        return masked_whole(value, self._whole_marker, {text for at, text in enumerate(kept) if at not in found})

    def _spliced(self, raw: bytes, seen: Seen, spans: Spans) -> bytes:
        text = to_text(raw)
        if not seen.is_text and self._holds_known(raw):
            spans = self._with_unsearched(spans, seen.texts, literals(text))
        if not spans:
            return raw
        changes = self._applied(spans, seen.texts)
        masked = to_raw(changes.get(text, text) if seen.is_text else splice(text, changes))
        # What is masked may reach over the end of a line that is no JSON.
        return masked + b"\n" if raw.endswith(b"\n") and not masked.endswith(b"\n") else masked

    def _lines_read(self, raws: list[bytes]) -> list[bytes]:
        """Lines that must be read to tell what names the machine."""
        looked = zip(raws, self._looked_at([self._read(raw, None) for raw in raws]), strict=True)
        return [self._spliced(raw, seen, seen.spans) if seen else self._masked_record(raw) for raw, seen in looked]

    def unread(self) -> str:
        """The marker in the place of a record that is too long to be scanned."""
        self.is_clean = False
        self.masked[TOO_MANY] += 1
        return self._whole_marker

    def once(self, value: JSON) -> JSON:
        """A value that stands alone: learned from, then masked."""
        self.learn([value])
        return self.value(value)

    def apart(self, texts: Sequence[str]) -> list[str]:
        """Texts that do not belong together, such as names: each is searched by itself, and none is the context of
        another. A value that is found in one is masked in all."""
        self.learn(texts)
        return [str(self.value(text)) for text in texts]

    def stream(self, value: JSON) -> JSON:
        """A record that is written down now: masked with what is known so far. Any thread may ask."""
        with self._guard:
            return self.once(value)

    @cached_property
    def _placing(self) -> Placing:
        return Placing(self._rules, self._mark)

    @cached_property
    def _whole_marker(self) -> str:
        return self.setting.mark("", TOO_MANY)

    def stamp(self) -> dict[str, JSON]:
        """What a document says of its redaction."""
        return {"profile": self.setting.profile, "rules": self.version, "masked": self.masked.total()}

    def findings(self, value: JSON) -> list[tuple[str, Finding]]:
        """What is found in the texts of a value, each with its text; nothing is masked.

        A value that would be masked whole is one finding.
        """
        text = spelled(value)
        key = _digest(text) if text and not self._answers(text) else b""
        passed, seen = key in self._passed, self._seen.get(key)
        now: Seen | None
        if seen is not None:
            now = self._seen_again(seen)
        else:
            named = passed and self._sieve is not None and self._sieve.names_machine(text)
            if passed and not named and not self._since(text):
                return []
            now = self._seen_now(text, value, None, only_known=passed and not named)
        if now is None:
            whole = to_text(text)
            return [(whole, Finding(0, len(whole), TOO_MANY, "secret", 0.3))]
        spans = self._all_spans(text, value, now)
        return [(text, finding) for text, found in spans.items() for finding in found]


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()
