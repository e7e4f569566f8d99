"""Each client is installed on its own: one that fails leaves a reason, and the others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.realclients import install
from tests.realclients.clients import CLIENTS
from tests.realclients.lab import require

CLIENT = replace(CLIENTS["codex"], name="bell", npm={}, pip={}, binary="bell")


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(install, "LAB", tmp_path)


def test_a_client_that_cannot_be_installed_says_why() -> None:
    assert install.install_failure(CLIENT) == "bell is not installed: `make test-real` does it"
    assert install.install(CLIENT) == "its packages have no bell"
    assert install.install_failure(CLIENT) == "bell could not be installed: its packages have no bell"
    with pytest.raises(pytest.skip.Exception, match=r"bell|namespaces"):
        require(CLIENT)


def test_a_client_is_installed_again_for_other_versions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []
    monkeypatch.setattr(install, "_install_packages", lambda client, _folder: installed.append(client.name))
    other = replace(CLIENT, name="horn")
    for client in (CLIENT, other, CLIENT, replace(CLIENT, npm={"bell": "2"}), other):
        assert install.install(client) is None
    assert installed == ["bell", "horn", "bell"]
    assert install.install_failure(other) is None


def test_packages_that_no_python_can_install_are_a_reason() -> None:
    reason = install.install(replace(CLIENT, pip={"bell": "1"}, minimum_python=(3, 99)))
    assert reason == "it needs Python 3.99 or newer"
