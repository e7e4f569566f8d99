"""The rules a scan goes by: the built-in ones, and what a user adds or excepts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from clew.redact import encodings, flat, machine_names, pii
from clew.redact.credential_files import file_hits
from clew.redact.engine import Engine
from clew.redact.findings import Finding
from clew.redact.known_values import Known
from clew.redact.masks import MARKER_BYTES
from clew.redact.matcher import BORDER, TOO_MANY, Hit
from clew.redact.prefilter import Sieve
from clew.redact.token_rules import Services, builtin

# What is left of a finding around a marker counts only if it could be a value by itself.
_SHORTEST_REST = 8
_MOST_INSIDE = 1000
# So much around what may be a host or an address is enough to tell where it begins and ends.
_BEFORE, _BEHIND = 300, 100
_BORDER = BORDER.decode()
# So much of a long finding is looked at again, since a known value may reach into it.
_EDGE = 256


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


_NOTHING = Allowed()
# The rules that `token_rules.toml` does not hold.
_OTHER_IDS = """assigned_password assigned_secret authorization aws_secret_key base64_secret basic_auth bearer_token
    cli_password cli_secret cookie credential_file docker_auth env_file key_file known_value kubernetes_secret
    packed_data private_jwk private_key spoken_password spoken_secret too_many_candidates url_parameter
    url_password url_token xml_secret br_cpf ca_sin card de_tax_id email es_dni
    iban in_aadhaar it_codice_fiscale nino nir nl_bsn phone
    pl_pesel ssn
    host_name private_address user_and_host user_name""".split()


class Rules:
    """Rules, ready to run. `version` changes whenever a text could be judged differently."""

    def __init__(
        self, version: str, engine: Engine, user: Iterable[UserRule] = (), allowed: Allowed | None = None
    ) -> None:
        self.version = version
        self._engine = engine
        self._user = tuple(user)
        self._allowed = allowed or _NOTHING
        self._sieves: dict[frozenset[str], Sieve] = {}

    def sieve(self, kinds: frozenset[str]) -> Sieve | None:
        """Tells from the text of records which of them may hold something; None where a user's rules may find more."""
        if self._user:
            return None
        if kinds not in self._sieves:
            self._sieves[kinds] = Sieve(self._engine, kinds)
        return self._sieves[kinds]

    @property
    def has_own(self) -> bool:
        """True where a user added rules."""
        return bool(self._user)

    def own_findings(self, texts: Sequence[str], kinds: frozenset[str]) -> dict[int, list[Finding]]:
        """What the user's rules find of some kinds, by the numbers of the texts that hold something."""
        whole = _Joined(texts)
        hits = [pair for pair in self._found_by_user(whole, kinds) if self._stays(whole.raw, pair[0])]
        return whole.findings(hits)

    def findings(
        self,
        texts: Sequence[str],
        kinds: frozenset[str],
        *,
        known: Known | None = None,
        paths: Mapping[int, str] | None = None,
    ) -> dict[int, list[Finding]]:
        """What these rules find of some kinds, by the numbers of the texts that hold something.

        All texts are searched as one. `paths` are the files that some of them were read from.
        """
        found: dict[int, list[Finding]] = {}
        for numbers in _searched_together(texts, paths or {}):
            whole = _Joined([texts[number] for number in numbers])
            path = paths.get(numbers[0]) if paths else None
            hits = [pair for pair in self._found(whole, kinds, path, known) if self._stays(whole.raw, pair[0])]
            for index, findings in whole.findings(hits).items():
                found[numbers[index]] = findings
        return found

    def with_known(self, text: str, found: list[Finding], known: Known) -> list[Finding]:
        """What was found in a text before, and the values in it that are known since."""
        gaps = list(_gaps(found, len(text)))
        whole = _Joined([text[start:end] for start, end in gaps])
        hits = [(hit, "secret") for hit in known.hits(whole.raw) if self._stays(whole.raw, hit)]
        both = [(Hit(each.start, each.end, each.rule, each.confidence), each.kind) for each in found]
        for number, more in whole.findings(hits).items():
            at = gaps[number][0]
            both += [(Hit(at + each.start, at + each.end, each.rule, each.confidence), each.kind) for each in more]
        return [Finding(hit.start, hit.end, hit.rule, kind, hit.confidence) for hit, kind in _merged(both)]

    def known_in(self, texts: Sequence[str], known: Known) -> dict[int, list[Finding]]:
        """The known values in those of some texts that hold any, by number."""
        whole = _Joined(texts)
        return whole.findings([(hit, "secret") for hit in known.hits(whole.raw) if self._stays(whole.raw, hit)])

    def hides_user(self, user: bytes) -> bool:
        """True for the name of a user in a home path that must not be shown."""
        return not machine_names.is_nobody(user) and self._stays(user, Hit(0, len(user), "user_name", 0.9))

    def places(self, text: bytes) -> tuple[list[Hit], list[int]]:
        """What names the machine in lines of JSON text, but for users; and where nested escapes need a closer look."""
        nested: list[int] = []

        def look(plain: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
            begin = max(start - _BEFORE, text.rfind(b"\n", 0, start))
            if text.find(b"\\\\", begin, end + _BEHIND) >= 0:
                nested.append(start)
                return (), end
            hits, place = machine_names.look(plain, start, end)
            return tuple(hit for hit in hits if self._stays(text, hit)), place

        found = [(hit, "path") for hit in machine_names.other_hits(flat.without_escapes(text), look)]
        return [hit for hit, _ in _merged(_outside_markers(text, found))] if found else [], nested

    def _found(
        self, whole: _Joined, kinds: frozenset[str], path: str | None, known: Known | None
    ) -> Iterable[tuple[Hit, str]]:
        raw = whole.raw
        plain = flat.flatten(raw)
        if "secret" in kinds:
            yield from ((hit, "secret") for hit in self._engine.all_hits(plain, whole.ends))
            if path:
                yield from ((hit, "secret") for hit in file_hits(plain, path))
            if known:
                yield from ((hit, "secret") for hit in known.hits(raw))
        if "pii" in kinds:
            yield from ((hit, "pii") for hit in pii.pii_hits(plain))
            yield from ((hit, "pii") for hit in encodings.layered_hits(plain, whole.ends, _personal))
            yield from ((hit, "pii") for hit in encodings.hits_without_controls(plain, whole.ends, _personal))
        if "path" in kinds:
            yield from ((hit, "path") for hit in machine_names.place_hits(raw))
            # In front of an address or a host, `\\n` is a line end. In a path of Windows it may begin a name.
            yield from ((hit, "path") for hit in machine_names.other_hits(plain, machine_names.look))
            yield from ((hit, "path") for hit in encodings.layered_hits(raw, whole.ends, _of_machine))
            yield from ((hit, "path") for hit in encodings.hits_without_controls(raw, whole.ends, _of_machine))
        yield from self._found_by_user(whole, kinds)

    def _found_by_user(self, whole: _Joined, kinds: frozenset[str]) -> Iterator[tuple[Hit, str]]:
        for rule in self._user:
            if rule.kind in kinds:
                yield from ((Hit(start, end, rule.id, 0.9), rule.kind) for start, end in whole.spans(rule.pattern))

    def _stays(self, raw: bytes, hit: Hit) -> bool:
        """False for what the user allows."""
        allowed = self._allowed
        if allowed is _NOTHING:
            return True
        value = raw[hit.start : hit.end]
        return not (
            hit.rule in allowed.rules
            or value in allowed.values
            or any(pattern.fullmatch(value) for pattern in allowed.patterns)
        )


def _personal(text: bytes, _: list[int]) -> list[Hit]:
    return pii.pii_hits(text)


def _of_machine(text: bytes, _: list[int]) -> list[Hit]:
    return machine_names.place_hits(text)


def _gaps(found: Iterable[Finding], length: int) -> Iterator[tuple[int, int]]:
    """What is left of a text besides the inner parts of long findings, which are hidden anyway."""
    place = 0
    for finding in found:
        if finding.end - finding.start > 2 * _EDGE:
            yield place, finding.start + _EDGE
            place = finding.end - _EDGE
    yield place, length


def _searched_together(texts: Sequence[str], paths: Mapping[int, str]) -> Iterator[list[int]]:
    """The numbers of texts that can be searched as one, and of each that cannot."""
    alone = {number for number, text in enumerate(texts) if "\0" in text}.union(paths)
    together = [number for number in range(len(texts)) if number not in alone] if alone else list(range(len(texts)))
    if together:
        yield together
    yield from ([number] for number in sorted(alone))


class _Joined:
    """Texts as one, for one search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self.raw = flat.to_bytes(_BORDER.join(texts))

    @cached_property
    def _sizes(self) -> list[int]:
        return list(map(len, self._texts if self.raw.isascii() else map(flat.to_bytes, self._texts)))

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((size + len(BORDER) for size in self._sizes[:-1]), initial=0))

    @property
    def ends(self) -> list[int] | None:
        """Where a single text ends, which may hold what looks like a border; None where borders tell it."""
        return [len(self.raw)] if len(self._texts) == 1 else None

    def _piece(self, number: int) -> bytes:
        start = self._starts[number]
        return self.raw[start : start + self._sizes[number]]

    def spans(self, pattern: Any) -> Iterator[tuple[int, int]]:
        """Where an expression fits one of the texts."""
        for number, start in enumerate(self._starts):
            found = (match.span() for match in pattern.finditer(self._piece(number)))
            yield from ((start + first, start + last) for first, last in found if last > first)

    def findings(self, hits: list[tuple[Hit, str]]) -> dict[int, list[Finding]]:
        """Hits dealt out to the texts that they lie in."""
        if not hits:
            return {}
        found: dict[int, list[tuple[int, int, Hit, str]]] = {}
        starts, sizes = self._starts, self._sizes
        for hit, kind in _merged(_outside_markers(self.raw, hits)):
            number = bisect_right(starts, hit[0]) - 1
            while number < len(starts) and (start := starts[number]) < hit[1]:
                first, last = max(0, hit[0] - start), min(sizes[number], hit[1] - start)
                if first < last:
                    found.setdefault(number, []).append((first, last, hit, kind))
                number += 1
        return {number: _to_findings(self._piece(number), own) for number, own in found.items()}


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
    # What was not checked is masked whatever its length, and also where it begins within a marker.
    least = 1 if hit.rule == TOO_MANY else _SHORTEST_REST
    if inside[0][0] <= hit.start and hit.rule != TOO_MANY:
        return []
    borders = [hit.start, *[place for span in inside for place in span], hit.end]
    pieces = zip(borders[::2], borders[1::2], strict=True)
    return [Hit(start, end, hit.rule, hit.confidence) for start, end in pieces if end - start >= least]


def _merged(found: list[tuple[Hit, str]]) -> list[tuple[Hit, str]]:
    """Sorted, and joined where they overlap; the surest names the whole, unless part of it was not checked."""
    found.sort(key=lambda pair: (pair[0][0], -pair[0][1]))
    merged: list[tuple[Hit, str]] = []
    stop = 0
    for pair in found:
        hit, kind = pair
        if not merged or hit[0] >= stop:
            merged.append(pair)
            stop = hit[1]
            continue
        last, last_kind = merged[-1]
        is_surer = hit[3] > last[3]
        if is_surer or hit[1] > stop:
            stop = max(stop, hit[1])
            best = hit if is_surer else last
            # What was masked without being checked is no value by itself.
            rule = TOO_MANY if TOO_MANY in (hit[2], last[2]) else best.rule
            merged[-1] = (Hit(last.start, stop, rule, best.confidence), kind if is_surer else last_kind)
    return merged


def _to_findings(raw: bytes, found: list[tuple[int, int, Hit, str]]) -> list[Finding]:
    if not raw.isascii():
        places = flat.to_characters(raw, [place for each in found for place in each[:2]])
        spans = zip(places[::2], places[1::2], found, strict=True)
        found = [(start, end, hit, kind) for start, end, (_, _, hit, kind) in spans]
    return [Finding(start, end, hit[2], kind, hit[3]) for start, end, hit, kind in found]


@lru_cache(maxsize=1)
def standard() -> Rules:
    """The built-in rules."""
    version, rules = builtin()
    return Rules(version, Engine(Services(rules)))


@lru_cache(maxsize=1)
def rule_ids() -> frozenset[str]:
    """The ids of all built-in rules."""
    return frozenset({rule.id for rule in builtin()[1]}.union(_OTHER_IDS))


def rules_version() -> str:
    """The version of the built-in rules. What was scanned under another is scanned again."""
    return builtin()[0]
