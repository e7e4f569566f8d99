"""Help and a bare import load nothing heavy: seen from the outside, in a fresh interpreter."""

import subprocess
import sys

import pytest

HEAVY = {
    "hypothesis",
    "jinja2",
    "msgspec",
    "nh3",
    "orjson",
    "pygments",
    "pyromark",
    "rich",
    "starlette",
    "uvicorn",
    "watchfiles",
    "tantivy",
    "zstandard",
}
ADAPTERS = {"clew.agents.claude_code", "clew.agents.sage_agent", "clew.agents.sage_emacs"}

HELP = """
from clew.cli.main import main
try:
    main(["--help"])
except SystemExit as stop:
    assert not stop.code, stop.code
"""


def modules_after(code: str) -> set[str]:
    """The modules a fresh interpreter has loaded after running the code."""
    report = code + '\nimport sys\nprint("\\n".join(sys.modules), file=sys.stderr)'
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("code", ["import clew", HELP], ids=["import", "help"])
def test_nothing_heavy_is_loaded(code: str) -> None:
    loaded = modules_after(code)
    assert "clew" in loaded
    assert not loaded & (HEAVY | ADAPTERS)
