"""Two passes over the bytes of a text for signs, and a closer look where there is one. Linear for any text.

One pass is for tokens with a form of their own, one for what only the surroundings give away: together they would make
an automaton with too many states for texts without order.
"""

from __future__ import annotations

import re
from functools import cached_property

from clew.redact import assigned, context, layers
from clew.redact.flat import flatten
from clew.redact.searching import Find, Hit, finder, walk
from clew.redact.services import Services
from clew.redact.values import is_mixed

_NEAR = 200
_DEEPEST = 2
_OTHER_ESCAPES = re.compile(rb"\\(?:u[0-9A-Fa-f]{4}|[bf])")
_AWS_SECRET = re.compile(rb"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])")


class Engine:
    """The rules for secrets, ready to run."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._encoded = re.compile("|".join(layers.base64_signs()).encode())
        self.token_signs = [*services.signs, *layers.base64_signs()]
        self.context_signs = [*assigned.SIGNS, *[reader.sign for reader in context.READERS]]
        self._find_token, self._find_context = finder(self.token_signs), finder(self.context_signs)
        self._readers: dict[int, list[context.Reader]] = {}
        for reader in context.READERS:
            for char in {*reader.starts, *reader.starts.upper()}:
                self._readers.setdefault(char, []).append(reader)

    @cached_property
    def find_sign(self) -> Find:
        """Finds the first sign of a secret, or of an escape that can hide one: a text without has none."""
        signs = [*self.token_signs, *self.context_signs]
        # Over bytes that were not made flat: a token may follow an escaped line end.
        return finder([sign.replace(r"\b", r"(?:\b|\\[nrt])") for sign in signs] + [*layers.SIGNS])

    def has_token(self, record: bytes) -> bool:
        """True for JSON text that holds a token with a form of its own, escapes and all."""
        plain = _OTHER_ESCAPES.sub(b" ", flatten(record))
        return bool(walk(self._find_token, plain, self._look_at_record, apart=self._tokens_apart))

    def all_hits(self, text: bytes) -> list[Hit]:
        """Every secret in some flat bytes, and under their escapes."""
        return self.hits(text) + layers.layered_hits(text, self.hits)

    def hits(self, text: bytes, depth: int = 0) -> list[Hit]:
        """Every secret in some flat bytes."""

        def at_token(text: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
            return self._look_at_token(text, start, end, depth)

        return walk(self._find_token, text, at_token, apart=self._tokens_apart) + walk(
            self._find_context, text, self._look_at_context, apart=self._context_apart
        )

    def _tokens_apart(self) -> list[Find]:
        return self._apart[0]

    def _context_apart(self) -> list[Find]:
        return self._apart[1]

    @cached_property
    def _apart(self) -> tuple[list[Find], list[Find]]:
        """The finders of groups of signs that share few states."""
        strong, weak, *shapes = self._services.signs
        address = next(reader.sign for reader in context.READERS if reader.read is context.read_address)
        others = [reader.sign for reader in context.READERS if reader.sign != address]
        tokens = ([strong], [weak], shapes, layers.base64_signs())
        return [finder(group) for group in tokens], [finder(group) for group in (assigned.SIGNS, [address], others)]

    def _look_at_record(self, text: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
        return self._look_at_token(text, start, end, 0)

    def _look_at_token(self, text: bytes, start: int, end: int, depth: int) -> tuple[tuple[Hit, ...], int]:
        begin = start + 1 if text[start] == 0x5F else start
        services = self._services
        token = services.at(text, begin) or services.split(text, begin) or services.around(text, start)
        if token is not None:
            return (token, *_near(text, token)), token.end
        if depth < _DEEPEST and self._encoded.match(text, start):
            return layers.read_base64(text, start, lambda inside: self.hits(inside, depth + 1))
        return (), end

    def _look_at_context(self, text: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
        for reader in self._readers.get(text[start], ()):
            hits = reader.read(text, start)
            if hits:
                return hits, hits[-1].end
        return assigned.read_assigned(text, start)


def _near(text: bytes, token: Hit) -> list[Hit]:
    """The secret half of a pair of AWS keys has no mark of its own; it stands near the other."""
    if token.rule != "aws_access_key":
        return []
    begin = max(0, token.start - _NEAR)
    around = _AWS_SECRET.finditer(text, begin, token.end + _NEAR)
    return [Hit(match.start(), match.end(), "aws_secret_key", 0.85) for match in around if is_mixed(match[0])]
