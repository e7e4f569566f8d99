"""Which names stand before a secret: `DB_PASSWORD`, `apiKey`, `x-auth-token`; not `tokenizer`, `primary_key`."""

from __future__ import annotations

import re
from functools import lru_cache

_KEYS = (
    "access|account|admin|aes|api|app|application|auth|bot|cipher|client|consumer|crypto|decryption|deploy|encryption"
    "|functions?|hmac|host|integration|jwt|license|licence|master|personal|private|project|read|root|secret|security"
    "|service|session|shared|signing|ssh|storage|subscription|team|user|webhook|write"
)
_PASSES = "admin|db|database|ftp|login|mail|mysql|my|pg|postgres|redis|root|smtp|ssh|user|wifi"
TELLING = (
    "passw(?:or)?d|passphrase|passcode|pwd|secret|credential|_auth|mnemonic"
    rf"|(?:{_KEYS})[_.-]?key|(?:{_PASSES})[_-]?pass"
)
"""What tells that a name is one of a secret, but for `token`."""
# What the one pass over a text looks for: any of these in a name, however long. To count would take many states.
SIGNS = (
    rf"(?:{TELLING})[A-Za-z0-9_.-]*"
    # Not `tokens`, which are counted, thousands of times in a transcript.
    r"|token(?:[a-rt-z0-9_.-][A-Za-z0-9_.-]*)?"
)
# Those of them that may have a phrase for a value.
PHRASED = "passw(?:or)?d|passphrase|passcode|pwd|secret|mnemonic|seed_phrase|(?:secret|recovery|seed)[_ -]?phrase"

_SPLIT = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD = frozenset("password passwd passphrase passcode pwd pass passwords pw phrase".split())
_SECRET = frozenset(
    "secret secrets token tokens credential credentials auth apikey authkey pat mnemonic cred creds jwt".split()
)
_TELLING = frozenset(_KEYS.replace("functions?", "function|functions").split("|"))
# A last word that turns the name into one about a secret: its kind, its place, its number.
_ABOUT = frozenset(
    """arn class client count counts counter cookie created dir enabled endpoint env error exp expired expires
    expiration expiry field file filename format generator handler hash header hint id ids index input json kind label
    len length limit list location map message min max mode name names option options param params path pattern policy
    placeholder prefix prompt provider ref reference regex required reset response rule rules scope scopes service
    source state status store strategy suffix template test text timeout title ttl type types uri url usage used
    validator valid version budget size total per rate cost price izer ized ization ize""".split()
)
# A word before that says it is a token of text, a cursor, or public.
_OTHER = frozenset(
    """cache cached cancel cancellation completion continuation cursor delta eos bos pad mask unk sep cls special end
    input output max min num next no page pagination prev previous prompt public publishable reasoning row sort start
    stop sync thinking thought tool total used window word""".split()
)


@lru_cache(maxsize=4096)
def meaning(name: bytes) -> str:
    """`password`, `secret`, or nothing: what the value of a name of this kind is."""
    words = [word.lower().decode("ascii") for word in _SPLIT.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if words[-2:] == ["secret", "id"] and "client" not in words:
        return "secret"  # that of an application in Vault
    if not words or words[-1] in _ABOUT:
        return ""
    for word in reversed(words[-2:]):
        if word in _PASSWORD or word.endswith(("password", "passwd", "passphrase")):
            return "password"
    return _of_secret(words)


def _of_secret(words: list[str]) -> str:
    last, before = words[-1], words[:-1]
    if last in _SECRET or last.endswith(("secret", "token", "apikey")):
        return "" if _OTHER.intersection(before) else "secret"
    if last in {"key", "keys"} and before and (before[-1] in _TELLING or before[-1].endswith("api")):
        return "" if "public" in before else "secret"
    if last in {"base", "b64", "value", "string", "raw", "prod", "production", "staging", "dev", "live"} and before:
        return _of_secret(before) if len(words) > 1 else ""
    if last.endswith("key") and last[:-3] in _TELLING:
        return "secret"
    return ""
