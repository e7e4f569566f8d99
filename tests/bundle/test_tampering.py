"""Whatever is done to a bundle is noticed, and named."""

from __future__ import annotations

import io
import random
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.bundle.format import END, header
from clew.bundle.verify import verify
from clew.errors import ClewError, InvalidDocument
from tests.bundle.making import (
    archive_of,
    changed,
    checked,
    finding_texts,
    manifest_of,
    members_of,
    some_sessions,
    with_manifest,
    written,
)

DOCUMENT = "sessions/000002/document.json"
NATIVE = "sessions/000002/native/001.jsonl"
CHAIN = "sessions/000002/chain.jsonl"


@pytest.fixture(scope="module")
def bundle(demo: Path) -> bytes:
    return written(some_sessions(demo))


@pytest.fixture(scope="module")
def masked(demo: Path) -> bytes:
    return written(some_sessions(demo), masked=True)


def flip(text: bytes, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]


def test_a_bundle_is_intact(bundle: bytes, masked: bytes, tmp_path: Path) -> None:
    for one in (bundle, masked):
        proof = checked(one, tmp_path)
        assert proof.findings == []
        assert proof.sessions == 3
        assert proof.manifest is not None
        assert proof.records == proof.manifest.counts["records"]


def test_native_files_are_the_agents_own_bytes(bundle: bytes, demo: Path) -> None:
    members = dict(members_of(bundle))
    for number, session in enumerate(some_sessions(demo), 1):
        assert members[f"sessions/{number:06}/native/001.jsonl"] == session.path.read_bytes()


def test_the_same_sessions_at_the_same_time_make_the_same_bundle(bundle: bytes, demo: Path) -> None:
    assert written(some_sessions(demo)) == bundle


@pytest.mark.parametrize("name", [DOCUMENT, NATIVE])
def test_a_flipped_bit_is_named_with_its_line(bundle: bytes, masked: bytes, name: str, tmp_path: Path) -> None:
    for one in (bundle, masked):
        body = dict(members_of(one))[name]
        lines = body.splitlines(keepends=True)
        at = len(lines[0]) + len(lines[1]) + len(lines[2]) // 2
        findings = finding_texts(changed(one, name, lambda text, at=at: flip(text, at)), tmp_path)  # type: ignore[misc]
        assert findings == [f"{name}:3: line 3 was changed"]


def test_a_flipped_bit_of_the_chain_is_named_with_its_line(bundle: bytes, tmp_path: Path) -> None:
    lines = dict(members_of(bundle))[CHAIN].splitlines(keepends=True)
    start = sum(map(len, lines[:4]))
    for at in (start + 10, start + lines[4].index(b'"sha256"') + 12):
        findings = finding_texts(changed(bundle, CHAIN, lambda text, at=at: flip(text, at)), tmp_path)  # type: ignore[misc]
        assert findings[0].startswith(f"{CHAIN}:5: was changed")


def test_a_flipped_bit_of_the_manifest_is_named(bundle: bytes, tmp_path: Path) -> None:
    text = dict(members_of(bundle))["manifest.json"]
    at = text.index(b'"created_at"') + 15
    assert finding_texts(changed(bundle, "manifest.json", lambda text: flip(text, at)), tmp_path) == [
        "manifest.json: was changed: its hash is not that of its content"
    ]


def test_a_removed_record_is_named(bundle: bytes, masked: bytes, tmp_path: Path) -> None:
    for one in (bundle, masked):
        without = changed(one, NATIVE, lambda text: b"".join(_without(text.splitlines(keepends=True), 1)))
        assert finding_texts(without, tmp_path) == [f"{NATIVE}:2: line 2 was removed"]


def test_a_record_removed_with_its_entry_is_named(bundle: bytes, tmp_path: Path) -> None:
    chain = dict(members_of(bundle))[CHAIN].splitlines(keepends=True)
    second = next(number for number, line in enumerate(chain) if line.startswith(b'{"file":1,"line":2,'))
    without = changed(bundle, NATIVE, lambda text: b"".join(_without(text.splitlines(keepends=True), 1)))
    without = changed(without, CHAIN, lambda _: b"".join(_without(chain, second)))
    findings = finding_texts(without, tmp_path)
    assert f"{CHAIN}:{second + 1}: an entry before it was removed, that of line 2 of {NATIVE}" in findings


def _without(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at] + lines[at + 1 :]


def test_added_and_reordered_records_are_named(bundle: bytes, tmp_path: Path) -> None:
    added = changed(bundle, NATIVE, lambda text: text + b'{"type":"user"}\n')
    lines = len(dict(members_of(bundle))[NATIVE].splitlines()) + 1
    assert finding_texts(added, tmp_path) == [f"{NATIVE}:{lines}: line {lines} was added"]

    def reorder(text: bytes) -> bytes:
        first, second, *others = text.splitlines(keepends=True)
        return b"".join([second, first, *others])

    assert finding_texts(changed(bundle, NATIVE, reorder), tmp_path) == [f"{NATIVE}:1: lines 1, 2 were reordered"]


def test_a_removed_an_added_and_a_renamed_member_are_named(bundle: bytes, tmp_path: Path) -> None:
    members = members_of(bundle)
    without = [(name, body) for name, body in members if name != NATIVE]
    assert f"{NATIVE}: was removed" in finding_texts(archive_of(without), tmp_path)
    extra = [*members[:-1], ("sessions/000002/native/002.jsonl", b"{}\n"), members[-1]]
    assert "sessions/000002/native/002.jsonl: was added: the session has no such file" in finding_texts(
        archive_of(extra), tmp_path
    )
    other_spelling = [*members, ("sessions/0000002/document.json", b"{}\n")]
    assert finding_texts(archive_of(other_spelling), tmp_path) == [
        "sessions/0000002/document.json: was added: the session has no such file"
    ]
    unknown = [*members, ("notes.txt", b"hello")]
    assert finding_texts(archive_of(unknown), tmp_path) == ["notes.txt: was added: a bundle has no such member"]


def test_a_check_of_many_sessions_takes_time_for_each_once(bundle: bytes, tmp_path: Path) -> None:
    chain = dict(members_of(bundle))[CHAIN].splitlines(keepends=True)[-1]
    members = [
        (f"sessions/{number:06}/{name}", body)
        for number in range(1, 3001)
        for name, body in (("document.json", b""), ("native/009.jsonl", b""), ("chain.jsonl", chain))
    ]
    archive = archive_of(members)
    before = time.process_time()
    proof = checked(archive, tmp_path)
    assert time.process_time() - before < 5
    assert len(proof.findings) + proof.more_findings > 3000


def test_reordered_members_are_named(bundle: bytes, tmp_path: Path) -> None:
    members = members_of(bundle)
    names = [name for name, _ in members]
    one, other = names.index(NATIVE), names.index("sessions/000003/native/001.jsonl")
    members[one], members[other] = members[other], members[one]
    assert finding_texts(archive_of(members), tmp_path) == [
        f"sessions/000003/native/001.jsonl: was reordered: it is in the place of {NATIVE}",
        f"{NATIVE}: was reordered: it is in the place of sessions/000003/native/001.jsonl",
    ]


def test_exchanged_contents_are_named(bundle: bytes, tmp_path: Path) -> None:
    bodies = dict(members_of(bundle))
    other = "sessions/000003/native/001.jsonl"
    bodies[NATIVE], bodies[other] = bodies[other], bodies[NATIVE]
    assert finding_texts(archive_of(list(bodies.items())), tmp_path) == [
        f"{NATIVE}: was reordered: it has the content of {other}",
        f"{other}: was reordered: it has the content of {NATIVE}",
    ]


def test_a_removed_and_an_added_session_are_named(bundle: bytes, demo: Path, tmp_path: Path) -> None:
    without = [(name, body) for name, body in members_of(bundle) if not name.startswith("sessions/000002/")]
    session = some_sessions(demo)[1]
    assert finding_texts(archive_of(without), tmp_path) == [
        f"sessions/000002: session claude-code:{session.id} was removed, with all its files"
    ]
    more = members_of(written(some_sessions(demo, count=4)))
    fourth = [(name, body) for name, body in more if name.startswith("sessions/000004/")]
    added = [*members_of(bundle)[:-1], *fourth, members_of(bundle)[-1]]
    assert "sessions/000004: was added: the manifest does not name this session" in finding_texts(
        archive_of(added), tmp_path
    )


def test_the_manifest_of_another_bundle_is_named(bundle: bytes, demo: Path, tmp_path: Path) -> None:
    other = dict(members_of(written(some_sessions(demo), created_at="2026-11-16T12:00:00Z")))["manifest.json"]
    assert finding_texts(changed(bundle, "manifest.json", lambda _: other), tmp_path) == [
        "manifest.json: belongs to another bundle: it names none of these sessions' chains"
    ]
    without = [(name, body) for name, body in members_of(bundle) if name != "manifest.json"]
    assert finding_texts(archive_of(without), tmp_path) == ["manifest.json: is missing"]


def test_a_manifest_that_names_fewer_sessions_is_noticed(bundle: bytes, tmp_path: Path) -> None:
    def forget(manifest: object) -> None:
        manifest.sessions.pop()  # type: ignore[attr-defined]

    assert "sessions/000003: was added: the manifest does not name this session" in finding_texts(
        with_manifest(bundle, forget), tmp_path
    )


@given(st.data())
def test_any_changed_byte_is_noticed(
    bundle: bytes, masked: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from([bundle, masked]))
    at = data.draw(st.integers(0, len(one) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda value: value != one[at]))
    assert _is_noticed(one[:at] + bytes([value]) + one[at + 1 :], tmp_path_factory.getbasetemp())


@pytest.mark.slow
def test_every_byte_of_headers_and_ends_is_checked(bundle: bytes, tmp_path: Path) -> None:
    """Contents are hashed; these are not, and so each of their bytes is tried."""
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        one = archive.getmembers()[1]
    end = one.offset_data + one.size
    places = [*range(one.offset, one.offset + 512), *range(end, -(-end // 512) * 512)]
    for at in (*places, len(bundle) - 1, len(bundle) - 1024):
        assert _is_noticed(flip(bundle, at), tmp_path), at


def test_cut_and_prolonged_files_are_noticed(bundle: bytes, tmp_path: Path) -> None:
    for length in random.Random(1).sample(range(len(bundle)), 40):
        assert _is_noticed(bundle[:length], tmp_path), length
    for more in (b"\0", bytes(512), bytes(9216), b"more"):
        assert _is_noticed(bundle + more, tmp_path)


def _is_noticed(content: bytes, folder: Path) -> bool:
    try:
        return not checked(content, folder).has_passed
    except ClewError:
        return True


def _member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, "/etc/passwd"
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (_member("../../etc/cron.d/job"), "leads out of the bundle"),
        (_member("/etc/passwd"), "leads out of the bundle"),
        (_member("sessions\\..\\x"), "leads out of the bundle"),
        (_member("sessions/\x1b[2J"), "leads out of the bundle"),
        (_member("sessions/000001/native/009.jsonl", tarfile.SYMTYPE), "is a link"),
        (_member("sessions/000001/native/009.jsonl", tarfile.LNKTYPE), "is a link"),
        (_member("sessions/000009", tarfile.DIRTYPE), "is a link, a folder"),
        (_member("sessions/000001/native/009.jsonl", tarfile.GNUTYPE_SPARSE), "special file"),
        (_member("x" * 300), "special file"),
        (_member("manifest.json"), "two members are called manifest.json"),
    ],
)
def test_what_could_do_harm_is_refused(bundle: bytes, block: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=f"refused: .*{message}"):
        checked(bundle.removesuffix(END) + block + END, tmp_path)


def test_a_huge_size_is_refused_without_reading(bundle: bytes, tmp_path: Path) -> None:
    huge = bundle.removesuffix(END) + header("sessions/000001/native/009.jsonl", 1 << 60) + END
    findings = finding_texts(huge, tmp_path)
    assert f"has {1 << 60} bytes by its header, but the file ends before" in findings[0]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", bytes(10240), b"x" * 2000, b"\x28\xb5\x2f\xfd" * 200])
def test_other_files_are_not_bundles(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="is not an evidence bundle"):
        checked(content, tmp_path)


def test_an_ordinary_archive_is_not_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(tmp_path / "a.txt", "a.txt")
    with pytest.raises(InvalidDocument, match="is not an evidence bundle"):
        verify(tmp_path / "a.tar")


def test_a_newer_format_is_refused(bundle: bytes, tmp_path: Path) -> None:
    def renew(manifest: object) -> None:
        manifest.version = 2  # type: ignore[attr-defined]

    with pytest.raises(InvalidDocument, match="clew-bundle 2; this clew reads clew-bundle 1"):
        checked(with_manifest(bundle, renew), tmp_path)


def test_the_manifest_counts(bundle: bytes, demo: Path) -> None:
    counts = manifest_of(bundle)["counts"]
    names = [
        session.path.parent / name
        for session in some_sessions(demo)
        for name in (session.path.name, *session.source.parts, *session.source.sides)
    ]
    contents = [name.read_bytes() for name in names]
    assert counts == {
        "sessions": 3,
        "messages": sum(len(list(session.messages)) for session in some_sessions(demo)),
        "records": sum(len(content.splitlines()) for content in contents),
        "files": len(names),
        "native_bytes": sum(map(len, contents)),
    }
