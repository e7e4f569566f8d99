"""Bundles to be checked, and ways to change them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from clew.bundle.create import BundleDescription, BundleWriter, Masking
from clew.bundle.format import END, Manifest, bundle_key, header, padding, seal, unseal
from clew.bundle.verify import Proof, verify
from clew.host import Host
from clew.library import Library
from clew.redact.redactor import Redactor
from clew.redact.settings import load_settings
from clew.stored_session import StoredSession

CREATED_AT = "2026-11-15T12:00:00Z"
KEY = bundle_key(bytes(range(32)), CREATED_AT)
Members = list[tuple[str, bytes]]


def written(
    sessions: list[StoredSession],
    *,
    created_at: str = CREATED_AT,
    masked: bool = False,
    sign: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A bundle of some sessions."""
    out = io.BytesIO()
    description = BundleDescription("1.0", created_at, "", None, None, [{"type": "local"}])
    masking = Masking(lambda: Redactor(load_settings("secrets", plain=True)), KEY) if masked else None
    writer = BundleWriter(out, description, masking)
    for session in sessions:
        writer.add(session)
    writer.finish([], {"profile": "secrets"} if masked else None, sign)
    return out.getvalue()


def some_sessions(home: Path, agent: str = "claude-code", count: int = 3) -> list[StoredSession]:
    """The smallest sessions of an agent that have some lines."""
    found = [one for one in Library(Host.at(home)).sources() if one.agent.id == agent and one.source.size > 1500]
    return sorted(found, key=lambda session: (session.source.size, session.path))[:count]


def members_of(bundle: bytes) -> Members:
    """The members of a bundle."""
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        return [(one.name, (archive.extractfile(one) or io.BytesIO()).read()) for one in archive.getmembers()]


def archive_of(members: Members) -> bytes:
    """A bundle of these members, as somebody makes it who knows the format."""
    parts = [header(name, len(body)) + body + padding(len(body)) for name, body in members]
    return b"".join(parts) + END


def changed(bundle: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The bundle with another content of one member."""
    members = members_of(bundle)
    assert name in dict(members)
    return archive_of([(one, change(body) if one == name else body) for one, body in members])


def with_manifest(bundle: bytes, change: Callable[[Manifest], None]) -> bytes:
    """The bundle with another manifest that has the right hash."""

    def reseal(text: bytes) -> bytes:
        sealed = unseal(text)
        assert sealed is not None
        manifest = msgspec.json.decode(sealed.body + b"}", type=Manifest)
        change(manifest)
        return seal(bytes.fromhex(manifest.head), manifest)[0]

    return changed(bundle, "manifest.json", reseal)


def manifest_of(bundle: bytes) -> dict[str, object]:
    manifest: dict[str, object] = json.loads(dict(members_of(bundle))["manifest.json"])
    return manifest


def checked(bundle: bytes, folder: Path, signers: Path | None = None) -> Proof:
    """What a check of the bundle finds."""
    file = folder / "bundle.tar"
    file.write_bytes(bundle)
    return verify(file, signers)


def finding_texts(bundle: bytes, folder: Path) -> list[str]:
    """The texts of what a check of the bundle finds."""
    return [str(finding) for finding in checked(bundle, folder).findings]
