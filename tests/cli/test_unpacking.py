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


def test_a_document_that_cannot_be_read_leaves_nothing_of_an_archive(tmp_path: Path, home: Path) -> None:
    made = shutil.make_archive(str(tmp_path / "backup"), "tar", home)
    bad = tmp_path / "bad.json"
    bad.write_text("{x")
    done = clew("import", made, bad, "-o", tmp_path / "new", "--home", tmp_path)
    assert done.code == 4 and f"{bad}: " in done.err
    assert not (tmp_path / "new").exists()


def test_what_was_in_the_folder_stays_where_an_archive_is_refused(tmp_path: Path, home: Path) -> None:
    made = shutil.make_archive(str(tmp_path / "backup"), "tar", home)
    document = tmp_path / "tides.json"
    document.write_bytes(clew("export", "tides", "--home", home).raw)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    assert clew("import", document, made, "-o", tmp_path / "new", "--home", tmp_path).code == 6
    assert [path.name for path in (tmp_path / "new").rglob("*") if path.is_file()] == ["mine"]
