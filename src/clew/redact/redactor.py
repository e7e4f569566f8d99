"""Masks JSON records, JSON values and texts of one session.

A value that was found once is masked wherever it occurs. So a session is best read twice: `learn` every part of it,
then mask each part. A store that is appended to masks each record with what was learned so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain, islice
from threading import Lock
from typing import NamedTuple

from clew.io.batches import batches_by_size
from clew.io.records import MAX_RECORD_BYTES
from clew.model.json import JSON
from clew.redact.credential_files import is_credential_file
from clew.redact.encodings import to_bytes
from clew.redact.findings import Finding, Spans, kinds_of
from clew.redact.json_text import json_bytes, literals, parsed, splice, to_raw, to_text
from clew.redact.json_values import mask_all_strings, replace_strings, strings_of, strings_to_keep
from clew.redact.json_walk import CollectedStrings, StringCollector, is_image
from clew.redact.known_values import MIN_VALUE_CHARS, KnownValues
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.masks import PLAIN, TAGGED_MARKER
from clew.redact.matcher import TOO_MANY_CANDIDATES
from clew.redact.packed import PACKED
from clew.redact.prefilter import (
    Prefilter,
    Span,
    all_lines,
    calls_in,
    find_truncatable,
    line_around,
    prefilter_for,
)
from clew.redact.scanner import Rules, apply, default_rules

MAX_SCANNED_BYTES = max(64 << 20, MAX_RECORD_BYTES)
"""A JSON record of more bytes is masked whole. Raise CLEW_MAX_LINE to have longer records scanned."""
# Limits of what is kept between learning and masking: bytes of records, and lines to read.
_MAX_CACHED_BYTES = 24 << 20
_MAX_CACHED_LINES = 100_000
_LEARNED_KINDS = frozenset({"secret", "pii"})
KNOWN = "known_value"
"""The rule that finds values that another rule found before."""
_NOT_LEARNED = frozenset({KNOWN, TOO_MANY_CANDIDATES, PACKED})
_BOUNDARY_CONFIDENCE = 0.8
"""The least confidence of a finding across two strings, since joining them may have made it."""
CHUNK_BYTES = 1 << 18
_PUNCTUATION = "\"'`()[]{}<>,;:.!?"
_WORD_SEPARATOR = lazy_compile(r"""["'`()\[\]{}<>,;:=&|]+""")
_MAX_WORD_CHARS = 1024
ScannedText = tuple[str, str | None]
"""A text that is scanned, and the credential file that it comes from."""


class MaskSettings(NamedTuple):
    """What is masked, and how."""

    profile: str
    mark: Callable[[str, str], str]
    """Makes the marker of a value, given the value and the id of the rule that found it."""
    rules: Rules | None = None


class ScannedRecord(NamedTuple):
    """A record with its strings, and what the rules find in them."""

    strings: CollectedStrings
    spans: Spans
    is_json: bool


class Redactor:
    """Masks what its settings forbid in the parts of one session; counts the masked values, by rule."""

    def __init__(self, settings: MaskSettings, masked: Counter[str] | None = None) -> None:
        self.settings = settings
        self.masked: Counter[str] = Counter() if masked is None else masked
        self.has_origin = False
        """What was learned may hold the packed original of a converted session."""
        self.is_clean = True
        """Nothing was found in all that was learned."""
        self._collector = StringCollector(settings.rules is not None and settings.rules.has_user_rules)
        self._values: dict[str, str] = {}
        self._known = KnownValues()
        self._indexed_values = 0
        self._tags: dict[str, str] = {}
        """The rules of values of which only the tags of their markers are known, by tag."""
        self._marked: set[str] = set()
        self._scanned: dict[bytes, ScannedRecord] = {}
        self._cached_bytes = 0
        self._lines: dict[bytes, list[Span]] = {}
        """The lines that must be read for rules, by the digest of the text."""
        self._cached_lines = 0
        self._lock = Lock()

    @property
    def values(self) -> Mapping[str, str]:
        """Every value that was learned, with the rule that found it first."""
        return self._values

    @property
    def version(self) -> str:
        """The version of the rules."""
        return self._rules.version

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return kinds_of(self.settings.profile)

    @cached_property
    def _rules(self) -> Rules:
        return self.settings.rules or default_rules()

    @cached_property
    def _prefilter(self) -> Prefilter | None:
        return prefilter_for(self._rules, self._kinds)

    @cached_property
    def _unscanned_marker(self) -> str:
        return self.settings.mark("", TOO_MANY_CANDIDATES)

    # --- Learning

    def learn(self, values: Iterable[JSON], path: str | None = None) -> int:
        """Learn the secrets of some values without masking them; return how many values there were."""
        path = _credential_file(path)
        count = 0
        pairs = ((json_bytes(value), value) for value in values)
        for batch in batches_by_size(pairs, lambda pair: len(pair[0]), CHUNK_BYTES):
            count += len(batch)
            if self._tags:
                self._learn_tagged_words([value for _, value in batch])
            records = {}
            text, start = b"".join(raw + b"\n" for raw, _ in batch), 0
            for raw, value in batch:
                records[start] = raw, value
                start += len(raw) + 1
            for spans in self._lines_to_read(text, path, one_record_per_line=True):
                self._learn_values([records[start] for start, _ in spans], path)
            # A value that has no JSON text is always read.
            self._learn_values([record for record in batch if not record[0]], path)
        self.index_learned_values()
        return count

    def learn_markers(self, masked: str) -> None:
        """Learn the tags in masked text: words with such a tag are then masked, though the values are not stored.

        Without a key, markers have no tags, and nothing is learned.
        """
        self._tags.update((tag, rule) for rule, tag in TAGGED_MARKER.findall(masked))

    def _learn_tagged_words(self, value: JSON) -> None:
        """Learn the words of a value whose tags are known. A value with spaces is not recognised by its words."""
        words = {word for text in strings_of(value) for run in text.split() for word in _words_in(run)}
        for word in words - self._values.keys():
            tagged = TAGGED_MARKER.fullmatch(self.settings.mark(word, "word"))
            if tagged is not None and tagged[2] in self._tags:
                self._values[word] = self._tags[tagged[2]]
                self.is_clean = False

    def _learn_values(self, records: list[tuple[bytes, JSON]], path: str | None) -> None:
        read = [self._collect(raw, value, path) for raw, value in records]
        self._learn_records([raw for raw, _ in records], self._scan(read), path)

    def learn_lines(self, text: bytes, path: str | None = None, *, one_record_per_line: bool) -> None:
        """Learn from a part of a file: lines that are records each, or one text. Call `index_learned_values` then."""
        path = _credential_file(path)
        for spans in self._lines_to_read(text, path, one_record_per_line):
            raws = [text[start:end] for start, end in spans]
            self._learn_records(raws, self._scan([self._read(raw, path) for raw in raws]), path)

    def _learn_records(self, raws: list[bytes], scanned: Iterable[ScannedRecord | None], path: str | None) -> None:
        for raw, record in zip(raws, scanned, strict=True):
            if record is None:
                self.is_clean = False
                continue
            if record.spans:
                self.is_clean = False
                self._learn_spans(record.spans)
            if path is None and self._cached_bytes < _MAX_CACHED_BYTES:
                self._cached_bytes += len(raw)
                self._scanned[_digest(raw)] = record

    def _learn_spans(self, spans: Spans) -> None:
        for text, found in spans.items():
            for finding in found:
                value = text[finding.start : finding.end]
                if (
                    finding.kind in _LEARNED_KINDS
                    and finding.rule not in _NOT_LEARNED
                    and len(value) >= MIN_VALUE_CHARS
                ):
                    self._values.setdefault(value, finding.rule)

    def index_learned_values(self) -> None:
        """Search for everything that was learned from now on."""
        self._known.add(islice(self._values, self._indexed_values, None))
        self._indexed_values = len(self._values)

    # --- Which records must be read

    def _lines_to_read(self, text: bytes, path: str | None, one_record_per_line: bool) -> Iterator[list[Span]]:
        """Yield the records of a text that must be read; then those that answer calls which were met in them."""
        if path is not None or self._prefilter is None:
            yield all_lines(text) if one_record_per_line else [(0, len(text))]
            return
        if not one_record_per_line:
            must_read = (
                not text or not self._prefilter.count_and_should_filter(len(text)) or self._prefilter.must_read(text)
            )
            if must_read or any(True for _ in self._new_places(text)):
                yield [(0, len(text))]
            return
        places = [*self._lines_with_candidates(self._prefilter, text)]
        spans = sorted({*places, *(line_around(text, place) for place in self._new_places(text))})
        met: set[Span] = set()
        while spans:
            yield spans
            met.update(spans)
            answers = calls_in(text, self._collector.paths) if self._collector.paths else ()
            spans = sorted({line_around(text, place) for place in answers} - met)

    def _lines_with_candidates(self, prefilter: Prefilter, text: bytes) -> list[Span]:
        """Return the lines that must be read for rules. Masking asks for them again after learning."""
        key = _digest(text)
        spans = self._lines.get(key)
        if spans is None:
            spans = prefilter.lines_to_read(text) if prefilter.count_and_should_filter(len(text)) else all_lines(text)
            if self._cached_lines < _MAX_CACHED_LINES:
                self._cached_lines += len(spans) + 1
                self._lines[key] = spans
        return spans

    def _new_places(self, text: bytes) -> Iterator[int]:
        """Yield offsets in JSON text for which a record must be read because of what was learned."""
        yield from (start for start, _ in self._known.spans(text))
        if self._known:
            yield from find_truncatable(text)
        if self._collector.paths:
            yield from calls_in(text, self._collector.paths)

    def _answers_call(self, raw: bytes) -> bool:
        """Tell whether a record names a call that was about a credential file."""
        return bool(self._collector.paths) and any(True for _ in calls_in(raw, self._collector.paths))

    # --- Scanning

    def _read(self, raw: bytes, path: str | None) -> tuple[CollectedStrings, bool] | None:
        """Parse a record and collect its strings; return None if it must be masked whole."""
        value = parsed(raw)
        if type(value) is str:
            strings = self._collector.collect(value, path, is_json=False)
            return None if strings is None else (strings, False)
        return self._collect(raw, value, path)

    def _collect(self, raw: bytes, value: JSON, path: str | None) -> tuple[CollectedStrings, bool] | None:
        strings = self._collector.collect(value, path) if len(raw) <= MAX_SCANNED_BYTES else None
        return None if strings is None else (strings, True)

    def _scan(self, records: list[tuple[CollectedStrings, bool] | None]) -> Iterator[ScannedRecord | None]:
        """Scan the strings of some records together; yield None for those that must be masked whole."""
        texts = list(dict.fromkeys(text for record in records if record for text in _scanned_texts(record[0])))
        paths = {number: path for number, (_, path) in enumerate(texts) if path is not None}
        by_number = self._rules.findings([text for text, _ in texts], self._kinds, paths=paths)
        found = {texts[number]: findings for number, findings in by_number.items()}
        for record in records:
            if record is None:
                yield None
                continue
            strings, is_json = record
            spans = _spans_by_string(strings, found)
            for text in strings.packed:
                _add(spans, text, [Finding(0, len(text), PACKED, "secret", 1.0)])
            if strings.short:
                short = list(dict.fromkeys(strings.short))
                for number, findings in self._rules.user_findings(short, self._kinds).items():
                    _add(spans, short[number], findings)
            yield ScannedRecord(strings, spans, is_json)

    def _with_known_values(self, raw: bytes, record: ScannedRecord, every: Iterable[str]) -> Spans:
        """Return the findings of a record, and the known values in it, also in strings that rules do not scan.

        `raw` is its JSON text, if it has any; `every` yields all its strings, keys and numbers included.
        """
        strings = record.strings
        is_joined = any(group.is_boundary for group in strings.groups)
        if not self._known or not (is_joined or strings.truncated or not raw or self._known.spans(raw)):
            return record.spans
        texts: dict[ScannedText, None] = dict.fromkeys((text, None) for text, _ in _scanned_texts(strings))
        scanned = {string.text for string in strings.strings}.union(record.spans, strings.nested)
        others = {*every, *chain.from_iterable(map(literals, strings.nested))} if record.is_json else set()
        unscanned = [text for text in others if text not in scanned and not is_image(text)]
        keys = [*(text for text, _ in texts), *unscanned]
        found = {keys[number]: own for number, own in self._rules.known_in(keys, self._known).items()}
        spans = _spans_by_string(
            strings, {(text, path): found[text] for text, path in _scanned_texts(strings) if text in found}
        )
        for text, findings in [*record.spans.items(), *((text, found[text]) for text in unscanned if text in found)]:
            _add(spans, text, findings)
        for text in strings.truncated:
            if cut := self._known.find_truncated(text):
                _add(spans, text, [Finding(cut.start, cut.end, self._values[cut.value], "secret", 1.0)])
        return spans

    # --- Masking

    def value(self, value: JSON, path: str | None = None) -> JSON:
        """Mask a value; return the same object if nothing was found. Keys keep their order."""
        if self.settings.profile == "none":
            return value
        raw = json_bytes(value)
        record = self._scan_value(raw, value, _credential_file(path))
        if record is None:
            self.masked[TOO_MANY_CANDIDATES] += 1
            return self._mask_all_strings(value)
        spans = self._with_known_values(raw, record, strings_of(value))
        return replace_strings(value, self._replacements(spans, record.strings)) if spans else value

    def findings(self, value: JSON) -> list[tuple[str, Finding]]:
        """Return the findings in the strings of a value, each with its string; nothing is masked.

        A value that would be masked whole is one finding.
        """
        raw = json_bytes(value)
        record = self._scan_value(raw, value, None)
        if record is None:
            whole = to_text(raw)
            return [(whole, Finding(0, len(whole), TOO_MANY_CANDIDATES, "secret", 0.3))]
        spans = self._with_known_values(raw, record, strings_of(value))
        return [(text, finding) for text, found in spans.items() for finding in found]

    def _scan_value(self, raw: bytes, value: JSON, path: str | None) -> ScannedRecord | None:
        """Scan a value, unless it was learned from before; return None if it must be masked whole."""
        if path is None and raw and not self._answers_call(raw) and (cached := self._scanned.get(_digest(raw))):
            return cached
        for _ in self._lines_to_read(raw, path, one_record_per_line=False):
            [record] = self._scan([self._collect(raw, value, path)])
            return record
        return ScannedRecord(CollectedStrings([], [], [], [], [], []), {}, is_json=True)

    def text(self, text: str, path: str | None = None) -> str:
        """Mask a text: plain, or JSON that stays JSON."""
        return self.lines([text], path)[0]

    def lines(self, texts: Sequence[str], path: str | None = None) -> list[str]:
        """Mask JSON records and plain texts. Of JSON text, only the strings with findings change."""
        raws = list(map(to_bytes, texts))
        pairs = zip(raws, self.records(raws, path), texts, strict=True)
        return [text if new is raw else new.decode("utf-8", "surrogatepass") for raw, new, text in pairs]

    def records(self, raws: Sequence[bytes], path: str | None = None) -> list[bytes]:
        """Mask records, documents or texts; those without a finding are returned as the same objects."""
        bare = [raw.removesuffix(b"\n") for raw in raws]
        if any(b"\n" in raw for raw in bare):
            masked = [
                b"".join(new for _, new in self.masked_lines(raw, path, one_record_per_line=b"\n" not in raw))
                for raw in bare
            ]
        else:
            text = b"".join(raw + b"\n" for raw in bare)
            parts = (self.masked_lines(part, path, one_record_per_line=True) for part in chunk_lines(text))
            masked = b"".join(new for part in parts for _, new in part).split(b"\n")[:-1]
        pairs = zip(raws, bare, masked, strict=True)
        return [raw if new == old else new + raw[len(old) :] for raw, old, new in pairs]

    def masked_lines(
        self, text: bytes, path: str | None = None, *, one_record_per_line: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield a part of a file in pieces, each as it is and masked; a record that changed is a piece by itself."""
        if self.settings.profile == "none":
            yield text, text
            return
        path = _credential_file(path)
        changed: dict[Span, bytes] = {}
        for spans in self._lines_to_read(text, path, one_record_per_line):
            raws = [text[start:end] for start, end in spans]
            changed |= zip(spans, self._mask_raw_records(raws, path), strict=True)
        last = 0
        for start, end in sorted(changed):
            yield text[last:start], text[last:start]
            yield text[start:end], changed[start, end]
            last = end
        yield text[last:], text[last:]

    def _mask_raw_records(self, raws: list[bytes], path: str | None) -> list[bytes]:
        """Mask records. Those that were learned from are not scanned again, but for known values."""
        scanned: dict[bytes, ScannedRecord | None] = {}
        for raw in raws if path is None else ():
            if (cached := self._scanned.get(_digest(raw))) and not self._answers_call(raw):
                scanned[raw] = cached
        fresh = [raw for raw in dict.fromkeys(raws) if raw not in scanned]
        scanned |= zip(fresh, self._scan([self._read(raw, path) for raw in fresh]), strict=True)
        return [self._mask_raw_record(raw, scanned[raw]) for raw in raws]

    def _mask_raw_record(self, raw: bytes, record: ScannedRecord | None) -> bytes:
        if record is None:
            self.masked[TOO_MANY_CANDIDATES] += 1
            masked = json_bytes(self._mask_all_strings(parsed(raw)))
            return masked + b"\n" if raw.endswith(b"\n") else masked
        text = to_text(raw)
        spans = self._with_known_values(raw, record, literals(text))
        if not spans:
            return raw
        changes = self._replacements(spans, record.strings)
        masked = to_raw(splice(text, changes) if record.is_json else changes.get(text, text))
        # A finding may reach over the end of a line that is not JSON.
        return masked + b"\n" if raw.endswith(b"\n") and not masked.endswith(b"\n") else masked

    def _mask_all_strings(self, value: JSON) -> JSON:
        """Mask all strings of a value that cannot be scanned. Its keys and ids are scanned, and stay if clean."""
        kept = sorted(strings_to_keep(value))
        found = self._rules.findings(kept, self._kinds, known=self._known)
        clean = {text for number, text in enumerate(kept) if number not in found}
        return mask_all_strings(value, self._unscanned_marker, clean)

    def _replacements(self, spans: Spans, strings: CollectedStrings) -> dict[str, str]:
        """Return the masked text of each string with findings, and of each nested JSON text with such strings."""
        changes = {text: apply(text, found, self._mark) for text, found in spans.items()}
        for text in reversed(strings.nested):
            if (spliced := splice(text, changes)) != text:
                changes[text] = spliced
        return changes

    def learn_and_mask(self, value: JSON) -> JSON:
        """Mask a value that belongs to no session: learn from it, then mask it."""
        self.learn([value])
        return self.value(value)

    def mask_each(self, texts: Sequence[str]) -> list[str]:
        """Mask texts that do not belong together, such as names: none is the context of another.

        A value that is found in one is masked in all.
        """
        self.learn(texts)
        return [str(self.value(text)) for text in texts]

    def mask_lines(self, lines: list[str], path: str) -> list[str]:
        """Mask the lines of a file as one value: a secret may begin on one line and end on the next."""
        self.learn([lines], path)
        masked = self.value(lines, path)
        # A long credential file becomes a single marker.
        return masked if isinstance(masked, list) else [PLAIN] * len(lines)

    def mask_for_append(self, value: JSON) -> JSON:
        """Mask a record that is written now, with what was learned so far. Thread-safe."""
        with self._lock:
            return self.learn_and_mask(value)

    def mask_unscanned(self) -> str:
        """Return the marker for a record that is too long to be scanned, and count it."""
        self.is_clean = False
        self.masked[TOO_MANY_CANDIDATES] += 1
        return self._unscanned_marker

    def marker(self, value: str, rule: str) -> str:
        """Return the marker of a value. A learned value keeps the rule that found it first."""
        return self.settings.mark(value, self._values.get(value, rule))

    def _mark(self, value: str, rule: str) -> str:
        if value not in self._marked:
            self._marked.add(value)
            self.masked[self._values.get(value, rule)] += 1
        return self.marker(value, rule)

    def stamp(self) -> dict[str, JSON]:
        """Return what a document states about its redaction."""
        return {"profile": self.settings.profile, "rules": self.version, "masked": self.masked.total()}


def chunk_lines(text: bytes) -> Iterator[bytes]:
    """Split a text into chunks of whole lines, of about `CHUNK_BYTES`."""
    start, length = 0, len(text)
    while start < length:
        stop = text.find(b"\n", start + CHUNK_BYTES - 1) + 1 or length
        yield text[start:stop]
        start = stop


def _words_in(run: str) -> Iterator[str]:
    """Yield the parts of a text without spaces that may be a value: without punctuation around it, or behind `=`."""
    bare = run.strip(_PUNCTUATION)
    for word in (run, bare, *_WORD_SEPARATOR.split(bare), bare.partition("=")[2], bare.partition(":")[2]):
        if MIN_VALUE_CHARS <= len(word) <= _MAX_WORD_CHARS:
            yield word


def _credential_file(path: str | None) -> str | None:
    """Return the path of a credential file; None for any other."""
    return path if path is not None and is_credential_file(path) else None


def _scanned_texts(strings: CollectedStrings) -> Iterator[ScannedText]:
    """Yield the texts to scan for the strings of a value."""
    for text, before, behind, path in strings.strings:
        yield before + text + behind, path
    for group in strings.groups:
        yield group.joined(), group.path


def _spans_by_string(strings: CollectedStrings, found: Mapping[ScannedText, list[Finding]]) -> Spans:
    """Turn findings in scanned texts into findings in the strings of a value."""
    spans: Spans = {}
    for text, before, behind, path in strings.strings:
        own = found.get((before + text + behind, path))
        if own is not None:
            _add(spans, text, _within(own, len(before), len(text)))
    for group in strings.groups:
        own = found.get((group.joined(), group.path))
        parts: Spans = {}
        for text, finding in group.split_by_string(own, _BOUNDARY_CONFIDENCE) if own else ():
            parts.setdefault(text, []).append(finding)
        for text, findings in parts.items():
            _add(spans, text, findings)
    return spans


def _within(found: list[Finding], start: int, length: int) -> list[Finding]:
    """Return the part of findings that lies in a text which begins at `start`."""
    if not start:
        return found
    moved = (each._replace(start=max(each.start - start, 0), end=min(each.end - start, length)) for each in found)
    return [finding for finding in moved if finding.start < finding.end]


def _add(spans: Spans, text: str, found: list[Finding]) -> None:
    """Add findings to those of a text, and join those that overlap."""
    merged: list[Finding] = []
    for finding in sorted([*spans.get(text, ()), *found]):
        if merged and finding.start < merged[-1].end:
            # A value and what was not checked behind it are no value together.
            is_unchecked = finding.rule == TOO_MANY_CANDIDATES and finding.end > merged[-1].end
            rule = TOO_MANY_CANDIDATES if is_unchecked else merged[-1].rule
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, finding.end), rule=rule)
        else:
            merged.append(finding)
    if merged:
        spans[text] = merged


def _digest(raw: bytes) -> bytes:
    return sha256(raw).digest()
