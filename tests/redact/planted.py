"""Values that must not come out, made at run time so that no file of the project holds one, and the forms they take."""

from __future__ import annotations

import base64
import json
import random
import string
import urllib.parse
from collections.abc import Iterator

MIN_FORM_CHARS = 8
"""A shorter form proves nothing: it may stand anywhere."""
_DIGITS, _LETTERS = string.digits, string.ascii_letters


class Planter:
    """Makes format-valid secrets from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def chars(self, count: int, alphabet: str = _LETTERS + _DIGITS) -> str:
        """Characters that look like those of a key: of every kind."""
        while True:
            text = "".join(self._random.choice(alphabet) for _ in range(count))
            if count < 12 or len(set(text)) > min(6, len(alphabet) - 2):
                return text

    def github(self) -> str:
        return "gh" + "p_" + self.chars(36)

    def anthropic(self) -> str:
        return "sk-" + "ant-api03-" + self.chars(93, _LETTERS + _DIGITS + "_-") + "AA"

    def openai(self) -> str:
        return "sk-" + "proj-" + self.chars(48)

    def google(self) -> str:
        return "AI" + "za" + self.chars(35, _LETTERS + _DIGITS + "_-")

    def aws_id(self) -> str:
        return "AK" + "IA" + self.chars(16, string.ascii_uppercase + "234567")

    def aws_secret(self) -> str:
        return self.chars(40, _LETTERS + _DIGITS + "+/")

    def slack(self) -> str:
        return "xo" + "xb-" + self.chars(12, _DIGITS) + "-" + self.chars(12, _DIGITS) + "-" + self.chars(24)

    def jwt(self) -> str:
        parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": self.chars(10, _DIGITS), "name": self.chars(12)}]
        head = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        return head + "." + self.chars(43, _LETTERS + _DIGITS + "-_")

    def password(self) -> str:
        return self.chars(5) + self._random.choice("#%+=!") + self.chars(6) + "9x"

    def pem(self) -> str:
        body = base64.b64encode(self._random.randbytes(480)).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        name = "OPENSSH PRIVATE" + " KEY"
        return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"])


def card(prefix: str = "4539", seed: int = 7) -> str:
    """A card number that passes its checksum."""
    digits = [int(char) for char in prefix] + [random.Random(seed).randrange(10) for _ in range(15 - len(prefix))]
    doubled = [d if at % 2 else (d * 2 - 9 if d > 4 else d * 2) for at, d in enumerate(digits)]
    return "".join(map(str, digits)) + str(-sum(doubled) % 10)


def forms(value: str) -> Iterator[bytes]:
    """A value as it may stand in a file: plain, escaped once, twice and thrice, in URLs, base64 and hex."""
    text = value
    for _ in range(3):
        yield text.encode()
        text = json.dumps(text)[1:-1]
    raw = value.encode()
    yield urllib.parse.quote(value, safe="").encode()
    yield urllib.parse.quote_plus(value).encode()
    yield base64.b64encode(raw)
    yield base64.urlsafe_b64encode(raw).rstrip(b"=")
    for shift in (1, 2):
        # The middle of a longer text in base64.
        yield base64.b64encode(b"\0" * shift + raw)[4:-4]
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield "".join(f"\\u{ord(char):04x}" for char in value).encode()


def held(content: bytes, values: dict[str, str]) -> list[str]:
    """The names of the values that some bytes hold, in any form; a long one also in its middle parts."""
    found = []
    for name, value in values.items():
        parts = [value] if "\n" not in value else [line for line in value.split("\n") if not line.startswith("-----")]
        if any(form in content for part in parts for form in forms(part) if len(form) >= MIN_FORM_CHARS):
            found.append(name)
    return found
