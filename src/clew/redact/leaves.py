"""The texts of a JSON value that are worth a look, each with what stands around it.

Every string of the value is met, keys and nested JSON included; only ids, hashes, signatures and pictures are left
out. Nothing here decides what is a secret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from clew.model.json import JSON
from clew.redact.commands import is_credential_file, read_by
from clew.redact.jsontext import read
from clew.redact.untouched import ARGUMENTS, CALL_IDS, COMMANDS, PATH_KEYS, SPECIAL, Key, is_left, picture, told_by

SHORTEST = 5
"""Shorter texts hide nothing, unless their key says so."""
SHORTEST_KEY = 12
LEAST_NUMBER, MOST_NUMBER = 10**11, 10**19
"""Only numbers as long as those of cards are looked at, and never one that counts tokens."""
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_MOST_WORDS = 64
_MOST_JOINED = 8192
_EDGE = 4096
"""So much of two neighbouring blocks is looked at together."""
_MOST_CALLS = 10_000
_MANY, _MANY_MEMBERS = 8, 512
# What reading a text as JSON costs, in texts that are met; what looking at a number, or a joined text, costs besides.
_READ, _NUMBER, _JOINED = 4, 1, 2
# What is read from a credential file is searched by itself.
_ALONE = 32
# What JSON begins with.
_NESTED = re.compile(r'\{\s*["}]|\[\s*(?:["\]\[{\d\-]|true|false|null|NaN|Infinity)|"')

# What a short key that names the machine has in it: a path, a host, an address.
_PLACE = re.compile(r"[/\\.:]")
_OTHER_WORDS = PATH_KEYS | {
    *COMMANDS,
    *"description prompt name tool_name type pattern query cwd workdir title".split(),
}
"""Keys whose words do not come from the file that a call is about."""


Leaf = tuple[str, str, str, str | None]
"""A text to be looked at, what stands before and behind it, so that its name is seen with it, and its file."""


Window = tuple[str, int, int]
"""A text, and from where to where in it."""


class Joint(NamedTuple):
    """Texts that follow each other, and may hold one value together: of each a window."""

    windows: tuple[Window, ...]
    between: str
    is_seam: bool = False
    """Only what lies across counts, and only where it is beyond doubt: the texts are whole by themselves."""


class Collected(NamedTuple):
    """The texts of one value."""

    found: list[Leaf]
    joints: list[Joint]
    seams: list[Joint]
    cut: list[str]
    """Titles and the like, which may end in the middle of something."""
    nested: list[str]
    """Texts that are JSON themselves; what they hold is met as well. Inner ones come behind outer ones."""
    again: list[str]
    """Texts that were looked at before, and held nothing then."""


class Leaves:
    """Collects the texts of values, one value after the other; remembers which file a call was about."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        """The credential files that calls were about, by the ids of the calls."""
        self.clean: set[str] = set()
        """Texts that were looked at before, and held nothing."""
        self.plain = ""
        """A text that is no JSON, as was seen before."""
        self._into = Collected([], [], [], [], [], [])
        self.sift: Callable[[list[JSON]], list[JSON] | None] | None = None
        """Chooses the items of a long list, or the members of a large object, that must be met; None for too many."""
        self._stack: list[tuple[JSON, str, str | None]] = []
        self._tried = self._seams = self._opened = 0
        self._most = sys.maxsize
        self.nested = 0
        """How many bytes of the last value's texts were read as JSON."""

    def collect(self, value: JSON, path: str | None = None) -> Collected:
        """Meet every text of a value."""
        return self.collect_some(value, path, sys.maxsize) or Collected([], [], [], [], [], [])

    def collect_some(self, value: JSON, path: str | None, most: int) -> Collected | None:
        """The same, unless there are more than so many: then none."""
        self._into = collected = Collected([], [], [], [], [], [])
        self._tried = self._seams = self._opened = self.nested = 0
        self._most = most
        stack = self._stack
        stack.append((value, "", path))
        while stack:
            if len(collected.found) + self._tried + self._opened // 2 > most:
                break
            self._opened += 1
            item, key, path = stack.pop()
            kind = type(item)
            if kind is dict:
                self._object(item, key, path)
            elif kind is list or kind is tuple:
                self._list(item, key, path)
            elif kind is str:
                self._text(item, key, path)
        if not stack and self._tried <= most:
            return collected
        stack.clear()
        return None

    @property
    def cost(self) -> int:
        """How many texts were met in the last value; one that was read or joined to others counts several times.

        Two objects or lists count like one.
        """
        return len(self._into.found) + self._tried + self._seams + self._opened // 2

    def _object(self, value: dict[str, JSON], own: str, path: str | None) -> None:
        clean, stack = self.clean, self._stack
        counts = is_count(own)
        body = name = None
        if self.paths or not SPECIAL.isdisjoint(value):
            path = self._path_of(value) or path
            body = picture(value)
            name = value.get("name", value.get("key")) if "value" in value else None
        elif len(value) >= _MANY_MEMBERS and self.sift is not None and path is None:
            chosen = self._sifted([{key: item} for key, item in value.items()])
            if len(chosen) < len(value):
                value = {key: item for member in chosen for key, item in member.items()}
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                if item in clean:
                    self._into.again.append(item)
                elif key != body:
                    self._text(item, name if key == "value" and type(name) is str else key, path)
            elif kind is dict or kind is list or kind is tuple:
                # A snapshot has files by their paths.
                stack.append((item, key, key if "." in key and is_credential_file(key) else path))
            elif kind is int and LEAST_NUMBER <= item < MOST_NUMBER and not counts:
                self._number(item, key)
            if len(key) >= SHORTEST_KEY or (len(key) >= SHORTEST and _PLACE.search(key) is not None):
                if key in clean:
                    self._into.again.append(key)
                else:
                    self._into.found.append((key, "", "", None))

    def _number(self, number: int, key: str) -> None:
        digits = str(number)
        if not is_count(key) and not is_left(key, digits):
            self._into.found.append((digits, f'"{key}": ' if key else "", "", None))
            self._tried += _NUMBER

    def _text(self, text: str, key: str, path: str | None) -> None:
        told = told_by(key)
        if (told.may_leave or text.startswith("data:")) and is_left(key, text):
            return
        if told.is_cut:
            self._into.cut.append(text)
        if (
            len(text) > 1
            and text[0] in '{["'
            and text[-1] in '}]" \n'
            and text is not self.plain
            and _NESTED.match(text)
        ):
            value = read(text)
            self._tried += _READ
            self.nested += len(text)
            if type(value) is dict or type(value) is list or (type(value) is str and value != text):
                self._into.nested.append(text)
                self._stack.append((value, key, path))
                return
        if path is not None and key in _OTHER_WORDS:
            path = None
        if key and (path is not None or told.names_secret):
            quote = '"' if _PLAIN.fullmatch(text) is not None else ""
            self._into.found.append((text, f'"{key}": {quote}', quote, path))
            if path is None:
                return
            self._tried += _ALONE
        if len(text) >= SHORTEST:
            self._into.found.append((text, "", "", path))

    def _list(self, items: list[JSON], key: str, path: str | None) -> None:
        chosen = items
        if len(items) > 1:
            kinds = set(map(type, items))
            if path is None and len(items) >= _MANY:
                chosen = self._worth(items, kinds, told_by(key))
            if str in kinds:
                self._words(tuple(item for item in items if type(item) is str))
            if dict in kinds and self._tried <= self._most:
                self._edges(items)
        for item in reversed(chosen):  # the last is taken from the stack first
            kind = type(item)
            if kind is str:
                if item in self.clean:
                    self._into.again.append(item)
                else:
                    self._text(item, key, path)
            elif kind is dict or kind is list or kind is tuple:
                self._stack.append((item, key, path))
            elif kind is int and LEAST_NUMBER <= item < MOST_NUMBER:
                self._number(item, key)

    def _worth(self, items: list[JSON], kinds: set[type], told: Key) -> list[JSON]:
        """The items of a long list that must be met, each once."""
        if told.names_secret or told.is_cut:
            return items
        if kinds == {str}:
            items = [item for item in dict.fromkeys(items) if len(item) >= SHORTEST]
        if self.sift is None or (kinds != {dict} and len(items) < _MANY_MEMBERS):
            return items
        return self._sifted(items)

    def _sifted(self, items: list[JSON]) -> list[JSON]:
        """Those of many items that must be met; none where there are too many for the value to be met at all."""
        chosen = items if self.sift is None else self.sift(items)
        if chosen is not None:
            return chosen
        self._tried = max(self._tried, self._most + 1)
        return items if self._most == sys.maxsize else []

    def _words(self, texts: tuple[str, ...]) -> None:
        """The words of a command, or the lines of a file, each a text of its own."""
        is_block = any("-----BEGIN" in text for text in texts)
        if is_block or (len(texts) <= _MOST_WORDS and sum(map(len, texts)) <= _MOST_JOINED):
            windows = tuple((text, 0, len(text)) for text in texts)
            self._into.joints.append(Joint(windows, "\n" if is_block else " "))
            self._tried += _JOINED * len(windows)

    def _edges(self, blocks: list[JSON]) -> None:
        """Blocks of text that follow each other: a value may begin in one and end in the next."""
        texts = list(map(_block_text, blocks))
        if not any(texts):
            return
        chain: list[Window] = []
        for one, other in pairwise(texts):
            if one and other and not one[-1].isspace() and not other[0].isspace():
                length = len(other)
                if not chain:
                    chain.append((one, max(len(one) - _EDGE, 0), len(one)))
                chain.append((other, 0, length if length < _EDGE else _EDGE))
                if length <= _EDGE and len(chain) < _MOST_WORDS:
                    continue
            if chain:
                self._join_seams(chain)
                chain = []
        if chain:
            self._join_seams(chain)

    def _join_seams(self, chain: list[Window]) -> None:
        self._into.seams.append(Joint(tuple(chain), "", is_seam=True))
        self._seams += len(chain)

    def _path_of(self, value: dict[str, JSON]) -> str | None:
        """The credential file that an object is about: it names it, or the call it answers did."""
        for name in value.keys() & PATH_KEYS:
            path = value[name]
            if type(path) is str and is_credential_file(path):
                self._note(value, path)
                return path
        for name in ARGUMENTS:
            if name in value:
                path = self._path_in(value[name])
                if path is not None:
                    self._note(value, path)
                    return path
        if not self.paths:
            return None
        return next((self.paths[call] for call in _calls(value) if call in self.paths), None)

    def _note(self, value: dict[str, JSON], path: str) -> None:
        for call in _calls(value):
            self.paths[call] = path
        while len(self.paths) > _MOST_CALLS:
            del self.paths[next(iter(self.paths))]

    def _path_in(self, arguments: JSON) -> str | None:
        """The credential file that the arguments of a call name, be it within a command."""
        if type(arguments) is str and arguments[:1] == "{":
            arguments = read(arguments)
        if type(arguments) is not dict:
            return None
        for name in arguments.keys() & PATH_KEYS:
            path = arguments[name]
            if type(path) is str and is_credential_file(path):
                return path
        return next((read_by(arguments[name]) for name in COMMANDS if name in arguments), None)


def is_count(key: str) -> bool:
    """True for the keys under which tokens are counted."""
    return "oken" in key or key.endswith(("usage", "Usage"))


def _block_text(block: JSON) -> str:
    """The words of a block of text."""
    if type(block) is not dict or ("text" not in block and "thinking" not in block):
        return ""
    text = block.get("text", block.get("thinking"))
    return text if type(text) is str else ""


def _calls(value: dict[str, JSON]) -> list[str]:
    """The ids under which an object is a call, or the result of one."""
    return [call for name in CALL_IDS if type(call := value.get(name)) is str]
