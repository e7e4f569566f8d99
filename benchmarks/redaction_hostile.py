"""Masks texts and sessions that are built to be slow: prints the speed of each, and whether a planted secret leaks.

python -m benchmarks.redaction_hostile --size 200000
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import string
import time
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import NamedTuple

from benchmarks import redaction_calls, redaction_sessions
from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import Redactor, Setting
from clew.redact.token_rules import builtin

PLANTED = "Vt5y" + "Marble42x"
_WORD = string.ascii_letters + string.digits + "_-"
_NAMES = "password secret client_key db_pass token api.key _auth credential passphrase TOKEN DB_PASSWORD".split()
_SURROUNDINGS = (
    "://|@|bearer |basic |authorization:|?key=|cookie: a=| -u | --db-password |sshpass -p | -pA|password is |<a:secret>"
    '|kind: Secret|"auth\\":"ab|eyJ|%3D|\\u0041|\\/|/home/|10.0.0.1|x@y.zz|+33|1234|-----BEGIN PRIVATE KEY-----|\n|"|\\'
).split("|")
Make = Callable[[random.Random, int], str]


class Row(NamedTuple):
    """The result of one input."""

    name: str
    megabytes_per_second: float
    leaks: bool


def _repeat(size: int, piece: Callable[[], str]) -> str:
    pieces, length = [], 0
    while length < size:
        pieces.append(piece())
        length += len(pieces[-1])
    return "".join(pieces)


def _chars(chance: random.Random, most: int, alphabet: str = _WORD) -> str:
    return "".join(chance.choices(alphabet, k=chance.randrange(most + 1)))


def _assignments(chance: random.Random, size: int) -> str:
    return _repeat(size, lambda: f"{chance.choice(_NAMES)}={_chars(chance, 20)}7x\n")


def _one_of(units: list[str], between: int = 0) -> Make:
    """Return a generator of units in random order, with up to so many letters between them."""
    return lambda chance, size: _repeat(size, lambda: chance.choice(units) + _chars(chance, between))


def _encoded(encode: Callable[[str], str]) -> Make:
    """Return a generator of encoded assignments."""
    return lambda chance, size: _repeat(size, lambda: encode(_assignments(chance, 60)))


def texts() -> dict[str, Make]:
    """Return the generators of texts, by name."""
    beginnings = [text for rule in builtin()[1] for text in rule.at]
    return {
        "beginnings of tokens": _one_of(beginnings, 11),
        "every candidate": _one_of([*beginnings, *_SURROUNDINGS, *_NAMES]),
        "every candidate, apart": _one_of([*beginnings, *_SURROUNDINGS, *_NAMES], 20),
        "assignments": _assignments,
        "URLs": _one_of(["://", ":", "@", "/"], 40),
        "numbers": lambda chance, size: _repeat(size, lambda: _chars(chance, 25, "0123456789 -.AB@+")),
        "fractions": lambda chance, size: _repeat(size, lambda: f"{chance.uniform(-1, 1):.17f}, "),
        "base64 of assignments": _encoded(lambda text: base64.b64encode(text.encode()).decode() + "\n"),
        "base64 of noise": lambda chance, size: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "Unicode escapes": _encoded(lambda text: "".join(f"\\u{ord(char):04x}" for char in text)),
        "percent escapes": _encoded(lambda text: "".join(f"%{ord(char):02X}" for char in text)),
        "JSON in JSON": _encoded(lambda text: json.dumps(json.dumps(json.dumps({"a": text})))),
        **{repr(unit): partial(_repeated, unit) for unit in ("sk-", "://", "password=", "eyJ", "\\", "%3D", "a@b.c ")},
    }


def _repeated(unit: str, _: random.Random, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def _in_records(make: Make) -> Make:
    def records(chance: random.Random, size: int) -> str:
        text = make(chance, size)
        pieces = (text[start : start + 5000] for start in range(0, len(text), 5000))
        return "".join(json.dumps({"text": piece}) + "\n" for piece in pieces)

    return records


def nested_values(_: random.Random, size: int) -> str:
    """Return passwords of which each begins the next, and text in which they all overlap."""
    password = "".join(chr(97 + number * 7 % 26) + str(number % 10) for number in range(200))
    values = [json.dumps({"env": f"DB_PASSWORD={password[:length]}"}) for length in range(8, 200, 4)]
    return "\n".join([*values, json.dumps({"text": password * (size // len(password))})]) + "\n"


def measure(size: int, only: str = "") -> Iterator[Row]:
    """Mask every input once, with the profiles `secrets` and `all`."""
    sessions = {f"{name}, in records": _in_records(make) for name, make in texts().items()}
    sessions |= redaction_sessions.SESSIONS | redaction_calls.KINDS | {"nested values": nested_values}
    for profile in ("secrets", "all"):
        for name, make in texts().items():
            if only in name:
                text = make(random.Random(1), size) + f"\nDB_PASSWORD={PLANTED}\n"
                yield _row(f"text: {name} ({profile})", len(text), partial(redact, text, profile))
        for name, make in sessions.items():
            if only in name:
                line = json.dumps({"env": f"DB_PASSWORD={PLANTED}"})
                content = (make(random.Random(1), size).rstrip("\n") + f"\n{line}\n").encode("utf-8", "replace")
                yield _row(f"session: {name} ({profile})", len(content), partial(_mask, content, profile))


def _row(name: str, size: int, work: Callable[[], str]) -> Row:
    begin = time.process_time()
    masked = work()
    return Row(name, size / 1e6 / max(1e-6, time.process_time() - begin), PLANTED in masked)


def _mask(content: bytes, profile: str) -> str:
    redactor = Redactor(Setting(profile, Marker(b"benchmark")))
    return b"".join(mask_file(partial(BytesIO, content), redactor)).decode("utf-8", "replace")


def main() -> None:
    """Print a row for each input, and how many leak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=200_000, help="bytes of each input")
    parser.add_argument("--only", default="", help="inputs with this in their name")
    options = parser.parse_args()
    rows = []
    for row in measure(options.size, options.only):
        rows.append(row)
        print(f"{row.megabytes_per_second:9.2f} MB/s  {row.name}{'  LEAKS' if row.leaks else ''}", flush=True)
    print(f"{len(rows)} inputs, {sum(row.leaks for row in rows)} leak")


if __name__ == "__main__":
    main()
