"""Token formats from `token_rules.toml`: a cheap candidate pattern and a precise check of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cached_property, lru_cache
from importlib import resources
from typing import NamedTuple

from clew.redact import value_checks
from clew.redact.matcher import Match

# How much of a token must follow its beginning before it is looked at, where the beginning says little. To ask for some
# behind every beginning would give the search many states, and spare no look.
_WEAK_TAIL = 12
_BEFORE, _AFTER = 120, 300
# Where a line was broken in the middle of a token: by a terminal, a mail program, a string put together.
_LINE_END = re.compile(rb"[\r\n]")
_LINE_NUMBER = rb"(?:[ \t]{0,8}[0-9]{1,6}[ \t]{0,2}(?:\t|\xe2\x86\x92|[:|]| {6}))?"
_BEHIND_CUT = re.compile(rb"[\r\n]+" + _LINE_NUMBER + rb"[ \t>|+]{0,12}[\"']?(?=[A-Za-z0-9_-])")
_BROKEN = re.compile(rb"[A-Za-z0-9_.+/-]{4,256}[\"']?[ \t]*[+\\]?[\r\n]")
_LINES = 3
# What may not stand beside a token.
# A token may follow another without anything between them.
_GLUED = r"gh[pousr]_|github_pat_|glpat-|xox[bp]-|sk-|AKIA|ASIA|AIza|npm_"
_STRONG = ("(?<![A-Za-z0-9])", rf"(?:(?![A-Za-z0-9])|(?={_GLUED}))")
_NEXT = re.compile(_GLUED.encode())
_LONGEST_BEGINNING = 12
_WEAK = (r"(?<![A-Za-z0-9_+/.-])", r"(?![A-Za-z0-9_+/-])")
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


class Rule(NamedTuple):
    """A key or token with a form of its own."""

    id: str
    service: str
    at: tuple[str, ...] = ()
    then: str = ""
    pattern: str = ""
    shape: str = ""
    check: str = "random"
    weak: bool = False


class Form:
    """A rule, compiled when it is needed: most never are."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.begins = tuple(text.encode() for text in rule.at)

    @cached_property
    def sign(self) -> re.Pattern[bytes]:
        """What must match where its shape was found."""
        return re.compile(self.rule.shape.encode())

    @cached_property
    def precise(self) -> re.Pattern[bytes]:
        """What must match where it begins."""
        rule = self.rule
        left, right = _WEAK if rule.weak else _STRONG
        if rule.pattern:
            return re.compile(f"{left}(?:{rule.pattern}){right}".encode())
        begins = "|".join(re.escape(text) for text in sorted(rule.at, key=len, reverse=True))
        return re.compile(f"{left}(?P<begin>{begins})(?:{rule.then}){right}".encode())


@lru_cache(maxsize=1)
def builtin() -> tuple[str, tuple[Rule, ...]]:
    """The version of the built-in rules, and the rules."""
    table = tomllib.loads(resources.files("clew.redact").joinpath("token_rules.toml").read_text("utf-8"))
    return table["version"], tuple(_rule(row) for row in table["rule"])


def _rule(row: dict[str, object]) -> Rule:
    at = row.get("at", ())
    begins: tuple[str, ...] = (at,) if isinstance(at, str) else tuple(at)  # type: ignore[arg-type]
    then = str(row.get("then", ""))
    if not row.get("weak"):
        # Agents name folders after the paths of projects, with `-` for `_`.
        begins += tuple(text.replace("_", "-") for text in begins if "_" in text)
        then = then.replace("}_[", "}[_-][")
    return Rule(**{**row, "at": begins, "then": then})  # type: ignore[arg-type]


class Services:
    """All forms, found by how they begin."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        forms = [Form(rule) for rule in rules]
        self._shaped = [each for each in forms if each.rule.shape]
        self._shape = re.compile("|".join(rule.shape for rule in rules if rule.shape).encode() or b"(?!)")
        self._begun: dict[bytes, list[Form]] = {}
        for each in forms:
            for key in {text[:2].encode() for text in each.rule.at}:
                self._begun.setdefault(key, []).append(each)
        self.signs = _signs(rules)

    def at(self, text: bytes, place: int) -> Match | None:
        """The token that begins here."""
        for each in self._begun.get(text[place : place + 2], ()):
            match = each.precise.match(text, place) if text.startswith(each.begins, place) else None
            if match is not None and (hit := _judge(each.rule, match)):
                return hit
        return None

    def glued(self, text: bytes, token: Match) -> Match | None:
        """The token that begins where another ends, or with what was taken for its last characters."""
        begin = max(token.start + _LONGEST_BEGINNING, token.end - _LONGEST_BEGINNING)
        for match in _NEXT.finditer(text, begin, token.end + _LONGEST_BEGINNING):
            if match.start() > token.end:
                break
            hit = self.at(text[match.start() : match.start() + _AFTER], 0)
            if hit is not None:
                return Match(match.start() + hit.start, match.start() + hit.end, hit.rule, hit.confidence)
        return None

    def split(self, text: bytes, place: int) -> Match | None:
        """The token that begins here and goes on in the next line or two."""
        if not _BROKEN.match(text, place) or text[place : place + 2] not in self._begun:
            return None
        cuts: list[tuple[int, int]] = []
        joined = text[place : place + _AFTER]
        while len(cuts) < _LINES and (cut := _cut(joined, cuts[-1][0] if cuts else 0)):
            cuts.append(cut)
            joined = joined[: cut[0]] + joined[cut[1] :]
            # Something must stand before the token, or nothing: it is judged as it stands in the text.
            hit = self.at(text[max(0, place - 1) : place] + joined, min(1, place))
            if hit is not None and hit.end - min(1, place) > cut[0]:
                added = sum(end - start for start, end in cuts)
                return Match(place + hit.start - min(1, place), place + hit.end - min(1, place) + added, hit.rule, 0.7)
        return None

    def around(self, text: bytes, place: int) -> Match | None:
        """The token that has its telling part here."""
        if not self._shape.match(text, place):
            return None
        for each in self._shaped:
            if each.sign.match(text, place):
                for match in each.precise.finditer(text, max(0, place - _BEFORE), place + _AFTER):
                    if match.start() <= place < match.end() and (hit := _judge(each.rule, match)):
                        return hit
        return None


def _cut(text: bytes, place: int) -> tuple[int, int] | None:
    """Where a line is broken within a word, from there to where it goes on."""
    for line_end in _LINE_END.finditer(text, place):
        before = text[place : line_end.start()]
        before = (before[:-1] if before[-1:] in (b"+", b"\\") else before).rstrip(b" \t")
        before = before[:-1] if before[-1:] in (b'"', b"'") else before
        behind = _BEHIND_CUT.match(text, line_end.start())
        if behind and (before[-1:].isalnum() or before[-1:] in (b"_", b"-")):
            return place + len(before), behind.end()
    return None


def _judge(rule: Rule, match: re.Match[bytes]) -> Match | None:
    groups = match.re.groupindex
    shown = match.end("show") if "show" in groups else match.start()
    told = shown if "show" in groups else match.end("begin") if "begin" in groups else match.start()
    value = match[0][told - match.start() :]
    proof = match[0] if rule.check in ("jwt", "nkey") else value
    if not _CHECKS[rule.check](proof):
        return None
    sure = rule.check in ("jwt", "nkey") or (rule.check == "crc" and value_checks.has_crc(value))
    return Match(shown, match.end(), rule.id, 0.99 if sure else 0.8 if rule.weak else 0.95)


def _signs(rules: tuple[Rule, ...]) -> list[str]:
    """Expressions for the one pass. What begins with a common word needs a digit soon after."""
    strong = sorted({re.escape(text) for rule in rules if not rule.weak for text in rule.at})
    weak = sorted({re.escape(text) for rule in rules if rule.weak for text in rule.at})
    return [
        rf"(?:\b|_)(?:{'|'.join(strong)})",
        rf"\b(?:{'|'.join(weak)})[A-Za-z0-9_.+/=%-]{{{_WEAK_TAIL}}}",
        *[rule.shape for rule in rules if rule.shape],
    ]
