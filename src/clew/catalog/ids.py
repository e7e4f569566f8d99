"""The names of sessions, messages and calls: hashes that any machine makes alike, so that merging is a set union."""

from __future__ import annotations

from hashlib import blake2b


def key_of(*parts: str) -> bytes:
    """A name of sixteen bytes for these words."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def session_key(agent: str, native: str) -> str:
    """The name of a session."""
    return key_of(agent, native).hex()


def packed_uuid(uuid: str) -> bytes | str:
    """A native uuid as it is stored: sixteen bytes where it is spelled the usual way, with small letters."""
    if len(uuid) != 36:
        return uuid
    try:
        packed = bytes.fromhex(uuid.replace("-", ""))
    except ValueError:
        return uuid
    digits = packed.hex()
    usual = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return packed if usual == uuid else uuid


def event_key(agent: str, session: str, uuid: bytes | str) -> bytes:
    """The name of a message, by its packed uuid. Copies in resumed and forked sessions keep it, so it is enough."""
    if type(uuid) is bytes:
        return blake2b(uuid, digest_size=16, person=agent.encode()[:16]).digest()
    return key_of(agent, session, str(uuid))
