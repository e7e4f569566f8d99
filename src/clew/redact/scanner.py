"""Scans texts: runs all rules over their bytes, merges overlapping matches, applies the user's allow-list.

scan(text, profile) and scan_all(texts, profile) return findings; redact(text, profile) and apply(text, findings)
return texts with markers. `Rules` is a set of rules, ready to run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from clew.redact import assignments, context_rules, encodings, machine_names, packed, pii
from clew.redact.credential_files import find_in_credential_file
from clew.redact.findings import Finding, kinds_of
from clew.redact.known_values import KnownValues
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.masks import MARKER_BYTES, PLAIN
from clew.redact.matcher import (
    LARGE_MEMORY_BYTES,
    TEXT_SEPARATOR,
    TOO_MANY_CANDIDATES,
    CheckLimit,
    Find,
    LimitedCheck,
    Match,
    compile_bytes,
    compile_finder,
    compile_plain_finder,
    find_limited_matches,
)
from clew.redact.token_formats import VERSION
from clew.redact.token_rules import Services, builtin_rules
from clew.redact.value_checks import has_digits_and_both_cases

Mark = Callable[[str, str], str]
"""Makes the marker of a value, given the value and the id of the rule that found it."""
# The rest of a match beside a marker counts only if it could be a value by itself.
_MIN_REST_BYTES = 8
_TEXT_SEPARATOR = TEXT_SEPARATOR.decode()
# The secret half of a pair of AWS keys is within this many bytes of the other.
_AWS_PAIR_BYTES = 200
_AWS_SECRET = lazy_compile(rb"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])")
_MAX_BASE64_LAYERS = 2
# The rules beside those for tokens.
_OTHER_IDS = """assigned_password assigned_secret authorization aws_secret_key base64_secret basic_auth bearer_token
    cli_password cli_secret cookie credential_file docker_auth env_file key_file known_value kubernetes_secret
    packed_data private_jwk private_key spoken_password spoken_secret too_many_candidates url_parameter
    url_password url_token xml_secret br_cpf ca_sin card de_tax_id email es_dni
    iban in_aadhaar it_codice_fiscale nino nir nl_bsn phone
    pl_pesel ssn
    host_name private_address user_and_host user_name""".split()


class UserRule(NamedTuple):
    """A rule of the user's own."""

    id: str
    kind: str
    pattern: Any


class Allowed(NamedTuple):
    """The user's allow-list: values, expressions that match a whole value, ids of rules."""

    values: frozenset[bytes] = frozenset()
    patterns: tuple[Any, ...] = ()
    rules: frozenset[str] = frozenset()


_NOTHING = Allowed()


class SecretRules:
    """The rules for secrets: a few passes over the bytes for candidates, and a precise check at each.

    Candidates are searched for in groups: one automaton for all patterns would get a new state at nearly every byte
    of a random text.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self.token_signs = [*services.signs, *encodings.base64_signs(), *packed.SIGNS]
        self.multi_line_prefixes = services.multi_line_prefixes
        self.context_signs = [*assignments.CANDIDATE_PATTERNS, *context_rules.CANDIDATE_PATTERNS]
        self.find_addresses = [compile_plain_finder(context_rules.ADDRESS_PATTERN)]

    @cached_property
    def find_token(self) -> Find:
        """The finder of token candidates."""
        return compile_finder(self.token_signs)

    @cached_property
    def _find_context(self) -> list[Find]:
        return [compile_finder(self.context_signs, LARGE_MEMORY_BYTES), *self.find_addresses]

    @cached_property
    def _base64(self) -> Any:
        return compile_bytes("|".join(encodings.base64_signs()))

    def find(self, text: bytes, ends: Sequence[int] | None = None) -> list[Match]:
        """Find the secrets in strings that are joined with separators, also below escapes and control sequences."""
        return self._find_with_escapes(text, ends) + encodings.find_without_controls(
            text, ends, self._find_with_escapes
        )

    def _find_with_escapes(self, text: bytes, ends: Sequence[int] | None) -> list[Match]:
        return self._find_plain(text, ends) + encodings.find_below_escapes(text, ends, self._find_plain)

    def _find_plain(
        self, text: bytes, ends: Sequence[int] | None, checks: CheckLimit | None = None, base64_layers: int = 0
    ) -> list[Match]:
        found = find_limited_matches(self.find_token, text, self.token_check(base64_layers), ends, checks)
        for find in self._find_context:
            found += find_limited_matches(find, text, self._check_context, ends, checks)
        return found

    def token_check(self, base64_layers: int = 0) -> LimitedCheck:
        """Return the check of token candidates for text decoded from this many layers of base64."""
        services = self._services

        def check(text: bytes, start: int, end: int, checks: CheckLimit) -> tuple[tuple[Match, ...], int]:
            if text[start] in packed.FIRST_LETTERS and packed.is_sign(text, start, end):
                hit = packed.packed_at(text, start, end)
                return ((hit,), hit.end) if hit else ((), end)
            begin = start + 1 if text[start] == 0x5F else start
            token = services.at(text, begin) or services.split(text, begin) or services.around(text, start)
            wrapped = services.wrapped(text, begin)
            if wrapped is not None and (token is None or wrapped.end > token.end):
                token = wrapped
            if token is not None:
                found = [token, *_aws_secrets_near(text, token)]
                while (glued := services.glued(text, token)) and glued.end > token.end:
                    token = glued
                    found.append(token)
                return tuple(found), token.end
            if base64_layers < _MAX_BASE64_LAYERS and self._base64.match(text, start):
                return encodings.read_base64(
                    text, start, lambda inside: self._find_plain(inside, [len(inside)], checks, base64_layers + 1)
                )
            # The next token may begin within what seemed to be the beginning of this one.
            return (), begin + 2

        return check

    def _check_context(self, text: bytes, start: int, end: int, checks: CheckLimit) -> tuple[tuple[Match, ...], int]:
        hits, position = context_rules.match_at(text, start, end)
        return (hits, position) if hits else assignments.match_at(text, start, end)


def _aws_secrets_near(text: bytes, token: Match) -> list[Match]:
    """Find the secret half of a pair of AWS keys, which has no prefix of its own, near the other half."""
    if token.rule != "aws_access_key":
        return []
    begin, end = max(0, token.start - _AWS_PAIR_BYTES), token.end + _AWS_PAIR_BYTES
    begin = max(begin, text.rfind(0, begin, token.start) + 1)
    border = text.find(0, token.end, end)
    around = _AWS_SECRET.finditer(text, begin, end if border < 0 else border)
    return [
        Match(match.start(), match.end(), "aws_secret_key", 0.85)
        for match in around
        if has_digits_and_both_cases(match[0])
    ]


class Rules:
    """A set of rules, ready to run. `version` changes whenever a text could be judged differently."""

    def __init__(
        self, version: str, secrets: SecretRules, user: Iterable[UserRule] = (), allowed: Allowed | None = None
    ) -> None:
        self.version = version
        self.secrets = secrets
        self._user = tuple(user)
        self._allowed = allowed or _NOTHING

    @property
    def has_user_rules(self) -> bool:
        """True if the user added rules."""
        return bool(self._user)

    def findings(
        self,
        texts: Sequence[str],
        kinds: frozenset[str],
        *,
        known: KnownValues | None = None,
        paths: Mapping[int, str] | None = None,
    ) -> dict[int, list[Finding]]:
        """Return the findings of some kinds, by the index of the text. Texts without a finding are left out.

        All texts are searched as one. `paths` are the files that some of them were read from, by index.
        """
        found: dict[int, list[Finding]] = {}
        for numbers in _searched_together(texts, paths or {}):
            joined = _JoinedTexts([texts[number] for number in numbers])
            path = paths.get(numbers[0]) if paths else None
            matches = self._find(joined, kinds, path, known)
            for index, findings in joined.findings(self._without_allowed(joined.raw, matches)).items():
                found[numbers[index]] = findings
        return found

    def user_findings(self, texts: Sequence[str], kinds: frozenset[str]) -> dict[int, list[Finding]]:
        """Return what the user's own rules find, by the index of the text."""
        joined = _JoinedTexts(texts)
        return joined.findings(self._without_allowed(joined.raw, self._find_by_user_rules(joined, kinds)))

    def known_in(self, texts: Sequence[str], known: KnownValues) -> dict[int, list[Finding]]:
        """Return the known values in some texts, by the index of the text."""
        joined = _JoinedTexts(texts)
        matches = ((hit, "secret") for hit in known.hits(joined.raw))
        return joined.findings(self._without_allowed(joined.raw, matches))

    def _find(
        self, joined: _JoinedTexts, kinds: frozenset[str], path: str | None, known: KnownValues | None
    ) -> Iterator[tuple[Match, str]]:
        raw, ends = joined.raw, joined.ends
        plain = encodings.blank_line_escapes(raw)
        password_ends: list[int] = []
        if "secret" in kinds:
            secrets = self.secrets.find(plain, ends)
            password_ends = sorted(hit.end for hit in secrets if hit.rule == "url_password")
            yield from ((hit, "secret") for hit in secrets)
            if path:
                yield from ((hit, "secret") for hit in find_in_credential_file(plain, path))
            if known:
                yield from ((hit, "secret") for hit in known.hits(raw))
        if "pii" in kinds:
            personal = pii.find_pii(plain)
            personal += encodings.find_below_escapes(plain, ends, _find_pii)
            personal += encodings.find_without_controls(plain, ends, _find_pii)
            yield from ((hit, "pii") for hit in personal if not _holds_url_password(hit, password_ends))
        if "path" in kinds:
            # Before an address or a host, `\n` is a line end. In a path of Windows it may begin a name.
            yield from ((hit, "path") for hit in machine_names.find_all(raw))
            yield from ((hit, "path") for hit in machine_names.find_hosts(plain))
            yield from ((hit, "path") for hit in encodings.find_below_escapes(raw, ends, _find_machine_names))
            yield from ((hit, "path") for hit in encodings.find_without_controls(raw, ends, _find_machine_names))
        yield from self._find_by_user_rules(joined, kinds)

    def _find_by_user_rules(self, joined: _JoinedTexts, kinds: frozenset[str]) -> Iterator[tuple[Match, str]]:
        for rule in self._user:
            if rule.kind in kinds:
                yield from ((Match(start, end, rule.id, 0.9), rule.kind) for start, end in joined.spans(rule.pattern))

    def _without_allowed(self, raw: bytes, matches: Iterable[tuple[Match, str]]) -> list[tuple[Match, str]]:
        """Remove what the user's allow-list names."""
        allowed = self._allowed
        if allowed is _NOTHING:
            return list(matches)
        kept = []
        for hit, kind in matches:
            value = raw[hit.start : hit.end]
            is_allowed = hit.rule in allowed.rules or value in allowed.values
            if not is_allowed and not any(pattern.fullmatch(value) for pattern in allowed.patterns):
                kept.append((hit, kind))
        return kept


def _holds_url_password(hit: Match, password_ends: list[int]) -> bool:
    """Whether a candidate is not an email address but a password and a host: `https://user:password@host.com`."""
    number = bisect_left(password_ends, hit.start)
    return hit.rule == "email" and number < len(password_ends) and password_ends[number] < hit.end


def _find_pii(text: bytes, _: list[int]) -> list[Match]:
    return pii.find_pii(text)


def _find_machine_names(text: bytes, _: list[int]) -> list[Match]:
    return machine_names.find_all(text)


def _searched_together(texts: Sequence[str], paths: Mapping[int, str]) -> Iterator[list[int]]:
    """Yield the indexes of texts that can be searched as one, then each that cannot."""
    alone = {number for number, text in enumerate(texts) if "\0" in text}.union(paths)
    together = [number for number in range(len(texts)) if number not in alone] if alone else list(range(len(texts)))
    if together:
        yield together
    yield from ([number] for number in sorted(alone))


class _JoinedTexts:
    """Texts that are joined with separators, for one search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self.raw = encodings.to_bytes(_TEXT_SEPARATOR.join(texts))

    @cached_property
    def _sizes(self) -> list[int]:
        return list(map(len, self._texts if self.raw.isascii() else map(encodings.to_bytes, self._texts)))

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((size + len(TEXT_SEPARATOR) for size in self._sizes[:-1]), initial=0))

    @property
    def ends(self) -> list[int] | None:
        """Where a single text ends, which may contain a separator; None if separators tell where texts end."""
        return [len(self.raw)] if len(self._texts) == 1 else None

    def _piece(self, number: int) -> bytes:
        start = self._starts[number]
        return self.raw[start : start + self._sizes[number]]

    def spans(self, pattern: Any) -> Iterator[tuple[int, int]]:
        """Yield where an expression matches within one of the texts."""
        for number, start in enumerate(self._starts):
            found = (match.span() for match in pattern.finditer(self._piece(number)))
            yield from ((start + first, start + last) for first, last in found if last > first)

    def findings(self, matches: list[tuple[Match, str]]) -> dict[int, list[Finding]]:
        """Merge matches, and turn them into findings by the index of the text."""
        if not matches:
            return {}
        found: dict[int, list[tuple[int, int, Match, str]]] = {}
        starts, sizes = self._starts, self._sizes
        for hit, kind in _merged(_outside_markers(self.raw, matches)):
            number = bisect_right(starts, hit[0]) - 1
            while number < len(starts) and (start := starts[number]) < hit[1]:
                first, last = max(0, hit[0] - start), min(sizes[number], hit[1] - start)
                if first < last:
                    found.setdefault(number, []).append((first, last, hit, kind))
                number += 1
        return {number: _to_findings(self._piece(number), own) for number, own in found.items()}


def _outside_markers(raw: bytes, matches: list[tuple[Match, str]]) -> list[tuple[Match, str]]:
    """Cut markers out of matches: a marker is never masked again."""
    if b"[REDACTED" not in raw:
        return matches
    markers = [match.span() for match in MARKER_BYTES.finditer(raw)]
    ends = [end for _, end in markers]
    return [(rest, kind) for hit, kind in matches for rest in _beside_markers(hit, markers, ends)]


def _beside_markers(hit: Match, markers: list[tuple[int, int]], ends: list[int]) -> list[Match]:
    first = bisect_right(ends, hit.start)
    inside = list(takewhile(lambda span: span[0] < hit.end, (markers[at] for at in range(first, len(markers)))))
    if not inside:
        return [hit]
    # What was not checked is masked whatever its length, and also where it begins within a marker.
    least = 1 if hit.rule == TOO_MANY_CANDIDATES else _MIN_REST_BYTES
    if inside[0][0] <= hit.start and hit.rule != TOO_MANY_CANDIDATES:
        return []
    borders = [hit.start, *[place for span in inside for place in span], hit.end]
    pieces = zip(borders[::2], borders[1::2], strict=True)
    return [Match(start, end, hit.rule, hit.confidence) for start, end in pieces if end - start >= least]


def _merged(matches: list[tuple[Match, str]]) -> list[tuple[Match, str]]:
    """Sort matches, and join those that overlap.

    The rule with the highest confidence names the joined match, unless part of it was not checked.
    """
    matches.sort(key=lambda pair: (pair[0][0], -pair[0][1]))
    merged: list[tuple[Match, str]] = []
    stop = 0
    for pair in matches:
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
            rule = TOO_MANY_CANDIDATES if TOO_MANY_CANDIDATES in (hit[2], last[2]) else best.rule
            merged[-1] = (Match(last.start, stop, rule, best.confidence), kind if is_surer else last_kind)
    return merged


def _to_findings(raw: bytes, found: list[tuple[int, int, Match, str]]) -> list[Finding]:
    offsets = [place for each in found for place in each[:2]]
    if not raw.isascii():
        offsets = encodings.to_character_offsets(raw, offsets)
    spans = zip(offsets[::2], offsets[1::2], found, strict=True)
    return [Finding(start, end, hit[2], kind, hit[3]) for start, end, (_, _, hit, kind) in spans]


@lru_cache(maxsize=1)
def default_rules() -> Rules:
    """Return the built-in rules."""
    return Rules(VERSION, SecretRules(Services(builtin_rules())))


@lru_cache(maxsize=1)
def rule_ids() -> frozenset[str]:
    """Return the ids of all built-in rules."""
    return frozenset({rule.id for rule in builtin_rules()}.union(_OTHER_IDS))


def rules_version() -> str:
    """Return the version of the built-in rules. What was scanned under another version is scanned again."""
    return VERSION


def scan(
    text: str,
    profile: str = "secrets",
    *,
    path: str | None = None,
    rules: Rules | None = None,
    known: KnownValues | None = None,
) -> list[Finding]:
    """Find what must be masked in a text: sorted, without overlaps.

    `path` is the file that the text was read from, if any; `rules` adds a user's rules and exceptions; `known` are
    values that were found before, which are found here in every spelling.
    """
    kinds = kinds_of(profile)
    if not kinds or not text:
        return []
    chosen = default_rules() if rules is None else rules
    return chosen.findings([text], kinds, known=known, paths={0: path} if path else None).get(0, [])


def scan_all(
    texts: Sequence[str], profile: str = "secrets", *, rules: Rules | None = None, known: KnownValues | None = None
) -> dict[int, list[Finding]]:
    """Scan many texts at once; return findings by index. Much faster than `scan` for short texts."""
    kinds = kinds_of(profile)
    if not kinds or not texts:
        return {}
    chosen = default_rules() if rules is None else rules
    return chosen.findings(texts, kinds, known=known)


def redact(
    text: str,
    profile: str = "secrets",
    *,
    mark: Mark | None = None,
    path: str | None = None,
    rules: Rules | None = None,
    known: KnownValues | None = None,
) -> str:
    """Replace each finding in a text by a marker; without `mark`, by the plain one."""
    return apply(text, scan(text, profile, path=path, rules=rules, known=known), mark)


def apply(text: str, findings: Iterable[Finding], mark: Mark | None = None) -> str:
    """Replace each of some findings, which are sorted and do not overlap, by a marker."""
    pieces, last = [], 0
    for finding in findings:
        value = text[finding.start : finding.end]
        pieces += [text[last : finding.start], PLAIN if mark is None else mark(value, finding.rule)]
        last = finding.end
    return "".join([*pieces, text[last:]])
