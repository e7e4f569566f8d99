"""The style sheets and scripts of the app."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clew.web.app import STATIC_FILES, STYLE_SHEETS, static_file
from clew.web.keys import KEYS


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


SCRIPTS = [name for name in STATIC_FILES if name.endswith(".js")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_name_is_imported_once_from_a_script_that_exports_it(name: str) -> None:
    """A browser runs no script at all if one import is wrong."""
    imports = re.findall(r'^import \{([^}]*)\} from "\./([^"]+)";$', static_file(name).decode(), re.MULTILINE)
    found = [(module, word.strip()) for words, module in imports for word in words.split(",") if word.strip()]
    names = [word for _, word in found]
    assert sorted(names) == sorted(set(names))
    for module, word in found:
        exports = r"^export (?:async )?(?:function|const|let|class) " + word + r"\b"
        assert re.search(exports, static_file(module).decode(), re.MULTILINE), f"{module} does not export {word}"


def test_keys_are_those_of_the_scripts_and_of_the_guide() -> None:
    listed = [key for keys, _ in KEYS for key in keys.split()]
    script = static_file("keyboard.js").decode()
    actions = script[script.index("const ACTIONS = {") : script.index("};", script.index("const ACTIONS = {"))]
    performed = {quoted or plain for quoted, plain in re.findall(r'^  (?:"(.)"|(\w)):?[ ,:]', actions, re.MULTILINE)}
    assert performed == {*listed} - {"Ctrl-K", "Home", "1", "2", "3", "4"}
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "web.md").read_text()
    for keys, effect in KEYS:
        assert f"| {' '.join(f'`{key}`' for key in keys.split())} | {effect} |" in guide, keys
