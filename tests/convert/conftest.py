"""Tests of conversions find the catalog of the demo home complete."""

import pytest


@pytest.fixture(autouse=True)
def catalog_of_demo(request: pytest.FixtureRequest) -> None:
    """Copy the catalog for tests that use the demo home."""
    if "demo" in request.fixturenames:
        request.getfixturevalue("synced_demo")
