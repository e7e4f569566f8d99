"""Checks an evidence bundle by itself: no home, no catalog, no network. Nothing is unpacked.

Every byte of the file counts: headers and padding must be those that the format prescribes, and contents are compared
with the hash chain. What differs is named with its member and line.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

import msgspec

from clew.bundle import signature
from clew.bundle.format import (
    BLOCK_BYTES,
    END,
    FIRST_PREVIOUS_HASH,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    MEMBER,
    SIGNATURE,
    Content,
    Manifest,
    RecordEntry,
    Sealed,
    SessionEntry,
    SessionHead,
    bundle_key,
    chain_member,
    commitment,
    decode_entry,
    decode_manifest,
    document_member,
    header,
    native_member,
    padding,
    records,
    session_folder,
    unseal,
)
from clew.errors import InvalidDocument, LimitExceeded, SourceUnreadable
from clew.io.codec import NOT_JSON
from clew.io.compress import SUFFIXES, open_regular
from clew.io.paths import escape_controls

MAX_MEMBERS = 4_000_000
MAX_MANIFEST_BYTES = 512 << 20
MAX_ENTRY_BYTES = 64 << 20
MAX_FINDINGS = 1_000
"""So many findings are kept; more are only counted."""
_MAX_NAMED_LINES = 10
_COPY_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16
_DIGEST_BYTES = 16
"""So much of each hash is kept to compare the lines of a changed file."""

FindingKind = Literal["changed", "removed", "added", "reordered", "damaged", "signature", "signer"]
"""`signature`: the signature is not valid. `signer`: no allowed signer signed the bundle."""


class Finding(msgspec.Struct, frozen=True):
    """A difference between a bundle and what was written."""

    what: FindingKind
    member: str
    """The member of the archive; empty for the file as a whole."""
    message: str
    line: int | None = None
    """The first line of the member that is concerned."""

    def __str__(self) -> str:
        place = f"{self.member}:{self.line}" if self.line is not None else self.member or "the file"
        return f"{place}: {self.message}"


class SignatureState(msgspec.Struct, frozen=True):
    """Who signed a bundle."""

    is_checked: bool
    key: str | None = None
    signer: str | None = None
    """The allowed signer; None where no list of signers was given."""


class Proof(msgspec.Struct):
    """The result of a check."""

    manifest: Manifest | None = None
    signature: SignatureState | None = None
    """None for a bundle without a signature."""
    sessions: int = 0
    records: int = 0
    bytes: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)
    more_findings: int = 0

    @property
    def has_passed(self) -> bool:
        """True if nothing differs, and an allowed signer signed the bundle if a list of them was given."""
        return not self.findings

    @property
    def is_unchanged(self) -> bool:
        """True if nothing differs; the signer is not considered."""
        return all(finding.what == "signer" for finding in self.findings)


class Member(NamedTuple):
    """A member of the archive."""

    offset: int
    size: int


def verify(path: Path, signers: Path | None = None) -> Proof:
    """Check a bundle; with a file of allowed signers, also who signed it.

    Raises InvalidDocument for a file that is no bundle, or that could do harm when it is unpacked.
    """
    if signers is not None and not signers.is_file():
        problem = "not a file" if signers.exists() else "no such file"
        raise SourceUnreadable(f"{escape_controls(str(signers))}: {problem}")
    try:
        raw, size = open_regular(path)
    except OSError as error:
        raise SourceUnreadable(f"{escape_controls(str(path))}: {error.strerror or error}") from error
    with raw:
        return _Verifier(raw, size, escape_controls(str(path))).verify(signers)


class _Verifier:
    """The check of one file."""

    def __init__(self, file: io.FileIO, size: int, name: str) -> None:
        self._file, self._size, self._name = file, size, name
        self._members: dict[str, Member] = {}
        self._session_members: dict[int, list[str]] = {}
        """The members of each session, by its number."""
        self._natives: dict[tuple[int, int], str] = {}
        """The members of native files, by numbers of session and file."""
        self.proof = Proof(bytes=size)
        self._expected_order: list[str] = []
        self._expected_digests: dict[str, list[str]] = {}
        """The members that should have a content, by its hash."""
        self._differing: list[tuple[_ChainCheck, int, str, str]] = []
        self._manifest_mismatches: list[Finding] = []
        self._manifest_matches = 0

    def verify(self, signers: Path | None) -> Proof:
        self._scan()
        if not self._session_members and MANIFEST not in self._members and SIGNATURE not in self._members:
            raise InvalidDocument(f"{self._name}: is not an evidence bundle of clew")
        manifest = self._read_manifest()
        listed = {session.number: session for session in manifest.sessions} if manifest is not None else {}
        heads = [FIRST_PREVIOUS_HASH]
        for number in sorted(listed.keys() | self._session_members.keys()):
            heads = self._check_session(number, listed.get(number), heads)
        self._name_differences()
        self._compare_with_manifest(manifest, heads)
        self._check_order()
        self._check_signature(signers)
        return self.proof

    def add(self, kind: FindingKind, member: str, message: str, line: int | None = None) -> None:
        """Note a difference."""
        if len(self.proof.findings) < MAX_FINDINGS:
            self.proof.findings.append(Finding(kind, member, message, line))
        else:
            self.proof.more_findings += 1

    # The archive

    def _scan(self) -> None:
        """Find the members, and check that everything between their contents is as it must be."""
        at, last = 0, ""
        while True:
            block = self._read(at, BLOCK_BYTES)
            if block == bytes(BLOCK_BYTES):
                if self._read(at, len(END) + 1) != END:
                    self.add("changed", "", f"something other than the end of the archive is at byte {at}")
                return
            where = f"at byte {at}" + (f", after {last}" if last else "")
            try:
                found = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError:
                if not last:
                    what = "is not an evidence bundle of clew, or its start is damaged"
                    raise InvalidDocument(f"{self._name}: {what}") from None
                self.add("damaged", "", f"the header {where} is damaged or cut off; what follows was not examined")
                return
            self._refuse_unsafe(found, where)
            last, content = found.name, at + BLOCK_BYTES
            if block != header(found.name, found.size):
                self.add("changed", found.name, "its header in the archive was changed")
            end = content + found.size
            if end > self._size:
                self.add("damaged", found.name, f"has {found.size} bytes by its header, but the file ends before")
                return
            if self._read(end, -found.size % BLOCK_BYTES) != padding(found.size):
                self.add("changed", found.name, "the bytes behind its content were changed")
            self._add_member(found.name, Member(content, found.size))
            at = end + len(padding(found.size))

    def _refuse_unsafe(self, found: tarfile.TarInfo, where: str) -> None:
        """Refuse what a bundle never holds and what could do harm when it is unpacked."""
        name = escape_controls(found.name)
        if found.type != tarfile.REGTYPE:
            raise InvalidDocument(f"{self._name}: refused: {name} {where} is a link, a folder or a special file")
        if found.size < 0:
            raise InvalidDocument(f"{self._name}: refused: {name} {where} has a negative size")
        if found.name.startswith("/") or "\\" in found.name or ".." in found.name.split("/") or name != found.name:
            raise InvalidDocument(f"{self._name}: refused: the name {name} {where} leads out of the bundle")
        if found.name in self._members:
            raise InvalidDocument(f"{self._name}: refused: two members are called {name}")
        if len(self._members) >= MAX_MEMBERS:
            raise LimitExceeded(f"{self._name}: refused: more than {MAX_MEMBERS} members")

    def _add_member(self, name: str, member: Member) -> None:
        found = MEMBER.fullmatch(name)
        self._members[name] = member
        if found is None:
            self.add("added", name, "was added: a bundle has no such member")
        elif found["session"]:
            session = int(found["session"])
            self._session_members.setdefault(session, []).append(name)
            if "/native/" in name:
                file = int(name.rpartition("/")[2].partition(".")[0])
                if self._natives.setdefault((session, file), name) != name:
                    self.add("added", name, f"was added beside {self._natives[session, file]}")

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def open(self, name: str) -> io.BufferedReader:
        """Open the content of a member."""
        return io.BufferedReader(_Slice(self._file, self._members[name]), _BUFFER_BYTES)

    # The manifest

    def _read_manifest(self) -> Manifest | None:
        if MANIFEST not in self._members:
            self.add("removed", MANIFEST, "is missing")
            return None
        if self._members[MANIFEST].size > MAX_MANIFEST_BYTES:
            raise LimitExceeded(f"{self._name}: refused: the manifest has more than {MAX_MANIFEST_BYTES >> 20} MB")
        with self.open(MANIFEST) as stream:
            sealed = unseal(stream.read())
        try:
            manifest = decode_manifest(sealed) if sealed is not None else None
            head = bytes.fromhex(manifest.head) if manifest is not None else b""
        except (*NOT_JSON, ValueError):
            manifest = None
        if sealed is None or manifest is None:
            self.add("changed", MANIFEST, "was changed: it is not a manifest any more")
            return None
        if manifest.format != FORMAT or manifest.version != FORMAT_VERSION:
            known = f"{FORMAT} {FORMAT_VERSION}"
            raise InvalidDocument(f"{self._name}: is a {manifest.format} {manifest.version}; this clew reads {known}")
        if not sealed.follows(head):
            self.add("changed", MANIFEST, "was changed: its hash is not that of its content")
        self.proof.manifest = manifest
        return manifest

    def _compare_with_manifest(self, manifest: Manifest | None, heads: Sequence[bytes]) -> None:
        if manifest is None:
            return
        if self._manifest_mismatches and not self._manifest_matches:
            self.add("changed", MANIFEST, "belongs to another bundle: it names none of these sessions' chains")
            return
        for finding in self._manifest_mismatches:
            self.add(finding.what, finding.member, finding.message)
        numbers = [session.number for session in manifest.sessions]
        if numbers != list(range(1, len(numbers) + 1)):
            self.add("changed", MANIFEST, "does not number the sessions from 1 on")
        if bytes.fromhex(manifest.head) not in heads:
            self.add("changed", MANIFEST, "does not follow the last session of the bundle")

    # Sessions

    def _check_session(self, number: int, listed: SessionHead | None, heads: list[bytes]) -> list[bytes]:
        """Check one session; returns the hashes that the next one may follow: the one found, and the one listed."""
        listed_head = [bytes.fromhex(listed.head)] if listed is not None and _is_hash(listed.head) else []
        label = f"session {listed.agent}:{listed.id}" if listed is not None else "a session"
        if number not in self._session_members:
            self.add("removed", session_folder(number), f"{label} was removed, with all its files")
            return listed_head
        name = chain_member(number)
        if name not in self._members:
            self.add("removed", name, f"the chain of {label} was removed; its files cannot be checked")
            return listed_head
        chain = _ChainCheck(self, number)
        with self.open(name) as stream:
            chain.read(stream, heads)
        if chain.session is not None:
            self._check_members(number, chain.session)
            self.proof.sessions += 1
        head = [chain.head] if chain.head is not None else []
        if listed is None:
            if self.proof.manifest is not None:
                self._manifest_mismatches.append(
                    Finding("added", session_folder(number), "was added: the manifest does not name this session")
                )
        elif chain.head is not None and chain.head not in listed_head:
            message = f"its last hash is not the one that the manifest has for {label}"
            self._manifest_mismatches.append(Finding("changed", name, message))
        elif chain.head is not None:
            self._manifest_matches += 1
        return head + listed_head

    def _check_members(self, number: int, session: SessionEntry) -> None:
        """Check which members a session has; their contents were compared with the chain."""
        contents: list[Content] = [session.document, *session.files]
        names = [*(content.member for content in contents), chain_member(number)]
        self._expected_order += names
        for content in contents:
            self._expected_digests.setdefault(content.sha256, []).append(content.member)
        for name in names:
            if name not in self._members:
                self.add("removed", name, "was removed")
        expected = set(names)
        for name in self._session_members[number]:
            if name not in expected:
                self.add("added", name, "was added: the session has no such file")

    def member_of(self, session: int, file: int) -> str | None:
        """Return the member with a file of a session, if there is one."""
        name = document_member(session) if file == 0 else self._natives.get((session, file))
        return name if name in self._members else None

    def note_difference(self, chain: _ChainCheck, file: int, name: str, digest: str) -> None:
        """Note a member that has another content; what was done to it is found out when all sessions are known."""
        self._differing.append((chain, file, name, digest))

    def _name_differences(self) -> None:
        for chain, file, name, digest in self._differing:
            if others := self._expected_digests.get(digest):
                self.add("reordered", name, f"was reordered: it has the content of {others[0]}")
            else:
                chain.name_differences(file, name)

    def compare_originals(self, originals: _Verifier, user_key: bytes) -> Proof:
        """Compare the commitments of this bundle with the records of another one; counts the records that match."""
        for one in (self, originals):
            one._scan()
        manifest = self._read_manifest()
        if manifest is None or manifest.redaction is None:
            raise InvalidDocument(f"{self._name}: is not masked, and has nothing to compare with originals")
        key = bundle_key(user_key, manifest.created_at)
        for session in manifest.sessions:
            for file, entries in groupby(_ChainCheck(self, session.number).entries(), lambda entry: entry.file):
                if file:
                    self._compare_file(originals, session.number, file, entries, key)
        return self.proof

    def _compare_file(
        self, originals: _Verifier, session: int, file: int, entries: Iterator[RecordEntry], key: bytes
    ) -> None:
        name = originals.member_of(session, file)
        if name is None:
            self.add("removed", native_member(session, file, ""), "is not in the bundle of the originals")
            return
        if Path(name).suffix in SUFFIXES:
            self.add("damaged", name, "is compressed in the bundle of the originals, and cannot be compared")
            return
        with originals.open(name) as stream:
            found = records(stream)
            for number, entry in enumerate(entries, 1):
                content = b"".join(islice(found, entry.original_records))
                if commitment(key, session, file, number, content) != entry.original:
                    self.add("changed", name, "is not the original of what was masked", entry.line)
                    return
                self.proof.records += 1
            if next(found, None) is not None:
                self.add("added", name, "has more records than what was masked")

    def _check_order(self) -> None:
        expected = [name for name in (*self._expected_order, MANIFEST, SIGNATURE) if name in self._members]
        known = set(expected)
        found = [name for name in self._members if name in known]
        moved = [(name, other) for name, other in zip(found, expected, strict=False) if name != other]
        for name, other in moved[:_MAX_NAMED_LINES]:
            self.add("reordered", name, f"was reordered: it is in the place of {other}")

    def _check_signature(self, signers: Path | None) -> None:
        if SIGNATURE not in self._members:
            if signers is not None:
                self.add("signer", SIGNATURE, "missing: --signers needs a signed bundle")
            return
        if MANIFEST not in self._members or self._members[SIGNATURE].size > signature.MAX_SIGNATURE_BYTES:
            self.add("signature", SIGNATURE, "is not the signature of a manifest")
            return
        contents = [self._read(*self._members[name]) for name in (MANIFEST, SIGNATURE)]
        try:
            checked = signature.check(contents[0], contents[1], signers)
        except signature.ToolMissing:
            if signers is not None:
                raise
            self.proof.signature = SignatureState(False)
            return
        self.proof.signature = SignatureState(True, checked.key, checked.signer)
        if checked.problem is not None:
            self.add("signature" if checked.key is None else "signer", SIGNATURE, checked.problem)


def compare_originals(masked: Path, original: Path, user_key: bytes) -> Proof:
    """Compare a masked bundle with one of the same sessions that is not: its commitments must be to these records.

    The proof has the number of records that match, and findings about members of the original. Both bundles must have
    been verified. `user_key` is the key of the user who wrote the masked one.
    """
    with open_regular(masked)[0] as masked_file, open_regular(original)[0] as original_file:
        masked_bundle = _Verifier(masked_file, masked.stat().st_size, str(masked))
        original_bundle = _Verifier(original_file, original.stat().st_size, str(original))
        return masked_bundle.compare_originals(original_bundle, user_key)


class _ChainCheck:
    """Compares the chain of one session with itself and with the contents of the session's members."""

    def __init__(self, verifier: _Verifier, number: int) -> None:
        self._verifier, self._number, self._name = verifier, number, chain_member(number)
        self.session: SessionEntry | None = None
        self.head: bytes | None = None
        """Hash of the last entry."""
        self._file = -1
        self._reader: BinaryIO | None = None
        """The member of the file that the entries are about."""
        self._next_line = 1
        self._digest = hashlib.sha256()
        self._differs = False
        self._digests: dict[int, str] = {}
        """The hashes of the contents, by file."""

    def read(self, stream: BinaryIO, heads: Sequence[bytes]) -> None:
        """Read the whole chain. `heads` are the hashes that the first entry may follow."""
        number = 0
        for number, line in enumerate(iter(lambda: stream.readline(MAX_ENTRY_BYTES), b""), 1):
            if self.session is not None:
                self._add("added", self._name, "was added behind the last entry of the session", number)
                break
            sealed = unseal(line)
            if sealed is None:
                self._add("changed", self._name, "was changed: the line is not an entry of the chain", number)
                heads = ()
                continue
            entry = _decoded(sealed)
            follows = not heads or any(sealed.follows(head) for head in heads)
            if not follows or entry is None:
                self._add("changed", self._name, self._broken(entry, number), number)
            heads, self.head = [sealed.hash], sealed.hash
            if isinstance(entry, RecordEntry):
                self._check_record(entry, number)
            elif entry is not None:
                self._close_file()
                self.session = entry
        self._close_file()
        if self.session is None:
            self._add("removed", self._name, "the last entry of the session was removed", number)
            self.head = None
        else:
            self._compare_contents(self.session)

    def _add(self, kind: FindingKind, member: str, message: str, line: int | None = None) -> None:
        self._verifier.add(kind, member, message, line)

    def _broken(self, entry: RecordEntry | SessionEntry | None, number: int) -> str:
        """Say what happened where an entry does not follow the one before."""
        if entry is None:
            return "was changed: the line is not an entry of the chain"
        if isinstance(entry, RecordEntry) and entry.file == self._file and entry.line != self._next_line:
            member = self._verifier.member_of(self._number, entry.file) or f"file {entry.file}"
            if entry.line > self._next_line:
                lines = _line_range(self._next_line, entry.line - 1)
                return f"an entry before it was removed, that of {lines} of {member}"
            return f"was added or reordered: it is about line {entry.line} of {member} again"
        if number == 1:
            return "does not follow the session before: one was removed, added or reordered, or this entry was changed"
        return "was changed, or an entry before it was removed or added: its hash does not follow"

    def _check_record(self, entry: RecordEntry, number: int) -> None:
        if entry.file != self._file:
            self._close_file()
            if entry.file < self._file:
                self._add("reordered", self._name, "entries of an earlier file come again", number)
            self._file, self._next_line = entry.file, 1
            self._digest, self._differs = hashlib.sha256(), False
            name = self._verifier.member_of(self._number, entry.file)
            self._reader = self._verifier.open(name) if name is not None else None
        self._next_line = entry.line + entry.lines
        self._verifier.proof.records += entry.file > 0
        if self._reader is None or self._differs:
            return
        digest, left = hashlib.sha256(), entry.bytes
        while left > 0 and (piece := self._reader.read(min(left, _COPY_BYTES))):
            digest.update(piece)
            self._digest.update(piece)
            left -= len(piece)
        self._differs = left != 0 or digest.hexdigest() != entry.sha256

    def _close_file(self) -> None:
        """Finish the file that the last entries were about."""
        if self._reader is None:
            return
        with self._reader as reader:
            self._differs = self._differs or reader.read(1) != b""
        self._reader = None
        if not self._differs:
            self._digests[self._file] = self._digest.hexdigest()

    def _compare_contents(self, session: SessionEntry) -> None:
        """Compare what each member holds with what the last entry says, and find out what was changed in it."""
        for file, content in enumerate([session.document, *session.files]):
            name = self._verifier.member_of(self._number, file)
            if name is None:
                continue
            with self._verifier.open(name) as stream:
                digest = self._digests.get(file) or hashlib.file_digest(stream, "sha256").hexdigest()
            if digest != content.sha256 and file not in self._digests:
                self._verifier.note_difference(self, file, name, digest)
            elif digest != content.sha256:
                self._add("changed", self._name, f"the last entry has another hash for {name}")
            elif file not in self._digests and content.records:
                self._add("changed", self._name, f"the entries are not those of the content of {name}")

    def name_differences(self, file: int, name: str) -> None:
        """Name the lines of a member that were changed, removed, added or reordered."""
        expected = [entry for entry in self.entries() if entry.file == file and entry.bytes]
        with self._verifier.open(name) as stream:
            found = [_short(hashlib.sha256(record).digest()) for record in records(stream)]
        if any(entry.lines > 1 for entry in expected):
            found = []  # Its records are no lines, so the first difference is all that can be named.
        wanted = [_short(bytes.fromhex(entry.sha256)) for entry in expected if _is_hash(entry.sha256)]
        if not found or len(wanted) != len(expected):
            self._add("changed", name, "was changed")
            return
        for kind, places in _compare(wanted, found):
            lines = [expected[at].line if kind != "added" else at + 1 for at in places]
            self._add(kind, name, f"{_named(lines)} {'was' if len(lines) == 1 else 'were'} {kind}", lines[0])

    def entries(self) -> Iterator[RecordEntry]:
        """Yield the entries of the records."""
        with self._verifier.open(self._name) as stream:
            for line in iter(lambda: stream.readline(MAX_ENTRY_BYTES), b""):
                sealed = unseal(line)
                entry = _decoded(sealed) if sealed is not None else None
                if isinstance(entry, RecordEntry):
                    yield entry


class _Slice(io.RawIOBase):
    """The content of a member."""

    def __init__(self, file: io.FileIO, member: Member) -> None:
        self._file, self._at, self._end = file, member.offset, member.offset + member.size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        self._file.seek(self._at, os.SEEK_SET)
        with memoryview(buffer) as view:
            size = self._file.readinto(view[: self._end - self._at]) or 0
        self._at += size
        return size


def _compare(expected: Sequence[bytes], found: Sequence[bytes]) -> Iterator[tuple[FindingKind, list[int]]]:
    """Yield how lines differ by their hashes: the kind, and the indices in `expected`; of added lines, in `found`."""
    start, shorter = 0, min(len(expected), len(found))
    while start < shorter and expected[start] == found[start]:
        start += 1
    end = 0
    while end < shorter - start and expected[-1 - end] == found[-1 - end]:
        end += 1
    left = range(start, len(expected) - end)
    right = range(start, len(found) - end)
    missing = _places_of(expected, left, Counter(found[at] for at in right))
    extra = _places_of(found, right, Counter(expected[at] for at in left))
    if not missing and not extra:
        yield "reordered", list(left)
        return
    pairs = min(len(missing), len(extra))
    for kind, places in (("changed", missing[:pairs]), ("removed", missing[pairs:]), ("added", extra[pairs:])):
        if places:
            yield cast(FindingKind, kind), places


def _places_of(hashes: Sequence[bytes], places: Iterable[int], others: Counter[bytes]) -> list[int]:
    """Return the places of the hashes that the others do not have."""
    found = []
    for at in places:
        if others[hashes[at]] > 0:
            others[hashes[at]] -= 1
        else:
            found.append(at)
    return found


def _decoded(sealed: Sealed) -> RecordEntry | SessionEntry | None:
    try:
        return decode_entry(sealed)
    except (*NOT_JSON, ValueError):
        return None


def _short(digest: bytes) -> bytes:
    return digest[:_DIGEST_BYTES]


def _is_hash(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == hashlib.sha256().digest_size
    except ValueError:
        return False


def _line_range(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _named(lines: Sequence[int]) -> str:
    named = ", ".join(map(str, lines[:_MAX_NAMED_LINES]))
    more = f" and {len(lines) - _MAX_NAMED_LINES} more" if len(lines) > _MAX_NAMED_LINES else ""
    return f"line {named}" if len(lines) == 1 else f"lines {named}{more}"
