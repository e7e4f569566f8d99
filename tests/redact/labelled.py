"""Texts with secrets and personal numbers planted in them, and texts that only look so. Built at run time, from a seed.

The form of a record is that of the shared generator: text, label, kind and the spans that must disappear.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import Any

_LETTERS, _DIGITS = string.ascii_letters, string.digits
_MIXED, _HEX = _LETTERS + _DIGITS, "0123456789abcdef"
Record = dict[str, Any]
Make = Callable[[random.Random], str]


def _of(alphabet: str, length: int) -> Make:
    return lambda chance: "".join(chance.choice(alphabet) for _ in range(length))


def _mixed(chance: random.Random, length: int) -> str:
    while True:
        value = "".join(chance.choice(_MIXED) for _ in range(length))
        if any(char in _DIGITS for char in value) and value.lower() != value != value.upper():
            return value


def _after(prefix: str, length: int, alphabet: str = "") -> Make:
    if alphabet:
        return lambda chance: prefix + _of(alphabet, length)(chance)
    return lambda chance: prefix + _mixed(chance, length)


def _jwt(chance: random.Random) -> str:
    parts = ({"alg": "RS256", "kid": _mixed(chance, 6)}, {"sub": _mixed(chance, 9), "exp": chance.randrange(10**9)})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, _mixed(chance, 86)])


def _password(chance: random.Random) -> str:
    word = chance.choice(["Maple", "Harvest", "Cobalt", "Lantern", "Juniper", "Breeze"])
    return f"{word}{chance.choice('-!#%+')}{chance.randrange(100, 99999)}{chance.choice('xyzqk')}"


# kind: how it is made, and the name it is assigned to
SECRETS: dict[str, tuple[Make, str]] = {
    "github": (_after("gh" + "p_", 36), "GITHUB_TOKEN"),
    "gitlab": (_after("gl" + "pat-", 20), "CI_JOB_TOKEN"),
    "anthropic": (_after("sk-" + "ant-api03-", 95), "ANTHROPIC_API_KEY"),
    "openai": (_after("sk-" + "proj-", 120), "OPENAI_API_KEY"),
    "google": (_after("AI" + "za", 35), "GEMINI_API_KEY"),
    "aws_id": (_after("AK" + "IA", 16, string.ascii_uppercase + "234567"), "AWS_ACCESS_KEY_ID"),
    "slack": (lambda chance: "xo" + "xb-" + _of("123456789", 12)(chance) + "-" + _mixed(chance, 24), "SLACK_TOKEN"),
    "stripe": (_after("sk" + "_live_", 32), "STRIPE_KEY"),
    "netlify": (_after("nf" + "p_", 40), "NETLIFY_AUTH_TOKEN"),
    "tailscale": (lambda chance: "tskey" + "-auth-" + _mixed(chance, 12) + "CNTRL-" + _mixed(chance, 32), "TS_AUTHKEY"),
    "fly": (_after("fm" + "2_", 90), "FLY_API_TOKEN"),
    "neon": (_after("na" + "pi_", 64, string.ascii_lowercase + _DIGITS), "NEON_API_KEY"),
    "dynatrace": (lambda chance: "dt0" + "c01." + _of(string.ascii_uppercase + "234567", 24)(chance) + "."
                  + _of(string.ascii_uppercase + "234567", 64)(chance), "DT_TOKEN"),
    "posthog": (_after("ph" + "x_", 43), "POSTHOG_PERSONAL_KEY"),
    "resend": (lambda chance: "re" + "_" + _mixed(chance, 8) + "_" + _mixed(chance, 24), "RESEND_API_KEY"),
    "jwt": (_jwt, "SESSION_JWT"),
    "hex_key": (_of(_HEX, 40), "PAYMENTS_API_KEY"),
    "base64_secret": (lambda chance: base64.b64encode(chance.randbytes(32)).decode(), "COOKIE_SECRET"),
    "password": (_password, "SMTP_PASSWORD"),
}  # fmt: skip
_PLAIN = {"hex_key", "base64_secret", "password"}


def _camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(word.title() for word in rest)


NAMED: dict[str, Callable[[str], tuple[str, str]]] = {
    "properties": lambda name: (f"# generated\napp.{name.lower().replace('_', '.')}=", "\napp.port=8080\n"),
    "toml": lambda name: (f"[deploy]\nregion = 'fra1'\n{name.lower()} = \"", '"\nreplicas = 2\n'),
    "go": lambda name: (f'const {_camel(name)} = "', '"\n\nfunc main() {}\n'),
    "ruby": lambda name: (f"config.{name.lower()} = '", "'\nend\n"),
    "powershell": lambda name: (f'$env:{name} = "', '"; ./deploy.ps1'),
    "workflow": lambda name: (f"      env:\n        {name}: '", "'\n      run: make\n"),
    "heredoc": lambda name: (f"cat > .env <<'END'\n{name}=", "\nEND\n"),
    "nested_json": lambda name: ('{"out": "{\\"cfg\\": {\\"' + name + '\\": \\"', '\\"}}"}'),
    "twice_nested": lambda name: ('"{\\"a\\": \\"{\\\\\\"' + _camel(name) + '\\\\\\": \\\\\\"', '\\\\\\"}\\"}"'),
    "escaped_lines": lambda name: (f'"stdout": "HOME=/srv\\n{name}=', '\\nTERM=xterm\\n"'),
    "yaml_list": lambda name: (f"env:\n  - name: A\n    value: b\n  - {name}={''}", "\n  - DEBUG=1\n"),
    "makefile": lambda name: (f"{name} := ", "\n\nall: build\n"),
}
BARE: dict[str, tuple[str, str]] = {
    "sentence": ("The old one was ", ", I have revoked it."),
    "table": ("| staging | `", "` | rotated |"),
    "header": ("< HTTP/1.1 200\nAuthorization: Bearer ", "\n"),
    "argument": ("deployctl login ", " --yes"),
    "address": ("https://x-access-token:", "@git.corp.dev/app.git"),
    "encoded": ("next=https%3A%2F%2Fa.dev%2F%3Ftoken%3D", "%26x%3D1"),
}


def luhn(body: str) -> str:
    """A number with the digit that answers for the others."""
    total = 0
    for place, char in enumerate(reversed(body)):
        double = int(char) * 2 if place % 2 == 0 else int(char)
        total += double - 9 if double > 9 else double
    return body + str(-total % 10)


PII: dict[str, Make] = {
    "card": lambda chance: luhn("5" + chance.choice("12345") + _of(_DIGITS, 13)(chance)),
    "email": lambda chance: (
        f"{_of(string.ascii_lowercase, 7)(chance)}.{_of(string.ascii_lowercase, 5)(chance)}@posteo.de"
    ),
    "phone": lambda chance: "+49" + "151" + _of("123456789", 8)(chance),
    "ssn": lambda chance: f"{chance.randrange(100, 600)}-{chance.randrange(10, 99)}-{chance.randrange(1000, 9999)}",
}
# ruff: noqa: ARG005 - a text that is always the same is made like the others
NEGATIVES: dict[str, Make] = {
    "digest": lambda chance: f"sha256:{_of(_HEX, 64)(chance)}  dist/app.tar.gz",
    "commit": lambda chance: f"Merge {_of(_HEX, 40)(chance)} into {_of(_HEX, 40)(chance)}",
    "lookup": lambda chance: (
        "token = await vault.read(f'secret/{name}')\napiKey: process.env.API_KEY,\npassword: z.string().min(8)"
    ),
    "counts": lambda chance: (
        f'"max_tokens": {chance.randrange(9999)}, "token_count": {chance.randrange(9999)}, "tokens": [1, 2]'
    ),
    "template": lambda chance: (
        "PASSWORD={{ .Values.db.password }}\nTOKEN: ${{ secrets.TOKEN }}\nSECRET=<secret>\nAPI_KEY=%API_KEY%"
    ),
    "page": lambda chance: f'"nextPageToken": "{_mixed(chance, 40)}", "cursor": "{_mixed(chance, 30)}"',
    "talk": lambda chance: (
        "Reset the password, then the token is refreshed and the secret rotated. The API key is missing."
    ),
    "ids": lambda chance: (
        f"req_{_mixed(chance, 24)} trace {_of(_HEX, 32)(chance)} node_modules/.pnpm/a@1.2.3_{_of(_HEX, 26)(chance)}"
    ),
    "numbers": lambda chance: (
        f"size={_of('123456789', 16)(chance)} 2026-01-02T03:04:05.678901Z 10.4.{chance.randrange(99)}.1-rc.2"
    ),
    "names": lambda chance: (
        'primary_key="id", sort_key="updatedAt", hotkey="ctrl+k", tokenizer="o200k_base", secretName: db-auth'
    ),
    "form": lambda chance: '<input type="password" name="password" placeholder="Password"><label>Secret token</label>',
}


def records(seed: int = 1, per_kind: int = 6) -> Iterator[Record]:
    """The set of a seed."""
    chance = random.Random(f"planted/{seed}")
    for kind, (make, name) in SECRETS.items():
        carriers = [*NAMED] if kind in _PLAIN else [*NAMED, *BARE]
        for carrier in chance.sample(carriers, min(per_kind, len(carriers))):
            value = make(chance)
            before, after = NAMED[carrier](name) if carrier in NAMED else BARE[carrier]
            yield _record("secret", kind, before, value, after)
    for kind, make in PII.items():
        for before, after in (("Name;Value\nAda;", ";1\n"), ("call ", " today"), ('{"v": "', '"}'))[:per_kind]:
            yield _record("pii", kind, before, make(chance), after)
    for kind, make in NEGATIVES.items():
        for _ in range(per_kind):
            yield {"label": "negative", "kind": f"not_{kind}", "text": make(chance), "spans": []}


def _record(label: str, kind: str, before: str, value: str, after: str) -> Record:
    span = {"start": len(before), "end": len(before) + len(value), "kind": kind, "class": label}
    return {"label": label, "kind": kind, "text": before + value + after, "spans": [span]}
