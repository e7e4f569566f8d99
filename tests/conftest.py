"""What every test shares: a home of its own, and the hypothesis profiles."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
    "XDG_RUNTIME_DIR": ".run",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
    "CLEW_DATA_DIR": ".local/share/clew",
}
OVERRIDES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PAGER")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A suite that runs in the background ignores interrupts, and so would the commands that tests interrupt.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", parent=settings.get_profile("quick"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session", autouse=True)
def far_from_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is made once for many tests sees the real home no more than they do."""
    yield from _elsewhere(tmp_path_factory.mktemp("home-of-all"))


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every test has a home of its own."""
    home = tmp_path_factory.mktemp("home")
    for _ in _elsewhere(home):
        yield home


def _elsewhere(home: Path) -> Iterator[None]:
    """Point every variable that leads to a home at an empty folder, so that no test sees the real one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CLEW_")]:
            patch.delenv(name)
        for name in OVERRIDES:
            patch.delenv(name, raising=False)
        for name in ("HOME", "USERPROFILE"):
            patch.setenv(name, str(home))
        for name, folder in FOLDERS.items():
            patch.setenv(name, str(home / folder))
        yield


@pytest.fixture
def home(own_home: Path) -> Path:
    """The home of this test: empty, and the one that the environment names."""
    return own_home


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference material that may lie beside the checkout; tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder `shared` beside the checkout")
    return folder
