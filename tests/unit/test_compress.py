"""Threats P10 and P11: archives that lie, and files that are no files."""

from __future__ import annotations

import gzip
import io
import json
import os
import time
from pathlib import Path

import pytest
import zstandard

from clew.agents.base import SourceFile
from clew.agents.checking import check_source
from clew.agents.claude_code import ClaudeCode
from clew.errors import LimitExceeded, SourceUnreadable
from clew.export.verify import verify
from clew.host import Host
from clew.io import compress
from clew.io.compress import damage, open_source, packer
from clew.library import Library
from clew.sources.local import at_path
from tests.unit.samples import SESSION, claude_line, read_source

AGENT = ClaudeCode()
MEGABYTE = 1 << 20
# Long numbers that pack badly, so that a cut lies somewhere in the middle of the records.
LINES = [
    json.dumps(claude_line("user", f"u{n}", None, str(7 ** (900 + n))), separators=(",", ":")).encode() + b"\n"
    for n in range(200)
]
RAW = b"".join(LINES)


def pack(raw: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(raw, mtime=0)
    return zstandard.ZstdCompressor(write_checksum=True).compress(raw)


def transcript(folder: Path, packed: bytes, suffix: str = ".gz") -> SourceFile:
    path = folder / f"{SESSION}.jsonl{suffix}"
    path.write_bytes(packed)
    return AGENT.locate(path)


def codes(source: SourceFile) -> list[str]:
    return [problem.code for problem in check_source(AGENT, source)]


@pytest.mark.parametrize(("compression", "suffix"), [("gzip", ".gz"), ("zstd", ".zst"), ("gzip", ""), ("zstd", "")])
def test_compressed_sessions_are_read(tmp_path: Path, compression: str, suffix: str) -> None:
    source = transcript(tmp_path, pack(RAW, compression), suffix)
    assert len(read_source(source).messages) == len(LINES)
    proof = verify(AGENT, source)
    assert proof.different == []
    assert proof.bytes == len(RAW)
    assert AGENT.session_id(source) == SESSION


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_what_is_packed_is_unpacked(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "document"
    with path.open("wb") as raw:
        out = packer(compression)(raw)
        out.write(RAW)
        if compression:
            out.close()
    with open_source(path) as stream:
        assert stream.read() == RAW
        assert damage(stream) is None


def test_equal_sessions_give_equal_archives() -> None:
    packed = []
    for _ in range(2):
        raw = io.BytesIO()
        out = packer("gzip")(raw)
        out.write(RAW)
        out.close()
        packed.append(raw.getvalue())
    assert packed[0] == packed[1]


def gzip_bomb(size: int) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as bomb:
        for _ in range(size // MEGABYTE):
            bomb.write(bytes(MEGABYTE))
    return out.getvalue()


def zstd_bomb(size: int) -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(size))


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [gzip_bomb, zstd_bomb], ids=["gzip", "zstd"])
def test_P10_a_bomb_stops_at_the_limit(tmp_path: Path, bomb: object) -> None:
    assert callable(bomb)
    packed = bomb(400 * MEGABYTE)
    assert len(packed) < MEGABYTE
    source = transcript(tmp_path, packed, ".x")
    begun = time.process_time()
    with open_source(source.path) as stream, pytest.raises(LimitExceeded, match="unpacks to more than"):
        while stream.read(MEGABYTE):
            pass
    assert time.process_time() - begun < 10
    assert compress.FREE_BYTES < 400 * MEGABYTE


def test_P10_a_bomb_is_a_problem_and_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compress, "FREE_BYTES", MEGABYTE)
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    source = transcript(folder, pack(bytes(8 * MEGABYTE), "gzip"))
    (folder / f"{SESSION.replace('0', '1')}.jsonl").write_bytes(RAW)
    (problem,) = check_source(AGENT, source)
    assert (problem.code, problem.file) == ("unreadable", str(source.path))
    assert "unpacks to more than" in problem.message
    library = Library(Host.at(tmp_path))
    assert [session.path.suffix for session in library.sessions()] == [".gz", ".jsonl"]
    assert library.get("1b1e2d8c").facts.messages == len(LINES)


def test_P10_what_packs_well_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compress, "FREE_BYTES", len(RAW) // 2)
    source = transcript(tmp_path, pack(RAW, "gzip"))
    assert len(read_source(source).messages) == len(LINES)


def test_P10_the_absolute_limit_counts_for_large_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compress, "MAX_UNPACKED", len(RAW) // 2)
    with open_source(transcript(tmp_path, pack(RAW, "gzip")).path) as stream, pytest.raises(LimitExceeded):
        stream.read()


def test_P10_an_archive_inside_an_archive_is_not_opened(tmp_path: Path) -> None:
    inner = pack(RAW, "gzip")
    source = transcript(tmp_path, pack(inner, "gzip"))
    with open_source(source.path) as stream:
        assert stream.read() == inner
    assert verify(AGENT, source).different == []
    assert read_source(source).messages == []


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_P10_many_members_are_one_file(tmp_path: Path, compression: str) -> None:
    source = transcript(tmp_path, b"".join(pack(line, compression) for line in LINES))
    assert len(read_source(source).messages) == len(LINES)
    assert verify(AGENT, source).different == []
    assert "damaged-archive" not in codes(source)


def assert_damaged(source: SourceFile) -> None:
    """Nothing is proved of an archive that is not whole, and it is said that what it gives came back."""
    (found,) = verify(AGENT, source).different
    assert found.why.startswith("the archive is damaged (")
    assert found.why.endswith("all that could be unpacked came back")


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("share", [0.4, 0.8, 0.99])
def test_P10_a_cut_archive_gives_what_it_holds(tmp_path: Path, compression: str, share: float) -> None:
    # Small frames, as a writer that flushes makes them: zstd gives nothing of a block that is cut.
    packed = b"".join(pack(b"".join(LINES[at : at + 5]), compression) for at in range(0, len(LINES), 5))
    source = transcript(tmp_path, packed[: int(len(packed) * share)])
    messages = read_source(source).messages
    assert len(messages) >= int(len(LINES) * share) - 25
    assert [message["uuid"] for message in messages] == [f"u{n}" for n in range(len(messages))]
    assert_damaged(source)
    assert "damaged-archive" in codes(source)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_P10_a_wrong_checksum_loses_no_record(tmp_path: Path, compression: str) -> None:
    packed = bytearray(pack(RAW, compression))
    packed[-6 if compression == "gzip" else -2] ^= 0xFF
    source = transcript(tmp_path, bytes(packed))
    found = [problem for problem in check_source(AGENT, source) if problem.code == "damaged-archive"]
    assert [problem.file for problem in found] == [str(source.path)]
    assert_damaged(source)
    assert len(read_source(source).messages) >= len(LINES) * 0.9


def test_P10_rubbish_behind_the_magic_bytes(tmp_path: Path) -> None:
    for magic in (b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        source = transcript(tmp_path, magic + os.urandom(500))
        assert "damaged-archive" in codes(source)
        assert_damaged(source)


def test_P11_a_pipe_named_like_a_session_does_not_block(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "x.jsonl")
    os.mkfifo(folder / "agent-1234abcd.jsonl")
    (folder / f"{SESSION}.jsonl").write_bytes(RAW)
    with pytest.raises(SourceUnreadable, match="not a regular file"):
        open_source(folder / "x.jsonl")
    library = Library(Host.at(tmp_path))
    session = library.get(SESSION[:6])
    assert session.session_object["id"] == SESSION
    assert library.usage() == {}
    assert [problem.code for problem in check_source(AGENT, AGENT.locate(folder / "x.jsonl"))] == ["unreadable"]
    assert [found.source.path.name for found in at_path(folder)] == [f"{SESSION}.jsonl"]


def test_P11_a_folder_named_like_a_session(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(SourceUnreadable, match="not a regular file"):
        open_source(tmp_path / "x.jsonl")


def test_P11_circles_of_links_are_not_walked(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / "again").symlink_to(folder, target_is_directory=True)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "self.jsonl").symlink_to(folder / "self.jsonl")
    (folder / f"{SESSION}.jsonl").write_bytes(RAW)
    names = [session.path.name for session in Library(Host.at(tmp_path)).sources()]
    assert names == [f"{SESSION}.jsonl"]
    with pytest.raises(SourceUnreadable):
        open_source(folder / "self.jsonl")
    assert Library(Host.at(tmp_path)).get(SESSION).id == SESSION


def test_P11_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = transcript(tmp_path, RAW, "")
    real = os.open

    def denied(path: str | os.PathLike[str], *rest: int) -> int:
        if Path(path) == source.path:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(SourceUnreadable, match="Permission denied"):
        open_source(source.path)
    (problem,) = check_source(AGENT, source)
    assert (problem.code, problem.file) == ("unreadable", str(source.path))
    assert "Permission denied" in problem.message


def test_P11_a_file_that_has_gone(tmp_path: Path) -> None:
    source = transcript(tmp_path, RAW, "")
    source.path.unlink()
    with pytest.raises(SourceUnreadable, match="No such file"):
        open_source(source.path)
    assert codes(source) == ["unreadable"]


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("limit", [None, 8, 100])
def test_a_file_that_is_read_at_once_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, limit: int | None
) -> None:
    monkeypatch.setattr(compress, "_SMALL", small)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{}\r\n')
    with open_source(path, limit, is_read_whole=True) as stream:
        assert stream.read() == path.read_bytes()[:limit]


def test_a_packed_file_is_unpacked_where_all_of_it_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(b"{}\n"))
    with open_source(path, 5, is_read_whole=True) as stream:
        assert stream.read() == b"{}\n"
