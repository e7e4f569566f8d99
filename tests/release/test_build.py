"""The wheel and the sdist hold the right files, install on every Python of this machine, and work."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest

from clew import __version__
from tests.release.pythons import find_pythons

ROOT = Path(__file__).resolve().parents[2]
RESPONSE_SECONDS = 60
PYTHONS = find_pythons()

pytestmark = pytest.mark.slow


class Built(NamedTuple):
    wheel: Path
    sdist: Path


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a program and return what it prints; an exit code other than 0 fails the test."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def shared_pip_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let all environments share what pip downloads; each test has a home of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_CACHE_DIR", str(tmp_path_factory.mktemp("pip")))
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both packages, built as for a release: the wheel from the sdist, in isolated environments."""
    pytest.importorskip("build", reason="build is not installed: pip install 'clew[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    ask_registry = [sys.executable, "-m", "pip", "download", "--no-deps", "--retries=0", f"--dest={folder}/registry"]
    if subprocess.run([*ask_registry, "hatchling"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no package registry can be reached")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return Built(folder / f"clew-{__version__}-py3-none-any.whl", folder / f"clew-{__version__}.tar.gz")


def test_wheel_holds_the_package_alone(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    packaged = {PurePosixPath(name).relative_to("clew") for name in names if name.startswith("clew/")}
    source = ROOT / "src" / "clew"
    expected = {
        PurePosixPath(path.relative_to(source).as_posix())
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packaged == expected
    assert PurePosixPath("py.typed") in packaged
    outside = {name for name in names if not name.startswith("clew/")}
    assert all(name.startswith(f"clew-{__version__}.dist-info/") for name in outside), outside
    assert f"clew-{__version__}.dist-info/licenses/LICENSE" in outside


def test_sdist_holds_what_a_distributor_needs(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "Makefile", "pyproject.toml"):
        assert name in names
    for folder in ("src/clew", "tests", "docs", "schemas"):
        assert any(name.startswith(f"{folder}/") for name in names), folder
    generated = re.compile(r"(^|/)(__pycache__|\.venv|\.lab|\.demo|\.\w+_cache|\.hypothesis|dist)(/|$)|\.py[co]$")
    assert not [name for name in names if generated.search(name) and "fixtures" not in name]


def test_description_has_no_relative_links(built: Built) -> None:
    """Package indexes show the README without the files beside it."""
    with zipfile.ZipFile(built.wheel) as wheel:
        metadata = wheel.read(f"clew-{__version__}.dist-info/METADATA").decode()
    description = metadata.partition("\n\n")[2]
    assert "clew finds the sessions that your agents leave on disk." in description
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert [link for link in links if not link.startswith("https://")] == []


@pytest.fixture(scope="module")
def environments(built: Built, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A new environment with the wheel for each Python. pip mostly waits for the registry, so they are made at once."""
    folders = {version: tmp_path_factory.mktemp("python") for version in PYTHONS}

    def create(version: str) -> None:
        run(PYTHONS[version], "-m", "venv", "--without-pip", folders[version] / "venv")
        install(folders[version], built.wheel)

    with ThreadPoolExecutor() as pool:
        list(pool.map(create, PYTHONS))
    return folders


def install(folder: Path, package: Path, *options: str) -> None:
    pip = (sys.executable, "-m", "pip", "--python", folder / "venv", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-compile", *options, package)


@pytest.mark.parametrize("version", PYTHONS)
def test_installed_wheel_works(version: str, environments: dict[str, Path]) -> None:
    folder = environments[version]
    programs = folder / "venv" / "bin"
    check_command_line(programs / "clew", folder)
    check_library(programs / "python", folder)
    check_web(programs / "clew", folder)


def test_sdist_can_be_installed(built: Built, environments: dict[str, Path]) -> None:
    """One Python is enough: `built` made the wheel, which all of them have, from this sdist."""
    folder = next(iter(environments.values()))
    install(folder, built.sdist, "--force-reinstall", "--no-deps")
    assert run(folder / "venv" / "bin" / "clew", "--version", cwd=folder) == f"clew {__version__}\n"


def check_command_line(clew: Path, folder: Path) -> None:
    assert run(clew, "--version", cwd=folder) == f"clew {__version__}\n"
    home = folder / "demo"
    run(clew, "demo", home, cwd=folder)
    assert len(run(clew, "--home", home, "list", cwd=folder).splitlines()) > 5
    assert run(clew, "--home", home, "show", "@last", cwd=folder)
    assert run(clew, "--home", home, "search", "test", cwd=folder)
    assert json.loads(run(clew, "--home", home, "stats", "--json", cwd=folder))["totals"]["sessions"] > 5
    schema = json.loads(run(clew, "schema", cwd=folder))
    assert schema["$schema"].startswith("https://json-schema.org/")


def check_library(python: Path, folder: Path) -> None:
    code = "import clew, pathlib; print(clew.__version__, pathlib.Path(clew.__file__).with_name('py.typed').exists())"
    assert run(python, "-c", code, cwd=folder) == f"{__version__} True\n"


def check_web(clew: Path, folder: Path) -> None:
    """Start the app, and fetch the page that its link leads to and a static file of that page."""
    command = [str(clew), "--home", str(folder / "demo"), "web", "--port", "0"]
    # The link is the first line on stdout.
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as app:
        try:
            assert app.stdout is not None
            link = app.stdout.readline().strip()
            with urlopen(link, timeout=RESPONSE_SECONDS) as response:
                page = response.read().decode()
            static = re.search(r'"(/static/[^"]+\.css)"', page)
            assert static, page
            with urlopen(urljoin(link, static[1]), timeout=RESPONSE_SECONDS) as response:
                assert response.headers.get_content_type() == "text/css"
        finally:
            app.terminate()
