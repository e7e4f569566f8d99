"""Takes the screenshots of the docs with Chromium and playwright: exported pages and the web app over the demo home."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from clew.demo import write_demo  # noqa: E402
from tests.browser.conftest import HOW, chromium  # noqa: E402
from tests.cli.running import clew  # noqa: E402
from tests.web.shown import Shown, shown  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MEAN = "71960fc3-4cec-4060-adfc-a6068f5d859b"
FORKED = "f005c7db-1dcc-4692-bc16-77f2521cfb4b"


class Picture(NamedTuple):
    """A screenshot: its address, size and colour scheme."""

    address: str
    width: int
    height: int
    is_dark: bool = False


PAGES = {
    "page": Picture(f"claude-code-{MEAN}.html", 1200, 860),
    "dark": Picture(f"claude-code-{FORKED}.html", 1200, 760, is_dark=True),
    "phone": Picture(f"claude-code-{MEAN}.html", 390, 844),
    "index": Picture("index.html", 1200, 620),
}
APP = {
    "web-home": Picture("/", 1280, 900),
    "web-home-dark": Picture("/", 1280, 900, is_dark=True),
    "web-usage": Picture("/usage", 1280, 900),
    "web-session": Picture(f"/session/claude-code/{MEAN}", 1440, 900),
    "web-search": Picture("/search?q=tide", 1280, 800, is_dark=True),
    "web-phone": Picture(f"/session/claude-code/{MEAN}", 390, 844),
}


def take(browser: Browser, name: str, picture: Picture, address: str, link: str | None = None) -> None:
    """Take one screenshot; `link` is the sign-in link of the web app."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.is_dark else "light",
    )
    view = context.new_page()
    if link is not None:
        view.goto(link)
        view.wait_for_url("**/")
    view.goto(address)
    view.wait_for_timeout(800)
    view.screenshot(path=IMAGES / f"{name}.png")
    context.close()


def take_all(browser: Browser, site: Path, app: Shown) -> None:
    """Take all screenshots."""
    for name, picture in PAGES.items():
        take(browser, name, picture, (site / picture.address).as_uri())
    for name, picture in APP.items():
        link = f"http://{app.host}/enter#token={app.tokens.link_token}"
        take(browser, name, picture, f"http://{app.host}{picture.address}", link)


def main() -> None:
    """Write the demo home, export its pages, start the web app, and take all screenshots."""
    program = chromium()
    if program is None:
        raise SystemExit(f"no Chromium was found: {HOW}")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        home, site = Path(place) / "home", Path(place) / "site"
        write_demo(home)
        clew("--home", home, "export", "--site", site)
        with shown(home, Path(place) / "catalog") as app, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            take_all(browser, site, app)
            browser.close()


if __name__ == "__main__":
    main()
