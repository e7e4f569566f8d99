"""Archives from anywhere: unpacked whole into a new folder, or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from clew.errors import ClewError, LimitExceeded, PathRefused, SourceUnreadable, WouldLose
from clew.io import unpacking
from clew.io.unpacking import is_archive, unpack
from tests.files.test_within import SPELLINGS, tree

Make = Callable[[Path, Iterable[tuple[str, bytes]]], None]


def tar(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as made:
        for name, body in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(body), 0o4777
            made.addfile(member, io.BytesIO(body))


def zipped(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w") as made:
        for name, body in files:
            # The class itself would tidy the name.
            member = zipfile.ZipInfo("x")
            member.filename = member.orig_filename = name
            member.external_attr, member.compress_type = (stat.S_IFREG | 0o4777) << 16, zipfile.ZIP_DEFLATED
            made.writestr(member, body)


@pytest.fixture(params=[tar, zipped], ids=["tar", "zip"])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def refused(tmp_path: Path, path: Path, error: type[ClewError], words: str | None = None) -> None:
    """The archive is refused, and nothing is left of it anywhere."""
    before = tree(tmp_path)
    with pytest.raises(error, match=words):
        unpack(path, tmp_path / "outer" / "target")
    (tmp_path / "outer").rmdir()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("packed", ["", "gz", "zst"])
def test_a_folder_comes_out_as_it_went_in(tmp_path: Path, packed: str) -> None:
    home = tmp_path / "home"
    (home / ".sage" / "empty").mkdir(parents=True)
    (home / ".sage" / "a.jsonl").write_bytes(b"\x00\xff" * 100_000)
    (home / "ü\n.txt").write_bytes(b"")
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as made:
        made.add(home, ".")
    if packed:
        path = pack(path, packed)
    assert is_archive(path)
    files = unpack(path, tmp_path / "new" / "target")
    assert tree(tmp_path / "new" / "target") == tree(home)
    assert {file.name for file in files} == {"a.jsonl", "ü\n.txt"}
    assert [left.name for left in (tmp_path / "new").iterdir()] == ["target"]


def pack(path: Path, form: str) -> Path:
    import gzip

    import zstandard

    body = path.read_bytes()
    made = path.with_name(f"{path.name}.{form}")
    made.write_bytes(gzip.compress(body) if form == "gz" else zstandard.ZstdCompressor().compress(body))
    return made


def test_S01_what_comes_out_is_the_owners_alone(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "a", [("d/x", b"1")])
    previous = os.umask(0)
    try:
        unpack(tmp_path / "a", tmp_path / "t")
    finally:
        os.umask(previous)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("t", "t/d", "t/d/x")]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("name", [name for name in SPELLINGS if name not in (".", "a/", "./x", "")], ids=repr)
def test_R15_names_that_lead_elsewhere_are_refused(tmp_path: Path, make: Make, name: str) -> None:
    # The header of a tar archive would end the name there.
    make = zipped if "\0" in name else make
    make(tmp_path / "a", [("good.txt", b"good"), (name, b"bad")])
    refused(tmp_path, tmp_path / "a", PathRefused)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE]
)
def test_R15_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a", "w") as made:
        member = tarfile.TarInfo("x")
        member.type, member.linkname = kind, "../../outside"
        made.addfile(member)
    refused(tmp_path, tmp_path / "a", PathRefused, "neither a file nor a folder")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK, stat.S_IFDIR])
def test_R15_the_same_in_a_zip_file(tmp_path: Path, kind: int) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as made:
        member = zipfile.ZipInfo("x")
        member.external_attr = (kind | 0o777) << 16
        made.writestr(member, "../../outside")
    refused(tmp_path, tmp_path / "a", PathRefused, "neither a file nor a folder")


def test_R15_a_file_behind_a_link_of_the_same_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a", "w") as made:
        link = tarfile.TarInfo("d")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        made.addfile(link)
        made.addfile(tarfile.TarInfo("d/x"))
    refused(tmp_path, tmp_path / "a", PathRefused)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("two", ["x", "X", "x/y"])
def test_R15_two_of_one_name_are_refused(tmp_path: Path, make: Make, two: str) -> None:
    make(tmp_path / "a", [("x", b"1"), (two, b"2")])
    refused(tmp_path, tmp_path / "a", PathRefused)


def test_R15_R07_twins_are_refused(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "a", [("d/é", b"1"), ("D/e\u0301", b"2")])
    refused(tmp_path, tmp_path / "a", PathRefused, "same file on some systems")


@pytest.mark.slow
def test_R15_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unpacking.MAX_ENTRIES < 1_000_000
    monkeypatch.setattr(unpacking, "MAX_ENTRIES", 3000)
    header = bytearray(tarfile.TarInfo("d000000").tobuf())
    header[148:156] = b" " * 8
    rest = sum(header) - sum(header[1:7])
    with (tmp_path / "a").open("wb") as made:
        for number in range(unpacking.MAX_ENTRIES + 2):
            header[1:7] = b"%06d" % number
            header[148:156] = b"%06o\0 " % (rest + sum(header[1:7]))
            made.write(header)
    with pytest.raises(LimitExceeded, match="more than 3000"):
        unpack(tmp_path / "a", tmp_path / "t")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("count", "size"), [(0xFFFF, 100), (3, 1 << 30)])
def test_R15_a_zip_file_with_a_million_entries_is_refused_before_they_are_read(
    tmp_path: Path, count: int, size: int
) -> None:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, size, 0, 0)
    (tmp_path / "a").write_bytes(b"PK\x03\x04" + b"\0" * 100 + end)
    refused(tmp_path, tmp_path / "a", LimitExceeded)


def test_R15_a_bomb_is_refused(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED", 1 << 20)
    make(tmp_path / "a", [("x", b"\0" * (600 << 10)), ("y", b"\0" * (600 << 10))])
    refused(tmp_path, tmp_path / "a", LimitExceeded)


@pytest.mark.slow
def test_R15_a_zip_file_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    zipped(tmp_path / "a", [("x", b"\0" * (65 << 20))])
    refused(tmp_path, tmp_path / "a", LimitExceeded, "would unpack to")


def test_R15_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, 1 << 30
    (tmp_path / "a").write_bytes(member.tobuf() + b"\0" * (8 << 20))
    refused(tmp_path, tmp_path / "a", LimitExceeded, "header")


def test_R15_a_sparse_file_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("x")
    member.type = tarfile.GNUTYPE_SPARSE
    (tmp_path / "a").write_bytes(member.tobuf() + b"\0" * 1024)
    refused(tmp_path, tmp_path / "a", ClewError)


def test_R15_R09_what_is_there_is_never_touched(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "a", [("x", b"1")])
    target = tmp_path / "t"
    target.mkdir()
    (target / "mine").write_bytes(b"mine")
    with pytest.raises(WouldLose, match="new folder"):
        unpack(tmp_path / "a", target)
    assert tree(target) == {"mine": b"mine"}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WouldLose):
        unpack(tmp_path / "a", tmp_path / "link")


@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_a_damaged_archive_leaves_nothing(tmp_path: Path, make: Make, keep: float) -> None:
    make(tmp_path / "whole", [(f"x{number}", os.urandom(3000)) for number in range(20)])
    raw = (tmp_path / "whole").read_bytes()
    (tmp_path / "a").write_bytes(raw[: int(len(raw) * keep) // 512 * 512 + 100])
    refused(tmp_path, tmp_path / "a", SourceUnreadable)


def test_an_encrypted_zip_file_is_refused(tmp_path: Path) -> None:
    zipped(tmp_path / "a", [("x", b"1")])
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a").write_bytes(raw)
    refused(tmp_path, tmp_path / "a", SourceUnreadable, "encrypted")


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_R15_any_damaged_byte_of_a_zip_file_is_told(tmp_path: Path, method: int, flip: int) -> None:
    with zipfile.ZipFile(tmp_path / "whole", "w", method) as made:
        made.writestr("x", b"The tide rises twice a day. " * 9)
    each_byte_damaged(tmp_path, (tmp_path / "whole").read_bytes(), flip)


@pytest.mark.parametrize("packed", ["", "gz", "zst"])
def test_R15_any_damaged_byte_of_a_tar_archive_is_told(tmp_path: Path, packed: str) -> None:
    tar(tmp_path / "whole", [("x", b"The tide rises twice a day. " * 9)])
    raw = pack(tmp_path / "whole", packed).read_bytes()[:1024]
    each_byte_damaged(tmp_path, raw, 0xFF)


def each_byte_damaged(tmp_path: Path, raw: bytes, flip: int) -> None:
    """What comes is an archive that is unpacked, or one that is refused; nothing else."""
    told = 0
    for at in range(4, len(raw)):
        (tmp_path / "a").write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
        try:
            unpack(tmp_path / "a", tmp_path / "outer" / str(at))
        except ClewError:
            told += 1
    assert told > len(raw) // 20


def test_a_full_disk_is_not_taken_for_a_damaged_archive(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    make(tmp_path / "a", [("x", b"1")])
    monkeypatch.setattr(unpacking, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        unpack(tmp_path / "a", tmp_path / "target")
