"""What every test shares: a home of its own, and the hypothesis profiles."""

import itertools
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from clew.catalog.change_detection import MTIME_GRACE_NS
from clew.catalog.database import catalog_folder
from clew.catalog.sync import sync
from clew.host import Host
from tests.demo_home import write_small_demo

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

SLOW_FOLDERS = {"browser", "cluster", "postgres", "realclients"}
"""Folders below `tests` whose tests need a browser, a server or the real agents."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored. Processes that tests start would inherit that, and never end
    # when they are interrupted.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", parent=settings.get_profile("quick"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in slow folders and those that read the shared corpus as slow."""
    for item in items:
        is_in_slow_folder = SLOW_FOLDERS.intersection(item.path.relative_to(ROOT).parts)
        if is_in_slow_folder or "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Hide the real home from fixtures of a larger scope than a test. Homes of tests are created in this folder."""
    folder = tmp_path_factory.mktemp("homes")
    with environment_of(folder / "session"):
        yield folder


@pytest.fixture(autouse=True)
def own_home(isolated_home: Path) -> Iterator[Path]:
    """Give every test an empty home of its own."""
    # tmp_path_factory.mktemp() lists all its folders for each new one, which takes longer than most tests.
    home = isolated_home / str(next(_home_numbers))
    with environment_of(home):
        yield home


_home_numbers = itertools.count()


@contextmanager
def environment_of(home: Path) -> Iterator[None]:
    """Create a home and let every environment variable that leads to one name it."""
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CLEW_")]:
            patch.delenv(name)
        for name in OVERRIDES:
            patch.delenv(name, raising=False)
        for name in ("HOME", "USERPROFILE"):
            patch.setenv(name, str(home))
        for name, folder in FOLDERS.items():
            patch.setenv(name, str(home / folder))
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield


@pytest.fixture
def home(own_home: Path) -> Path:
    """The home of this test: empty, and the one that the environment names."""
    return own_home


@pytest.fixture(scope="session")
def demo(isolated_home: Path) -> Path:
    """The demo home; no test may change it."""
    home = isolated_home / "demo"
    write_small_demo(home)
    return home


@pytest.fixture(scope="session")
def demo_catalog(demo: Path, isolated_home: Path) -> Path:
    """A complete catalog of the demo home, to be copied: to read all sessions again takes longer than most tests."""
    # Files that were written a moment ago would be read again by the next sync.
    time.sleep(MTIME_GRACE_NS / 1e9)
    sync([Host.at(demo)], isolated_home / "demo-catalog", workers=1)
    return isolated_home / "demo-catalog"


@pytest.fixture
def synced_demo(own_home: Path, demo: Path, demo_catalog: Path) -> Path:
    """The demo home, with its catalog in the data folder of the test."""
    shutil.copytree(demo_catalog, catalog_folder([demo]))
    return demo


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference material that may lie beside the checkout; tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder `shared` beside the checkout")
    return folder
