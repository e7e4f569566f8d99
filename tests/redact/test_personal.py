"""Addresses and numbers of persons in ordinary surroundings: what is before and behind decides."""

from __future__ import annotations

import pytest

from clew.redact import redact
from tests.redact import labelled

PLAIN = "[REDACTED]"
EMAIL = "ada.byron" + "@" + "analytical-engine.org"


@pytest.mark.parametrize(
    "text", ["{}: hello", "{}:hello", "From {}:\n> text", "authors: {}:", "scp x {}:/srv/x", '{{"{}":1}}', "{}:22"]
)
def test_an_address_before_a_colon_is_masked(text: str) -> None:
    assert redact(text.format(EMAIL), "all") == text.format(PLAIN)


@pytest.mark.parametrize("user", ["git", "hg", "svn", "gitea", "org-123456"])
@pytest.mark.parametrize("path", ["ada/engine.git", "/srv/engine", "~ada/engine"])
def test_a_remote_of_version_control_stays(user: str, path: str) -> None:
    text = f"git clone {user}@analytical-engine.org:{path}"
    assert redact(text, "all") == text


def test_a_user_of_version_control_without_a_path_is_an_address() -> None:
    for text in ("svn@analytical-engine.org", "svn@analytical-engine.org: hello"):
        assert PLAIN in redact(text, "all")


CARD = labelled.luhn("453945359256463")


@pytest.mark.parametrize(
    "before",
    [
        "I paid ",
        "PAID ",
        "accounts: ",
        "passport: ",
        "discount=",
        "void ",
        "Report: ",
        "monkey ",
        "bought in outline: ",
    ],
)
def test_a_word_that_only_ends_like_the_name_of_a_count_does_not_excuse_a_card(before: str) -> None:
    assert redact(f"{before}{CARD}", "all") == f"{before}{PLAIN}"


@pytest.mark.parametrize(
    "before",
    ["id=", "created_ts: ", "orderId: ", "userID=", "X-Request-Id: ", "ORDER_ID=", "HTTPPort: ", '"mtime": ', "uuid "],
)
def test_the_name_of_a_count_excuses_a_number(before: str) -> None:
    assert redact(f"{before}{CARD}", "all") == f"{before}{CARD}"


SPACED = " ".join(CARD[place : place + 4] for place in range(0, 16, 4))
IBAN = "DE89" + "370400440532013000"


@pytest.mark.parametrize("number", [CARD, SPACED, IBAN], ids=["card", "spaced", "iban"])
@pytest.mark.parametrize(
    "behind", ["/123", "/1234.", "/12/27", "/1/2027", "/12/27/123", "/12-27/123", "/COBADEFFXXX", "/COBADEFF,"]
)
def test_a_number_with_a_check_code_a_date_or_a_bank_code_is_masked(number: str, behind: str) -> None:
    text = "pay with {}" + f"{behind} please"
    assert redact(text.format(number), "all") == text.format(PLAIN)


@pytest.mark.parametrize(
    "text", ["/data/{}/123", "https://shop.dev.io/{}/12", "{}/123/part.json", "{}/index.html", "{}/readme"]
)
def test_a_number_in_a_path_stays(text: str) -> None:
    assert redact(text.format(CARD), "all") == text.format(CARD)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET /pay?card={}&x=1", f"GET /pay?card={PLAIN}&x=1"),
        ("GET /pay?card={}", f"GET /pay?card={PLAIN}"),
    ],
)
@pytest.mark.parametrize("space", ["%20", "%2520"])
def test_a_card_with_escaped_spaces_is_masked(text: str, masked: str, space: str) -> None:
    groups = space.join(CARD[at : at + 4] for at in range(0, 16, 4))
    assert redact(text.format(groups), "all") == masked
