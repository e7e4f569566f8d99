"""A real Chromium, where there is one; tests skip and say how to get it where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.long_sessions import MIDDLING, MIDDLING_COUNT, write_long_session
from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NAMED = os.environ.get("CLEW_CHROMIUM")
_FETCHED = Path(__file__).resolve().parents[2] / ".lab" / "axe" / "package" / "axe.min.js"
AXE = os.environ.get("CLEW_AXE") or (str(_FETCHED) if _FETCHED.is_file() else None)
"""Read here: tests see an environment without them. `make axe` fetches what checks accessibility."""
HOW = "install it (on Debian: apt install chromium) or name it in CLEW_CHROMIUM"


def chromium() -> str | None:
    """The browser's program."""
    return NAMED or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright", reason="playwright is not installed: pip install 'clew[dev]'")
    program = chromium()
    if program is None:
        pytest.skip(f"no Chromium was found: {HOW}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Without its sandbox only because tests may run as root, in which case it refuses to start with one.
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo home as a site."""
    folder = tmp_path_factory.mktemp("site")
    write_small_demo(folder / "home")
    assert clew("--home", folder / "home", "export", "--site", folder / "pages").code == 0
    return folder / "pages"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The app over the demo home with a long session. A module may have another one."""
    folder = tmp_path_factory.mktemp("demo")
    write_small_demo(folder / "home")
    write_long_session(folder / "home", MIDDLING, MIDDLING_COUNT)
    with shown(folder / "home", folder / "catalog") as running:
        yield running


class Watched:
    """A page, and everything it asked for or complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))

    def open(self, path: Path, anchor: str = "") -> Page:
        """Open a file."""
        self.page.goto(path.as_uri() + anchor)
        return self.page

    def foreign(self) -> list[str]:
        """Requests for anything but files that were opened, and pictures inside the page."""
        return [url for url in self.requests if not url.startswith(("file://", "data:image/"))]


Opener = Callable[..., Watched]


@pytest.fixture
def opener(browser: Browser) -> Iterator[Opener]:
    """Gives pages of contexts of their own: `opener(width=390, dark=True)`."""
    contexts: list[Any] = []

    def make(
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        checked: bool = False,
        touch: bool = False,
    ) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            # As most people have it: what moves on its own must not get in anybody's way.
            reduced_motion="no-preference",
            # A program that checks the page must get into it, which its own rules forbid.
            bypass_csp=checked,
            has_touch=touch,
            is_mobile=touch,
        )
        contexts.append(context)
        return Watched(context.new_page())

    yield make
    for context in contexts:
        context.close()
