"""Takes the pictures of docs/html.md: the demo home as a site, seen by a real Chromium. Needs playwright."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from clew.demo import write_demo  # noqa: E402
from tests.browser.conftest import HOW, chromium  # noqa: E402
from tests.cli.running import clew  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MEAN = "claude-code-71960fc3-4cec-4060-adfc-a6068f5d859b.html"
FORKED = "claude-code-f005c7db-1dcc-4692-bc16-77f2521cfb4b.html"
PICTURES = {
    "page": (MEAN, 1200, 860, "light"),
    "dark": (FORKED, 1200, 760, "dark"),
    "phone": (MEAN, 390, 844, "light"),
    "index": ("index.html", 1200, 620, "light"),
}
"""Name of the picture: page, width, height, colours."""


def take(folder: Path) -> None:
    """Write the pictures."""
    program = chromium()
    if program is None:
        raise SystemExit(f"no Chromium was found: {HOW}")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, (page, width, height, colours) in PICTURES.items():
            view = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme="dark" if colours == "dark" else "light"
            )
            view.goto((folder / page).as_uri())
            view.wait_for_timeout(500)
            view.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write_demo(Path(place) / "home")
        clew("--home", Path(place) / "home", "export", "--site", Path(place) / "site")
        take(Path(place) / "site")
