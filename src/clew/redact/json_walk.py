"""Collects the strings of a JSON value that are worth scanning, each with its context.

Every string is met, keys and JSON inside strings included. Never scanned are ids, hashes, timestamps, signatures and
base64 images: both the key and the value must have the form of one. Which strings are secrets is not decided here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from clew.model.json import JSON
from clew.redact.credential_files import is_credential_file, read_by
from clew.redact.encodings import to_bytes
from clew.redact.findings import Finding
from clew.redact.json_text import number_text, read
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.packed import BEGINNINGS, ORIGIN, is_packed
from clew.redact.secret_names import meaning
from clew.redact.token_rules import builtin_rules
from clew.redact.value_checks import unbase64

PATH_KEYS = frozenset(
    "file_path filePath filepath path absolute_path notebook_path notebookPath filename file target_file".split()
)
"""Keys under which calls, results and snapshots name the file they are about."""
CUT_KEYS = frozenset("title customTitle aiTitle summary firstPrompt lastPrompt first_prompt display preview".split())
"""Keys under which agents and clew keep the beginning of a longer text, cut off somewhere."""
CALL_IDS = tuple("tool_use_id tool_id call_id callId toolCallId tool_call_id toolUseID parentToolUseID id".split())
ARGUMENTS = ("input", "arguments", "args", "parsedArgs", "parameters", "action")
_CALL_BELOW = "toolCall"
"""Goose keeps a call below the object that has its id."""
COMMANDS = ("command", "cmd")

_HEX = r"[0-9A-Fa-f]"
UUID = rf"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_WHOLE_UUID = lazy_compile(UUID)
_ID_PREFIXES = "toolu srvtoolu msg req call fc resp rs ws item chatcmpl agent thread turn".split()
ID = (
    rf"{_HEX}{{6,128}}+(?:@v\d++)?+|\d{{1,20}}+|[a-z]\d++|(?:\w{{1,20}}[-_])?{UUID}"
    rf"|(?:{'|'.join(_ID_PREFIXES)})[-_][\w-]{{2,120}}+"
)
_ID = lazy_compile(ID)
_WORD_BREAK = lazy_compile(r"[^A-Za-z0-9]")
_ID_ENDINGS = (
    "[Ii][Dd] [Ii][Dd]s [Uu][Uu][Ii][Dd] [Uu][Uu][Ii][Dd]s [Hh]ash [Ss]ha [Dd]igest [Cc]hecksum [Cc]ommit".split()
)
"""Endings of keys of ids and hashes, behind a small letter, a digit or nothing."""
_ID_KEY = lazy_compile(rf"(?:^|[_a-z\d])(?:{'|'.join(_ID_ENDINGS)}|[Ss]ha\d+)$")
# In Vault, the password of an application.
_SECRET_ID = lazy_compile(r"(?i)(?<!client)(?<!client[_-])secret[_-]?id$")
CIPHERTEXT_KEYS = frozenset("signature thoughtSignature thought_signature encrypted_content encryptedContent".split())
_ENCRYPTED_OR_SIGNED = lazy_compile(r"[A-Za-z0-9+/_-]{100,}={0,2}")
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
_TIME = lazy_compile(TIME)
TIME_ENDINGS = ("time", "stamp", "_at", "Time", "At", "date", "Date")
_DATA_URL = lazy_compile(r"data:image/[\w.+-]+;base64,")
_MEDIA_KEYS = ("media_type", "mimeType", "mime_type", "mediaType")
_AWS_KEY_IDS, _AWS_KEY_ID_CHARS = ("AKIA", "ASIA"), 20
_PAIR_NAMES = ("name", "key", "ParameterKey")
_PAIR_VALUES = frozenset({"value", "ParameterValue"})
_RELATED_KEYS = "kty kind AccessKeyId accessKeyId aws_access_key_id access_key_id access_key accessKey".split()
SPECIAL = PATH_KEYS | _PAIR_VALUES | {_CALL_BELOW, *ARGUMENTS, *_MEDIA_KEYS, *_RELATED_KEYS}
"""An object without any of these keys names no file, holds no image, and its members are scanned one by one."""
_BODIES = ("data", "image", "document", "base64")
_BASE64 = lazy_compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}")
# Beginnings of images: PNG, JPEG, GIF, TIFF, WebP, AVIF and HEIC.
_IMAGE = lazy_compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|II\*\0|MM\0\*|RIFF....WEBP|....ftyp", re.DOTALL)
_IMAGE_HEAD_CHARS = 24
NAMES_SECRET = (
    "pass pwd secret token key auth cred cookie bearer private session signature sas dsn ssn card iban pin$ otp cvv"
    " cpf bsn pesel aadhaa?r dni$ nif$ nie$ sin$ tax_?id steuer_?id"
).split()
"""Patterns that names of secrets contain."""
_NAMES_SECRET = lazy_compile("(?i)" + "|".join(NAMES_SECRET))

MIN_SCANNED_CHARS = 5
"""Shorter strings are scanned only by a user's own rules, or if their key names a secret."""
_MIN_SCANNED_KEY_CHARS = 12
MIN_SCANNED_NUMBER, SCANNED_NUMBERS_BELOW = 10**11, 10**19
"""Only numbers as long as those of cards are scanned, and never a token count."""
_UNESCAPED = lazy_compile(r'[^"\\\x00-\x1f]*')
_MAX_JOINED_STRINGS = 64
_MAX_JOINED_CHARS = 8192
_EDGE_CHARS = 4096
"""So much of two neighbouring blocks is scanned together."""
_MAX_CALLS = 10_000
MAX_STRINGS = 200_000
"""A record with more strings is masked whole."""
_JSON_START = lazy_compile(r'\{\s*["}]|\[\s*(?:["\]\[{\d\-]|true|false|null|NaN|Infinity)|"')
# Characters of paths, hosts and addresses, for which short keys are scanned.
_PATH_OR_HOST = lazy_compile(r"[/\\.:]")
_PATCH_SECTION = lazy_compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,4096})$", re.MULTILINE)
_NOT_FROM_FILE = PATH_KEYS | {
    *COMMANDS,
    *"description prompt name tool_name type pattern query cwd workdir title".split(),
}
"""Keys whose values do not come from the file that a call is about."""
# A line of a file, or an assignment in one.
_FILE_TEXT = lazy_compile(r"[\n=]|: ")


class StringInContext(NamedTuple):
    """A string to scan, with the text before and behind it that names it, and the credential file it comes from."""

    text: str
    before: str = ""
    behind: str = ""
    path: str | None = None


class Window(NamedTuple):
    """A part of a string."""

    text: str
    start: int
    end: int


class StringGroup(NamedTuple):
    """Strings that follow each other and may hold one value together: a window of each, joined by `between`."""

    windows: tuple[Window, ...]
    between: str
    is_boundary: bool = False
    """Two blocks of text meet here. Only findings across the boundary count, and only with high confidence."""
    path: str | None = None
    """The credential file that the strings come from."""

    def joined(self) -> str:
        """Return the text that the windows make."""
        return self.between.join([text[start:end] for text, start, end in self.windows])

    def split_by_string(self, found: Iterable[Finding], least_confidence: float) -> Iterator[tuple[str, Finding]]:
        """Yield the part of each finding in the joined text that lies in each string."""
        ends = list(accumulate(window.end - window.start + len(self.between) for window in self.windows))
        for finding in found:
            parts = []
            for number in range(bisect_right(ends, finding.start), len(ends)):
                offset = ends[number - 1] if number else 0
                if offset >= finding.end:
                    break
                text, begin, stop = self.windows[number]
                start, end = max(finding.start - offset, 0), min(finding.end - offset, stop - begin)
                if start < end:
                    parts.append((text, finding._replace(start=begin + start, end=begin + end)))
            if not self.is_boundary or (len(parts) > 1 and finding.confidence >= least_confidence):
                yield from parts


class CollectedStrings(NamedTuple):
    """The strings of one JSON value."""

    strings: list[StringInContext]
    groups: list[StringGroup]
    truncated: list[str]
    """Titles and the like, which may end in the middle of a value."""
    nested: list[str]
    """Strings that are JSON themselves; their strings are met as well. Inner ones come behind outer ones."""
    packed: list[str]
    """The base64 of an original that travels along."""
    short: list[str]
    """Short keys and strings, and numbers: only a user's own rules scan them."""


class StringCollector:
    """Collects the strings of values, one value after the other; remembers which file a call was about."""

    def __init__(self, has_user_rules: bool = False) -> None:
        self._has_user_rules = has_user_rules
        self.paths: dict[str, str] = {}
        """The credential files that calls were about, by the ids of the calls."""
        self._into = CollectedStrings([], [], [], [], [], [])
        self._stack: list[tuple[JSON, str, str | None]] = []
        self._count = 0
        self._answered: str | None = None
        """The credential file that one of the calls was about which the record answers."""

    def collect(self, value: JSON, path: str | None = None, *, is_json: bool = True) -> CollectedStrings | None:
        """Meet every string of a value; return None if there are more than `MAX_STRINGS`.

        With `is_json=False`, the value is a text that is known not to be JSON.
        """
        self._into = collected = CollectedStrings([], [], [], [], [], [])
        self._count = 0
        self._answered = self._answered_file(value) if self.paths and is_json else None
        if not is_json:
            self._add_scanned(value, "", path)
            return collected
        stack = self._stack
        stack.append((value, "", path))
        while stack:
            item, key, path = stack.pop()
            kind = type(item)
            if kind is dict:
                self._add_object(item, key, path)
            elif kind is list or kind is tuple:
                self._add_list(item, key, path)
            elif kind is str:
                self._add_string(item, key, path)
            if self._count > MAX_STRINGS:
                stack.clear()
                return None
        return collected

    def _add_object(self, value: dict[str, JSON], own_key: str, path: str | None) -> None:
        stack = self._stack
        counts_tokens = is_count(own_key)
        body = name = None
        if value.get("type") == ORIGIN:
            self._into.packed.extend(item for item in value.values() if type(item) is str and is_packed(item))
        if self.paths or not SPECIAL.isdisjoint(value):
            path = self._credential_file_of(value) or path
            body = image_key(value)
            name = _name_of_pair(value, own_key)
            self._add_related(value)
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                if key != body:
                    self._add_string(item, name if name is not None and key in _PAIR_VALUES else key, path)
            elif kind is dict or kind is list or kind is tuple:
                # A snapshot has files by their paths.
                stack.append((item, key, key if "." in key and is_credential_file(key) else path))
            elif kind is int and MIN_SCANNED_NUMBER <= item < SCANNED_NUMBERS_BELOW and not counts_tokens:
                self._add_number(item, key)
            if len(key) >= _MIN_SCANNED_KEY_CHARS or (
                len(key) >= MIN_SCANNED_CHARS and _PATH_OR_HOST.search(key) is not None
            ):
                self._count += 1
                self._into.strings.append(StringInContext(key))
            elif self._has_user_rules:
                self._into.short.append(key)
            if self._has_user_rules and (kind is int or kind is float):
                self._into.short.append(number_text(item))

    def _add_related(self, value: dict[str, JSON]) -> None:
        """Add strings that are secrets because of another member of the object, with that member as their context."""
        if type(value.get("kty")) is str:
            self._add_with_context(value, '"kty": "x", ')
        if value.get("kind") == "Secret":
            for name in ("data", "stringData"):
                self._add_with_context(value.get(name), f'"kind": "Secret", "{name}": {{')
        for item in value.values():
            if type(item) is str and item.startswith(_AWS_KEY_IDS) and len(item) == _AWS_KEY_ID_CHARS:
                self._add_with_context(value, f"{item} ")

    def _add_with_context(self, value: JSON, before: str) -> None:
        for key, item in value.items() if type(value) is dict else ():
            if type(item) is str and _UNESCAPED.fullmatch(item) is not None:
                self._into.strings.append(StringInContext(item, f'{before}"{key}": "', '"'))

    def _add_number(self, number: int, key: str) -> None:
        digits = str(number)
        if not is_count(key) and not is_opaque(key, digits):
            self._count += 1
            self._into.strings.append(StringInContext(digits, f'"{key}": ' if key else ""))

    def _add_string(self, text: str, key: str, path: str | None) -> None:
        self._count += 1
        key_class = classify_key(key)
        if (key_class.may_be_opaque or text.startswith("data:")) and is_opaque(key, text):
            return
        if key_class.may_be_truncated:
            self._into.truncated.append(text)
        if len(text) > 1 and text[0] in '{["' and text[-1] in '}]" \n' and _JSON_START.match(text):
            value = read(text)
            if type(value) is dict or type(value) is list or (type(value) is str and value != text):
                self._into.nested.append(text)
                self._stack.append((value, key, path))
                return
        self._add_scanned(text, key, path)

    def _add_scanned(self, text: str, key: str, path: str | None) -> None:
        if " File: " in text:
            self._add_patch(text)
        if key in _NOT_FROM_FILE:
            path = None
        if key and (path is not None or classify_key(key).names_secret):
            quote = '"' if _UNESCAPED.fullmatch(text) is not None else ""
            self._into.strings.append(StringInContext(text, f'"{key}": {quote}', quote, path))
            if path is None:
                return
        if path is None and self._answered is not None and _FILE_TEXT.search(text) is not None:
            path = self._answered
        if len(text) >= MIN_SCANNED_CHARS:
            self._into.strings.append(StringInContext(text, "", "", path))
        elif self._has_user_rules:
            self._into.short.append(text)

    def _add_patch(self, text: str) -> None:
        """Add the sections of a patch in the format of Codex that change credential files."""
        end = len(text)
        for section in reversed(list(_PATCH_SECTION.finditer(text))):
            if is_credential_file(path := section[1].strip()):
                self._into.groups.append(StringGroup((Window(text, section.end(), end),), "", path=path))
            end = section.start()

    def _add_list(self, items: list[JSON], key: str, path: str | None) -> None:
        if len(items) > 1:
            kinds = set(map(type, items))
            if str in kinds:
                self._add_words(tuple(item for item in items if type(item) is str))
            if dict in kinds:
                self._add_boundaries(items)
        for item in reversed(items):  # the last is taken from the stack first
            kind = type(item)
            if kind is str:
                self._add_string(item, key, path)
            elif kind is dict or kind is list or kind is tuple:
                self._stack.append((item, key, path))
            elif kind is int and MIN_SCANNED_NUMBER <= item < SCANNED_NUMBERS_BELOW:
                self._add_number(item, key)
            if self._has_user_rules and (kind is int or kind is float):
                self._into.short.append(number_text(item))

    def _add_words(self, texts: tuple[str, ...]) -> None:
        """Add the words of a command, or the lines of a file, as one group."""
        is_block = any("-----BEGIN" in text for text in texts)
        if is_block or (len(texts) <= _MAX_JOINED_STRINGS and sum(map(len, texts)) <= _MAX_JOINED_CHARS):
            windows = tuple(Window(text, 0, len(text)) for text in texts)
            self._into.groups.append(StringGroup(windows, "\n" if is_block else " "))

    def _add_boundaries(self, blocks: list[JSON]) -> None:
        """Add the edges of text blocks that follow each other: a value may begin in one and end in the next."""
        texts = list(map(_block_text, blocks))
        if not any(texts):
            return
        chain: list[Window] = []
        for one, other in pairwise(texts):
            if one and other and not one[-1].isspace() and not other[0].isspace():
                if not chain:
                    chain.append(Window(one, max(len(one) - _EDGE_CHARS, 0), len(one)))
                chain.append(Window(other, 0, min(len(other), _EDGE_CHARS)))
                if len(other) <= _EDGE_CHARS and len(chain) < _MAX_JOINED_STRINGS:
                    continue
            if chain:
                self._into.groups.append(StringGroup(tuple(chain), "", is_boundary=True))
                chain = []
        if chain:
            self._into.groups.append(StringGroup(tuple(chain), "", is_boundary=True))

    def _credential_file_of(self, value: dict[str, JSON]) -> str | None:
        """Return the credential file that an object is about: it names it, or the call it answers did."""
        path = _credential_file_named_by(value)
        if path is not None:
            for call in _call_ids(value):
                self.paths[call] = path
            while len(self.paths) > _MAX_CALLS:
                del self.paths[next(iter(self.paths))]
            return path
        return next((self.paths[call] for call in _call_ids(value) if call in self.paths), None)

    def _answered_file(self, record: JSON) -> str | None:
        """Return the credential file that a call was about which some object of a record answers.

        Agents keep the output of a call also outside of that object, so the whole record counts as the answer.
        """
        todo = [record]
        while todo:
            item = todo.pop()
            if type(item) is dict:
                if _credential_file_named_by(item) is None:
                    for call in _call_ids(item):
                        if call in self.paths:
                            return self.paths[call]
                todo += item.values()
            elif type(item) is list or type(item) is tuple:
                todo += item
        return None


def _credential_file_named_by(value: dict[str, JSON]) -> str | None:
    """Return the credential file that an object, or the arguments of a call in it, name."""
    for name in value.keys() & PATH_KEYS:
        path = value[name]
        if type(path) is str and is_credential_file(path):
            return path
    call = value.get(_CALL_BELOW)
    if type(call) is dict and type(call.get("value")) is dict:
        return _credential_file_named_by(call["value"])
    return next((path for name in ARGUMENTS if name in value and (path := credential_file_in(value[name]))), None)


def credential_file_in(arguments: JSON) -> str | None:
    """Return the credential file that the arguments of a call name, be it within a command.

    `text` is what the catalog keeps of the arguments of a call: each of their strings on a line.
    """
    if type(arguments) is str and arguments[:1] == "{":
        arguments = read(arguments)
    if type(arguments) is not dict:
        return None
    for name in arguments.keys() & PATH_KEYS:
        path = arguments[name]
        if type(path) is str and is_credential_file(path):
            return path
    for line in text.splitlines() if type(text := arguments.get("text")) is str else ():
        if path := line.strip() if is_credential_file(line.strip()) else read_by(line):
            return path
    return next((read_by(arguments[name]) for name in COMMANDS if name in arguments), None)


def is_count(key: str) -> bool:
    """Tell whether tokens are counted under a key."""
    return "oken" in key or key.endswith(("usage", "Usage"))


def _name_of_pair(value: dict[str, JSON], own_key: str) -> str | None:
    """Return the name in an object that pairs a name with a value: `{"name": "TOKEN", "value": "x"}`."""
    if _PAIR_VALUES.isdisjoint(value):
        return None
    name = next((value[key] for key in _PAIR_NAMES if key in value), own_key)
    return name if type(name) is str else None


def _block_text(block: JSON) -> str:
    """Return the text of a block of text or thinking."""
    if type(block) is not dict or ("text" not in block and "thinking" not in block):
        return ""
    text = block.get("text", block.get("thinking"))
    return text if type(text) is str else ""


def _call_ids(value: dict[str, JSON]) -> list[str]:
    """Return the ids under which an object is a call, or the result of one."""
    return [call for name in CALL_IDS if type(call := value.get(name)) is str]


class KeyClass(NamedTuple):
    """What the name of a key says about its value."""

    holds_id: bool
    holds_ciphertext: bool
    holds_time: bool
    names_secret: bool
    may_be_truncated: bool
    may_be_opaque: bool
    """The value may be an id, a hash, a time or ciphertext, which are not scanned."""


@lru_cache(maxsize=4096)
def classify_key(key: str) -> KeyClass:
    """Classify the name of a key."""
    holds_id = _ID_KEY.search(key) is not None and _SECRET_ID.search(key) is None
    holds_ciphertext = key in CIPHERTEXT_KEYS
    holds_time = key.endswith(TIME_ENDINGS)
    return KeyClass(
        holds_id,
        holds_ciphertext,
        holds_time,
        _NAMES_SECRET.search(key) is not None or meaning(to_bytes(key)) != "",
        key in CUT_KEYS,
        holds_id or holds_ciphertext or holds_time,
    )


@lru_cache(maxsize=1)
def _token_beginnings() -> tuple[str, ...]:
    """Return the beginnings of service tokens. A long token has the alphabet of a signature."""
    return tuple(text for rule in builtin_rules() if not rule.needs_word_start for text in rule.prefixes)


def _has_token_beginning(text: str) -> bool:
    """Tell whether a service token may begin in an id: at its start, or behind anything but a letter or digit."""
    starts = [0, *(match.end() for match in _WORD_BREAK.finditer(text))]
    return any(text.startswith(_token_beginnings(), start) for start in starts)


def _is_id(text: str) -> bool:
    """Tell whether a text has the form of an id, and no service token may begin in it."""
    if _WHOLE_UUID.fullmatch(text) is not None:
        return True
    return _ID.fullmatch(text) is not None and not _has_token_beginning(text)


def is_opaque(key: str, text: str) -> bool:
    """Tell whether a value is never scanned: an id, hash, time, signature, encrypted reasoning or image.

    A key alone proves nothing: the value must have the form that the key promises.
    """
    key_class = classify_key(key)
    if key_class.holds_id and _is_id(text):
        return True
    if key_class.holds_ciphertext and _ENCRYPTED_OR_SIGNED.fullmatch(text) is not None:
        return not text.startswith(_token_beginnings()) and BEGINNINGS.match(text) is None
    if key_class.holds_time and len(text) < 36 and _TIME.fullmatch(text) is not None:
        return True
    return _is_image_url(text)


def is_plain_id(key: str, text: str) -> bool:
    """Tell whether a value is an id, a hash or a time, and its key does not name a secret."""
    key_class = classify_key(key)
    if key_class.names_secret:
        return key_class.holds_id and is_uuid(text)
    return key_class.may_be_opaque and not key_class.holds_ciphertext and is_opaque(key, text)


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID."""
    return _WHOLE_UUID.fullmatch(text) is not None


def image_key(value: dict[str, JSON]) -> str | None:
    """Return the key of an object that holds the base64 of an image, if there is one."""
    for name in _MEDIA_KEYS:
        kind = value.get(name)
        if isinstance(kind, str) and kind.startswith("image/"):
            return next((body for body in _BODIES if _is_image(value.get(body))), None)
    return None


def is_image(text: str) -> bool:
    """Tell whether a text is base64 that begins like an image, or a data URL of one."""
    return _is_image_url(text) or _is_image(text)


def _is_image_url(text: str) -> bool:
    address = _DATA_URL.match(text)
    return address is not None and _is_image(text[address.end() :])


def _is_image(value: JSON) -> bool:
    """Tell whether a value is base64 of an image. Anything else may be text, whatever its media type says."""
    if not isinstance(value, str) or _BASE64.fullmatch(value) is None:
        return False
    head = unbase64(value[:_IMAGE_HEAD_CHARS].encode())
    return head is not None and _IMAGE.match(head) is not None
