"""Texts and sessions that are built to be slow, from a seed: how fast each goes by, beside the bare floor.

A text is scanned as one; a session is masked as a file, from bytes to bytes: all passes, however short its strings are.
Some are also handed over: all lines at once, as one text, as texts of 4,000 characters, and as values.

python -m benchmarks.redaction_hostile                       every kind
python -m benchmarks.redaction_hostile --only tiny --table   those with a name like this, as rows for docs/redaction.md
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
from clew.redact import Marker, flat, scan
from clew.redact.native import mask_file
from clew.redact.services import builtin
from clew.redact.tree import Redactor, Setting

SIZE = 1_000_000
LEAST = 5.0
"""No input may go by slower, in MB/s."""
_WORD = string.ascii_letters + string.digits + "_-"
_NAMES = (
    "password secret client_key db_pass token api.key _auth mnemonic credential passphrase TOKEN DB_PASSWORD".split()
)
_SURROUNDINGS = (
    "://|@|bearer |basic |authorization:|?key=|&x-amz-signature=|cookie: a=|cookie:| -u | --user=| --db-password "
    "| --pass |sshpass -p |redis-cli x -a | -pA|password is |token was |<password x|<a:secret>|kind: Secret|passwd "
    '|"auth\\":"ab|eyJ|%3D|\\u0041|\\/|/home/|10.0.0.1|x@y.zz|+33|1234|-----BEGIN PRIVATE KEY-----|[REDACTED]|\n|"|\\'
).split("|")
_WARM = "pass" + "word=warm-7-up"
Make = Callable[[random.Random, int], str]


def _chars(chance: random.Random, most: int, alphabet: str = _WORD) -> str:
    return "".join(chance.choices(alphabet, k=chance.randrange(most + 1)))


def _until(size: int, piece: Callable[[], str]) -> str:
    """Pieces, one behind the other."""
    pieces, length = [], 0
    while length < size:
        pieces.append(piece())
        length += len(pieces[-1])
    return "".join(pieces)


def _beginnings() -> list[str]:
    return [text for rule in builtin()[1] for text in rule.at]


def _of(*units: str) -> Make:
    return lambda chance, size: _until(size, lambda: chance.choice(units))


def _repeated(unit: str) -> Make:
    return lambda _, size: (unit * (size // len(unit) + 1))[:size]


def _key(chance: random.Random) -> str:
    return chance.choice(_beginnings()) + "".join(chance.choices(_WORD[:-2], k=40))


def nearly_keys(chance: random.Random, size: int) -> str:
    """Beginnings of keys, each broken off."""
    units = _beginnings()
    return _until(size, lambda: chance.choice(units) + _chars(chance, 11) + chance.choice("()[]{}!~,;|"))


def nearly_assigned(chance: random.Random, size: int) -> str:
    """Names of secrets, with something like a value."""

    def piece() -> str:
        link = (
            chance.choice(["", '"', '\\"', "]", ")"]) + " " * chance.randrange(8) + chance.choice(": = := =>".split())
        )
        return (
            chance.choice(_NAMES) + _chars(chance, 12) + link + _chars(chance, 30, "abcdef_.") + chance.choice("\n é")
        )

    return _until(size, piece)


def nearly_addresses(chance: random.Random, size: int) -> str:
    """Addresses with what may be a password, and no end."""
    return _until(size, lambda: "://" + _chars(chance, 150, _WORD + ":") + chance.choice(" /@"))


def nearly_surrounded(chance: random.Random, size: int) -> str:
    """Headers, flags, tags and sentences, with letters in between."""
    return _until(size, lambda: chance.choice(_SURROUNDINGS) + _chars(chance, 25, _WORD + " :."))


def numbers(chance: random.Random, size: int) -> str:
    """Beginnings of personal numbers."""
    units = "+3|GB82|AB 12|1 2 3|12-34|(202) 555|a.b@c|a@b-|bsn: |cpf|steuer-id|ABCDEF12A|123.456.".split("|")
    return _until(size, lambda: chance.choice(units) + _chars(chance, 25, "0123456789 -.AB@"))


def fractions(chance: random.Random, size: int) -> str:
    """An embedding."""
    return _until(size, lambda: f"{chance.uniform(-1, 1):.17f}, ")


def everything(chance: random.Random, size: int) -> str:
    """Every sign there is, in random order, with nothing in between."""
    return _of(*_beginnings(), *_SURROUNDINGS, *_NAMES)(chance, size)


def everything_apart(chance: random.Random, size: int) -> str:
    """The same, with letters in between."""
    units = [*_beginnings(), *_SURROUNDINGS, *_NAMES]
    return _until(size, lambda: chance.choice(units) + _chars(chance, 20))


def keys(chance: random.Random, size: int) -> str:
    """Nothing but keys."""
    return _until(size, lambda: _key(chance) + "\n")


def assignments(chance: random.Random, size: int) -> str:
    """Nothing but passwords."""
    return _until(size, lambda: f"{chance.choice(_NAMES)}={_chars(chance, 20)}7x\n")


def encoded(chance: random.Random, size: int) -> str:
    """Base64 of assignments, of which some are base64 again."""
    inner = base64.b64encode(assignments(chance, 300).encode()).decode()
    piece = partial(assignments, chance, 60)
    return _until(size, lambda: base64.b64encode((piece() + chance.choice(["", inner])).encode()).decode() + "\n")


def wall(chance: random.Random, size: int) -> str:
    """Base64 of noise."""
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()


def escaped(chance: random.Random, size: int) -> str:
    """Assignments of which every character is an escape."""
    return _until(size, lambda: "".join(f"\\u{ord(char):04x}" for char in assignments(chance, 40)))


def percent(chance: random.Random, size: int) -> str:
    """The same in the escapes of addresses, some letters bare."""
    return _until(size, lambda: "".join(chance.choice([char, f"%{ord(char):02X}"]) for char in assignments(chance, 40)))


def letters(chance: random.Random, size: int) -> str:
    """Letters of many alphabets, with signs among them."""
    units = [*"éßñ日本語Ωя\U0001f600\u200b\ud800", *_NAMES, *_SURROUNDINGS]
    return _of(*units)(chance, size)


def quotes(chance: random.Random, size: int) -> str:
    """JSON in JSON in JSON."""
    return _until(size, lambda: json.dumps(json.dumps(json.dumps({chance.choice(_NAMES): _chars(chance, 20)}))))


def cookies(chance: random.Random, size: int) -> str:
    """Cookies without a line end."""
    return _until(size, lambda: f"Cookie: {_chars(chance, 9)}={_chars(chance, 30)}; ")


TEXTS: dict[str, Make] = {
    each.__name__: each
    for each in (
        nearly_keys, nearly_assigned, nearly_addresses, nearly_surrounded, numbers, fractions, everything,
        everything_apart, keys, assignments, encoded, wall, escaped, percent, letters, quotes, cookies,
    )
}  # fmt: skip
TEXTS |= {
    "signs": _of(*"=:\"\\'`<>@/-_%&?+.,;| \n"),
    "ascii noise": _of(*map(chr, range(32, 127))),
    "beginnings": lambda chance, size: _of(*_beginnings())(chance, size),
    "names": _of(*_NAMES),
    "surroundings": _of(*_SURROUNDINGS),
    **{
        ascii(unit): _repeated(unit)
        for unit in ("=", ":", '"', "\\", "://", "eyJ", "4", "sk-", "\\n", "[REDACTED]", "\0")
    },
}


def _records(one: Callable[[], object], size: int) -> str:
    return _until(size, lambda: json.dumps(one()) + "\n")


def short_strings(chance: random.Random, size: int) -> str:
    """A record for each short string, each with a sign or two."""
    units = [*_beginnings(), *_SURROUNDINGS, *_NAMES]
    return _records(lambda: {"text": chance.choice(units) + _chars(chance, 20) + chance.choice(units)}, size)


def short_keys(chance: random.Random, size: int) -> str:
    """A record for each key, all different."""
    return _records(lambda: {"text": _key(chance)}, size)


def key_again(chance: random.Random, size: int) -> str:
    """A record for each of a few keys."""
    few = [_key(chance) for _ in range(50)]
    return _records(lambda: {"text": chance.choice(few), "more": _chars(chance, 60)}, size)


def many_leaves(chance: random.Random, size: int) -> str:
    """Records of two hundred short strings."""
    return _records(lambda: {f"k{n}": chance.choice(_NAMES) + _chars(chance, 12) for n in range(200)}, size)


def as_keys(chance: random.Random, size: int) -> str:
    """Secrets where names should be."""
    return _records(lambda: {_key(chance): {chance.choice(_NAMES): _chars(chance, 12)}}, size)


def known_values(chance: random.Random, size: int) -> str:
    """Thousands of values that are found, each a second time where nothing but knowing it helps."""

    def one() -> object:
        value = _chars(chance, 9) + "aB3" + _chars(chance, 9)
        return {"input": f"DB_PASSWORD={value}\n", "output": f"log {value} {base64.b64encode(value.encode()).decode()}"}

    return _records(one, size)


def in_quotes(chance: random.Random, size: int) -> str:
    """Records that are JSON in strings."""
    return _records(lambda: {"a": json.dumps({"b": json.dumps({chance.choice(_NAMES): _chars(chance, 20)})})}, size)


def nested_paths(chance: random.Random, size: int) -> str:
    """The same of another machine, in JSON within JSON, beside the name of a host."""

    def one() -> object:
        return {"a": json.dumps({"cwd": f"C:\\Users\\{_chars(chance, 5)}a\\src", "at": f"{_chars(chance, 5)}b.local"})}

    return _records(one, size)


def half_signed(chance: random.Random, size: int) -> str:
    """Short records of which a quarter holds a sign: too few for a crowd."""
    return _records(lambda: {"text": chance.choice([_key(chance), *["nothing " * 4] * 3])}, size)


def one_part(chance: random.Random, size: int) -> str:
    """Values that are known by the same few letters, and these letters everywhere."""
    values = "".join(json.dumps({"a": f"DB_PASSWORD=Zq7{n:03}-QQQQQQ-{n:03}x8"}) + "\n" for n in range(400))
    return values + _records(lambda: {"text": "x-QQQQQQ- " * 40 + _chars(chance, 9)}, size - len(values))


def home_paths(chance: random.Random, size: int) -> str:
    """Short records that all name a home folder."""
    return _records(lambda: {"cwd": f"/home/{_chars(chance, 5)}a/src", "text": _chars(chance, 60)}, size)


def clean(chance: random.Random, size: int) -> str:
    """Short records that hold nothing."""
    return _records(lambda: {"text": " ".join(_chars(chance, 8, string.ascii_lowercase) for _ in range(4))}, size)


SESSIONS: dict[str, Make] = {
    each.__name__: each
    for each in (
        short_strings, short_keys, key_again, many_leaves, as_keys, known_values, in_quotes, home_paths, nested_paths,
        half_signed, one_part, clean,
        keys, assignments, everything,
    )
}  # fmt: skip
SESSIONS |= redaction_sessions.SESSIONS


def _in_records(make: Make, length: int = 5000) -> Make:
    """A text in pieces, each in a record of its own."""

    def records(chance: random.Random, size: int) -> str:
        text = make(chance, size)
        pieces = (text[place : place + length] for place in range(0, len(text), length))
        return "".join(json.dumps({"text": piece}) + "\n" for piece in pieces)

    return records


SESSIONS |= {
    f"{name}, in records": _in_records(TEXTS[name])
    for name in (
        "nearly_assigned", "nearly_addresses", "nearly_surrounded", "everything", "everything_apart", "keys", "encoded",
        "escaped", "percent", "letters", "names", "surroundings", "numbers", "ascii noise",
    )
}  # fmt: skip


def _one_document(make: Make) -> Make:
    """The records of a session as one list, over many lines."""
    return lambda chance, size: "[\n" + ",\n".join(make(chance, size).splitlines()) + "]\n"


def broken_list(chance: random.Random, size: int) -> str:
    """Numbers as long as those of cards, in a list without an end, which is no JSON."""
    return _one_document(SESSIONS["long_numbers"])(chance, size).removesuffix("]\n")


SESSIONS |= redaction_calls.KINDS | {"broken_list": broken_list}
SESSIONS |= {
    f"{name}, as one document": _one_document(SESSIONS[name])
    for name in (
        "short_strings", "short_keys", "known_values", "home_paths", "clean", "half_signed", "arguments", "key_lists",
        "long_numbers", "known_spelled", "nearly_surrounded, in records", "everything, in records",
        "percent, in records", "letters, in records", "surroundings, in records", "same_keys", "many_leaves",
        "numbers, in records", "ascii noise, in records", "nested_paths", "few_hosts", "tiny_hosts",
    )
}  # fmt: skip
CALLED: dict[str, Make] = redaction_calls.KINDS | {
    name: SESSIONS[name]
    for name in ("many_leaves", "everything, in records", "percent, in records", "letters, in records")
}


class Speed(NamedTuple):
    """How fast one input goes by, in MB per second of processor time, and the floor beside it."""

    name: str
    floor: float
    secrets: float
    everything: float


def _rate(size: int, work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return size / 1e6 / max(1e-6, time.process_time() - begin)


def _mask(content: bytes, profile: str) -> None:
    for _ in mask_file(partial(BytesIO, content), Redactor(Setting(profile, Marker(b"benchmark")))):
        pass


def warm() -> None:
    """Have every rule compiled."""
    for profile in ("secrets", "all"):
        scan(_WARM, profile)
        _mask(json.dumps({"a": _WARM}).encode() + b"\n", profile)
    for rule in builtin()[1]:
        for begin in rule.at:
            scan(begin + "7x" * 30, "secrets")


def speeds(size: int = SIZE, seed: int = 1, only: str = "") -> Iterator[Speed]:
    """Every kind, the first time that its text is seen, by rules that are compiled, which is done once."""
    warm()
    for name, make in _named(TEXTS, only):
        text = make(random.Random(seed), size)
        raw = flat.to_bytes(text)
        rates = [_rate(len(raw), partial(scan, text, profile)) for profile in ("secrets", "all")]
        yield Speed(f"text: {name}", _rate(len(raw), partial(_encoded, text)), *rates)
    for name, make in _named(SESSIONS, only):
        content = make(random.Random(seed), size).encode()
        rates = [_rate(len(content), partial(_mask, content, profile)) for profile in ("secrets", "all")]
        yield Speed(f"session: {name}", _rate(len(content), partial(_parsed_all, content)), *rates)
    for name, make in _named(CALLED, only):
        text = make(random.Random(seed), size)
        length = len(flat.to_bytes(text))
        floor = _rate(length, partial(_encoded, text))
        for way in redaction_calls.WAYS:
            works = [redaction_calls.called(way, text, profile) for profile in ("secrets", "all")]
            yield Speed(f"{way}: {name}", floor, *[_rate(length, work) for work in works])


def _named(kinds: dict[str, Make], only: str) -> list[tuple[str, Make]]:
    return [(name, make) for name, make in kinds.items() if only in name]


def _encoded(text: str) -> int:
    return flat.to_bytes(text).find(0)


def _parsed_all(content: bytes) -> list[object]:
    return [_parsed(line) for line in content.splitlines()]


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def lines(size: int = SIZE, only: str = "") -> Iterator[str]:
    """The rows of the report."""
    yield f"  built to be slow, {size / 1e6:.1f} MB each{'':16} floor  secrets      all  (MB/s)"
    for each in speeds(size, only=only):
        slow = "  below 5" if min(each.secrets, each.everything) < LEAST else ""
        yield f"    {each.name:36} {each.floor:9.1f} {each.secrets:8.1f} {each.everything:8.1f}{slow}"


def table(size: int = SIZE, only: str = "") -> Iterator[str]:
    """The same as a table of docs/redaction.md."""
    yield f"| built to be slow, {size / 1e6:g} MB each | floor | `secrets` | `all` |"
    yield "|---|---|---|---|"
    for each in speeds(size, only=only):
        yield f"| {each.name} | {each.floor:,.0f} | {each.secrets:.1f} | {each.everything:.1f} |"


def main() -> None:
    """As a program of its own, with more to choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of each")
    parser.add_argument("--table", action="store_true", help="print Markdown")
    chosen = parser.parse_args()
    for line in (table if chosen.table else lines)(chosen.size, chosen.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
