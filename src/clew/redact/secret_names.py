"""Decide what a name says about its value: `DB_PASSWORD`, `apiKey`, `x-auth-token`; not `tokenizer`, `primary_key`."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.redact.lazy_pattern import lazy_compile

_KEYS = (
    "access|account|admin|aes|api|app|application|auth|bot|cipher|client|consumer|crypto|decryption|deploy|encryption"
    "|functions?|hmac|host|integration|jwt|license|licence|master|personal|private|project|read|root|secret|security"
    "|service|session|shared|signing|ssh|storage|subscription|team|user|webhook|write"
)
_FOREIGN_WORDS = (
    "passwort kennwort contraseña contrasena senha palavra-passe wachtwoord hasło haslo heslo jelszó salasana lösenord"
    " adgangskode şifre пароль パスワード 密码 密碼 口令 비밀번호"
).split()
_FOREIGN_PHRASES = ("mot de passe", "parola d'ordine", "palabra de paso", "clave de acceso", "clave secreta")


def _as_latin1(word: str) -> str:
    """Return an expression for the UTF-8 bytes of a word, and for its escapes in JSON."""
    if word.isascii():
        return re.escape(word)
    # A search for bytes that ignores case does so for ASCII only.
    spellings = sorted({word, word.capitalize(), word.upper()})
    escaped = ["".join(char if char.isascii() else f"\\\\+u{ord(char):04x}" for char in each) for each in spellings]
    return "|".join([*(re.escape(each.encode().decode("latin-1")) for each in spellings), *escaped])


FOREIGN = "|".join(map(_as_latin1, (*_FOREIGN_WORDS, *_FOREIGN_PHRASES)))
"""Words for `password` in other languages, as an expression for bytes."""
_PASSWORD_PATTERN = "pa?ss?wo?r?d"
"""`password`, `passwd`, `pswd`, `psswrd` and other ways to write it."""
STRONG = (
    f"{_PASSWORD_PATTERN}|passphrase|passcode|pwd|secret|credential|_auth|mnemonic"
    "|requirepass|masterauth|(?:root|bind|user|admin|auth)pw|psk"
    rf"|(?:{_KEYS})[_. -]?key"
)
"""Parts of names that mean a secret, except `token`."""
# Any of these in a name, however long; counting its characters would need many states. Not `tokens` and `tokenize`: a
# transcript has thousands of them.
NAMES = (
    rf"(?:{STRONG})[A-Za-z0-9_.-]*|token(?:[a-hj-rt-z0-9_.-][A-Za-z0-9_.-]*)?|{FOREIGN}"
    "|[a-z0-9][_-](?:pass|pw|pat|key)|(?-i:[a-z](?:Pass|Pw|PW|Pat|PAT|Key))"
)
SPACED_NAMES = rf"{FOREIGN}|(?:{_KEYS}) key|(?:access|auth|api|bearer|refresh|secret|session) token"
"""Names of several words."""
LINK_WORDS = "|".join(
    map(
        _as_latin1,
        "is was are be to now currently ist lautet war est es era é è e jest sono foi это het : = - -> – → =>".split(),
    )
)
"""Words and symbols between the name and the value in a sentence."""
UNSPACED_LINK_WORDS = "|".join(map(_as_latin1, "は が 是 为 為 ： は、 은 는 為： 为： 是：".split()))
PHRASED = "passw(?:or)?d|passphrase|passcode|pwd|secret|mnemonic|seed_phrase|(?:secret|recovery|seed)[_ -]?phrase"
"""Names whose value may be a phrase."""

_WORDS = lazy_compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FOREIGN = lazy_compile(rf"(?i:{FOREIGN})".encode("latin-1"))
_PASSWORD = lazy_compile(
    rf"(?:.*(?:{_PASSWORD_PATTERN}|passwords|passphrase|passcode|pwd|passw|passwort)"
    "|pass|pw|phrase|(?:root|bind|user|admin|auth)pw|psk|kennwort|contrasena|senha|wachtwoord|haslo|heslo|mdp"
    "|masterauth|(?:.*(?:sql|db|redis|mongo|postgres|mq|smtp|imap|ftp|ssh|ldap|http|proxy|wifi|sudo|root|admin|user|auth"
    "|bind|store|key)|my|pg|require)pass)"
)
_SECRET = frozenset(
    "secret secrets token tokens credential credentials auth apikey authkey pat mnemonic cred creds jwt bearer".split()
)
_SECRET_KEYS = frozenset(_KEYS.replace("functions?", "function|functions").split("|"))
_JOINED_KEYS = tuple(f"{word}key" for word in (*sorted(_SECRET_KEYS), "token", "priv", "pre"))
"""Ends of names that are written as one word: `storageaccountkey`."""
# Last words of names that hold a fact about a secret: its kind, its location, its number.
_ABOUT = frozenset(
    """algorithm arn checker class client count counts counter cookie created dir enabled encoder encryption
    endpoint env error exp expired expires expiration expiry field file filename format generator handler hash
    hasher header hint id identity ids index input json kind label len length limit list location manager map
    message method min max mode name names option options param params path pattern policy placeholder prefix prompt
    provider ref reference regex required reset response rule rules scope scopes service source state status store
    strategy suffix template test text timeout title ttl type types uri url usage used validator valid version
    budget size total per rate cost price izer ized ization ize""".split()
)
# Words before `token` for a token of text, a cursor, or a public token.
_OTHER_TOKENS = frozenset(
    """cache cached cancel cancellation completion continuation cursor delta eos bos pad mask unk sep cls special end
    input output max min num next no page pagination prev previous prompt public publishable reasoning row sort start
    stop sync thinking thought tool total used window word""".split()
)
# Words before `key` for a key of a table, of a keyboard, or a public key.
_OTHER_KEYS = frozenset(
    """alt array arrow attribute block bucket cache child chunk column composite config context ctrl data dedupe
    default dict document down duplicate enter entity entry env event extra field first flag foreign format
    function group hash header hot i18n idempotency idx index item job json key keyboard label lang last left
    legacy local locale lock lookup map member message meta metadata method model name natural node null object
    on option order param parent part partition pk position post press primary prop property public publishable
    query reducer ref registry right route row s3 scope scroll search section select set shard shift short sort
    source state store surrogate tab tag template test theme title toggle translation tree type unique up url
    value variable version view widget with""".split()
)


@lru_cache(maxsize=4096)
def meaning(name: bytes) -> str:
    """Return what the value of a name is: `password`, `secret`, `key` (a secret only if random), or nothing."""
    if _FOREIGN.search(name):
        return "password"
    words = [word.lower().decode("ascii") for word in _WORDS.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if words[-2:] == ["secret", "id"] and "client" not in words:
        return "secret"  # that of an application in Vault
    if not words or words[-1] in _ABOUT:
        return ""
    for word in reversed(words[-2:]):
        if _PASSWORD.fullmatch(word):
            return "password"
    return _meaning_of_secret(words)


def _meaning_of_secret(words: list[str]) -> str:
    last, before = words[-1], words[:-1]
    if last in _SECRET or last.endswith(("secret", "token", "apikey")):
        return "" if _OTHER_TOKENS.intersection(before) else "secret"
    if last in {"key", "keys"}:
        if before and (before[-1] in _SECRET_KEYS or before[-1].endswith("api")):
            return "" if "public" in before else "secret"
        return "" if last == "keys" or (before and before[-1] in _OTHER_KEYS) else "key"
    if last in {"base", "b64", "value", "string", "raw", "prod", "production", "staging", "dev", "live"} and before:
        return _meaning_of_secret(before)
    if last.endswith(_JOINED_KEYS):
        return "" if "public" in last else "secret"
    return ""
