"""Find secrets by their context: a header, an address, a cookie, an argument of a program.

Each rule has a candidate pattern for re2 and a function that checks a candidate. Candidate patterns use `*` rather than
`{0,n}`, since each count is another state of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import TEXT_SEPARATOR, Match
from clew.redact.value_checks import (
    DIGITS,
    Written,
    count_of,
    count_random_chars,
    is_code,
    is_placeholder,
    is_printable,
    is_reference,
    is_regex,
    is_secret_value,
    read_value,
    unbase64,
)


class Rule(NamedTuple):
    """A kind of context."""

    first_bytes: bytes
    """The first bytes of candidates, in small letters."""
    candidate_pattern: str
    match: Callable[[bytes, int], tuple[Match, ...]]


def _one(start: int, end: int, rule: str, confidence: float) -> tuple[Match, ...]:
    return (Match(start, end, rule, confidence),)


# --- Authorization: Bearer, Basic, or any scheme after `Authorization`

_SCHEMED = lazy_compile(rb"(?i)(bearer|basic)(?:[ \t]{1,3}|%20|\+)[\"'\\]{0,4}([A-Za-z0-9_.~+/=:-]{4,8000})")
_AUTHORIZED = lazy_compile(
    rb"(?i)authorization[\"'\\]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\"'\\]{0,4}"
    rb"([A-Za-z-]{2,16}[ \t]{1,2})?([A-Za-z0-9_.~+/=:-]{6,8000})"
)


def match_scheme(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `Bearer x` and `Basic x`."""
    match = _SCHEMED.match(text, position)
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
    if is_placeholder(value) or len(value) < 6 or b"://" in value:
        return False
    return any(48 <= char <= 57 for char in value) or count_random_chars(value) >= 12


def match_authorization(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `Authorization: x`, with a scheme of any name or none."""
    match = _AUTHORIZED.match(text, position)
    # `AppAuthorization` is the name of a type.
    if match is None or text[position - 1 : position].isalnum():
        return ()
    if match[1] and match[1].strip().lower() in {b"bearer", b"basic"}:
        return match_scheme(text, match.start(1))
    if is_placeholder(match[2]) or count_random_chars(match[2]) < 10:
        return ()
    return _one(match.start(2), match.end(2), "authorization", 0.9)


# --- Addresses: user and password before the host, keys among the parameters

# A password may contain any character except quotes and white space: many people do not percent-encode it.
_USERINFO = lazy_compile(rb"://([^\s/?#\"'<>:]{0,128}):([^\s\"'<>`]{1,1024})")
_WEB = lazy_compile(rb"(?i)(?:https?|wss?|ssh|git)\Z")
_PORT = lazy_compile(rb"[0-9]{1,5}(?=[/?#]|\Z)")
_AUTHORITY_END = lazy_compile(rb"[/?#]")
_HOST = lazy_compile(rb"(?i)(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[a-z0-9-]+\.)+[a-z]{2,24})(?::[0-9]{1,5})?\Z")
_BRACED = lazy_compile(rb"\{[A-Za-z_][A-Za-z0-9_.]*\}")
_MIN_LITERAL_CHARS = 6
_VARIABLE = lazy_compile(
    rb"[$][{(]|[$][A-Za-z_][A-Za-z0-9_]*\Z|\{[^{}]*\}\Z|\{\{|%[A-Za-z_]+%|%[sd]\Z|%\([A-Za-z_]+\)|\*+\Z"
    rb"|\[[A-Za-z _:-]*\]\Z|[A-Za-z_.]+\([^()]*\)\Z"
)
_TOKEN_USER = lazy_compile(rb"://([A-Za-z0-9_-]{20,200})@")
_PARAMETER = lazy_compile(rb"[?&]([A-Za-z0-9_-]{2,30})=([A-Za-z0-9_.%~+/=-]{16,4000})")
COMMON_DUMMY_PASSWORDS = frozenset(
    b"password passwd pass pwd secret postgres root admin guest user username test example changeme token pw"
    b" mypassword p x foo bar baz bar:baz bar@baz user1 pass1 hunter".split()
)


def match_address(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `scheme://user:password@host` and `scheme://token@host`."""
    match = _USERINFO.match(text, position)
    length = _length_of_password(match[1], match[2], _is_of_web(text, position)) if match else 0
    if match is None or not length:
        match = _TOKEN_USER.match(text, position)
        if match is None or is_placeholder(match[1]) or count_random_chars(match[1]) < 16:
            return ()
        return _one(match.start(1), match.end(1), "url_token", 0.9)
    return _one(match.start(2), match.start(2) + length, "url_password", 0.9)


def _is_of_web(text: bytes, position: int) -> bool:
    return _WEB.search(text[max(0, position - 5) : position]) is not None


def _length_of_password(user: bytes, rest: bytes, of_web: bool) -> int:
    """Return the length of the password behind a user and a colon; 0 if there is none.

    It ends at the last `@` before the host. A slash, a question mark or a hash in the password seems to begin the path:
    if no host follows the `@` before it, the password ends at the last `@` of the address.
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
    if value.lower() in COMMON_DUMMY_PASSWORDS or value.lower() == user.lower() or len(value) < 3:
        return False
    # Of a format string, only the text around the names in braces can be a password.
    literal, count = _BRACED.subn(b"", value)
    return (
        _VARIABLE.match(value) is None
        and not is_placeholder(value)
        and not is_regex(value)
        and not (count and len(literal) < _MIN_LITERAL_CHARS)
    )


def _is_variable_or_placeholder(value: bytes) -> bool:
    return value[:1] in b"$<{[%*" or is_placeholder(value) or b"(" in value or b"{" in value


def match_url_parameter(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `?key=x&sig=x`."""
    match = _PARAMETER.match(text, position)
    if match is None or is_placeholder(match[2]) or count_random_chars(match[2]) < 16:
        return ()
    return _one(match.start(2), match.end(2), "url_parameter", 0.8)


# --- Private keys in PEM format

_PEM_HEAD = lazy_compile(rb"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = lazy_compile(rb"(?:[A-Za-z0-9+/=\s\\>|]|[A-Z][A-Za-z-]{2,20}: )*")
_MAX_PEM_BYTES, _CHECKED_PEM_BYTES = 16_384, 1024


def match_private_key(text: bytes, position: int) -> tuple[Match, ...]:
    """Match a private key from its first line to its last; to the end of its characters if the last line is missing."""
    head = _PEM_HEAD.match(text, position)
    if head is None:
        return ()
    limit = head.end() + _MAX_PEM_BYTES
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
    if len(set(body[:_CHECKED_PEM_BYTES])) < 16 or len(body) < 32:
        return ()
    return _one(position, end, "private_key", 0.99)


# --- Cookies

_COOKIES = lazy_compile(rb"(?i)cookie[\"'\\]{0,4}[ \t]{0,2}[:=][ \t\"'\\]{0,5}([^\n\r\"'\\]{1,2000})")
_PAIR = lazy_compile(rb"([A-Za-z0-9_.-]{1,60})=([^\s;,\"']{8,4096})")
_SESSION = lazy_compile(rb"(?i)sess|sid$|auth|token|jwt|csrf|xsrf|login|remember|secret|access")


def match_cookie(text: bytes, position: int) -> tuple[Match, ...]:
    """Match the values of session cookies, and other long random values of cookies."""
    match = _COOKIES.match(text, position)
    if match is None:
        return ()
    hits = []
    for pair in _PAIR.finditer(match[1]):
        enough = 10 if _SESSION.search(pair[1]) else 20
        if count_random_chars(pair[2]) >= enough and not _is_variable_or_placeholder(pair[2]):
            begin = match.start(1)
            hits.append(Match(begin + pair.start(2), begin + pair.end(2), "cookie", 0.85))
    return tuple(hits)


# --- Arguments of programs

_MAX_COMMAND_BYTES = 600
_PROGRAM_NAME = lazy_compile(rb"[A-Za-z0-9_-]+")
_CHPASSWD_USER = lazy_compile(rb"[\"']?[\w.-]{1,64}:")
_ARGUMENT = lazy_compile(
    rb"(?:[ \t]|\\[ \t]*[\r\n]{1,4}){1,12}((?:\"(?:[^\"\\\n]|\\[^\n])*\"?|'[^'\n]*'?|[^\s\"'`|;&\\<>]|\\[^\s])+)"
)


class _Program(NamedTuple):
    """How a program takes a password on its command line."""

    flags: tuple[bytes, ...] = ()
    """The flags that are followed by it."""
    subcommands: tuple[bytes, ...] = ()
    """Only these take one: they are among the first three arguments."""
    is_attached: bool = False
    """It follows `-p` without a space."""
    separator: bytes = b""
    """It follows a user name and this separator."""
    position: int = 0
    """Without a flag, it is the argument with this number, the first being 1."""


_LOGIN = _Program((b"-p", b"--password"), (b"login",))
_PROGRAMS = {
    b"docker podman nerdctl buildah skopeo oras crane helm oc": _LOGIN,
    b"az mongo mongosh mongodump mongorestore mongoexport mongoimport twine cqlsh": _Program((b"-p", b"--password")),
    b"ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd ldapcompare": _Program((b"-w", b"-s")),
    b"sshpass": _Program((b"-p",), is_attached=True),
    b"redis-cli": _Program((b"-a", b"--pass")),
    b"sqlcmd bcp mssql-cli ipmitool mosquitto_pub mosquitto_sub": _Program((b"-P",)),
    b"zip unzip": _Program((b"-P", b"--password")),
    b"snmpwalk snmpget snmpset": _Program((b"-A", b"-X")),
    b"gh": _Program((b"-b", b"--body")),
    b"mysql mariadb mysqldump mysqladmin mysqlimport mysqlsh 7z 7za 7zz rar unrar": _Program(is_attached=True),
    b"openssl": _Program((b"-passin", b"-passout", b"-pass", b"-k")),
    b"ssh-keygen": _Program((b"-N", b"-P")),
    b"security": _Program((b"-w", b"-p"), (b"add-generic-password", b"add-internet-password", b"unlock-keychain")),
    b"keytool jarsigner apksigner": _Program((b"-storepass", b"-keypass", b"-deststorepass", b"-srcstorepass")),
    b"smbclient rpcclient smbget": _Program((b"-U", b"--user"), separator=b"%"),
    b"curl http https wget": _Program(
        (b"-u", b"--user", b"--proxy-user", b"-U", b"-a", b"--auth"), is_attached=True, separator=b":"
    ),
    b"xfreerdp wlfreerdp rdesktop": _Program((b"-p",)),
    b"psql pg_dump pg_restore svn": _Program((b"--password",)),
    b"wpa_passphrase": _Program(position=2),
    b"rabbitmqctl": _Program(subcommands=(b"add_user", b"change_password"), position=3),
    b"vault cargo": _Program(subcommands=(b"login",), position=2),
    b"ConvertTo-SecureString": _Program(position=1),
    b"htpasswd": _Program(),
}
_PROGRAM_BY_NAME = {name: program for names, program in _PROGRAMS.items() for name in names.split()}
_OPTIONS_WITH_WORD = frozenset(b"-H -h -p -P -n -c -C -f -o -t".split())
_PIPED = lazy_compile(
    rb"(?:echo(?:[ \t]+-[neE]+)*|printf[ \t]+[\"']?%s(?:\\n|[\r\n]+)?[\"']?|printf)[ \t]+"
    rb"(\"[^\"\n|]+\"|'[^'\n|]+'|[^\s\"'|][^\n|]*?)[ \t]*\Z"
)
_MAX_PIPED_BYTES = 300
_SECRET_ID = lazy_compile(rb"secret_id[ \t]{1,40}([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_HERE_STRING = lazy_compile(
    rb"(?:sudo[ \t][^\n|;&<]{0,200}-[A-Za-z]*S\b|(?:docker|podman|helm|gh|oras|nerdctl)[ \t][^\n|;&<]{0,200}"
    rb"(?:--password-stdin|--with-token|secret[ \t]+set))[^\n|;&<]{0,200}<<<[ \t]*"
    rb"(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"'`|;&]+)"
)
_BRACKETS = lazy_compile(rb"[\[\](){}|]")


def match_command(text: bytes, position: int) -> tuple[Match, ...]:
    """Read the arguments of a program up to the end of the command."""
    name = _PROGRAM_NAME.match(text, position)
    program = _PROGRAM_BY_NAME.get(name[0]) if name else None
    if name is None or program is None:
        return ()
    arguments = list(_arguments(text, name.end()))
    words = [text[start:end] for start, end in arguments]
    if program.subcommands and not any(word in program.subcommands for word in words[:3]):
        return ()
    spans = _htpasswd_argument(arguments, words) if name[0] == b"htpasswd" else None
    hits: list[Match] = []
    for start, end in _password_arguments(program, arguments, words) if spans is None else spans:
        if program.separator == b"%":
            percent = text.find(b"%", start, end)
            hits += _argument(text, percent + 1, end - (text[end - 1 : end] in (b'"', b"'"))) if percent > 0 else ()
        elif program.separator == b":":
            hits += _match_user_and_password(text, start, end)
        else:
            hits += _argument(text, start, end)
    return tuple(hits)


def _arguments(text: bytes, position: int) -> Iterator[tuple[int, int]]:
    limit = min(len(text), position + _MAX_COMMAND_BYTES)
    while (match := _ARGUMENT.match(text, position, limit)) is not None:
        yield match.span(1)
        position = match.end()


def _htpasswd_argument(spans: list[tuple[int, int]], words: list[bytes]) -> list[tuple[int, int]]:
    """Return the span of the password in the arguments of htpasswd, where only `-b` takes one."""
    letters = b"".join(word for word in words if word[:1] == b"-")
    plain, number = _positional(words), 1 if b"n" in letters else 2
    return [spans[plain[number]]] if b"b" in letters and len(plain) > number else []


def _password_arguments(
    program: _Program, spans: list[tuple[int, int]], words: list[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield the spans of the arguments that are passwords, by position or behind a flag."""
    if program.position:
        plain = _positional(words)
        if len(plain) >= program.position:
            yield spans[plain[program.position - 1]]
        return
    attached = b"-u" if program.separator == b":" else b"-p"
    for number, ((start, end), word) in enumerate(zip(spans, words, strict=True)):
        flag = next((flag for flag in program.flags if word.startswith(flag + b"=")), None)
        if word in program.flags and number + 1 < len(spans):
            yield spans[number + 1]
        elif flag is not None:
            yield start + len(flag) + 1, end
        elif word.startswith((b"/p:", b"/pass:")):
            yield start + word.index(b":") + 1, end
        elif program.is_attached and word[:2] == attached and len(word) >= 5 and word[2:3] != b"=":
            yield start + 2, end


def _positional(words: list[bytes]) -> list[int]:
    """Return the numbers of the arguments that are neither flags nor the number behind one."""
    plain = []
    for number, word in enumerate(words):
        is_count = word.isdigit() and number > 0 and words[number - 1] in _OPTIONS_WITH_WORD
        if word[:1] != b"-" and not is_count:
            plain.append(number)
    return plain


def _argument(text: bytes, start: int, end: int) -> tuple[Match, ...]:
    """Check an argument, without its quotes and the `pass:` of OpenSSL."""
    if text[start : start + 1] in (b'"', b"'"):
        start, end = start + 1, end - (text[end - 1 : end] == text[start : start + 1])
    value = text[start:end]
    for mark in (b"pass:", b"env:", b"file:"):
        if value.startswith(mark):
            if mark != b"pass:":
                return ()
            start += len(mark)
    value = text[start:end]
    if len(value) < 3 or value.startswith(b"-") or (value.isdigit() and len(value) < 6):
        return ()
    if is_reference(value) or _is_variable_or_placeholder(value) or _BRACKETS.search(value):
        return ()
    return _one(start, end, "cli_password", 0.85)


def _match_user_and_password(text: bytes, start: int, end: int) -> tuple[Match, ...]:
    """`curl -u user:password`; one of the two may be empty, where the other is a token."""
    value = text[start:end]
    user, colon, password = value.replace(b'"', b"").replace(b"'", b"").partition(b":")
    if not colon:
        return ()
    for secret, is_token in ((password, False), (user, True)):
        at = text.find(secret, start, end) if secret else -1
        if at < 0 or (is_token and (password or count_random_chars(secret) < 8)):
            continue
        if len(secret) < 3 or _is_variable_or_placeholder(secret) or secret.lower() in COMMON_DUMMY_PASSWORDS:
            continue
        if secret.isdigit() or secret.startswith(b"//") or _BRACKETS.search(secret):
            continue
        at = text.rfind(secret, start, end) if not is_token else at
        return _one(at, at + len(secret), "cli_password", 0.85)
    return ()


def match_piped(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `echo x | sudo -S` and `echo user:x | chpasswd`, given the position of the bar."""
    match = _PIPED.search(text, max(0, position - _MAX_PIPED_BYTES), position)
    if match is None:
        return ()
    start, end = match.span(1)
    if b"chpasswd" in text[position : position + 60]:
        user = _CHPASSWD_USER.match(text, start)
        if user is None:
            return ()
        return _argument(text, user.end(), end - (text[end - 1 : end] in (b'"', b"'")))
    return _argument(text, start, end)


def match_here_string(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `sudo -S <<< x` and `docker login --password-stdin <<< x`."""
    match = _HERE_STRING.match(text, position)
    return _argument(text, *match.span(1)) if match else ()


def match_secret_id(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `secret_id   x`, as Vault prints it."""
    match = _SECRET_ID.match(text, position)
    return _one(match.start(1), match.end(1), "assigned_secret", 0.85) if match else ()


# --- SQL

_IDENTIFIED = lazy_compile(
    rb"(?:(IDENTIFIED)|(?i:identified))[ \t]{1,8}(?i:with[ \t]{1,8}[\w'\"]{1,60}[ \t]{1,8})?(?i:by|as)[ \t]{1,8}"
    rb"(?i:(?:password|values)[ \t]{1,8})?"
)
_OF_USER = lazy_compile(rb"(?i)\b(?:create|alter)[ \t]+(?:user|role)\b|\bgrant\b")
_MAX_STATEMENT_BYTES = 200
_SET_PASSWORD = lazy_compile(
    rb"(?i)set[ \t]{1,8}password[ \t]{1,8}for[^=;\n]{1,120}=[ \t]{0,8}(?:password\([ \t]{0,8})?"
)


def match_identified_by(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `CREATE USER a IDENTIFIED BY 'x'`, but not `identified by` in a sentence."""
    match = _IDENTIFIED.match(text, position)
    value = read_value(text, match.end()) if match else None
    if match is None or value is None:
        return ()
    if not match[1] and not _OF_USER.search(text, max(0, position - _MAX_STATEMENT_BYTES), position):
        return ()
    word = text[value.start : value.end]
    if value.quoted:
        found = is_secret_value("password", word, Written.ARGUMENT)
    else:
        found = bool(count_of(DIGITS, word)) and not word.isdigit() and is_secret_value("password", word, Written.BARE)
    return _one(value.start, value.end, "assigned_password", 0.85) if found else ()


def match_set_password(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `SET PASSWORD FOR 'a'@'%' = 'x'`."""
    match = _SET_PASSWORD.match(text, position)
    value = read_value(text, match.end()) if match else None
    if value is None or not value.quoted:
        return ()
    if not is_secret_value("password", text[value.start : value.end], Written.ARGUMENT):
        return ()
    return _one(value.start, value.end, "assigned_password", 0.85)


# --- Tuples of credentials and keys of web tokens

_CREDENTIALS = lazy_compile(
    rb"(?i)(?:auth|credentials?|creds|login|BasicAuth|PasswordCredentials?|NetworkCredential|UserInfo|UserPassword"
    rb"|PasswordAuth)[\w.]{0,20}[ \t]{0,2}[=:]?[ \t]{0,2}[(\[][ \t\r\n]{0,20}"
    rb"[bu]?\\{0,8}[\"']([^\"'\\\n]{0,80})\\{0,8}[\"'],[ \t\r\n]{0,20}"
    rb"[bu]?\\{0,8}[\"']([^\"'\\\n]{4,200})\\{0,8}[\"']"
)
_SETTER = lazy_compile(rb"(?i)^[\w.]*\.(?:set|add|get|put|append|del)\w*[ \t]*[(\[]")
"""`authRequest.Header.Set("Accept", "x")` sets any name."""
_JWK_PRIVATE = lazy_compile(
    rb"\\{0,8}[\"'](?:d|p|q|dp|dq|qi|k)\\{0,8}[\"'][ \t]{0,4}:[ \t]{0,4}\\{0,8}[\"']([A-Za-z0-9_-]{16,2000})"
)
_KEY_TYPE = lazy_compile(rb"[\"']kty\\{0,8}[\"']")
_JWK_WINDOW_BYTES = 1500


def match_credentials_tuple(text: bytes, position: int) -> tuple[Match, ...]:
    """Match `auth=("user", "x")` and `login("user", "x")`."""
    match = _CREDENTIALS.match(text, position)
    if match is None or _SETTER.search(match[0]):
        return ()
    word = match[2]
    has_mark = bool(count_of(DIGITS, word)) or not word.isalnum()
    if not has_mark or b" " in word or word.lower() in COMMON_DUMMY_PASSWORDS or is_code(word):
        return ()
    found = is_secret_value("password", word, Written.QUOTED)
    return _one(match.start(2), match.end(2), "assigned_password", 0.8) if found else ()


def match_private_jwk(text: bytes, position: int) -> tuple[Match, ...]:
    """Match the private members of a JSON Web Key."""
    match = _JWK_PRIVATE.match(text, position)
    if match is None or count_random_chars(match[1]) < 12 or is_placeholder(match[1]):
        return ()
    if not _KEY_TYPE.search(text, max(0, position - _JWK_WINDOW_BYTES), position + _JWK_WINDOW_BYTES):
        return ()
    return _one(match.start(1), match.end(1), "private_jwk", 0.9)


# --- Manifests

_ENTRY = lazy_compile(
    rb"(?m)^[ \t]*[\"']?[A-Za-z0-9_.-]{1,80}[\"']?:[ \t]*[\"']?([A-Za-z0-9+/]{8,16000}={0,2})[\"']?,?[ \t\r]*$"
    rb"|\"[A-Za-z0-9_.-]{1,80}\\{0,3}\"[ \t]*:[ \t]*\\{0,3}\"([A-Za-z0-9+/]{8,16000}={0,2})\\{0,3}\""
)
_SECRET_KIND_PATTERN = r"\bkind[\"'\\]{0,4}[ \t]{0,2}:[ \t]{0,2}[\"'\\]{0,4}Secret\b"
_SECRET_KIND = lazy_compile(_SECRET_KIND_PATTERN.encode())
# Of `stringData`: the lines of its block, or its members.
_STRING_DATA = lazy_compile(
    rb"(?m)^[ \t]*stringData:[ \t\r]*\n((?:[ \t]+[^\n]*(?:\n|\Z))+)|\"stringData\\{0,3}\"[ \t]*:[ \t\n]*(\{[^{}]*)"
)
_PLAIN_ENTRY = lazy_compile(
    rb"(?m)^[ \t]*(?:[\"']?[A-Za-z0-9_.-]{1,80}[\"']?:(?:[ \t]+|$))?+[\"']?(?![|>][+-]?\s)([^\s\"'{][^\n\"']{2,})"
    rb"|:[ \t]*\\{0,3}\"([^\"\\\n]{3,})"
)
_MAX_MANIFEST_BYTES = 2048
_DOCKER = lazy_compile(rb"\"auth\\{0,3}\"[ \t]{0,2}:[ \t\n]{0,2}\\{0,3}\"([A-Za-z0-9+/]{12,2000}={0,2})")


def match_kubernetes_secret(text: bytes, position: int) -> tuple[Match, ...]:
    """Match the values of a Kubernetes Secret: base64 in `data`, plain text in `stringData`."""
    if _SECRET_KIND.match(text, position) is None:
        return ()
    start, end = max(0, position - _MAX_MANIFEST_BYTES), position + _MAX_MANIFEST_BYTES
    for separator in (b"\n---", TEXT_SEPARATOR):
        start = max(start, text.rfind(separator, start, position))
        behind = text.find(separator, position, end)
        end = behind if behind >= 0 else end
    spans = []
    for match in _ENTRY.finditer(text, start, end):
        value = match[match.lastindex or 0]
        plain = unbase64(value)
        if plain is not None and len(value) % 4 == 0 and len(plain) >= 4 and is_printable(plain):
            spans.append(match.span(match.lastindex or 0))
    for block in _STRING_DATA.finditer(text, start, end):
        entries = _PLAIN_ENTRY.finditer(text, *block.span(block.lastindex or 0))
        values = ((match[match.lastindex or 0], match.span(match.lastindex or 0)) for match in entries)
        spans += [span for value, span in values if not _is_variable_or_placeholder(value)]
    return tuple(Match(*span, "kubernetes_secret", 0.9) for span in spans)


def match_docker_auth(text: bytes, position: int) -> tuple[Match, ...]:
    """Match the login of a registry in Docker's settings."""
    match = _DOCKER.match(text, position)
    plain = unbase64(match[1]) if match else None
    if match is None or plain is None or b":" not in plain:
        return ()
    return _one(match.start(1), match.end(1), "docker_auth", 0.95)


ADDRESS_PATTERN = r"://(?:[^\s/?#\"'<>:]{0,128}:[^\s\"'<>`@]{0,1024}@|[A-Za-z0-9_-]{20,100}@)"
"""The candidate pattern of `match_address`, which is searched for by itself: re2 is slow with its counts."""
_PROGRAM_NAMES = "|".join(sorted(name.decode() for name in _PROGRAM_BY_NAME))
_RULES = (
    Rule(b"b", r"\b(?i:bearer|basic)(?:[ \t]{1,3}|%20|\+)[\"'\\]{0,4}[A-Za-z0-9_.~+/=-]{6}", match_scheme),
    Rule(
        b"a",
        r"(?i:authorization)[\"'\\]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\"'\\]{0,4}[A-Za-z0-9_.~+/=-]{2}",
        match_authorization,
    ),
    Rule(
        b"?&",
        r"[?&](?i:key|sig|signature|auth|code|sid|x-amz-signature|x-amz-security-token"
        r"|x-goog-signature)=[A-Za-z0-9_.%~+/-]{4}",
        match_url_parameter,
    ),
    Rule(b"-", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY", match_private_key),
    Rule(b"c", r"(?i:cookie)[\"'\\]{0,4}[ \t]{0,2}[:=][ \t\"'\\]{0,5}[A-Za-z0-9_.-]", match_cookie),
    Rule(
        bytes({name[0] for name in _PROGRAM_BY_NAME}),
        rf"\b(?:{_PROGRAM_NAMES})[ \t]+[^\s]",
        match_command,
    ),
    Rule(b"s", r"\bsecret_id[ \t]+[0-9a-f]{8}-", match_secret_id),
    Rule(
        b"|",
        r"\|[ \t]*(?:sudo(?:[ \t]+-[A-Za-z-]+)*[ \t]+-[A-Za-z]*S\b|(?:sudo[ \t]+)?(?:passwd[ \t]+--stdin|chpasswd)"
        r"|(?:docker|podman|helm|gh|glab|aws|az|oras|crane|nerdctl)[^\n|;&]*(?:--password-stdin|--with-token|--stdin)"
        r"|(?:gh|wrangler|flyctl|fly)[ \t]+secrets?[ \t]+(?:set|put)\b|vercel[ \t]+env[ \t]+add\b|kinit\b|cryptsetup\b"
        r"|gpg2?[^\n|;&]*--passphrase-fd[ \t=]0)",
        match_piped,
    ),
    Rule(b"s", r"\bsudo(?:[ \t]+-[A-Za-z-]+)*[ \t]+-[A-Za-z]*S\b[^\n|;&<]*<<<", match_here_string),
    Rule(
        b"dghopn",
        r"\b(?:docker|podman|helm|gh|oras|nerdctl)[ \t][^\n|;&<]*(?:--password-stdin|--with-token|secret[ \t]+set)"
        r"[^\n|;&<]*<<<",
        match_here_string,
    ),
    Rule(
        b"i",
        r"\b(?i:identified)[ \t]+(?i:with[ \t]+[A-Za-z0-9_'\"]+[ \t]+)?(?i:by|as)[ \t]",
        match_identified_by,
    ),
    Rule(b"s", r"\b(?i:set[ \t]+password[ \t]+for)[ \t][^=;\n]*=", match_set_password),
    Rule(
        b"aclbnup",
        r"(?i:auth|credentials?|creds|login|NetworkCredential|UserInfo|UserPassword)[A-Za-z0-9_.]*[ \t]?[=:]?[ \t]?"
        r"[(\[][ \t\r\n]*[bu]?\\*[\"'][^\"'\n]*[\"'],[ \t\r\n]*[bu]?\\*[\"'][^\"'\n]",
        match_credentials_tuple,
    ),
    Rule(
        b"\"'\\",
        r"[\"'\\]+(?:d|p|q|dp|dq|qi|k)\\*[\"'][ \t]*:[ \t]*\\*[\"'][A-Za-z0-9_-]{16}",
        match_private_jwk,
    ),
    Rule(b"k", _SECRET_KIND_PATTERN, match_kubernetes_secret),
    Rule(b'"', r"\"auth\\{0,3}\"[ \t]{0,2}:[ \t\n]{0,2}\\{0,3}\"[A-Za-z0-9+/]{4}", match_docker_auth),
    Rule(b":", ADDRESS_PATTERN, match_address),
)
CANDIDATE_PATTERNS = tuple(rule.candidate_pattern for rule in _RULES if rule.match is not match_address)
_RULES_BY_FIRST_BYTE: dict[int, list[Rule]] = {}
for _rule in _RULES:
    for _byte in {*_rule.first_bytes, *_rule.first_bytes.upper()}:
        _RULES_BY_FIRST_BYTE.setdefault(_byte, []).append(_rule)


def match_at(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    """Check the rules whose candidates may begin like this one; return the hits and where to search on."""
    for rule in _RULES_BY_FIRST_BYTE.get(text[start], ()):
        hits = rule.match(text, start)
        if hits:
            return hits, max(hit.end for hit in hits)
    return (), start + 1 if end - start < 4 else start + 2
