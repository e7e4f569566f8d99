"""What must never be logged: given to a store that redacts, none of it reaches the disk, and the key's name does."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.redact.masks import Marker
from clew.redact.redactor import MaskSettings, Redactor
from clew.store import Store, ToolCall, ToolResult
from tests.redact.planted import Planter, card, held

PLANT = Planter("seed")
NAMED = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
DOTTED = PLANT.chars(10) + "." + PLANT.chars(12) + "+" + PLANT.chars(8) + "/" + PLANT.chars(9) + "=="


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def said(folder: Path, text: str, profile: str = "secrets") -> str:
    """What a store holds after somebody said something to it."""
    with Store(folder, redact=profile).session("s") as session:
        session.user(text)
    return on_disk(folder / ".sage").decode()


@pytest.mark.seed("S0-20", "S0-21", "S0-30", "S0-31")
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_named_keys_are_masked_and_their_names_stay(tmp_path: Path, name: str, quote: str) -> None:
    value = PLANT.chars(39)
    held_now = said(tmp_path, f"export {name}={quote}{value}{quote}\n")
    assert value not in held_now
    assert f"{name}=" in held_now


@pytest.mark.seed("S0-29", "S0-31")
def test_the_two_patterns_of_the_seed_give_what_the_seed_gives() -> None:
    plain = Redactor(MaskSettings("secrets", Marker(None)))
    key, token = PLANT.chars(30), PLANT.chars(24)
    assert plain.learn_and_mask(f"ANTHROPIC_API_KEY={key}") == "ANTHROPIC_API_KEY=[REDACTED]"
    assert plain.learn_and_mask(f"Authorization: Bearer {token}") == "Authorization: Bearer [REDACTED]"
    assert plain.learn_and_mask(f"Bearer {DOTTED}") == "Bearer [REDACTED]"


@pytest.mark.seed("S0-22")
@pytest.mark.parametrize(
    "text", ["Authorization: Bearer {}", "auth_token = '{}'", "X-Api-Key: {}", "cookie: session={}"]
)
def test_authentication_tokens_are_masked(tmp_path: Path, text: str) -> None:
    value = PLANT.chars(40)
    assert value not in said(tmp_path, text.format(value))


@pytest.mark.seed("S0-23", "S0-24", "S0-25", "S0-30")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (".env", "PLAIN_NAME={}\n"),
        ("config/.env.production", "plain={}\n"),
        ("credentials.json", '{{"installed": {{"plain": "{}"}}}}'),
        ("secrets.yaml", "plain: {}\n"),
        ("~/.ssh/id_ed25519", "{}\n"),
    ],
)
def test_the_content_of_credential_files_is_filtered(tmp_path: Path, path: str, body: str) -> None:
    value = PLANT.chars(40)
    with Store(tmp_path, redact="secrets").session("s") as session:
        session.user("look")
        session.assistant("", calls=[ToolCall(id="c1", name="read_file", arguments={"path": path})])
        session.results(ToolResult(tool_call_id="c1", tool_name="read_file", content=body.format(value)))
    held_now = on_disk(tmp_path / ".sage").decode()
    assert value not in held_now
    assert path in held_now


@pytest.mark.seed("S0-25")
def test_private_keys_are_filtered(tmp_path: Path) -> None:
    key = PLANT.pem()
    assert not held(said(tmp_path, f"cat key\n{key}\ndone").encode(), {"key": key})


@pytest.mark.seed("S0-26")
@pytest.mark.parametrize("separator", ["", " ", "-"])
def test_card_numbers_are_masked_and_other_numbers_are_not(tmp_path: Path, separator: str) -> None:
    number = card()
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    spelled, other = (separator.join(each[at : at + 4] for at in range(0, 16, 4)) for each in (number, wrong))
    held_now = said(tmp_path, f"card number {spelled} and order {other}", "pii")
    assert spelled not in held_now
    assert other in held_now


@pytest.mark.seed("S0-27")
def test_social_security_numbers_are_masked(tmp_path: Path) -> None:
    number = "-".join(["512", "38", "7" + "104"])
    assert number not in said(tmp_path, f"my SSN is {number}", "pii")


@pytest.mark.seed("S0-28")
@pytest.mark.parametrize(
    "text", ["password: {}", "DB_PASSWORD={}", "postgres://ada:{}@db.test/tide", "mysql -u root -p'{}'"]
)
def test_passwords_are_masked(tmp_path: Path, text: str) -> None:
    word = PLANT.chars(9) + "7q"
    assert word not in said(tmp_path, text.format(word))


@pytest.mark.seed("S0-30")
def test_nothing_reaches_the_disk_not_even_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte that the store gives to the system is looked at."""
    from clew.io.filesystem import System

    value, written = PLANT.anthropic(), bytearray()

    class Watched(System):
        def write(self, descriptor: int, content: bytes) -> int:
            written.extend(content)
            return super().write(descriptor, content)

    store = Store(tmp_path, redact="secrets", system=Watched())
    with store.session("s") as session:
        session.user(f"the key is {value}")
        session.assistant("noted", metadata={"custom": {"api_key": value}})
        session.title(f"About {value}")
        session.describe(name=f"{value}")
    store.project("/srv/tide").append("user", f"use {value}")
    assert b"REDACTED" in written
    assert not held(bytes(written), {"key": value})
    assert not held(on_disk(tmp_path), {"key": value})


@pytest.mark.seed("S0-32")
def test_token_counts_reach_the_disk_as_they_are(tmp_path: Path) -> None:
    from clew.store import Usage

    with Store(tmp_path, redact="all").session("s") as session:
        session.user("hello")
        session.assistant("hi", usage=Usage(input_tokens=1234567890123456, output_tokens=7))
    assert b'"inputTokens":1234567890123456' in on_disk(tmp_path)


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    from clew.errors import UsageError

    with pytest.raises(UsageError, match="redact"):
        Store(tmp_path, redact="everything")
