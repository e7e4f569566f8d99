"""Secrets that only their surroundings give away: a header, a flag, an address, a tag, a sentence.

Each reader has a sign, which the one pass over a text looks for, and a function that reads what stands there. What may
repeat often in a sign is not counted, since each count is another state of the search; it has no room for the beginning
of another sign of its kind, so that no byte is gone over often.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from clew.redact import secret_names, value_reader
from clew.redact.matcher import TEXT_SEPARATOR, Match
from clew.redact.value_checks import chance, is_filler, is_printable, unbase64

_PASSWORD = r"(?i:password|passphrase|passcode|passwd|pwd)"
_SAID = r"(?:(?i:is|was|to|are|will be|should be|set to)[ \t:]{1,3})?"


class Reader(NamedTuple):
    """How one kind of surroundings is recognised and read."""

    starts: bytes
    sign: str
    read: Callable[[bytes, int], tuple[Match, ...]]


def _one(start: int, end: int, rule: str, confidence: float) -> tuple[Match, ...]:
    return (Match(start, end, rule, confidence),)


# --- A scheme and what it carries: Bearer, Basic, or any after Authorization

_SCHEMED = re.compile(rb"(?i)(bearer|basic)(?:[ \t]{1,3}|%20|\+)[\"'\\]{0,4}([A-Za-z0-9_.~+/=:-]{4,8000})")
_AUTHORIZED = re.compile(
    rb"(?i)authorization[\"'\\]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\"'\\]{0,4}"
    rb"([A-Za-z-]{2,16}[ \t]{1,2})?([A-Za-z0-9_.~+/=:-]{6,8000})"
)


def read_scheme(text: bytes, place: int) -> tuple[Match, ...]:
    """`Bearer x`, `Basic x`."""
    match = _SCHEMED.match(text, place)
    if match is None:
        return ()
    start, end, value = match.start(2), match.end(2), match[2]
    if match[1].lower() == b"basic":
        plain = unbase64(value)
        pair = plain is not None and len(value) >= 8 and b":" in plain and is_printable(plain)
        return _one(start, end, "basic_auth", 0.95) if pair else ()
    value = value.rstrip(b".:")
    if _is_bearer(value):
        return _one(start, start + len(value), "bearer_token", 0.9)
    return ()


def _is_bearer(value: bytes) -> bool:
    if is_filler(value) or len(value) < 6 or b"://" in value:
        return False
    return any(48 <= char <= 57 for char in value) or chance(value) >= 12


def read_authorization(text: bytes, place: int) -> tuple[Match, ...]:
    """`Authorization: x`, with a scheme of any name or none."""
    match = _AUTHORIZED.match(text, place)
    if match is None:
        return ()
    if match[1] and match[1].strip().lower() in {b"bearer", b"basic"}:
        return read_scheme(text, match.start(1))
    if is_filler(match[2]) or chance(match[2]) < 10:
        return ()
    return _one(match.start(2), match.end(2), "authorization", 0.9)


# --- Addresses: user and password before the host, keys among the parameters

# A password may hold any sign but quotes and white space, be it written as it is where it should be encoded.
_USERINFO = re.compile(rb"://([^\s/?#\"'<>:]{0,128}):([^\s\"'<>`]{1,1024})")
_WEB = re.compile(rb"(?i)(?:https?|wss?|ssh|git)\Z")
_PORT = re.compile(rb"[0-9]{1,5}(?=[/?#]|\Z)")
_AUTHORITY_END = re.compile(rb"[/?#]")
_HOST = re.compile(rb"(?i)(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[a-z0-9-]+\.)+[a-z]{2,24})(?::[0-9]{1,5})?\Z")
_BRACED = re.compile(rb"\{[A-Za-z_][A-Za-z0-9_.]*\}")
_SHORTEST_LITERAL = 6
_VARIABLE = re.compile(
    rb"[$][{(]|[$][A-Za-z_][A-Za-z0-9_]*\Z|\{[^{}]*\}\Z|\{\{|%[A-Za-z_]+%|%[sd]\Z|%\([A-Za-z_]+\)|\*+\Z"
    rb"|\[[A-Za-z _:-]*\]\Z|[A-Za-z_.]+\([^()]*\)\Z"
)
_TOKEN_USER = re.compile(rb"://([A-Za-z0-9_-]{20,200})@")
_PARAMETER = re.compile(rb"[?&]([A-Za-z0-9_-]{2,30})=([A-Za-z0-9_.%~+/=-]{16,4000})")
_USUAL = frozenset(
    b"password passwd pass pwd secret postgres root admin guest user username test example changeme token pw"
    b" mypassword p x foo bar baz bar:baz bar@baz user1 pass1 hunter".split()
)


def read_address(text: bytes, place: int) -> tuple[Match, ...]:
    """`scheme://user:password@host`."""
    match = _USERINFO.match(text, place)
    length = _length_of_password(match[1], match[2], _is_of_web(text, place)) if match else 0
    if match is None or not length:
        match = _TOKEN_USER.match(text, place)
        if match is None or is_filler(match[1]) or chance(match[1]) < 16:
            return ()
        return _one(match.start(1), match.end(1), "url_token", 0.9)
    return _one(match.start(2), match.start(2) + length, "url_password", 0.9)


def _is_of_web(text: bytes, place: int) -> bool:
    return _WEB.search(text[max(0, place - 5) : place]) is not None


def _length_of_password(user: bytes, rest: bytes, of_web: bool) -> int:
    """How long the password is that stands behind a user and a colon; 0 where there is none.

    It ends at the last at sign before the host. One that holds a slash, a question mark or a hash seems to end too
    early: where it is not clear that a host stands behind it, it goes on to the last at sign of the address.
    """
    end = _AUTHORITY_END.search(rest)
    authority = rest[: end.start()] if end else rest
    short = authority.rfind(b"@")
    if short >= 0 and (_HOST.match(authority, short + 1) or rest.rfind(b"@") == short):
        return short if _is_url_password(user, rest[:short]) else 0
    is_port = _PORT.match(rest) and (of_web or b"?" in rest[: rest.find(b"@") + 1])
    if short < 0 and (is_port or (of_web and b"@" in user)):
        return 0
    long = max(0, rest.rfind(b"@"))
    return long if _is_url_password(user, rest[:long]) or (short > 0 and _is_url_password(user, rest[:short])) else 0


def _is_url_password(user: bytes, value: bytes) -> bool:
    if value.lower() in _USUAL or value.lower() == user.lower() or len(value) < 3:
        return False
    # With names in braces, only what is besides them can be a password.
    literal, count = _BRACED.subn(b"", value)
    return _VARIABLE.match(value) is None and not is_filler(value) and not (count and len(literal) < _SHORTEST_LITERAL)


def _is_reference(value: bytes) -> bool:
    return value[:1] in b"$<{[%*" or is_filler(value) or b"(" in value or b"{" in value


def read_parameter(text: bytes, place: int) -> tuple[Match, ...]:
    """`?key=x&sig=x`."""
    match = _PARAMETER.match(text, place)
    if match is None or is_filler(match[2]) or chance(match[2]) < 16:
        return ()
    return _one(match.start(2), match.end(2), "url_parameter", 0.8)


# --- Private keys in their armour

_PEM_HEAD = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(rb"(?:[A-Za-z0-9+/=\s\\>|]|[A-Z][A-Za-z-]{2,20}: )*")
_PEM_LONGEST, _PEM_ENOUGH = 16_384, 1024


def read_pem(text: bytes, place: int) -> tuple[Match, ...]:
    """From the first line of the armour to the last; where the last is missing, as far as the key goes."""
    head = _PEM_HEAD.match(text, place)
    if head is None:
        return ()
    limit = head.end() + _PEM_LONGEST
    border = text.find(0, head.end(), limit)
    limit = limit if border < 0 else border
    dashes = text.find(b"-----", head.end(), limit)
    if dashes >= 0 and text.startswith(b"-----END", dashes):
        close = text.find(b"-----", dashes + 8, dashes + 60)
        end = close + 5 if close >= 0 else dashes + 8
        body = text[head.end() : dashes]
    else:
        match = _PEM_BODY.match(text, head.end(), limit if dashes < 0 else dashes)
        end = match.end() if match else head.end()
        body = text[head.end() : end]
    if len(set(body[:_PEM_ENOUGH])) < 16 or len(body) < 32:
        return ()
    return _one(place, end, "private_key", 0.99)


# --- Cookies

_COOKIES = re.compile(rb"(?i)cookie[\"'\\]{0,4}[ \t]{0,2}[:=][ \t\"'\\]{0,5}([^\n\r\"'\\]{1,2000})")
_PAIR = re.compile(rb"([A-Za-z0-9_.-]{1,60})=([^\s;,\"']{8,4096})")
_SESSION = re.compile(rb"(?i)sess|sid$|auth|token|jwt|csrf|xsrf|login|remember|secret|access")


def read_cookie(text: bytes, place: int) -> tuple[Match, ...]:
    """The values that keep somebody logged in."""
    match = _COOKIES.match(text, place)
    if match is None:
        return ()
    hits = []
    for pair in _PAIR.finditer(match[1]):
        enough = 10 if _SESSION.search(pair[1]) else 20
        if chance(pair[2]) >= enough and not _is_reference(pair[2]):
            begin = match.start(1)
            hits.append(Match(begin + pair.start(2), begin + pair.end(2), "cookie", 0.85))
    return tuple(hits)


# --- Arguments of programs

_USER = re.compile(
    rb"[ \t](?:-u|--user|--proxy-user)(?:[ \t]{1,2}|=)?[\"']?([A-Za-z0-9_.@+-]{1,64}):([^\s\"'`\\]{3,200})"
)
_FLAGGED = re.compile(
    rb"[ \t]--?[A-Za-z-]{0,20}(?:password|passwd|passphrase|token|secret|api-?key|pass|pw)[ \t]{1,2}(?=[^\s\-|<>&;$])"
)
_GIVEN = re.compile(
    rb"(?:sshpass[ \t]{1,3}-p[ \t]{0,2}|redis-cli[^\n|;]{0,60}[ \t]-a[ \t]|[ \t]-p)(?:[\"']([^\"'\n]{4,200})"
    rb"|([^\s\"']{4,200}))"
)
_TAKES_P = re.compile(rb"(?:mysql|mariadb|mysqldump|mysqladmin|7z|7za|zip|unzip|rar|unrar)[ \t][^\n|;&]*\Z")


_SPACE = r"(?:[ \t]|\\[\r\n]+)"
_ARGUMENT = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'`|;&\\]+)"
_LOGGED_IN = (
    r"(?:docker|podman|nerdctl|buildah|skopeo|oras|crane|helm[ \t]{1,2}registry|az[ \t]{1,2}acr)[ \t]{1,3}login"
)
_LOGIN = re.compile(
    rf"{_LOGGED_IN}(?:{_SPACE}{{1,8}}(?!-p|--password(?![\w-])){_ARGUMENT}){{0,12}}{_SPACE}{{1,8}}(?:-p|--password)"
    rf"(?:{_SPACE}{{1,8}}|=)?({_ARGUMENT})".encode()
)
_HTPASSWD = re.compile(
    rf"htpasswd(?P<flags>(?:[ \t]{{1,4}}-[A-Za-z]{{1,8}}(?:[ \t]{{1,4}}[0-9]{{1,2}}(?=[ \t]))?){{1,6}})"
    rf"(?:[ \t]{{1,4}}{_ARGUMENT}){{1,2}}[ \t]{{1,4}}({_ARGUMENT})".encode()
)
_PIPED = re.compile(
    rb"(?:echo(?:[ \t]+-[neE]+)*|printf[ \t]+[\"']?%s(?:\\n|[\r\n]+)?[\"']?)[ \t]+"
    rb"(\"[^\"\n|]+\"|'[^'\n|]+'|[^\s\"'|][^\n|]*?)[ \t]*\Z"
)
_LONGEST_PIPED = 300
_SECRET_ID = re.compile(rb"secret_id[ \t]{1,40}([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_HERE_STRING = re.compile(rb"sudo[ \t][^\n|;&<]{0,200}<<<[ \t]*(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"'`|;&]+)")


# Brackets: a piece of a regular expression rather than a password.
_EXPRESSION = re.compile(rb"[\[\](){}|]")


def read_user(text: bytes, place: int) -> tuple[Match, ...]:
    """`curl -u user:password`."""
    match = _USER.match(text, place)
    if match is None or _is_reference(match[2]) or match[2].lower() in _USUAL or _EXPRESSION.search(match[2]):
        return ()
    if match[1].isdigit() or match[2].isdigit() or match[2].startswith(b"//"):
        return ()
    return _one(match.start(2), match.end(2), "cli_password", 0.85)


def read_flag(text: bytes, place: int) -> tuple[Match, ...]:
    """`--password x`."""
    match = _FLAGGED.match(text, place)
    value = value_reader.read(text, match.end()) if match else None
    if match is None or value is None:
        return ()
    word = text[value.start : value.end]
    is_phrase = value.quoted and b"pass" in match[0] and value_reader.is_given_phrase(word)
    if len(word) < 6 or not (is_phrase or value_reader.is_secret(word, value.quoted) or _is_given(word)):
        return ()
    return _one(value.start, value.end, "cli_secret", 0.8)


def _is_given(word: bytes) -> bool:
    digits = any(48 <= char <= 57 for char in word)
    return digits and value_reader.is_password(word, quoted=False, capital=False) and not word.isdigit()


def read_given(text: bytes, place: int) -> tuple[Match, ...]:
    """`sshpass -p x`, `mysql -px`."""
    match = _GIVEN.match(text, place)
    if match is None:
        return ()
    group = 1 if match[1] else 2
    value = match[group]
    if match[0].lstrip().startswith(b"-p") and not _TAKES_P.search(text[max(0, place - 100) : place]):
        return ()
    if _is_reference(value) or value.startswith(b"-") or _EXPRESSION.search(value):
        return ()
    return _one(match.start(group), match.end(group), "cli_password", 0.85)


def read_login(text: bytes, place: int) -> tuple[Match, ...]:
    """`docker login -p x`."""
    return _argument(_LOGIN.match(text, place), 1)


def read_htpasswd(text: bytes, place: int) -> tuple[Match, ...]:
    """`htpasswd -b file user x`."""
    match = _HTPASSWD.match(text, place)
    return _argument(match, 2) if match and b"b" in match["flags"] else ()


def read_piped(text: bytes, place: int) -> tuple[Match, ...]:
    """`echo x | sudo -S`, from where the bar stands."""
    return _argument(_PIPED.search(text, max(0, place - _LONGEST_PIPED), place), 1)


def read_here_string(text: bytes, place: int) -> tuple[Match, ...]:
    """`sudo -S <<< x`."""
    return _argument(_HERE_STRING.match(text, place), 1)


def read_secret_id(text: bytes, place: int) -> tuple[Match, ...]:
    """`secret_id   x`, as Vault prints it."""
    match = _SECRET_ID.match(text, place)
    return _one(match.start(1), match.end(1), "assigned_secret", 0.85) if match else ()


def _argument(match: re.Match[bytes] | None, group: int) -> tuple[Match, ...]:
    """What is given to a program, without its quotes."""
    if match is None:
        return ()
    value, quotes = match[group], int(match[group][:1] in (b'"', b"'"))
    value = value[quotes : len(value) - quotes]
    if len(value) < 3 or value.startswith(b"-") or value_reader.stands_for_another(value) or _is_reference(value):
        return ()
    return _one(match.start(group) + quotes, match.end(group) - quotes, "cli_password", 0.85)


# --- Statements of SQL

_IDENTIFIED = re.compile(
    rb"(?:(IDENTIFIED)|(?i:identified))[ \t]{1,8}(?i:with[ \t]{1,8}[\w'\"]{1,60}[ \t]{1,8})?(?i:by)[ \t]{1,8}"
    rb"(?i:(?:password|values)[ \t]{1,8})?"
)
_OF_USER = re.compile(rb"(?i)\b(?:create|alter)[ \t]+(?:user|role)\b|\bgrant\b")
_STATEMENT = 200


def read_identified(text: bytes, place: int) -> tuple[Match, ...]:
    """`CREATE USER a IDENTIFIED BY 'x'`, and not what is identified by something in a sentence."""
    match = _IDENTIFIED.match(text, place)
    value = value_reader.read(text, match.end()) if match else None
    if match is None or value is None:
        return ()
    if not match[1] and not _OF_USER.search(text, max(0, place - _STATEMENT), place):
        return ()
    word = text[value.start : value.end]
    if value.quoted:
        found = (
            value_reader.is_password(word, True, True)
            or value_reader.is_given_phrase(word)
            or value_reader.is_with_quotes(word)
        )
    else:
        found = _is_given(word)
    return _one(value.start, value.end, "assigned_password", 0.85) if found else ()


# --- Sentences, tags, manifests

_SPOKEN = re.compile(_PASSWORD.encode() + rb"[ \t]{1,3}" + _SAID.encode() + rb"([\"'`*]{0,4})([^\s\"'`]{6,200})")
_KEY_SPOKEN = re.compile(
    rb"(?i:token|secret|key)[ \t]{1,2}(?i:is|was)[ \t:]{1,3}[\"'`*]{0,4}([A-Za-z0-9_.+/=~-]{12,1000})"
)
_TAGGED = re.compile(rb"<([A-Za-z0-9:_.-]{3,60})(?:\s[^<>]{0,60})?>([^<\s][^<\n]{3,4000})</")
_ENTRY = re.compile(
    rb"(?m)^[ \t]*[\"']?[A-Za-z0-9_.-]{1,80}[\"']?:[ \t]*[\"']?([A-Za-z0-9+/]{8,16000}={0,2})[\"']?,?[ \t\r]*$"
)
_MANIFEST_LONGEST = 2048
_DOCKER = re.compile(rb"\"auth\\{0,3}\"[ \t]{0,2}:[ \t\n]{0,2}\\{0,3}\"([A-Za-z0-9+/]{12,2000}={0,2})")


def read_spoken(text: bytes, place: int) -> tuple[Match, ...]:
    """`the password is x`, and `password x` of a .netrc."""
    match = _SPOKEN.match(text, place)
    if match is None:
        return ()
    value = match[2].rstrip(b".,;:)*")
    letters, digits = value.upper() != value.lower(), any(48 <= char <= 57 for char in value)
    if (
        not (letters and digits)
        or len(value) < 6
        or value_reader.stands_for_another(value)
        or value_reader.is_code(value)
    ):
        return ()
    return _one(match.start(2), match.start(2) + len(value), "spoken_password", 0.8)


def read_key_spoken(text: bytes, place: int) -> tuple[Match, ...]:
    """`the key is x`."""
    match = _KEY_SPOKEN.match(text, place)
    if match is None:
        return ()
    value = match[1].rstrip(b".")
    if not value_reader.is_secret(value, quoted=False) or chance(value) < 12:
        return ()
    return _one(match.start(1), match.start(1) + len(value), "spoken_secret", 0.7)


def read_tag(text: bytes, place: int) -> tuple[Match, ...]:
    """`<password>x</password>`."""
    match = _TAGGED.match(text, place)
    if match is None:
        return ()
    value = match[2].rstrip()
    if not secret_names.meaning(match[1]) or value.isdigit():
        return ()
    if not (value_reader.is_secret(value, True) or value_reader.is_password(value, True, False)) or value.startswith(
        (b"{", b"$", b"&lt;")
    ):
        return ()
    return _one(match.start(2), match.start(2) + len(value), "xml_secret", 0.85)


def read_manifest(text: bytes, place: int) -> tuple[Match, ...]:
    """The values of a Kubernetes Secret, which are base64 of what they hide."""
    limit = place + _MANIFEST_LONGEST
    ends = (text.find(end, place, limit) for end in (b"\n---", TEXT_SEPARATOR))
    hits = []
    for match in _ENTRY.finditer(text, place, min((end for end in ends if end >= 0), default=limit)):
        plain = unbase64(match[1])
        if plain is not None and len(match[1]) % 4 == 0 and len(plain) >= 4 and is_printable(plain):
            hits.append(Match(match.start(1), match.end(1), "kubernetes_secret", 0.9))
    return tuple(hits)


def read_docker(text: bytes, place: int) -> tuple[Match, ...]:
    """The login of a registry in Docker's settings."""
    match = _DOCKER.match(text, place)
    plain = unbase64(match[1]) if match else None
    if match is None or plain is None or b":" not in plain:
        return ()
    return _one(match.start(1), match.end(1), "docker_auth", 0.95)


READERS = (
    Reader(b"b", r"\b(?i:bearer|basic)(?:[ \t]{1,3}|%20|\+)[\"'\\]{0,4}[A-Za-z0-9_.~+/=-]{6}", read_scheme),
    Reader(
        b"a",
        r"(?i:authorization)[\"'\\]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\"'\\]{0,4}[A-Za-z0-9_.~+/=-]{2}",
        read_authorization,
    ),
    Reader(b":", r"://(?:[^\s/?#\"'<>:]{0,128}:[^\s\"'<>`@]{0,1024}@|[A-Za-z0-9_-]{20,100}@)", read_address),
    Reader(
        b"?&",
        r"[?&](?i:key|sig|signature|auth|code|sid|x-amz-signature|x-amz-security-token"
        r"|x-goog-signature)=[A-Za-z0-9_.%~+/-]{4}",
        read_parameter,
    ),
    Reader(b"-", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY", read_pem),
    Reader(
        b"c",
        r"(?i:cookie)[\"'\\]{0,4}[ \t]{0,2}[:=][ \t\"'\\]{0,5}[A-Za-z0-9_.-]",
        read_cookie,
    ),
    Reader(
        b" \t",
        r"[ \t](?:-u|--user|--proxy-user)(?:[ \t]{1,2}|=)?[\"']?[A-Za-z0-9_.@+-]+:[^\s\"']{3}",
        read_user,
    ),
    Reader(
        b" \t",
        r"[ \t]--?[A-Za-z-]*(?:password|passwd|passphrase|token|secret|api-?key|pass"
        r"|pw)[ \t]{1,2}[\"']?[^\s\-\"'|<>&;$]{2}",
        read_flag,
    ),
    Reader(
        b"sr \t",
        r"sshpass[ \t]{1,3}-p[ \t]{0,2}[^\s]{4}|redis-cli[ \t]",
        read_given,
    ),
    Reader(b" \t", r"[ \t]-p[A-Za-z0-9!@#%^*+_'\"][^\s/:=]{4}", read_given),
    Reader(b"dpnbsocha", rf"\b{_LOGGED_IN}[ \t]", read_login),
    Reader(b"s", r"\bsecret_id[ \t]+[0-9a-f]{8}-", read_secret_id),
    Reader(b"h", r"\bhtpasswd[ \t]{1,4}-[A-Za-z]", read_htpasswd),
    Reader(
        b"|",
        r"\|[ \t]*(?:sudo(?:[ \t]+-[A-Za-z-]+)*[ \t]+-[A-Za-z]*S\b|passwd[ \t]+--stdin"
        r"|(?:docker|podman|helm)[^\n|;&]*--password-stdin)",
        read_piped,
    ),
    Reader(b"s", r"\bsudo(?:[ \t]+-[A-Za-z-]+)*[ \t]+-[A-Za-z]*S\b[^\n|;&<]*<<<", read_here_string),
    Reader(
        b"i",
        r"\b(?i:identified)[ \t]+(?i:with[ \t]+[A-Za-z0-9_'\"]+[ \t]+)?(?i:by)[ \t]",
        read_identified,
    ),
    Reader(b"p", _PASSWORD + r"[ \t]{1,3}" + _SAID + r"[\"'`*]{0,4}[A-Za-z!@#$%^&*_.-]*[0-9]", read_spoken),
    Reader(
        b"tsk",
        r"(?i:token|secret|key)[ \t]{1,2}(?i:is|was)[ \t:]{1,3}[\"'`*]{0,4}[A-Za-z_-]*[0-9]",
        read_key_spoken,
    ),
    Reader(
        b"<",
        r"<[A-Za-z0-9:_.-]*(?i:password|passwd|passphrase|secret|token|api-?key|privatekey)",
        read_tag,
    ),
    Reader(b"k", r"\bkind[\"'\\]{0,4}[ \t]{0,2}:[ \t]{0,2}[\"'\\]{0,4}Secret\b", read_manifest),
    Reader(b'"', r"\"auth\\{0,3}\"[ \t]{0,2}:[ \t\n]{0,2}\\{0,3}\"[A-Za-z0-9+/]{4}", read_docker),
)
