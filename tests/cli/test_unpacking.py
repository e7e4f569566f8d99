"""clew import of an archive: its sessions are there, or nothing is."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from clew.store import Store
from tests.cli.running import clew


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Store(tmp_path / "home").session("tides") as session:
        session.user("how high is the tide?")
    return tmp_path / "home"


@pytest.mark.parametrize("form", ["tar", "gztar", "zip"])
def test_R15_a_home_in_an_archive_is_unpacked_into_a_new_folder(tmp_path: Path, home: Path, form: str) -> None:
    made = shutil.make_archive(str(tmp_path / "backup"), form, home)
    done = clew("import", made, "-o", tmp_path / "new", "--home", tmp_path, "--json")
    assert done.code == 0
    assert [(row["agent"], row["session_id"]) for row in done.json] == [("sage-agent", "tides")]
    assert clew("show", "tides", "--home", tmp_path / "new", "--json").json["role"] == "user"
    again = clew("import", made, "-o", tmp_path / "new", "--home", tmp_path)
    assert again.code == 6 and "new folder" in again.err
    assert clew("import", made, "--stdout", "--home", tmp_path).code == 2


def test_R15_a_hostile_archive_is_refused_whole(tmp_path: Path, home: Path) -> None:
    made = tmp_path / "a.tar"
    with tarfile.open(made, "w") as archive:
        archive.add(home, ".")
        member = tarfile.TarInfo("../../.bashrc")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    before = sorted(path for path in tmp_path.rglob("*"))
    done = clew("import", made, "-o", tmp_path / "new", "--home", tmp_path)
    assert done.code == 4 and ".bashrc" in done.err
    assert sorted(path for path in tmp_path.rglob("*")) == before
