"""Nothing is searched or read twice without need."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from clew.redact import Marker, json_walk, scan_all
from clew.redact.native_files import mask_file
from clew.redact.prefilter import Sieve
from clew.redact.redactor import Redactor, Setting
from tests.redact.planted import Planter

PLANT = Planter("once")


def _masked(content: str, profile: str = "all") -> tuple[Redactor, bytes]:
    redactor = Redactor(Setting(profile, Marker()))
    return redactor, b"".join(mask_file(partial(BytesIO, content.encode()), redactor))


def _counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """The sizes of what a function is asked about from here on."""
    original: Callable[..., Any] = getattr(owner, name)
    sizes: list[int] = []

    def counted(*given: Any, **how: Any) -> Any:
        sizes.append(len(next(each for each in given if hasattr(each, "__len__"))))
        return original(*given, **how)

    monkeypatch.setattr(owner, name, counted)
    return sizes


def test_RD09_a_document_that_holds_nothing_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, Sieve, "held")
    content = json.dumps([{"note": f"nothing {number} here"} for number in range(4000)], indent=1)
    _, masked = _masked(content)
    assert masked == content.encode()
    assert len(asked) == 1


def test_a_document_without_a_sign_is_masked_where_it_names_what_is_known_since() -> None:
    value = PLANT.password()
    redactor = Redactor(Setting("secrets", Marker()))
    content = f'{{\n "note": "{value}"\n}}\n'.encode()
    redactor.learn_lines(content, apart=False)
    assert redactor.is_clean
    redactor.learn([{"env": f"DB_PASSWORD={value}"}])
    assert b"".join(new for _, new in redactor.masked_lines(content, apart=False)) == b'{\n "note": "[REDACTED]"\n}\n'


def test_a_line_that_is_no_json_is_read_as_json_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, json_walk, "read")
    value = PLANT.github()
    _, masked = _masked("{}\n" + json.dumps({"note": value}) + ",\n")
    assert masked == b'{}\n{"note": "[REDACTED]"},\n'
    assert not asked


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
    redactor = Redactor(Setting("secrets", Marker()))
    redactor.learn([{"note": text}])
    assert not redactor.values
