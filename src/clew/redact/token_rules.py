"""Match tokens by the formats in `token_formats`: a cheap candidate pattern and a precise check of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache

from clew.redact import value_checks
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Match
from clew.redact.token_formats import TOKEN_FORMATS, TokenFormat

_WEAK_TAIL_CHARS = 12
"""Characters that must follow a weak prefix. Asking for some behind every prefix would give the search many states."""
_MAX_TOKEN_BYTES = 32 << 10
"""A longer token is masked up to here: each false candidate must take a bounded time."""
_WINDOW_BEFORE_BYTES, _WINDOW_AFTER_BYTES = 120, 300
_MAX_LINES = 3
_MAX_PREFIX_BYTES = 12
# Where a token goes on in the next line: broken by a terminal or a mail program, or put together from strings.
_LINE_END = lazy_compile(rb"[\r\n]")
_LINE_NUMBER = rb"(?:[ \t]{0,8}[0-9]{1,6}[ \t]{0,2}(?:\t|\xe2\x86\x92|[:|]| {6}))?"
_NEXT_LINE = lazy_compile(rb"[\r\n]+" + _LINE_NUMBER + rb"[ \t>|+]{0,12}[\"']?(?=[A-Za-z0-9_-])")
_BROKEN_WORD = lazy_compile(rb"[A-Za-z0-9_.+/-]{4,256}[\"']?[ \t]*[+\\]?[\r\n]")
# A token that was wrapped: full lines of one word, and a shorter one at the end. Line ends may be escaped in JSON.
_WORD_AT_LINE_END = lazy_compile(rb"[A-Za-z0-9_.+/=-]{4,512}(?=[ \t\\]{0,8}[\r\n])")
_LINE_OF_ONE_WORD = lazy_compile(
    rb"[ \t\\]{0,8}[\r\n][ \\\r\n]{0,16}([A-Za-z0-9_.+/=-]{4,512})(?=\\*[\"']|[ \t\\]*(?:[\r\n]|\Z))"
)
# A token may follow another one directly.
_ADJACENT_PREFIXES = r"gh[pousr]_|github_pat_|glpat-|xox[bp]-|sk-|AKIA|ASIA|AIza|npm_"
_ADJACENT = lazy_compile(_ADJACENT_PREFIXES.encode())
_STRONG_BOUNDARIES = ("(?<![A-Za-z0-9])", rf"(?:(?![A-Za-z0-9])|(?={_ADJACENT_PREFIXES}))")
_WEAK_BOUNDARIES = (r"(?<![A-Za-z0-9_+/.-])", r"(?![A-Za-z0-9_+/-])")
_CHECKS: dict[str, Callable[[bytes], bool]] = {
    "random": value_checks.is_random,
    "crc": value_checks.is_random,
    "random_word": value_checks.is_random_word,
    "mixed": value_checks.has_digits_and_both_cases,
    "mixed_upper": value_checks.has_digits_and_capitals,
    "spread": value_checks.has_enough_distinct_chars,
    "jwt": value_checks.is_jwt,
    "nkey": value_checks.is_nkey,
    "none": bool,
}
_CHECKS_WITH_PREFIX = ("jwt", "nkey")
"""Checks that read the prefix too."""


class _CompiledRule:
    """A rule whose expressions are compiled when they are needed first: most never are."""

    def __init__(self, rule: TokenFormat) -> None:
        self.rule = rule
        self.prefixes = tuple(text.encode() for text in rule.prefixes)

    @cached_property
    def sign(self) -> re.Pattern[bytes]:
        return re.compile(self.rule.sign.encode())

    @cached_property
    def token(self) -> re.Pattern[bytes]:
        rule = self.rule
        left, right = _WEAK_BOUNDARIES if rule.needs_word_start else _STRONG_BOUNDARIES
        if rule.pattern:
            return re.compile(f"{left}(?:{rule.pattern}){right}".encode())
        prefixes = "|".join(re.escape(text) for text in sorted(rule.prefixes, key=len, reverse=True))
        return re.compile(f"{left}(?P<prefix>{prefixes})(?:{rule.rest}){right}".encode())

    def check(self, match: re.Match[bytes]) -> Match | None:
        """Check the characters of a token behind its prefix, or behind the group `show`, which stays readable."""
        rule, groups = self.rule, match.re.groupindex
        start = match.end("show") if "show" in groups else match.start()
        checked = start if "show" in groups else match.end("prefix") if "prefix" in groups else match.start()
        value = match[0] if rule.value_check in _CHECKS_WITH_PREFIX else match[0][checked - match.start() :]
        if not _CHECKS[rule.value_check](value):
            return None
        is_proven = rule.value_check in _CHECKS_WITH_PREFIX or (
            rule.value_check == "crc" and value_checks.has_crc(value)
        )
        return Match(start, match.end(), rule.id, 0.99 if is_proven else 0.8 if rule.needs_word_start else 0.95)


@lru_cache(maxsize=1)
def builtin_rules() -> tuple[TokenFormat, ...]:
    """Return the built-in rules, also for prefixes with `-` in place of `_`."""
    return tuple(rule if rule.needs_word_start else _with_dashes(rule) for rule in TOKEN_FORMATS)


def _with_dashes(rule: TokenFormat) -> TokenFormat:
    """Agents name folders after the paths of projects, with `-` for `_`."""
    dashed = tuple(text.replace("_", "-") for text in rule.prefixes if "_" in text)
    return rule._replace(prefixes=rule.prefixes + dashed, rest=rule.rest.replace("}_[", "}[_-]["))


class Services:
    """The token formats of all services, found by the first two characters of their prefix, or by their sign."""

    def __init__(self, rules: tuple[TokenFormat, ...]) -> None:
        compiled = [_CompiledRule(rule) for rule in rules]
        self._with_sign = [each for each in compiled if each.rule.sign]
        self._any_sign = lazy_compile("|".join(rule.sign for rule in rules if rule.sign).encode() or b"(?!)")
        self._by_first_chars: dict[bytes, list[_CompiledRule]] = {}
        for each in compiled:
            for key in {text[:2].encode() for text in each.rule.prefixes}:
                self._by_first_chars.setdefault(key, []).append(each)
        self.signs = _candidate_patterns(rules)
        self.multi_line_prefixes = tuple(text for rule in rules if r"\s" in rule.rest for text in rule.prefixes)

    def at(self, text: bytes, position: int) -> Match | None:
        """Match the token that begins at a position."""
        stop = position + _MAX_TOKEN_BYTES
        for each in self._by_first_chars.get(text[position : position + 2], ()):
            match = each.token.match(text, position, stop) if text.startswith(each.prefixes, position) else None
            if match is not None and (hit := each.check(match)):
                return hit
        return None

    def glued(self, text: bytes, token: Match) -> Match | None:
        """Match the token that begins where another ends, or within what seemed to be its last characters."""
        begin = max(token.start + _MAX_PREFIX_BYTES, token.end - _MAX_PREFIX_BYTES)
        for match in _ADJACENT.finditer(text, begin, token.end + _MAX_PREFIX_BYTES):
            if match.start() > token.end:
                break
            hit = self.at(text[match.start() : match.start() + _MAX_TOKEN_BYTES], 0)
            if hit is not None:
                return Match(match.start() + hit.start, match.start() + hit.end, hit.rule, hit.confidence)
        return None

    def split(self, text: bytes, position: int) -> Match | None:
        """Match the token that begins at a position and goes on in the next line or two."""
        if not _BROKEN_WORD.match(text, position) or text[position : position + 2] not in self._by_first_chars:
            return None
        cuts: list[tuple[int, int]] = []
        joined = text[position : position + _WINDOW_AFTER_BYTES]
        # The character before the token decides whether it begins a word.
        before = text[max(0, position - 1) : position]
        while len(cuts) < _MAX_LINES and (cut := _line_break_in_word(joined, cuts[-1][0] if cuts else 0)):
            cuts.append(cut)
            joined = joined[: cut[0]] + joined[cut[1] :]
            hit = self.at(before + joined, len(before))
            if hit is not None and hit.end - len(before) > cut[0]:
                removed = sum(end - start for start, end in cuts)
                offset = position - len(before)
                return Match(offset + hit.start, offset + hit.end + removed, hit.rule, 0.7)
        return None

    def wrapped(self, text: bytes, position: int) -> Match | None:
        """Match the token that begins at a position and was wrapped into lines of the same width."""
        first = (
            _WORD_AT_LINE_END.match(text, position) if text[position : position + 2] in self._by_first_chars else None
        )
        if first is None:
            return None
        spans, width = [first.span()], 0
        while line := _LINE_OF_ONE_WORD.match(text, spans[-1][1], position + _MAX_TOKEN_BYTES):
            word = line[1]
            width = width or len(word)
            is_part = len(word) <= width and value_checks.has_digits_and_both_cases(word)
            if not is_part or self.at(text, line.start(1)):
                break
            spans.append(line.span(1))
            if len(word) < width:
                break
        before = text[max(0, position - 1) : position]
        joined = before + b"".join(text[start:end] for start, end in spans)
        hit = self.at(joined, len(before)) if len(spans) > 1 else None
        if hit is None:
            return None
        left = hit.end - len(before)
        for start, end in spans:
            if left <= end - start:
                return Match(position + hit.start - len(before), start + left, hit.rule, 0.7)
            left -= end - start
        return None

    def around(self, text: bytes, position: int) -> Match | None:
        """Match the token whose sign is at a position."""
        if not self._any_sign.match(text, position):
            return None
        for each in self._with_sign:
            if each.sign.match(text, position):
                begin, end = max(0, position - _WINDOW_BEFORE_BYTES), position + _WINDOW_AFTER_BYTES
                for match in each.token.finditer(text, begin, end):
                    if match.start() <= position < match.end() and (hit := each.check(match)):
                        return hit
        return None


def _line_break_in_word(text: bytes, position: int) -> tuple[int, int] | None:
    """Return the span from where a word is broken at the end of a line to where it goes on."""
    for line_end in _LINE_END.finditer(text, position):
        before = text[position : line_end.start()]
        before = (before[:-1] if before[-1:] in (b"+", b"\\") else before).rstrip(b" \t")
        before = before[:-1] if before[-1:] in (b'"', b"'") else before
        following = _NEXT_LINE.match(text, line_end.start())
        if following and (before[-1:].isalnum() or before[-1:] in (b"_", b"-")):
            return position + len(before), following.end()
    return None


def _candidate_patterns(rules: tuple[TokenFormat, ...]) -> list[str]:
    """Return the candidate patterns of all rules: strong prefixes, weak prefixes with some characters, signs."""
    strong = sorted({re.escape(text) for rule in rules if not rule.needs_word_start for text in rule.prefixes})
    weak = sorted({re.escape(text) for rule in rules if rule.needs_word_start for text in rule.prefixes})
    return [
        rf"(?:\b|_)(?:{'|'.join(strong)})",
        rf"\b(?:{'|'.join(weak)})[A-Za-z0-9_.+/=%-]{{{_WEAK_TAIL_CHARS}}}",
        *[rule.sign for rule in rules if rule.sign],
    ]
