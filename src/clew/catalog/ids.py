"""Keys of sessions, messages and calls: hashes that are the same on every machine, so that merging is a set union."""

from __future__ import annotations

from hashlib import blake2b


def key_of(*parts: str) -> bytes:
    """A key of sixteen bytes made of some strings."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def session_key(agent: str, native: str) -> str:
    """The key of a session, as hex digits."""
    return key_of(agent, native).hex()


def packed_uuid(uuid: str) -> bytes | str:
    """A native uuid as it is stored: sixteen bytes where it is a UUID in its usual form, in lower case."""
    if len(uuid) != 36:
        return uuid
    try:
        packed = bytes.fromhex(uuid.replace("-", ""))
    except ValueError:
        return uuid
    return packed if unpacked_uuid(packed) == uuid else uuid


def unpacked_uuid(stored: bytes | str) -> str:
    """A native uuid as the agent wrote it; empty where there is none."""
    if not isinstance(stored, bytes):
        return stored
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def event_key(agent: str, session: str, uuid: bytes | str) -> bytes:
    """The key of a message. Copies in resumed and forked sessions keep the uuid, so they get the same key."""
    if type(uuid) is bytes:
        return blake2b(uuid, digest_size=16, person=agent.encode()[:16]).digest()
    return key_of(agent, session, str(uuid))
