"""A few passes over the bytes of a text for signs, and a closer look where there is one. Linear for any text.

The signs are searched for in groups: one automaton for all of them would get a new state at nearly every byte of a text
without order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.redact import assignments, context_rules, encodings, packed
from clew.redact.matcher import Checks, Find, Hit, LimitedLook, finder, plain_finder, walk_limited
from clew.redact.token_rules import Services
from clew.redact.value_checks import has_digits_and_both_cases

_NEAR = 200
_DEEPEST = 2
_AWS_SECRET = re.compile(rb"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])")


class Engine:
    """The rules for secrets, ready to run."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._encoded = re.compile("|".join(encodings.base64_signs()).encode())
        self.token_signs = [*services.signs, *encodings.base64_signs(), *packed.SIGNS]
        self.context_signs = [*assignments.CANDIDATE_PATTERNS, *context_rules.CANDIDATE_PATTERNS]
        self.find_addresses = [plain_finder(context_rules.ADDRESS_PATTERN)]
        self.find_token: Find = finder(self.token_signs)
        self._find_context = [finder(self.context_signs), *self.find_addresses]

    def all_hits(self, text: bytes, ends: Sequence[int] | None = None) -> list[Hit]:
        """Every secret in some flat strings, joined with borders, and under their escapes and control sequences."""
        return self._layered(text, ends) + encodings.hits_without_controls(text, ends, self._layered)

    def _layered(self, text: bytes, ends: Sequence[int] | None) -> list[Hit]:
        return self.hits(text, ends) + encodings.layered_hits(text, ends, self.hits)

    def hits(self, text: bytes, ends: Sequence[int] | None, checks: Checks | None = None, depth: int = 0) -> list[Hit]:
        """Every secret in some flat strings."""
        found = walk_limited(self.find_token, text, self.look_at_token(depth), ends, checks)
        for find in self._find_context:
            found += walk_limited(find, text, self._look_at_context, ends, checks)
        return found

    def look_at_token(self, depth: int = 0) -> LimitedLook:
        """What stands at the sign of a token; `depth` is how much base64 is around it."""
        services = self._services

        def look(text: bytes, start: int, end: int, checks: Checks) -> tuple[tuple[Hit, ...], int]:
            if text[start] in packed.FIRST_LETTERS and packed.is_sign(text, start, end):
                hit = packed.packed_at(text, start, end)
                return ((hit,), hit.end) if hit else ((), end)
            begin = start + 1 if text[start] == 0x5F else start
            token = services.at(text, begin) or services.split(text, begin) or services.around(text, start)
            if token is not None:
                found = [token, *_near(text, token)]
                while (glued := services.glued(text, token)) and glued.end > token.end:
                    token = glued
                    found.append(token)
                return tuple(found), token.end
            if depth < _DEEPEST and self._encoded.match(text, start):
                return encodings.read_base64(
                    text, start, lambda inside: self.hits(inside, [len(inside)], checks, depth + 1)
                )
            # The next may begin within what looked like the beginning of this one.
            return (), begin + 2

        return look

    def _look_at_context(self, text: bytes, start: int, end: int, checks: Checks) -> tuple[tuple[Hit, ...], int]:
        hits, position = context_rules.match_at(text, start, end)
        return (hits, position) if hits else assignments.match_at(text, start, end)


def _near(text: bytes, token: Hit) -> list[Hit]:
    """The secret half of a pair of AWS keys has no mark of its own; it stands near the other."""
    if token.rule != "aws_access_key":
        return []
    begin, end = max(0, token.start - _NEAR), token.end + _NEAR
    begin = max(begin, text.rfind(0, begin, token.start) + 1)
    border = text.find(0, token.end, end)
    around = _AWS_SECRET.finditer(text, begin, end if border < 0 else border)
    return [
        Hit(match.start(), match.end(), "aws_secret_key", 0.85)
        for match in around
        if has_digits_and_both_cases(match[0])
    ]
