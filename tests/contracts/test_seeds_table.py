"""Every requirement has a test, and docs/development/seeds.md says which."""

from pathlib import Path

import pytest

from scripts.seeds import PAGE, Item, collect_marks, load_items, render_page, uncovered, unknown_ids

MODULE = """
import pytest

@pytest.mark.seed("S0-1", "S0-2")
def test_one(): ...

@pytest.mark.seed("S0-2")
class TestTwo:
    @pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.seed("S0-3"))])
    def test_three(self, case): ...

def test_none(): ...
"""


def test_all_items_are_there() -> None:
    assert len(load_items()) == 247


@pytest.mark.slow
def test_every_item_has_a_test() -> None:
    missing = uncovered(load_items(), collect_marks())
    assert not missing, "no test for:\n" + "\n".join(f"{item.id}  {item.text}" for item in missing)


@pytest.mark.slow
def test_every_marked_id_is_an_item() -> None:
    assert not unknown_ids(load_items(), collect_marks())


@pytest.mark.slow
def test_the_page_is_fresh() -> None:
    page = render_page(load_items(), collect_marks())
    print(page)
    assert PAGE.read_text(encoding="utf-8") == page, "docs/development/seeds.md is stale: run `make docs`"


def test_marks_are_read_without_importing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MODULE, encoding="utf-8")
    assert collect_marks(tmp_path) == {
        "S0-1": ["test_it.py::test_one"],
        "S0-2": ["test_it.py::test_one", "test_it.py::TestTwo"],
        "S0-3": ["test_it.py::TestTwo::test_three"],
    }


def test_ids_must_be_plain_strings(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("@pytest.mark.seed(name)\ndef test_x(): ...\n", encoding="utf-8")
    with pytest.raises(ValueError, match="plain strings"):
        collect_marks(tmp_path)


def test_an_item_without_a_test_is_named() -> None:
    items = [Item("S0-1", "one"), Item("S0-2", "two")]
    coverage = {"S0-2": ["test_it.py::test_two"]}
    page = render_page(items, coverage)
    assert [item.id for item in uncovered(items, coverage)] == ["S0-1"]
    assert "1 of 2 requirements have tests." in page
    assert "| S0-1 | one | **none** |" in page
    assert "| S0-2 | two | `test_it.py::test_two` |" in page
