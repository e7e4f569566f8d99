"""Items in batches that are limited by size and by number."""

from __future__ import annotations

import pytest

from clew.io.batches import batches_by_size


@pytest.mark.parametrize(
    ("sizes", "max_items", "expected"),
    [
        ([], None, []),
        ([3, 3, 3], None, [[3, 3], [3]]),
        ([9, 1, 6, 1], None, [[9], [1, 6], [1]]),
        ([1, 1, 1, 1, 1], 2, [[1, 1], [1, 1], [1]]),
        ([0, 0, 9], 2, [[0, 0], [9]]),
    ],
)
def test_a_batch_is_full_by_size_or_by_number(
    sizes: list[int], max_items: int | None, expected: list[list[int]]
) -> None:
    assert list(batches_by_size(sizes, int, 7, max_items)) == expected
