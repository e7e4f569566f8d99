"""The files around a release agree with each other and with their formats."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from clew import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
"""Empty in an sdist, which has no workflows."""


def check_schema(schema: str, *files: Path) -> None:
    if find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed: pip install 'clew[dev]'")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def supported_pythons() -> list[str]:
    """The minor versions that the classifiers of the package name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))


@pytest.mark.slow
def test_workflows_follow_their_schema() -> None:
    if not WORKFLOWS:
        pytest.skip("there are no workflows here")
    check_schema("github-workflows", *WORKFLOWS)


@pytest.mark.slow
def test_actionlint_accepts_the_workflows() -> None:
    if not WORKFLOWS:
        pytest.skip("there are no workflows here")
    if (actionlint := shutil.which("actionlint")) is None:
        pytest.skip("actionlint is not installed")
    done = subprocess.run([actionlint, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_has_few_rights_and_pinned_actions(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    assert re.search(r"^permissions:(\n  contents: read$| \{\}$)", text, re.MULTILINE)
    actions = re.findall(r"uses: ([^.\s].*)$", text, re.MULTILINE)
    assert actions
    assert not [action for action in actions if not re.search(r"@(release/)?v\d+$", action)]
    assert "secrets." not in text


def test_workflow_tests_the_pythons_of_the_classifiers() -> None:
    workflow = ROOT / ".github" / "workflows" / "test.yml"
    if not workflow.exists():
        pytest.skip("there are no workflows here")
    matrix = re.search(r"python: \[(.*)\]", workflow.read_text(encoding="utf-8"))
    assert matrix is not None
    assert re.findall(r"3\.\d+", matrix[1]) == supported_pythons()


@pytest.mark.slow
def test_citation_follows_its_schema() -> None:
    check_schema("citation-file-format", ROOT / "CITATION.cff")


def test_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_newest_section_of_the_changelog_is_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert next(heading for heading in headings if heading != "Unreleased") == __version__
