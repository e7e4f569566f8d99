"""Sessions that are built to be slow: short records, deep ones, ones of many texts, values known and nearly known."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

_LETTERS = string.ascii_letters + string.digits
Make = Callable[[random.Random, int], str]


def _word(chance: random.Random, length: int, alphabet: str = _LETTERS) -> str:
    return "".join(chance.choices(alphabet, k=length))


def _lines(size: int, one: Callable[[], str]) -> str:
    lines, length = [], 0
    while length < size:
        lines.append(one() + "\n")
        length += len(lines[-1])
    return "".join(lines)


def _records(size: int, one: Callable[[], object]) -> str:
    return _lines(size, lambda: json.dumps(one()))


def newlines(_: random.Random, size: int) -> str:
    """One record, and nothing but line ends."""
    return "{}\n" + "\n" * size


def empty_records(_: random.Random, size: int) -> str:
    """Records of two brackets."""
    return "{}\n" * (size // 3)


def tiny_tokens(chance: random.Random, size: int) -> str:
    """The shortest records that hold a secret each."""
    return _lines(size, lambda: f'{{"token":"{_word(chance, 8)}"}}')


def tiny_homes(chance: random.Random, size: int) -> str:
    """The shortest that name a user each."""
    return _lines(size, lambda: f'{{"a":"/home/{_word(chance, 2)}"}}')


def tiny_hosts(chance: random.Random, size: int) -> str:
    """The shortest that name a host each."""
    return _lines(size, lambda: f'{{"a":"{_word(chance, 2)}.lan"}}')


def few_hosts(chance: random.Random, size: int) -> str:
    """Short records of which a quarter names a host, behind a backslash."""
    return _records(size, lambda: {"a": chance.choice([f'\\"{_word(chance, 3)}.local', *["no"] * 3])})


def hosts(chance: random.Random, size: int) -> str:
    """Records of twenty hosts."""
    return _records(size, lambda: {"a": " ".join(_word(chance, 3) + ".local" for _ in range(20))})


def few_passwords(chance: random.Random, size: int) -> str:
    """Short records of which a quarter holds a password."""
    return _records(size, lambda: {"a": chance.choice([f"password={_word(chance, 8)}", *["no"] * 3])})


def nearly_json(chance: random.Random, size: int) -> str:
    """Texts that begin and end like JSON, and are none."""
    return _records(size, lambda: {"a": ["{" + _word(chance, 4) + "}" for _ in range(50)], "token": _word(chance, 6)})


def json_in_lists(chance: random.Random, size: int) -> str:
    """Lists of texts that are JSON."""
    return _records(size, lambda: {"a": [json.dumps({"password": _word(chance, 8)}) for _ in range(50)]})


def arguments(chance: random.Random, size: int) -> str:
    """The words of commands, each a text."""
    return _records(size, lambda: {"argv": ["--password", _word(chance, 6)] * 20})


def key_lists(chance: random.Random, size: int) -> str:
    """Lists of keys that follow each other like the words of a command."""
    return _records(size, lambda: {"text": ["ghp_" + _word(chance, 36) for _ in range(28)]})


def one_object(chance: random.Random, size: int) -> str:
    """One document of many short members, and a password."""
    return json.dumps({_word(chance, 6): _word(chance, 6) for _ in range(size // 20)} | {"password": _word(chance, 8)})


def one_list(chance: random.Random, size: int) -> str:
    """One document of many short objects, and a password."""
    return json.dumps([*[{"k": _word(chance, 5)} for _ in range(size // 15)], f"password={_word(chance, 8)}"])


def brackets(chance: random.Random, size: int) -> str:
    """Lists in lists, beside a secret."""
    return _lines(size, lambda: f'{{"token":"{_word(chance, 10)}","a":' + "[" * 400 + "]" * 400 + "}")


def long_numbers(chance: random.Random, size: int) -> str:
    """Numbers as long as those of cards."""
    return _records(size, lambda: {"a": [chance.randrange(10**15, 10**16) for _ in range(30)]})


def documents(chance: random.Random, size: int) -> str:
    """Short documents of clew's own, each with a secret, and each to be stamped."""
    return _lines(size, lambda: f'{{"schema_version":1,"a":"token={_word(chance, 9)}"}}')


def broken(chance: random.Random, size: int) -> str:
    """Records that are no JSON, of pieces of a byte or two, each with a password."""
    units = ('""', ":x", '"":', ",x", "}x", "{:")
    return "{}\n" + _lines(size, lambda: f'{{"a":1,{chance.choice(units) * 60} password={_word(chance, 8)}')


def titles(chance: random.Random, size: int) -> str:
    """Titles of nothing but beginnings of known values."""
    head = _records(1, lambda: {"a": "\n".join("DB_PASSWORD=Abcdef" + _word(chance, 8) for _ in range(100))})
    return head + _records(size - len(head), lambda: {"title": "Abcdef" * 80})


def _known(chance: random.Random) -> tuple[list[str], str]:
    values = [_word(chance, 16) for _ in range(450)]
    return values, "".join(json.dumps({"a": f"DB_PASSWORD={value}"}) + "\n" for value in values)


def known_nearly(chance: random.Random, size: int) -> str:
    """Known values, of which the last letter is missing."""
    values, head = _known(chance)
    return head + _records(size - len(head), lambda: {"t": " ".join(chance.choice(values)[:-1] for _ in range(30))})


def known_spelled(chance: random.Random, size: int) -> str:
    """Known values in hex and base64."""
    values, head = _known(chance)

    def one() -> object:
        raw = chance.choice(values).encode()
        return {"t": chance.choice([raw.hex(), base64.b64encode(raw).decode()])}

    return head + _records(size - len(head), one)


SESSIONS: dict[str, Make] = {
    each.__name__: each
    for each in (
        newlines, empty_records, tiny_tokens, tiny_homes, tiny_hosts, few_hosts, hosts, few_passwords, nearly_json,
        json_in_lists, arguments, key_lists, one_object, one_list, brackets, long_numbers, documents, broken,
        titles, known_nearly, known_spelled,
    )
}  # fmt: skip
