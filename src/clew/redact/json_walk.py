"""The texts of a JSON value that are worth a look, each with what stands around it.

Every string of the value is met, keys and nested JSON included; only ids, hashes, signatures and pictures are left
out. Nothing here decides what is a secret.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from clew.model.json import JSON
from clew.redact.credential_files import is_credential_file, read_by
from clew.redact.json_text import number_text, read
from clew.redact.packed import ORIGIN, is_packed
from clew.redact.skip_rules import ARGUMENTS, CALL_IDS, COMMANDS, PATH_KEYS, SPECIAL, is_left, picture, told_by

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
MOST_STRINGS = 200_000
"""A record with more strings is masked whole."""
# What JSON begins with.
_NESTED = re.compile(r'\{\s*["}]|\[\s*(?:["\]\[{\d\-]|true|false|null|NaN|Infinity)|"')

# What a short key that names the machine has in it: a path, a host, an address.
_PLACE = re.compile(r"[/\\.:]")
_PATCH_SECTION = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,4096})$", re.MULTILINE)
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
    path: str | None = None
    """The credential file that they come from."""


class Collected(NamedTuple):
    """The texts of one value."""

    found: list[Leaf]
    joints: list[Joint]
    seams: list[Joint]
    cut: list[str]
    """Titles and the like, which may end in the middle of something."""
    nested: list[str]
    """Texts that are JSON themselves; what they hold is met as well. Inner ones come behind outer ones."""
    packed: list[str]
    """The base64 of an original that travels along."""
    own: list[str]
    """Short keys and texts, and numbers: only a user's own rules look at them."""


class Leaves:
    """Collects the texts of values, one value after the other; remembers which file a call was about."""

    def __init__(self, has_own_rules: bool = False) -> None:
        self._has_own_rules = has_own_rules
        self.paths: dict[str, str] = {}
        """The credential files that calls were about, by the ids of the calls."""
        self.plain = ""
        """A text that is no JSON, as was seen before."""
        self._into = Collected([], [], [], [], [], [], [])
        self._stack: list[tuple[JSON, str, str | None]] = []
        self._met = 0
        self._answered: str | None = None
        """The credential file that the call was about which a record answers."""

    def collect(self, value: JSON, path: str | None = None) -> Collected | None:
        """Meet every text of a value; None where there are more than `MOST_STRINGS`."""
        self._into = collected = Collected([], [], [], [], [], [], [])
        self._met = 0
        stack = self._stack
        self._answered = self._path_of_answer(value) if self.paths else None
        stack.append((value, "", path))
        while stack:
            item, key, path = stack.pop()
            kind = type(item)
            if kind is dict:
                self._object(item, key, path)
            elif kind is list or kind is tuple:
                self._list(item, key, path)
            elif kind is str:
                self._text(item, key, path)
            if self._met > MOST_STRINGS:
                stack.clear()
                return None
        return collected

    def _object(self, value: dict[str, JSON], own: str, path: str | None) -> None:
        stack = self._stack
        counts = is_count(own)
        body = name = None
        if value.get("type") == ORIGIN:
            self._into.packed.extend(item for item in value.values() if type(item) is str and is_packed(item))
        if self.paths or not SPECIAL.isdisjoint(value):
            path = self._path_of(value) or path
            body = picture(value)
            name = value.get("name", value.get("key")) if "value" in value else None
        answered = self._answered
        for key, item in value.items():
            kind = type(item)
            # Claude Code keeps the output of a call beside the message that answers it.
            file = answered if answered is not None and key == "toolUseResult" else path
            if kind is str:
                if key != body:
                    self._text(item, name if key == "value" and type(name) is str else key, file)
            elif kind is dict or kind is list or kind is tuple:
                # A snapshot has files by their paths.
                stack.append((item, key, key if "." in key and is_credential_file(key) else file))
            elif kind is int and LEAST_NUMBER <= item < MOST_NUMBER and not counts:
                self._number(item, key)
            if len(key) >= SHORTEST_KEY or (len(key) >= SHORTEST and _PLACE.search(key) is not None):
                self._met += 1
                self._into.found.append((key, "", "", None))
            elif self._has_own_rules:
                self._into.own.append(key)
            if self._has_own_rules and (kind is int or kind is float):
                self._into.own.append(number_text(item))

    def _number(self, number: int, key: str) -> None:
        digits = str(number)
        if not is_count(key) and not is_left(key, digits):
            self._met += 1
            self._into.found.append((digits, f'"{key}": ' if key else "", "", None))

    def _text(self, text: str, key: str, path: str | None) -> None:
        self._met += 1
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
            if type(value) is dict or type(value) is list or (type(value) is str and value != text):
                self._into.nested.append(text)
                self._stack.append((value, key, path))
                return
        if " File: " in text:
            self._patch(text)
        if path is not None and key in _OTHER_WORDS:
            path = None
        if key and (path is not None or told.names_secret):
            quote = '"' if _PLAIN.fullmatch(text) is not None else ""
            self._into.found.append((text, f'"{key}": {quote}', quote, path))
            if path is None:
                return
        if len(text) >= SHORTEST:
            self._into.found.append((text, "", "", path))
        elif self._has_own_rules:
            self._into.own.append(text)

    def _patch(self, text: str) -> None:
        """The parts of a patch, as Codex writes them, that change credential files."""
        end = len(text)
        for section in reversed(list(_PATCH_SECTION.finditer(text))):
            if is_credential_file(path := section[1].strip()):
                self._into.joints.append(Joint(((text, section.end(), end),), "", path=path))
            end = section.start()

    def _list(self, items: list[JSON], key: str, path: str | None) -> None:
        if len(items) > 1:
            kinds = set(map(type, items))
            if str in kinds:
                self._words(tuple(item for item in items if type(item) is str))
            if dict in kinds:
                self._edges(items)
        for item in reversed(items):  # the last is taken from the stack first
            kind = type(item)
            if kind is str:
                self._text(item, key, path)
            elif kind is dict or kind is list or kind is tuple:
                self._stack.append((item, key, path))
            elif kind is int and LEAST_NUMBER <= item < MOST_NUMBER:
                self._number(item, key)
            if self._has_own_rules and (kind is int or kind is float):
                self._into.own.append(number_text(item))

    def _words(self, texts: tuple[str, ...]) -> None:
        """The words of a command, or the lines of a file, each a text of its own."""
        is_block = any("-----BEGIN" in text for text in texts)
        if is_block or (len(texts) <= _MOST_WORDS and sum(map(len, texts)) <= _MOST_JOINED):
            windows = tuple((text, 0, len(text)) for text in texts)
            self._into.joints.append(Joint(windows, "\n" if is_block else " "))

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

    def _path_of_answer(self, record: JSON) -> str | None:
        """The credential file that one of the calls was about which a record answers in the blocks of its message."""
        message = record.get("message", record) if type(record) is dict else None
        blocks = message.get("content") if type(message) is dict else None
        for block in blocks if type(blocks) is list else ():
            for call in _calls(block) if type(block) is dict else ():
                if call in self.paths:
                    return self.paths[call]
        return None

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
