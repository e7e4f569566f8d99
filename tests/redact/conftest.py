"""Tests of redaction use the prefilter from the first byte on; a run of clew uses it after some megabytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clew.redact import prefilter


@pytest.fixture(autouse=True, scope="package")
def prefilter_from_the_first_byte() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefilter, "UNFILTERED_RUN_BYTES", -1)
        yield
