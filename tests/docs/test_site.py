"""The documentation site: every page is in the navigation, every link leads to a page and heading, it works offline."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, name_of, pages_with_generated, without_code

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*\shref=["']?(?:https?:)?//"""
)
"""What a browser loads from another server without being asked."""


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


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="zensical is not installed: clew[docs]")
def test_the_site_builds_and_loads_nothing_from_servers(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    for name in ("zensical.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "build" / "site"
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")} <= built
    assert (site / "search.js").stat().st_size > 100_000, "the search index is also a script, for file://"
    loading = {name: _LOADED.findall((site / name).read_text(encoding="utf-8")) for name in built}
    assert {name: found for name, found in loading.items() if found} == {}
