"""Small JSON files in the data folder: two processes change them at once, and damage is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clew import project_names
from clew.sources import moved_projects
from tests.children import begun, ended

CHANGES = 20


def name_projects(process: int) -> None:
    for number in range(CHANGES):
        project_names.add({f"project-{process}-{number}": "tide"})


def map_projects(process: int) -> None:
    for number in range(CHANGES):
        moved_projects.add(f"/old/{process}-{number}", str(Path.cwd()))


@pytest.mark.parametrize(("change", "load"), [(name_projects, project_names.load), (map_projects, moved_projects.load)])
def test_processes_that_change_a_file_at_once_lose_nothing(
    change: Callable[[int], None], load: Callable[[], dict[str, str]]
) -> None:
    children = [begun(lambda process=process: change(process)) for process in range(2)]  # type: ignore[misc]
    assert [ended(child) for child in children] == [0, 0]
    assert len(load()) == 2 * CHANGES
