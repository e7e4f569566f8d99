"""The rules a scan goes by: the built-in ones, and what a user adds or excepts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from clew.redact import flat, national, pii, places
from clew.redact.engine import Engine
from clew.redact.files import file_hits
from clew.redact.finding import Finding
from clew.redact.known import Known
from clew.redact.marks import MARKER_BYTES
from clew.redact.searching import Find, Hit
from clew.redact.services import Services, builtin
from clew.redact.sieve import Sieve

# What is left of a finding around a marker counts only if it could be a value by itself.
_SHORTEST_REST = 8
_MOST_INSIDE = 1000
_SHORT = 4096
_SECRETS = frozenset({"secret"})


class UserRule(NamedTuple):
    """An expression of the user's own."""

    id: str
    kind: str
    pattern: Any


class Allowed(NamedTuple):
    """What the user says is no secret: values, expressions that fit a whole value, names of rules."""

    values: frozenset[bytes] = frozenset()
    patterns: tuple[Any, ...] = ()
    rules: frozenset[str] = frozenset()


class Rules:
    """Rules, ready to run. `version` changes whenever a text could be judged differently."""

    def __init__(
        self, version: str, engine: Engine, user: Iterable[UserRule] = (), allowed: Allowed | None = None
    ) -> None:
        self.version = version
        self._engine = engine
        self._user = tuple(user)
        self._allowed = allowed or Allowed()
        self._sieves: dict[frozenset[str], Sieve] = {}

    def sieve(self, kinds: frozenset[str]) -> Sieve | None:
        """Tells from the text of records which of them may hold something; None where a user's rules may find more."""
        if self._user:
            return None
        if kinds not in self._sieves:
            self._sieves[kinds] = Sieve(self._engine, kinds)
        return self._sieves[kinds]

    def findings(
        self, text: str, kinds: frozenset[str], path: str | None = None, known: Known | None = None
    ) -> list[Finding]:
        """What these rules find of some kinds."""
        raw = flat.to_bytes(text)
        if not path and not known and self._without_sign(raw, kinds):
            return []
        found = list(self._found(raw, kinds, path, known))
        if not found:
            return []
        return _to_findings(raw, _merged(_outside_markers(raw, filter(self._stays(raw), found))))

    def suspects(self, texts: Sequence[str], kinds: frozenset[str], known: Known | None = None) -> list[int]:
        """The numbers of the texts that may hold something; the others hold nothing."""
        joined = flat.to_bytes("\0".join(texts))
        if joined.count(0) != len(texts) - 1:
            return list(range(len(texts)))
        return sorted({index for find in self._finders(kinds, known) for index in _touched(find, joined)})

    def _without_sign(self, raw: bytes, kinds: frozenset[str]) -> bool:
        """Most texts have none, and most are short: this is all that they cost."""
        if len(raw) > _SHORT or kinds != _SECRETS or self._user:
            return False
        return self._engine.find_sign(raw, 0, len(raw))[0] < 0

    def _finders(self, kinds: frozenset[str], known: Known | None) -> Iterator[Find]:
        if "secret" in kinds:
            yield self._engine.find_sign
            if known:
                yield known.find
        if "pii" in kinds:
            yield from pii.find_signs()
            yield national.find_sign()
        if "path" in kinds:
            yield places.find_sign
        yield from (_find_of(rule.pattern) for rule in self._user if rule.kind in kinds)

    def _found(
        self, raw: bytes, kinds: frozenset[str], path: str | None, known: Known | None
    ) -> Iterable[tuple[Hit, str]]:
        plain = flat.flatten(raw)
        if "secret" in kinds:
            yield from ((hit, "secret") for hit in self._engine.all_hits(plain))
            if path:
                yield from ((hit, "secret") for hit in file_hits(plain, path))
            if known:
                yield from ((hit, "secret") for hit in known.hits(raw))
        if "pii" in kinds:
            yield from ((hit, "pii") for hit in pii.pii_hits(plain))
        if "path" in kinds:
            yield from ((hit, "path") for hit in places.place_hits(raw))
        for rule in self._user:
            if rule.kind in kinds:
                spans = (match.span() for match in rule.pattern.finditer(raw))
                yield from ((Hit(start, end, rule.id, 0.9), rule.kind) for start, end in spans if end > start)

    def _stays(self, raw: bytes) -> Any:
        allowed = self._allowed

        def stays(pair: tuple[Hit, str]) -> bool:
            value = raw[pair[0].start : pair[0].end]
            return not (
                pair[0].rule in allowed.rules
                or value in allowed.values
                or any(pattern.fullmatch(value) for pattern in allowed.patterns)
            )

        return stays


def _touched(find: Find, joined: bytes) -> Iterator[int]:
    """The numbers of the texts in which something is found; NUL stands between them."""
    place, index, length = 0, 0, len(joined)
    while place < length:
        start, _ = find(joined, place, length)
        if start < 0:
            return
        index += joined.count(0, place, start)
        yield index
        place, index = joined.find(0, start) + 1, index + 1
        if not place:
            return


def _find_of(pattern: Any) -> Find:
    return lambda text, start, end: match.span() if (match := pattern.search(text, start, end)) else (-1, -1)


def _outside_markers(raw: bytes, found: Iterable[tuple[Hit, str]]) -> list[tuple[Hit, str]]:
    """Findings without the markers in them: a marker is never found again."""
    if b"[REDACTED" not in raw:
        return list(found)
    markers = [match.span() for match in MARKER_BYTES.finditer(raw)]
    ends = [end for _, end in markers]
    return [(rest, kind) for hit, kind in found for rest in _rests(hit, markers, ends)]


def _rests(hit: Hit, markers: list[tuple[int, int]], ends: list[int]) -> list[Hit]:
    first = bisect_right(ends, hit.start)
    inside = list(takewhile(lambda span: span[0] < hit.end, markers[first : first + _MOST_INSIDE]))
    if not inside:
        return [hit]
    if inside[0][0] <= hit.start:
        return []
    borders = [hit.start, *[place for span in inside for place in span], hit.end]
    pieces = zip(borders[::2], borders[1::2], strict=True)
    return [hit._replace(start=start, end=end) for start, end in pieces if end - start >= _SHORTEST_REST]


def _merged(found: list[tuple[Hit, str]]) -> list[tuple[Hit, str]]:
    """Sorted, and joined where they overlap; the surest names the whole."""
    found.sort(key=lambda pair: (pair[0].start, -pair[0].end))
    merged: list[tuple[Hit, str]] = []
    for hit, kind in found:
        if not merged or hit.start >= merged[-1][0].end:
            merged.append((hit, kind))
            continue
        last, last_kind = merged[-1]
        best, best_kind = (last, last_kind) if last.confidence >= hit.confidence else (hit, kind)
        merged[-1] = (Hit(last.start, max(last.end, hit.end), best.rule, best.confidence), best_kind)
    return merged


def _to_findings(raw: bytes, merged: list[tuple[Hit, str]]) -> list[Finding]:
    places = flat.to_characters(raw, [place for hit, _ in merged for place in (hit.start, hit.end)])
    spans = zip(places[::2], places[1::2], merged, strict=True)
    return [Finding(start, end, hit.rule, kind, hit.confidence) for start, end, (hit, kind) in spans]


@lru_cache(maxsize=1)
def standard() -> Rules:
    """The built-in rules."""
    version, rules = builtin()
    return Rules(version, Engine(Services(rules)))


def rules_version() -> str:
    """The version of the built-in rules. What was scanned under another is scanned again."""
    return builtin()[0]
