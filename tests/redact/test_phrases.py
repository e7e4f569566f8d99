"""Passphrases: words with spaces between them, in quotes, in YAML, in .env files and in addresses."""

from __future__ import annotations

import json

import pytest

from clew.redact import PLAIN, redact
from clew.redact.masks import Marker
from clew.redact.redactor import MaskSettings, Redactor

PHRASE = " ".join(["correct", "horse", "battery", "staple"])
SEED = " ".join("abandon ability able about above absent absorb abstract absurd abuse access accident".split())
NAME = "pass" + "word"


@pytest.mark.parametrize(
    "form",
    [
        NAME + ' = "%s"',
        NAME + ": '%s'",
        '{"' + NAME + '": "%s"}',
        '{\\"db_' + NAME + '\\": \\"%s\\"}',
        NAME + ": %s\n",
        "db:\n  " + NAME + ": %s\n  port: 1",
        "- " + NAME + ": %s",
        "DB_" + NAME.upper() + '="%s"',
        "DB_" + NAME.upper() + "=%s\nPORT=1",
        "export PASS" + 'PHRASE="%s"',
        "<" + NAME + ">%s</" + NAME + ">",
    ],
)
def test_a_phrase_is_hidden_whole(form: str) -> None:
    assert redact(form % PHRASE) == form % PLAIN


@pytest.mark.parametrize("space", ["+", "%20", "-", "_"])
def test_a_phrase_in_an_address_is_hidden_whole(space: str) -> None:
    phrase = PHRASE.replace(" ", space)
    for form in ("https://a.dev/?" + NAME + "=%s&x=1", "https://ada:%s@a.dev/x"):
        assert redact(form.replace("%s", phrase)) == form.replace("%s", PLAIN)


def test_a_phrase_in_a_record_is_hidden_and_known_elsewhere() -> None:
    redactor = Redactor(MaskSettings("secrets", Marker()))
    records = [
        {"input": {NAME: PHRASE}},
        {"output": f"typed {PHRASE} at the prompt"},
        {"nested": json.dumps({NAME: PHRASE})},
    ]
    redactor.learn(records)
    assert PHRASE not in json.dumps([redactor.value(record) for record in records])


def test_a_seed_phrase_is_hidden() -> None:
    assert redact(f'mnemonic = "{SEED}"') == f'mnemonic = "{PLAIN}"'


@pytest.mark.parametrize(
    "text",
    [
        NAME + ': "Enter your word here"',
        '"' + NAME + '": "It must be at least 8 characters"',
        NAME + ": 'too short'",
        '"' + NAME + '": "Forgotten it?"',
        'secret: "Rotate the value every week"',
        NAME + ": see the vault entry\n",
        NAME + ": string, name: string",
        "The " + NAME + ": it was never written down anywhere\n",
    ],
)
def test_sentences_stay(text: str) -> None:
    assert redact(text) == text


CUT_OFF = [
    "DB_" + NAME.upper() + '="Zq8x' + "TangerineHarbour 77Kestrel zebra",
    "DB_" + NAME.upper() + '="Zq8x' + "TangerineHarbour 77Kestrel",
    "DB_" + NAME.upper() + '="Zq8x' + "TangerineHarbour",
    "DB_" + NAME.upper() + "=Zq8x" + "TangerineHarbour",
    NAME + ": 'tanger" + "ine harbour kestrel",
    NAME + ": 'tanger" + "ine harb",
]


@pytest.mark.parametrize("end", ["…", "...", " …", ""])
@pytest.mark.parametrize("title", CUT_OFF)
def test_a_value_whose_end_was_cut_off_is_hidden(title: str, end: str) -> None:
    start = max(title.find("Zq8x"), title.find("tanger"))
    expected = title[:start] + PLAIN + end
    assert redact(f"set it up, {title}{end}") == f"set it up, {expected}"
    records = [{"title": f"set it up, {title}{end}"}, {"title": "another"}]
    redactor = Redactor(MaskSettings("secrets", Marker()))
    assert [redactor.learn_and_mask(record) for record in records] == [
        {"title": f"set it up, {expected}"},
        {"title": "another"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        NAME + ': "the user must enter it…',
        NAME + ': "Enter your',
        NAME + '="..."',
        NAME + '="…',
        "API_" + 'KEY="your key…',
        NAME + ': "\n',
        "the " + NAME + " dialog says 'wrong " + NAME + "…",
    ],
)
def test_a_sentence_that_was_cut_off_stays(text: str) -> None:
    assert redact(text) == text
