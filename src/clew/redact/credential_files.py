"""Recognise files that hold secrets by their name, mask their values, and recognise commands that print them."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.model.json import JSON
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Match

_ENV = lazy_compile(
    r"(?:^|/)(?:\.env(?:\.(?!example|sample|template|dist|schema)[\w.-]+)?|[\w.-]+\.env|\.envrc|\.dev\.vars"
    r"|\.flaskenv)$"
)
_PAIRS = lazy_compile(
    r"(?i)(?:^|/)(?:\.aws/credentials|\.?secrets?(?:\.[\w-]+)*\.(?:ya?ml|toml|ini|properties|conf|env)"
    r"|credentials(?:\.(?:ya?ml|toml|ini|db))?"
    r"|\.pypirc|\.npmrc|\.s3cfg|\.my\.cnf|\.boto|\.pgpass|\.git-credentials|\.htpasswd|\.netrc|_netrc"
    r"|terraform\.tfvars|vault[\w-]*\.ya?ml)$"
)
_JSON = lazy_compile(
    r"(?i)(?:^|/)(?:\.?credentials?(?:[._-][\w-]+)*\.json|secrets?(?:[._-][\w-]+)*\.json"
    r"|client_secrets?[\w.-]*\.json|service[_-]?account[\w.-]*\.json"
    r"|application_default_credentials\.json|auth\.json|\.docker/config\.json|token\.json|\.credentials\.json"
    r"|oauth_creds\.json)$"
)
_WHOLE = lazy_compile(
    r"(?:^|/)(?:\.ssh/(?:id_[\w-]+|identity)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[\w.-]+\.(?:pem|key|p8|ppk"
    r"|pfx|p12|jks|keystore))$"
)

# `*` rather than `{0,n}`: counting would need a state for every length.
SIGNS = (
    r"(?:\.env(?:rc|\.[\w.-]*)?|\.dev\.vars|\.flaskenv|(?i:credentials|credentials?[\w.-]*\.[a-z]{2,10}"
    r"|secrets?[\w.-]*\.[a-z]{2,10}|\.pypirc|\.npmrc|\.s3cfg|\.my\.cnf|\.boto|\.pgpass|\.htpasswd|[._]netrc|\.tfvars"
    r"|vault[\w-]*\.ya?ml|service[_-]?account[\w.-]*\.json|(?:auth|token|oauth_creds)\.json"
    r"|\.docker[\\/]{1,8}config\.json)|\.ssh[\\/]{1,8}(?:id_[\w-]*|identity)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|[\w.-]\.(?:pem|key|p8|ppk|pfx|p12|jks|keystore))(?:[\s\"'<>()=,;|&\\`]|$)",
)
"""Candidate patterns of the names of all these files, and of the character behind them."""

# A line as tools print it: with a line number, with `+` or `-` of a diff, or bare. The quantifiers are possessive, so
# the time is linear in the length of any line.
_LINE = rb"(?m)^[ \t]*+(?:[0-9]++(?:\xe2\x86\x92|[:|\t])[ \t]*+)?+[+-]?+[ \t]*+"
# A quoted value may have line ends, if nothing but a comment follows its closing quote.
_LINE_END = rb"(?=[ \t\r]*+(?:[#,\n]|\Z))"
_QUOTED = (
    rb"(?:\"(?:[^\"\\\n]|\\[^\n])*+\"|'[^'\n]*+'"
    rb"|\"(?:[^\"\\]|\\.){0,8192}+\"%b|'[^']{0,8192}+'%b)" % (_LINE_END, _LINE_END)
)
_ENV_LINE = lazy_compile(
    _LINE + rb"(?:export[ \t]++)?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]*+[=:][ \t]*+" + rb"(%b|[^\s#][^\n]*)" % _QUOTED
)
_PAIR_LINE = lazy_compile(
    _LINE
    + rb"(?:-[ \t]++)?[\"']?[A-Za-z_/@][\w./@:-]*?[\"']?(?:[ \t]*+=[ \t]*+|:[ \t]++)"
    + rb"(%b|[^\s#{\[][^\n]*)" % _QUOTED
)
# In YAML and TOML: items of lists, lines of block scalars, strings of arrays.
_ITEM_LINE = lazy_compile(_LINE + rb"(?:-[ \t]++)?(%b|[^\s#{\[\]}:=-][^\n:=]*+)[ \t]*+$" % _QUOTED)
_ARRAY_STRING = lazy_compile(rb"[\[,][ \t\n]*+(\"[^\"\n]*+\"|'[^'\n]*+')")
_PGPASS_LINE = lazy_compile(_LINE + rb"(?:[^:\n]++:){4}([^\n]++)")
_HTPASSWD_LINE = lazy_compile(_LINE + rb"[^:\s#]++:([^\n]++)")
_NETRC_WORD = lazy_compile(rb"\b(?:password|account)[ \t\n]++(\S++)")
_OTHER_LINES = {
    ".pgpass": (_PGPASS_LINE,),
    ".htpasswd": (_HTPASSWD_LINE,),
    ".netrc": (_NETRC_WORD,),
    "_netrc": (_NETRC_WORD,),
    ".yaml": (_PAIR_LINE, _ITEM_LINE, _ARRAY_STRING),
    ".yml": (_PAIR_LINE, _ITEM_LINE, _ARRAY_STRING),
    ".toml": (_PAIR_LINE, _ITEM_LINE, _ARRAY_STRING),
}
"""Expressions for values in files with other lines than `name = value`, by the ending of the file name."""
_NAME = rb"\"([\w.@/:-]{1,100})\\{0,3}\"[ \t]*+:[ \t\n]*+"
# The quote at the end has as many backslashes as the one at the beginning.
_JSON_PAIR = lazy_compile(
    _NAME + rb"(?:\"((?:[^\"\\\n]|\\[^\n])++)|(?P<quote>\\{1,3}\")((?:(?!(?<!\\)(?P=quote))[^\n])++))"
)
# A single member whose value is not escaped, as `json_walk` passes it.
_JSON_MEMBER = lazy_compile(rb"\A" + _NAME + rb"((?:[^\n]|\n(?!\s*[\"}]))+)\Z")
_HARMLESS = lazy_compile(
    rb"(?i)(?:true|false|yes|no|on|off|null|none|[0-9.]{1,6}|localhost|127\.0\.0\.1|0\.0\.0\.0|development"
    rb"|production|staging|test|dev|prod"
    rb"|debug|info|warn(?:ing)?|error|utf-?8|utc|json|text|default|us-[a-z]+-[0-9]|eu-[a-z]+-[0-9]"
    rb"|service_account|authorized_user|[|>]-?)[\s,]*"
)
_PUBLIC = frozenset(
    b"type project_id client_email auth_uri token_uri auth_provider_x509_cert_url client_x509_cert_url"
    b" universe_domain redirect_uris"
    b" token_type scope expiry_date expires_at region version name id email client_id".split()
)


def find_in_credential_file(text: bytes, path: str) -> list[Match]:
    """Find the values in the content of a file that holds secrets by its name."""
    plain = path.replace("\\", "/")
    if plain.endswith(".pub"):
        return []
    if _WHOLE.search(plain):
        body = text.strip()
        start = text.find(body)
        return (
            [Match(start, start + len(body), "key_file", 0.9)] if len(body) >= 32 and b"CERTIFICATE" not in body else []
        )
    if _ENV.search(plain):
        return _values(_ENV_LINE, text, "env_file")
    if _PAIRS.search(plain):
        patterns = next((found for ending, found in _OTHER_LINES.items() if plain.endswith(ending)), (_PAIR_LINE,))
        return [hit for pattern in patterns for hit in _values(pattern, text, "credential_file")]
    if _JSON.search(plain):
        return _members(text)
    return []


def _values(pattern: re.Pattern[bytes], text: bytes, rule: str) -> list[Match]:
    hits = []
    for match in pattern.finditer(text):
        value = match[1].rstrip()
        start = match.start(1)
        if value[:1] in b"\"'":
            value, start = value[1:-1] if value[-1:] == value[:1] else value[1:], start + 1
        if len(value) >= 4 and not _HARMLESS.fullmatch(value) and not value.startswith((b"${", b"$(", b"[REDACTED")):
            hits.append(Match(start, start + len(value), rule, 0.8))
    return hits


def _members(text: bytes) -> list[Match]:
    member = _JSON_MEMBER.match(text)
    if member is not None and text[member.start(2) : member.start(2) + 1] != b'"':
        found = [(member, 2)]
    else:
        found = [(match, 2 if match[2] is not None else 4) for match in _JSON_PAIR.finditer(text)]
    return [
        Match(match.start(group), match.end(group), "credential_file", 0.8)
        for match, group in found
        if match[1] not in _PUBLIC and len(match[group]) >= 4 and not _HARMLESS.fullmatch(match[group])
    ]


_MAX_COMMAND_CHARS = 4096
_COMMAND_WORD = lazy_compile(r"""[^\s'"<>()=,]+""")
_COMMAND_SEPARATOR = lazy_compile(r"&&|\|\||[;\n|]")
_SHELLS = frozenset("bash sh zsh".split())
_PRINTS_FILE = frozenset(
    "cat head tail less more bat sed grep rg awk cut sort nl strings type gc get-content jq yq base64".split()
)
_PRINTS_NOTHING = frozenset("cd pushd popd export set source . wc uniq tr".split())


@lru_cache(maxsize=4096)
def is_credential_file(path: str) -> bool:
    """Return True for a file that holds secrets by its name."""
    plain = path.replace("\\", "/")
    if len(path) >= _MAX_COMMAND_CHARS or plain.endswith(".pub"):
        return False
    return any(names.search(plain) for names in (_WHOLE, _ENV, _PAIRS, _JSON))


def read_by(command: JSON) -> str | None:
    """Return the credential file that a command, as text or as words, prints; None if it prints anything else too."""
    if type(command) is list:
        command = " ".join(word for word in command if type(word) is str)
    if type(command) is not str or len(command) > _MAX_COMMAND_CHARS:
        return None
    found = None
    for step in _COMMAND_SEPARATOR.split(command):
        words = _without_shell(_COMMAND_WORD.findall(step))
        if not words:
            continue
        if words[0].rpartition("/")[2].lower() in _PRINTS_FILE:
            found = found or next((word for word in words[1:] if is_credential_file(word)), None)
        elif words[0] not in _PRINTS_NOTHING:
            return None
    return found


def _without_shell(words: list[str]) -> list[str]:
    """Remove the shell or `sudo` before a command."""
    while words and (words[0].rpartition("/")[2] in _SHELLS or words[0] in ("sudo", "-c", "-lc")):
        words = words[1:]
    return words
