"""Whether a file is of sage-emacs, from its name, its place and its first bytes."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Claim
from clew.agents.sage_emacs import locate
from clew.errors import InvalidDocument
from clew.io.codec import NOT_JSON, loads

if TYPE_CHECKING:
    from clew.io.jsonstream import Scanner

_BOM = b"\xef\xbb\xbf"
_ROLE_FIRST = re.compile(rb'\s*\{\s*"(?:role|content|timestamp)"\s*:')
_OWN = frozenset("name model provider created_at updated_at message_count total_tokens workspace".split())
_TELLING = frozenset("provider message_count total_tokens workspace".split())
"""Those of them that no other program has beside messages."""
_FOREIGN = frozenset("id uuid type state history session items sessionId projectHash parentUuid schema_version".split())
_ENOUGH = 3


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a conversation, an archive or a saved session."""
    if locate.is_saved(path):
        return _claims_document(path, head)
    name = locate.plain_name(path.name)
    if not name.endswith(".jsonl") or name in ("messages.jsonl", "snapshots.jsonl"):
        return Claim.NO
    usual = name == locate.CONVERSATION or locate.is_archive(path)
    if _is_native(head.lstrip().partition(b"\n")[0]):
        return Claim.YES if usual else Claim.MAYBE
    return Claim.MAYBE if usual and not head.strip() else Claim.NO


def _is_native(record: bytes) -> bool:
    """True for a record with a role and without a type, which is how other agents begin; it may be cut off."""
    try:
        value = loads(record)
    except NOT_JSON:
        return _ROLE_FIRST.match(record) is not None
    return isinstance(value, dict) and "role" in value and "type" not in value


def _claims_document(path: Path, head: bytes) -> Claim:
    keys, is_spoken = _outline(head)
    own = keys & _OWN
    is_foreign = bool(keys & _FOREIGN) or not is_spoken
    if locate.is_saved_folder(path.parent):
        return Claim.YES if own and not is_foreign else Claim.MAYBE
    if is_foreign or "messages" not in keys:
        return Claim.NO
    if "name" in own and own & _TELLING and len(own) >= _ENOUGH:
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
    """The keys of a document as far as they can be seen, and whether its first message, if any, is one of ours."""
    # Who only looks for sessions meets no document.
    from clew.io.jsonstream import Scanner

    begin = len(_BOM) if head.startswith(_BOM) else 0
    scanner = Scanner(BytesIO(head), begin)
    keys: set[str] = set()
    is_spoken = True
    try:
        for key in scanner.members():
            keys.add(key)
            is_spoken = is_spoken and key != "messages"
            scanner.key_done()
            if key == "messages":
                is_spoken = _begins_spoken(head, scanner)
            scanner.skip()
    except InvalidDocument:
        pass
    return keys, is_spoken


def _begins_spoken(head: bytes, scanner: Scanner) -> bool:
    """True for a list of messages that is empty, or whose first is a record of ours; it may be cut off."""
    from clew.io.jsonstream import Scanner

    if scanner.peek() != b"[":
        return False
    inner = Scanner(BytesIO(head), scanner.offset)
    inner.expect(b"[")
    if inner.peek() == b"]":
        return True
    start = inner.offset
    try:
        return _is_native(inner.text())
    except InvalidDocument:
        return _is_native(head[start:])
