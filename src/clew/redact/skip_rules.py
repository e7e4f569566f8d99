"""Parts of records that hold no words: ids, hashes, signatures, pictures. They are left as they are.

A key alone proves nothing: what stands under it must also look like what the key says.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from clew.model.json import JSON
from clew.redact.packed import BEGINNINGS
from clew.redact.token_rules import builtin
from clew.redact.value_checks import unbase64

PATH_KEYS = frozenset(
    "file_path filePath path absolute_path notebook_path notebookPath filename file target_file".split()
)
"""Keys under which calls, results and snapshots name the file they are about."""
CUT_KEYS = frozenset("title customTitle aiTitle summary firstPrompt lastPrompt first_prompt display preview".split())
"""Keys under which agents and clew keep the beginning of a longer text."""
CALL_IDS = tuple("tool_use_id tool_id call_id callId toolCallId tool_call_id toolUseID parentToolUseID id".split())
ARGUMENTS = ("input", "arguments", "args", "parameters", "action")
COMMANDS = ("command", "cmd")

FORMAT_NAMES = frozenset(
    "arguments attachment branch branches changes command content context description display document duration"
    " encoding entries events extensions filename function history images message messages metadata options origin"
    " output parameters parent payload platform priority project prompt records response result session sessions"
    " settings signature snapshot source status stderr stdout subagents summary system thinking thoughts timestamp"
    " tokens version workspace".split()
)
"""Names of members in the agents' formats that are words: they stay, be a password the same word."""
_HEX = r"[0-9A-Fa-f]"
UUID = rf"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_WHOLE_UUID = re.compile(UUID)
_MADE_BY = "toolu srvtoolu msg req call fc resp rs ws item chatcmpl agent thread turn".split()
ID = (
    rf"{_HEX}{{6,128}}+(?:@v\d++)?+|\d{{1,20}}+|[a-z]\d++|(?:\w{{1,20}}[-_])?{UUID}"
    rf"|(?:{'|'.join(_MADE_BY)})[-_][\w-]{{2,120}}+"
)
_ID = re.compile(ID)
ID_ENDINGS = (
    "[Ii][Dd] [Ii][Dd]s [Uu][Uu][Ii][Dd] [Uu][Uu][Ii][Dd]s [Hh]ash [Ss]ha [Dd]igest [Cc]hecksum [Cc]ommit".split()
)
"""How the keys of ids and hashes end, behind a small letter, a digit or nothing."""
_ID_KEY = re.compile(rf"(?:^|[_a-z\d])(?:{'|'.join(ID_ENDINGS)}|[Ss]ha\d+)$")
# In Vault, the password of an application.
_SECRET_ID = re.compile(r"(?i)(?<!client)(?<!client[_-])secret[_-]?id$")
SEALED_KEYS = frozenset("signature thoughtSignature thought_signature encrypted_content encryptedContent".split())
SEALED = r"[A-Za-z0-9+/_-]{100,}={0,2}"
_SEALED = re.compile(SEALED)
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
_TIME = re.compile(TIME)
TIME_ENDINGS = ("time", "stamp", "_at", "Time", "At", "date", "Date")
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,")
_MEDIA_KEYS = ("media_type", "mimeType", "mime_type", "mediaType")
SPECIAL = PATH_KEYS | {*ARGUMENTS, *_MEDIA_KEYS, "value"}
"""An object without any of these keys is plain."""
_BODIES = ("data", "image", "document", "base64")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}")
# How the bytes of images begin: PNG, JPEG, GIF, TIFF, WebP, AVIF and HEIC.
_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|II\*\0|MM\0\*|RIFF....WEBP|....ftyp", re.DOTALL)
_HEAD = 24
NAMES_SECRET = (
    "pass pwd secret token key auth cred cookie bearer private session signature sas dsn ssn card iban pin$ otp cvv"
    " cpf bsn pesel aadhaa?r dni$ nif$ nie$ sin$ tax_?id steuer_?id"
).split()
"""What the names of secrets have in them, as expressions."""
_NAMES_SECRET = re.compile("(?i)" + "|".join(NAMES_SECRET))


class Key(NamedTuple):
    """What a key says of the text under it."""

    holds_id: bool
    is_sealed: bool
    holds_time: bool
    names_secret: bool
    is_cut: bool
    may_leave: bool
    """It says that what stands under it may be no words."""


@lru_cache(maxsize=4096)
def told_by(key: str) -> Key:
    """What a key says; asked for every text, so it is worked out once."""
    holds_id = _ID_KEY.search(key) is not None and _SECRET_ID.search(key) is None
    is_sealed = key in SEALED_KEYS
    holds_time = key.endswith(TIME_ENDINGS)
    return Key(
        holds_id,
        is_sealed,
        holds_time,
        _NAMES_SECRET.search(key) is not None,
        key in CUT_KEYS,
        holds_id or is_sealed or holds_time,
    )


@lru_cache(maxsize=1)
def _token_beginnings() -> tuple[str, ...]:
    """How the tokens of services begin. The letters of a long one are those of a signature, too."""
    return tuple(text for rule in builtin()[1] if not rule.weak for text in rule.at)


@lru_cache(maxsize=1)
def _token_begins() -> re.Pattern[str]:
    """Finds where a token of a service may begin in an id."""
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, _token_beginnings()))})")


def _is_id(text: str) -> bool:
    """True for what looks like an id, and holds nothing that looks like a token."""
    if _WHOLE_UUID.fullmatch(text) is not None:
        return True
    return _ID.fullmatch(text) is not None and _token_begins().search(text) is None


def is_left(key: str, text: str) -> bool:
    """True for an id, a hash, a time, a signature, encrypted reasoning or a picture's address."""
    told = told_by(key)
    if told.holds_id and _is_id(text):
        return True
    if told.is_sealed and _SEALED.fullmatch(text) is not None:
        return not text.startswith(_token_beginnings()) and BEGINNINGS.match(text) is None
    if told.holds_time and len(text) < 36 and _TIME.fullmatch(text) is not None:
        return True
    return _is_image_address(text)


def is_plain_id(key: str, text: str) -> bool:
    """True for an id, a hash or a time whose key does not name a secret."""
    told = told_by(key)
    if told.names_secret:
        return told.holds_id and is_uuid(text)
    return told.may_leave and not told.is_sealed and is_left(key, text)


def is_uuid(text: str) -> bool:
    """True for an id that was made to be one."""
    return _WHOLE_UUID.fullmatch(text) is not None


def picture(value: dict[str, JSON]) -> str | None:
    """The key that holds the bytes of an image; None where there is none."""
    for name in _MEDIA_KEYS:
        kind = value.get(name)
        if isinstance(kind, str) and kind.startswith("image/"):
            return next((body for body in _BODIES if _is_image(value.get(body))), None)
    return None


def is_image(text: str) -> bool:
    """True for base64 that begins like an image, and for the address of some."""
    return _is_image_address(text) or _is_image(text)


def _is_image_address(text: str) -> bool:
    address = _DATA_URL.match(text)
    return address is not None and _is_image(text[address.end() :])


def _is_image(value: JSON) -> bool:
    """True for the base64 of what begins like an image. Anything else may be text, whatever its media type says."""
    if not isinstance(value, str) or _BASE64.fullmatch(value) is None:
        return False
    head = unbase64(value[:_HEAD].encode())
    return head is not None and _IMAGE.match(head) is not None
