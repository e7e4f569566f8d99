"""The style sheet of the app."""

from __future__ import annotations

import re

from clew.web.app import static_file


def test_no_media_query_repeats_a_rule_without_need() -> None:
    """A rule may come again in a media query only to undo another media query that applies at the same time."""
    css = re.sub(r"/\*.*?\*/", "", static_file("app.css").decode(), flags=re.DOTALL)
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
    assert len(plain) > 100 and len(inside) == 6
    repeated = {rule for rules in inside.values() for rule in rules if rule in plain}
    assert repeated == {".beside { display: contents; }"}
