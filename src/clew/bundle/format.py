"""The format of an evidence bundle: its members, the hash chain over all records, and commitments to masked records.

A bundle is a plain tar archive, and every byte of it is determined by the names and contents of its members:

    sessions/000001/document.json      the unified document of the first session, without native records
    sessions/000001/native/001.jsonl   the agent's own files, byte for byte or masked
    sessions/000001/chain.jsonl        an entry for each line of these files, and one that names them all
    manifest.json                      what the bundle holds, and what could not be read
    manifest.json.sig                  optional: the signature of manifest.json

All entries form one chain from the first record to the manifest: the last member of each is `hash`, the SHA-256 of the
hash of the entry before and of the entry's own bytes without `hash`.

The entry of a masked record holds a commitment to the original one, an HMAC under a key of its own. Without the key
nobody can test a guess of what was masked; with it, the owner of the originals proves what they were.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec

from clew.io.codec import dumps
from clew.io.records import read_lines
from clew.model.json import JSON

FORMAT = "clew-bundle"
FORMAT_VERSION = 1
MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
FIRST_PREVIOUS_HASH = bytes(32)
"""What the first entry of a chain has as the hash of the entry before it."""
BLOCK_BYTES = 512
END = bytes(2 * BLOCK_BYTES)
"""Ends the archive."""
MEMBER = re.compile(
    r"sessions/(?P<session>[0-9]{6,9})/(?:document\.json|chain\.jsonl|native/[0-9]{3,6}(?:\.[a-z]{2,5})?)"
    r"|manifest\.json(?:\.sig)?"
)
_PLAIN_SUFFIXES = frozenset({".json", ".jsonl", ".log", ".md", ".toml", ".txt", ".yaml", ".gz", ".zst"})
"""Members keep these suffixes of native files. Others are left out, since a file name may hold a secret."""
_SEAL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\n')
_SEAL_BYTES = len(b',"hash":""}\n') + 64


class RecordEntry(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """An entry of the chain: one record of a file, nearly always a line."""

    file: int
    """0 for the document, else the number of the native file in its session."""
    line: int
    """Number of its first line in the member, from 1."""
    bytes: int
    sha256: str
    """Of the record as it is in the member."""
    lines: int = 1
    """Line feeds in it: the next record begins so many lines below."""
    original: str = ""
    """Commitment to the original record, if the bundle is masked."""
    original_records: int = 1
    """So many records of the original file became this one."""


class Content(msgspec.Struct, forbid_unknown_fields=True):
    """A member that belongs to a session."""

    member: str
    bytes: int
    sha256: str
    records: int


class NativeContent(Content):
    """A file of the agent."""

    path: str
    """Its name, relative to the folder of the session's main file."""
    modified_at: str | None = None


class SessionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """The last entry of a session's part of the chain."""

    number: int
    agent: str
    id: str
    workspace: str | None
    started_at: str | None
    ended_at: str | None
    document: Content
    files: list[NativeContent]


class _SessionLine(msgspec.Struct, forbid_unknown_fields=True):
    session: SessionEntry


class SessionHead(msgspec.Struct, forbid_unknown_fields=True):
    """A session in the manifest."""

    number: int
    agent: str
    id: str
    records: int
    head: str
    """Hash of the session's last entry."""


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What a bundle holds. It is the last entry of the chain."""

    format: str
    version: int
    clew: str
    created_at: str
    filters: str
    """The filters and references, as they were typed."""
    since: str | None
    until: str | None
    first_activity: str | None
    last_activity: str | None
    redaction: dict[str, JSON] | None
    """Profile and version of the rules; None if the native files are byte for byte those of the agents."""
    sources: list[dict[str, JSON]]
    counts: dict[str, int]
    problems: list[str]
    """What could not be read, and is not in the bundle."""
    sessions: list[SessionHead]
    head: str
    """Hash of the last session's last entry."""


def session_folder(number: int) -> str:
    """Return the folder of a session in the archive."""
    return f"sessions/{number:06}"


def document_member(number: int) -> str:
    """Return the name of the member with the unified document of a session."""
    return f"{session_folder(number)}/document.json"


def chain_member(number: int) -> str:
    """Return the name of the member with a session's part of the chain."""
    return f"{session_folder(number)}/chain.jsonl"


def native_member(number: int, file: int, suffix: str) -> str:
    """Return the name of the member with a native file of a session."""
    return f"{session_folder(number)}/native/{file:03}{suffix if suffix in _PLAIN_SUFFIXES else ''}"


# The archive


def header(name: str, size: int) -> bytes:
    """Return the only header that a member of this name and size may have."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.GNU_FORMAT)


def padding(size: int) -> bytes:
    """Return what follows the content of a member."""
    return bytes(-size % BLOCK_BYTES)


# The chain


class Sealed(NamedTuple):
    """A line of the chain as it was read."""

    body: bytes
    hash: bytes

    def follows(self, previous: bytes) -> bool:
        """Return True if its hash is right after the entry with the hash `previous`."""
        return hmac.compare_digest(_hash(previous, self.body), self.hash)


def seal(previous: bytes, entry: msgspec.Struct) -> tuple[bytes, bytes]:
    """Return an entry as a line that ends with its hash, and this hash."""
    body = dumps(entry)[:-1]
    digest = _hash(previous, body)
    return body + b',"hash":"' + digest.hex().encode() + b'"}\n', digest


def seal_session(previous: bytes, entry: SessionEntry) -> tuple[bytes, bytes]:
    """Return the last entry of a session as a line, and its hash."""
    return seal(previous, _SessionLine(entry))


def unseal(line: bytes) -> Sealed | None:
    """Split a line of the chain; None if it does not end with a hash."""
    found = _SEAL.fullmatch(line[-_SEAL_BYTES:])
    return Sealed(line[:-_SEAL_BYTES], bytes.fromhex(found[1].decode())) if found else None


def _hash(previous: bytes, body: bytes) -> bytes:
    return hashlib.sha256(previous + body).digest()


def decode_entry(sealed: Sealed) -> RecordEntry | SessionEntry:
    """Decode an entry of a session. Raises msgspec.DecodeError where it is not one."""
    text = sealed.body + b"}"
    if text.startswith(b'{"session":'):
        return msgspec.json.decode(text, type=_SessionLine).session
    return msgspec.json.decode(text, type=RecordEntry)


def decode_manifest(sealed: Sealed) -> Manifest:
    """Decode the manifest. Raises msgspec.DecodeError where it is not one."""
    return msgspec.json.decode(sealed.body + b"}", type=Manifest)


def records(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the records of a file as the chain counts them: its lines, of which a very long one has several."""
    return (text for text, *_ in read_lines(stream))


def bundle_key(user_key: bytes, created_at: str) -> bytes:
    """Return the key of the commitments in one bundle."""
    return hmac.digest(user_key, f"clew bundle {created_at}".encode(), "sha256")


def commitment(key: bytes, session: int, file: int, record: int, original: bytes) -> str:
    """Return the commitment to a record: an HMAC under a key that no other record has.

    Because each record has a key of its own, one can be opened without the others, and equal records have different
    commitments. `record` counts the records of the file from 1.
    """
    own_key = hmac.digest(key, f"{session} {file} {record}".encode(), "sha256")
    return hmac.digest(own_key, original, "sha256").hex()
