"""The style sheets of the app."""

from __future__ import annotations

import re

import pytest

from clew.web.app import STYLE_SHEETS, static_file


@pytest.mark.parametrize("name", [name for name in STYLE_SHEETS if name != "page.css"])
def test_no_media_query_repeats_a_rule_without_need(name: str) -> None:
    css = re.sub(r"/\*.*?\*/", "", static_file(name).decode(), flags=re.DOTALL)
    assert css.count("{") == css.count("}")
    plain, inside = set[str](), dict[str, list[str]]()
    block = ""
    for line in css.splitlines():
        if line.startswith("@media"):
            block = line
        elif line == "}":
            block = ""
        elif block:
            inside.setdefault(block, []).append(line.strip())
        elif line:
            plain.add(line)
    assert plain
    assert {rule for rules in inside.values() for rule in rules if rule in plain} == set()
