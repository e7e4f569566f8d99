"""What the seeds say must never be logged, the user's own rules, and texts that only look like secrets."""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.redact import PLAIN, Marker, load_rules, parse_rules, redact, scan
from clew.redact import scanner as scanning
from clew.redact.matcher import TOO_MANY_CANDIDATES
from clew.redact.scanner import rule_ids
from tests.redact import labelled
from tests.redact.scoring import SECRETS_GENERATOR, load_generator

MIXED = string.ascii_letters + string.digits
KEYS = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]


def chars(seed: int, length: int, alphabet: str = MIXED) -> str:
    chance = random.Random(seed)
    return "".join(chance.choice(alphabet) for _ in range(length - 1)) + "7"


# --- The seed's two patterns, as they are in the seed


def as_in_the_seed(text: str) -> str:
    """The two replacements of the seed, in Python."""
    text = re.sub(r"(ANTHROPIC_API_KEY|OPENAI_API_KEY|GEMINI_API_KEY)=['\"]?[^'\"\n]+['\"]?", r"\1=[REDACTED]", text)
    return re.sub(r"Bearer [A-Za-z0-9_-]+", "Bearer [REDACTED]", text)


@pytest.mark.seed("S0-20", "S0-21", "S0-29", "S0-31")
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_the_environment_as_in_the_seed(name: str) -> None:
    text = f"export {name}={chars(1, 40)}\nPORT=80"
    assert redact(text) == as_in_the_seed(text)


@pytest.mark.seed("S0-21", "S0-31")
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_quoted_keys_keep_their_name(name: str, quote: str) -> None:
    value = chars(2, 40)
    clean = redact(f"{name}={quote}{value}{quote}\n")
    assert value not in clean
    assert f"{name}=" in clean and PLAIN in clean


@pytest.mark.seed("S0-22", "S0-29")
@pytest.mark.parametrize("extra", ["", ".", "+", "/", "=", "_", "-", "~"])
def test_bearer_tokens_as_in_the_seed_and_with_more_characters(extra: str) -> None:
    value = chars(3, 20) + extra + chars(4, 20)
    assert redact(f"Authorization: Bearer {value}\n") == f"Authorization: Bearer {PLAIN}\n"
    if extra in "_-":
        assert redact(f"Bearer {value}\n") == as_in_the_seed(f"Bearer {value}\n")


# --- Files


@pytest.mark.seed("S0-23")
@pytest.mark.parametrize("path", [".env", "/srv/app/.env.production", "C:\\app\\.env", "deploy/prod.env"])
def test_env_files_are_filtered_by_their_path(path: str) -> None:
    text = "# comment\nPORT=8080\nPIN=open sesame\n     3→export OTHER='a word'\nDEBUG=true\n"
    clean = redact(text, path=path)
    assert "sesame" not in clean and "a word" not in clean
    assert "PORT=8080" in clean and "PIN=" in clean and "DEBUG=true" in clean
    assert redact(text, path="notes.md") == text
    assert redact(text, path=".env.example") == text


@pytest.mark.seed("S0-24")
def test_credential_files_are_filtered_by_their_path() -> None:
    text = '{"type": "service_account", "client_id": "1", "pin": "open sesame"}'
    assert "sesame" not in redact(text, path="x/credentials.json")
    assert "service_account" in redact(text, path="x/credentials.json")
    assert "sesame" not in redact("db:\n  pin: open sesame\n  port: 80\n", path="secrets.yaml")


@pytest.mark.seed("S0-25")
def test_ssh_keys_are_filtered_by_path_and_by_armour() -> None:
    body = "\n".join(chars(seed, 64) for seed in range(5))
    assert body[:50] not in redact(body, path="/home/ada/.ssh/id_ed25519")
    assert redact(body, path="/home/ada/.ssh/id_ed25519.pub") == body
    label = "OPENSSH PRIVATE" + " KEY"
    armoured = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"
    assert redact(f"a {armoured} b") == f"a {PLAIN} b"


# --- Personal numbers and passwords


@pytest.mark.seed("S0-26")
def test_cards_are_checked_by_their_last_digit() -> None:
    card = "4111" + " 1111 1111 " + "1111"
    good = "5500" + "0055" + "5555" + "5559"
    assert good not in redact(f"card {good}", "pii")
    assert redact(f"card {good[:-1]}8", "pii") == f"card {good[:-1]}8"
    assert redact(f"on {card[:-1]}3", "pii") == f"on {card[:-1]}3"
    # Two digits are enough for a card, as on those that are printed in manuals; one is not.
    for by in (" ", "-", ""):
        assert redact(f"on {card.replace(' ', by)}", "pii") == f"on {PLAIN}"
    for digit in "0123456789":
        assert redact(f"on {' '.join([digit * 4] * 4)}", "pii") == f"on {' '.join([digit * 4] * 4)}"


@pytest.mark.seed("S0-27")
def test_social_security_numbers() -> None:
    assert redact("SSN 212-" + "09-4321", "pii") == f"SSN {PLAIN}"
    for never in ("000-12-3456", "666-12-3456", "912-12-3456", "212-00-4321"):
        assert redact(f"part {never}", "pii") == f"part {never}"


@pytest.mark.seed("S0-28")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("password: ", "\n"),
        ("PASSWORD=", "\n"),
        ("DB_PASSWORD=", " && run"),
        ('"password": "', '"'),
        ("password = '", "'"),
        ("https://ada:", "@host.dev/x"),
        ("postgresql://ada:", "@db:5432/app"),
        ("mysql -u ada --password=", " -e 'select 1'"),
        ("curl -u ada:", " https://a.dev"),
        ("<password>", "</password>"),
        ("machine a.dev login ada password ", "\n"),
        ("the password is ", " , use it"),
    ],
)
def test_passwords_in_plain_text(before: str, after: str) -> None:
    for value in ("hunter" + "2", "Winter!" + "123ab", "Tr0ub4dor" + "3"):
        assert redact(before + value + after) == before + PLAIN + after


@pytest.mark.seed("S0-32")
def test_token_counts_stay() -> None:
    text = '"usage": {"input_tokens": 1234, "cache_read_input_tokens": 15000, "max_tokens": 32000}'
    text += ', "tokens": {"estimated": 150}'
    assert redact(text, "all") == text


@pytest.mark.seed("S0-31")
def test_the_plain_marker_is_that_of_the_seed() -> None:
    assert Marker()("x", "y") == PLAIN == "[REDACTED]"


# --- RD11: what only looks like a secret

LOOKALIKES = [
    '"helper_tokens": 310275, <helper_tokens>310275</helper_tokens>',
    "api_key = os.environ['API_KEY']",
    "token = self._tokens[index]",
    "password: Optional[SecretStr] = None",
    "const apiKey = getApiKey(config)",
    "if token == expected_token:",
    "PASSWORD=${DB_PASSWORD:?missing}",
    "export ANTHROPIC_API_KEY=votre-jeton",
    "OPENAI_API_KEY=sk-" + "x" * 40,
    "http://foo:bar@example.com http://foo:bar:baz@example.com postgres://postgres:postgres@localhost/x",
    "-0." + labelled.luhn("412345098761023") + ", 1." + labelled.luhn("510293847560192"),
    "+2031-04-09 and +1999-12-24",
    "formula@head.rb logo@2x.png user@example.com git@github.com:a/b.git",
    "docker run -u 1000:1000 image",
    "mkdir -p some/folder; python -pthread",
    "Bearer authentication, Bearer token, Basic understanding",
    "The key is present and the password is required.",
    'type="password" autocomplete="current-password"',
    "secretName: registry-credentials",
    "tests/test_auth.py::test_token_refresh[password-secret-1] PASSED",
    "iVBORw0KGgo/" + "EAAB" * 28 + "Qx7a/Zk3+w==",
    "checksum = sha256:" + "0a1b2c3d" * 8,
    "-----BEGIN PUBLIC" + " KEY-----\nMIIB\n-----END PUBLIC" + " KEY-----",
    'if "-----BEGIN PRIVATE' + ' KEY-----" in text: raise',
]


@pytest.mark.parametrize("text", LOOKALIKES, ids=lambda text: text[:30])
def test_RD11_lookalikes_stay(text: str) -> None:
    assert redact(text, "pii") == text


def test_RD11_our_own_negatives_stay() -> None:
    for row in labelled.records(9, 30):
        if row["label"] == "negative":
            assert scan(row["text"], "pii") == [], row["kind"]


def test_RD11_every_kind_of_negative_of_the_shared_set_stays(shared: Path) -> None:
    negatives = load_generator(shared / SECRETS_GENERATOR).negatives(33, 610)
    assert len({row["kind"] for row in negatives}) == 61
    assert [row["kind"] for row in negatives if scan(row["text"], "pii")] == []


# --- RD12: rules of the user's own


def test_RD12_a_rule_of_the_users_own_finds() -> None:
    rules = parse_rules("[[rule]]\nid = 'staff'\nkind = 'pii'\npattern = 'EMP-[0-9]{6}|Zürich-[0-9]+'\n")
    assert redact("of EMP-123456 and Zürich-12", "pii", rules=rules) == f"of {PLAIN} and {PLAIN}"
    assert redact("of EMP-123456", "secrets", rules=rules) == "of EMP-123456"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("M.ller-[0-9]+", "Müller-123"),
        ("Str[aä]ße-[0-9]+", "Sträße-12"),
        ("(?i)ÖL-[0-9]+", "öl-3"),
        ("E-[0-9]+", "E-1"),
    ],
)
def test_a_rule_of_the_users_own_matches_characters(pattern: str, text: str) -> None:
    rules = parse_rules(f"[[rule]]\nid = 'own'\npattern = '{pattern}'\n")
    assert redact(text, rules=rules) == PLAIN
    assert redact("Str(ße-1", rules=rules) == "Str(ße-1"


def test_RD12_allowed_values_patterns_and_rules_are_left() -> None:
    value = "gh" + "p_" + chars(5, 36)
    text = f"a {value} b"
    assert redact(text) != text
    for allow in (f"values = ['{value}']", "patterns = ['ghp_.*']", "rules = ['github_token']"):
        assert redact(text, rules=parse_rules(f"[allow]\n{allow}\n")) == text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[[rule]]\nid = 'a'\npattern = '(x'\n", 3, "invalid regular expression"),
        ("[[rule]]\nid = 'a'\npattern = '(?=x)y'\n", 3, "invalid regular expression"),
        ("[[rule]]\nid = 'a'\n\npattern = '((a{1,100}){1,100}){1,100}'\n", 4, "invalid regular expression"),
        ("[[rule]]\nid = 'a'\npattern = '" + "[a-z]{900}" * 12 + "'\n", 3, "too complex"),
        ("[[rule]]\nid = 'a'\npattern = 'x*'\n", 3, "matches the empty string"),
        ("[[rule]]\nid = 'a'\n", 2, "`pattern` is missing"),
        ("[[rule]]\nid = 'A b'\npattern = 'x'\n", 2, "id"),
        ("[[rule]]\nid = 'a'\npattern = 'x'\nkind = 'other'\n", 4, "kind"),
        ("[[rule]]\nid = 'a'\nregex = 'x'\n", 3, "unknown key"),
        ("[allow]\npatterns = ['(']\n", 2, "invalid regular expression"),
        ("[allow]\nrules = [\n  'email',\n  'host_nam',\n]\n", 4, "no rule 'host_nam'; did you mean 'host_name'?"),
        ("[allow]\nrules = ['qqqq']\n", 2, "no rule 'qqqq'"),
        ("[[rule]]\nid = 'github_token'\npattern = 'x'\n", 2, "is a built-in rule"),
        ("[[rule]]\nid = 'a'\npattern = 'x'\n[[rule]]\nid = 'a'\npattern = 'y'\n", 2, "two rules have the id 'a'"),
        ("[[rule]]\nid = 'email'\npattern = 'x'\n", 2, "is a built-in rule"),
        ("[[rule]\n", 1, "line 1"),
    ],
)
def test_RD12_a_bad_rule_is_refused_with_its_line(text: str, line: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        load_rules(path)
    assert said in str(refused.value)
    assert f":{line}:" in str(refused.value) or f"line {line}" in str(refused.value)


def test_every_rule_that_finds_something_can_be_excepted() -> None:
    named = re.compile(r'Match\([^"\n]*"([a-z0-9_]+)"|_one\([^"\n]*"([a-z0-9_]+)"|return "([a-z_]+)" if')
    folder = Path(scanning.__file__).parent
    found = {name for path in folder.glob("*.py") for match in named.findall(path.read_text("utf-8")) for name in match}
    found -= {"", "password", "secret"}
    found.add(TOO_MANY_CANDIDATES)
    assert {"known_value", "url_password", "card", "host_name"} <= found
    assert found <= rule_ids()


def test_a_kubernetes_secret_and_a_docker_login() -> None:
    value = base64.b64encode(b"some-value-12").decode()
    manifest = f"kind: Secret\ndata:\n  alpha: {value}\n---\nkind: ConfigMap\ndata:\n  beta: {value}\n"
    assert redact(manifest) == manifest.replace(value, PLAIN, 1)
    login = base64.b64encode(b"ada:word12").decode()
    assert login not in redact(f'{{"auths": {{"r.dev": {{"auth": "{login}"}}}}}}')


def test_the_secret_half_of_a_pair_stands_near_the_other() -> None:
    one, other = "AK" + "IA" + chars(6, 16, string.ascii_uppercase + "234567"), chars(7, 40, MIXED + "+/")
    assert other not in redact(f"{one},{other}\n")
