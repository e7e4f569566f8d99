"""What is learned after a text was scanned is masked in it too."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest

from clew.redact import Marker, scan_all
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("once")


def _masked(content: str, profile: str = "all") -> tuple[Redactor, bytes]:
    redactor = Redactor(MaskSettings(profile, Marker()))
    return redactor, b"".join(mask_file(partial(BytesIO, content.encode()), redactor))


def test_a_document_without_a_sign_is_masked_where_it_names_what_is_known_since() -> None:
    value = PLANT.password()
    redactor = Redactor(MaskSettings("secrets", Marker()))
    content = f'{{\n "note": "{value}"\n}}\n'.encode()
    redactor.learn_lines(content, one_record_per_line=False)
    assert redactor.is_clean
    redactor.learn([{"env": f"DB_PASSWORD={value}"}])
    assert (
        b"".join(new for _, new in redactor.masked_lines(content, one_record_per_line=False))
        == b'{\n "note": "[REDACTED]"\n}\n'
    )


@pytest.mark.parametrize("length", [20, 6000])
def test_a_known_value_across_two_long_texts_is_masked_in_both(length: int) -> None:
    value = PLANT.password() + PLANT.password()
    before, behind = "so it goes " * length, " and on it goes" * length
    texts = [before + value[:9], value[9:] + behind, f" or {value}"]
    blocks = [{"type": "text", "text": text} for text in texts]
    content = "".join(json.dumps(each) + "\n" for each in ({"env": f"DB_PASSWORD={value}"}, {"content": blocks}))
    _, masked = _masked(content, "secrets")
    assert [each["text"] for each in json.loads(masked.splitlines()[1])["content"]] == [
        before + "[REDACTED]",
        "[REDACTED]" + behind,
        " or [REDACTED]",
    ]


def test_a_value_and_what_was_not_checked_behind_it_are_no_value_together() -> None:
    value = PLANT.github()
    text = f"hf{'_ '}" * 2500 + f"password={value} and more"
    assert [each.rule for each in scan_all([text])[0]] == ["too_many_candidates"]
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn([{"note": text}])
    assert not redactor.values
