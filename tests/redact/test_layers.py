"""Values below other layers: base64, percent escapes, numbered lines, and tokens without anything between them."""

from __future__ import annotations

import base64
import json
import textwrap
from collections.abc import Callable
from functools import partial
from io import BytesIO
from urllib.parse import quote

import pytest

from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("layers")
TOKENS = {
    "github": PLANT.github(),
    "fine": "github" + "_pat_" + PLANT.chars(22) + "_" + PLANT.chars(59),
    "gitlab": "gl" + "pat-" + PLANT.chars(20),
    "slack": PLANT.slack(),
    "anthropic": PLANT.anthropic(),
    "openai": PLANT.openai(),
    "aws": PLANT.aws_id(),
    "google": PLANT.google(),
    "npm": "np" + "m_" + PLANT.chars(36),
    "jwt": PLANT.jwt(),
}
EMAIL = "bob.smith%40" + "corp-sample.io"


def both(text: str, profile: str = "secrets") -> list[str]:
    """A text masked by itself, and as it comes back out of a line of JSON."""
    line = json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"
    masked = b"".join(mask_file(partial(BytesIO, line), Redactor(MaskSettings(profile, Marker()))))
    return [redact(text, profile), json.loads(masked)["message"]["content"]]


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("before", ["", "x=", "GH=", "export GH="])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_of_a_text_with_a_token_is_masked(name: str, before: str, encode: Callable[[bytes], bytes]) -> None:
    for behind in ("", "\n", " and more ~~?>\n"):
        encoded = encode((before + TOKENS[name] + behind).encode()).decode()
        for carrier in (encoded, f"$ base64 -w0 f\n{encoded}\n$", f"data={encoded.rstrip('=')}&x=1"):
            for masked in both(carrier):
                assert encoded[8:24] not in masked
                assert "[REDACTED]" in masked


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("before", [0, 30, 80, 200])
def test_base64_over_several_lines_is_masked(name: str, width: int, before: int) -> None:
    words = ("lorem ipsum dolor sit amet " * 10)[:before]
    lines = textwrap.wrap(base64.b64encode(f"{words}\n{TOKENS[name]}\n{words}".encode()).decode(), width)
    for indent in ("", "    "):
        text = "$ base64 notes.txt\n" + "\n".join(indent + line for line in lines) + "\n$ ls\n"
        for masked in both(text):
            assert not any(line[8:40] in masked for line in lines if len(line) > 40)
            assert masked.startswith("$ base64 notes.txt\n") and masked.endswith("\n$ ls\n")


@pytest.mark.parametrize("name", ["token", "Token", "secret", "password"])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_base64_of_a_text_with_a_named_value_is_masked_at_every_offset(name: str, before: str) -> None:
    encoded = base64.b64encode(f"{before} {name}={PLANT.chars(24)}\n".encode()).decode()
    assert both(f"data {encoded} end") == ["data [REDACTED] end"] * 2


def test_base64_of_other_texts_and_of_bytes_stays() -> None:
    texts = [
        base64.b64encode(f"the prefix of such a token is {begin}, as in {begin}EXAMPLE".encode()).decode()
        for begin in ("ghp" + "_", "sk-", "AK" + "IA", "xoxb-")
    ]
    texts += [base64.b64encode(b"\x89\x00\xff" * 9 + TOKENS["github"].encode() + b"\xf1\x02" * 90).decode()]
    for text in texts:
        assert both(text) == [text, text]


@pytest.mark.parametrize("name", TOKENS)
def test_percent_escapes_of_any_character_are_taken_off(name: str) -> None:
    token = TOKENS[name]
    for encoded in (
        token.replace("_", "%5F").replace("-", "%2D"),
        token.replace("_", "%5f").replace("-", "%2d").replace(".", "%2e"),
        "".join(f"%{ord(char):02X}" for char in token),
        "".join(f"%25{ord(char):02x}" for char in token),
    ):
        for masked in both(f"curl https://a.b/c?x={encoded} -v"):
            assert encoded[6:] not in masked


def test_percent_escaped_email_addresses_are_masked() -> None:
    for text in (f"https://a.b/u?login={EMAIL}&x=1", EMAIL, EMAIL.replace(".", "%2E"), quote(EMAIL)):
        for masked in both(text, "all"):
            assert "smith" not in masked
            assert "corp-sample" not in masked


@pytest.mark.parametrize("name", ["github", "fine", "anthropic", "slack", "openai"])
@pytest.mark.parametrize("number", ["     {}\t", "{:>6}→", "{}: ", "{:>4} | "])
def test_a_token_broken_over_numbered_lines_is_masked(name: str, number: str) -> None:
    token = TOKENS[name]
    lines = ["key", token[:20], token[20:], "end", ""]
    text = "\n".join(number.format(place) + line for place, line in enumerate(lines, 8))
    for masked in both(text):
        assert token[10:20] not in masked
        assert token[20:] not in masked


@pytest.mark.parametrize("name", ["github", "fine", "gitlab", "aws", "openai", "npm", "google"])
@pytest.mark.parametrize("other", ["github", "aws", "npm", "gitlab"])
def test_tokens_with_nothing_between_them_are_masked(name: str, other: str) -> None:
    text = f"x {TOKENS[name]}{TOKENS[other]}{TOKENS[name]} y"
    for masked in both(text):
        assert TOKENS[name][4:] not in masked
        assert TOKENS[other][4:] not in masked


def test_a_word_far_from_an_escape_is_not_judged_by_its_half() -> None:
    """Only the text around an escape is searched again; it must not end within `someone88@example.com`."""
    for padding in range(980, 1030):
        text = "%41 " + "x" * padding + " someone88@example.com and more"
        assert redact(text, "all") == text, padding
