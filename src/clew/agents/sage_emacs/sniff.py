"""Whether a file is sage-emacs', from its path and its first bytes."""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from clew.agents.base import Claim
from clew.agents.sage_emacs import locate
from clew.errors import InvalidDocument
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name

_BOM = b"\xef\xbb\xbf"
_LIST_BEGIN = re.compile(rb"\s*\[\s*(?P<end>\])?")
_ROLE_FIRST = re.compile(rb'\s*\{\s*"(?:role|content|timestamp)"\s*:')
_ROLES = ("user", "assistant", "system", "tool")
_KNOWN_KEYS = frozenset("name model provider created_at updated_at message_count total_tokens workspace".split())
_DISTINCTIVE_KEYS = frozenset("provider message_count total_tokens workspace".split())
"""Known keys that no other program has beside messages."""
_FOREIGN_KEYS = frozenset(
    "id uuid type state history session items sessionId projectHash parentUuid schema_version".split()
)
_MIN_KNOWN_KEYS = 3


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a conversation, an archive or a saved session."""
    if locate.is_saved(path):
        return _claims_document(path, head)
    name = plain_name(path.name)
    if not name.endswith(".jsonl") or name in ("messages.jsonl", "snapshots.jsonl"):
        return Claim.NO
    usual = name == locate.CONVERSATION or locate.is_archive(path)
    if _is_native(head.lstrip().partition(b"\n")[0]):
        return Claim.YES if usual else Claim.MAYBE
    return Claim.MAYBE if usual and not head.strip() else Claim.NO


def _is_native(record: bytes) -> bool:
    """True for a record with a role of sage-emacs and without a type or a message, which other agents have.

    It may be cut off.
    """
    try:
        value = loads(record)
    except NOT_JSON:
        return _ROLE_FIRST.match(record) is not None
    return isinstance(value, dict) and value.get("role") in _ROLES and not value.keys() & {"type", "message"}


def _claims_document(path: Path, head: bytes) -> Claim:
    keys, is_native = _outline(head)
    own = keys & _KNOWN_KEYS
    is_foreign = bool(keys & _FOREIGN_KEYS) or not is_native
    if locate.is_saved_folder(path.parent):
        return Claim.YES if own and not is_foreign else Claim.MAYBE
    if is_foreign or "messages" not in keys:
        return Claim.NO
    if "name" in own and own & _DISTINCTIVE_KEYS and len(own) >= _MIN_KNOWN_KEYS:
        return Claim.YES
    # Where the messages come first, nothing else may be in sight. A request to a model has no times.
    is_cut = keys == {"messages"} and b'"timestamp"' in head
    return Claim.MAYBE if is_cut and not _is_whole(head) else Claim.NO


def _is_whole(head: bytes) -> bool:
    try:
        loads(head.removeprefix(_BOM))
    except NOT_JSON:
        return False
    return True


def _outline(head: bytes) -> tuple[set[str], bool]:
    """The keys in the head of a document, and whether its messages, if it has any, look like sage-emacs'."""
    # Discovering sessions needs no scanner.
    from clew.io.jsonstream import Scanner

    scanner = Scanner(BytesIO(head), len(_BOM) if head.startswith(_BOM) else 0)
    keys: set[str] = set()
    is_native = True
    with suppress(InvalidDocument):
        for key in scanner.members():
            keys.add(key)
            is_native = is_native and key != "messages"
            scanner.key_done()
            if key == "messages" and (begin := _LIST_BEGIN.match(head, scanner.offset)):
                is_native = begin["end"] is not None or _is_native(_first_value(head, begin.end()))
            scanner.skip()
    return keys, is_native


def _first_value(head: bytes, start: int) -> bytes:
    """The bytes of the JSON value at an offset, or all that is there if it is cut off."""
    from clew.io.jsonstream import Scanner

    try:
        return Scanner(BytesIO(head), start).text()
    except InvalidDocument:
        return head[start:]
