"""The pictures of the docs: all that are shown are there, and one script takes all of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
_SHOWN = re.compile(r"!\[[^\]]+\]\((?:docs/|\.\./)?images/([\w-]+)\.png\)")
_SIZE = slice(16, 24)
"""Where a PNG says how wide and high it is."""


def pictures() -> dict[str, tuple[int, int]]:
    """What the script takes, and how large."""
    pytest.importorskip("playwright", reason="playwright is not installed: pip install 'clew[dev]'")
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "scripts" / "screenshots.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return {name: (one.width, one.height) for name, one in (script.PAGES | script.APP).items()}


def test_every_picture_is_shown_there_and_taken_by_the_script() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in _SHOWN.findall(page.read_text(encoding="utf-8"))}
    kept = {path.stem: path.read_bytes()[_SIZE] for path in IMAGES.iterdir()}
    assert shown == set(kept)
    assert {name: (int.from_bytes(size[:4]), int.from_bytes(size[4:])) for name, size in kept.items()} == pictures()
