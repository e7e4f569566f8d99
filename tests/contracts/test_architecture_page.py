"""The page on the architecture names the packages and modules that there are, and no others."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clew"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
NAMED_MODULES = sorted(set(re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE)))
MODULES = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}


@pytest.mark.parametrize("name", NAMED_MODULES)
def test_a_module_that_is_named_exists(name: str) -> None:
    """A name without a folder may be that of a module in any package."""
    parts = Path(name.removeprefix("src/clew/")).parts
    assert any(path.parts[-len(parts) :] == parts for path in MODULES)


def test_every_package_and_module_at_the_top_is_named() -> None:
    packages = {f"{path.parent}/" for path in MODULES if path.name == "__init__.py" and len(path.parts) == 2}
    modules = {path.name for path in MODULES if len(path.parts) == 1 and not path.name.startswith("__")}
    assert [name for name in sorted(packages | modules) if f"`{name}`" not in PAGE] == []


def test_every_module_of_the_web_app_is_named() -> None:
    """One for each page is in `pages/`, which needs no list."""
    modules = {path.name for path in MODULES if path.parent == Path("web") and path.name != "__init__.py"}
    assert sorted(modules - set(NAMED_MODULES)) == []
