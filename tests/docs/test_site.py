"""The documentation site: every page is in the navigation, every link leads to a page and heading, it works offline."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.errors
from clew.cli import ABOUT, INTERRUPTED
from clew.cli.main import BROKEN_PIPE
from clew.errors import ClewError
from tests.docs.pages import DOCS, ROOT, anchors, name_of, pages_with_generated, without_code
from tests.docs.site_build import build_site

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*\shref=["']?(?:https?:)?//"""
)
"""What a browser loads from another server by itself."""


def pages_in(nav: Any) -> list[str]:
    """The pages that a part of the navigation names."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in pages_in(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    written = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(pages_in(config["project"]["nav"])) == sorted(written)


@pytest.mark.parametrize("page", pages_with_generated(), ids=name_of)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    broken = []
    for target, anchor in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path = page if not target else Path(os.path.normpath(page.parent / target))
        outside = page.is_relative_to(DOCS) and not path.is_relative_to(DOCS)
        missing = bool(anchor) and (path.suffix != ".md" or anchor not in anchors(path.read_text(encoding="utf-8")))
        if outside or not path.exists() or missing:
            broken.append(f"{target}#{anchor}")
    assert broken == []


def test_links_of_the_list_for_language_models_lead_to_pages() -> None:
    linked = [target for target, _ in _LINK.findall((DOCS / "llms.txt").read_text(encoding="utf-8"))]
    assert "guides/another-agent.html" in linked
    assert [target for target in linked if not (DOCS / target).with_suffix(".md").is_file()] == []


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_servers(tmp_path: Path) -> None:
    site = build_site(tmp_path)
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert [target for target, _ in _LINK.findall(text) if not (site / target).is_file()] == []
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")} <= built
    loading = {name: _LOADED.findall((site / name).read_text(encoding="utf-8")) for name in built}
    assert {name: found for name, found in loading.items() if found} == {}


def test_every_variable_is_documented() -> None:
    page = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "clew").rglob("*.py"))
    used = set(re.findall(r"""["'](CLEW_[A-Z_]+)["']""", code))
    assert used == set(re.findall("`(CLEW_[A-Z_]+)`", page))


def test_every_exit_code_is_documented() -> None:
    page = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    errors = [error for error in vars(clew.errors).values() if isinstance(error, type) and issubclass(error, ClewError)]
    codes = {0, *(error.exit_code for error in errors)}
    assert {int(code) for code in re.findall(r"(?<= )\d(?= )", ABOUT[-1])} == codes
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == {*codes, INTERRUPTED, BROKEN_PIPE}


def test_every_public_name_is_in_the_api_reference() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert set(clew.__all__) == set(re.findall(r"^::: clew\.(\w+)$", page, re.MULTILINE))
