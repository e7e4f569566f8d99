"""clew bundle: what is written, how it is signed, and what a check says."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from clew.agents.source import open_main
from clew.bundle import signature
from clew.bundle.create import ATTEMPTS, BundleWriter
from clew.bundle.format import RecordEntry, commitment, decode_entry, unseal
from clew.bundle.verify import verify
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.library import Library
from clew.stored_session import StoredSession
from tests.agents import goose_database
from tests.bundle.making import KEY, changed, members_of, some_sessions, written
from tests.cli.running import LATEST, clew, run

needs_ssh_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
SECRET = "AKIA" + "Q3EGRJ2X5LMN7OPT"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys of two people, and a list of signers with one of them."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "eve"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, capture_output=True)
    (folder / "signers").write_text(f"ada@example.org {(folder / 'ada.pub').read_text()}")
    return folder


@pytest.fixture
def bundle(synced_demo: Path, tmp_path: Path) -> Path:
    """A bundle of the demo."""
    file = tmp_path / "evidence.tar"
    assert clew("--home", synced_demo, "bundle", "create", "--agent", "claude", "-o", file).code == 0
    return file


def home_with_secret(folder: Path) -> Path:
    """A home with one session that holds a secret."""
    log = folder / ".claude/projects/-src-tide/11111111-2222-4333-8444-555555555555.jsonl"
    log.parent.mkdir(parents=True)
    records = [
        {"type": "user", "uuid": f"u{number}", "sessionId": log.stem, "cwd": "/src/tide"}
        | {"timestamp": f"2026-11-0{number}T10:00:00Z", "message": {"role": "user", "content": text}}
        for number, text in enumerate(("When is high water?", f"use aws_key {SECRET}", "Thanks"), 1)
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_a_bundle_is_private_and_never_replaces_a_file(bundle: Path, synced_demo: Path) -> None:
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    before = bundle.read_bytes()
    again = clew("--home", synced_demo, "bundle", "create", "-o", bundle)
    assert (again.code, bundle.read_bytes()) == (6, before)
    assert clew("--home", synced_demo, "bundle", "create", LATEST, "-o", bundle, "--force").code == 0
    assert verify(bundle).sessions == 1


def test_filters_choose_the_sessions_and_are_in_the_manifest(synced_demo: Path, tmp_path: Path) -> None:
    words = ("--project", "tide", "--since", "2025-01-01", "--until", "2026-11-12", "--agent", "claude")
    done = clew("--home", synced_demo, "bundle", "create", *words, "-o", tmp_path / "b.tar", "--json")
    listed = clew("--home", synced_demo, "list", "--subagents", *words, "--json").json
    assert done.json["counts"]["sessions"] == len(listed) > 0
    assert done.json["filters"] == "--agent claude --project tide --since 2025-01-01 --until 2026-11-12"
    assert done.json["since"] == "2025-01-01T00:00:00Z"
    proof = verify(tmp_path / "b.tar")
    assert proof.manifest is not None
    assert {session.id for session in proof.manifest.sessions} == {row["id"] for row in listed}


def test_every_agent_of_the_demo_can_be_bundled(synced_demo: Path, tmp_path: Path) -> None:
    done = clew("--home", synced_demo, "bundle", "create", "-o", tmp_path / "b.tar")
    assert done.code == 0, done.err
    proof = verify(tmp_path / "b.tar")
    assert proof.has_passed
    assert proof.manifest is not None
    assert len({session.agent for session in proof.manifest.sessions}) > 3


def test_nothing_to_bundle_writes_nothing(synced_demo: Path, tmp_path: Path) -> None:
    done = clew("--home", synced_demo, "bundle", "create", "--project", "nowhere", "-o", tmp_path / "b.tar")
    assert (done.code, (tmp_path / "b.tar").exists()) == (1, False)
    packed = clew("--home", synced_demo, "bundle", "create", "-o", tmp_path / "b.tar.gz")
    assert (packed.code, "not compressed" in packed.err) == (2, True)


def test_a_bundle_is_not_written_among_sessions(synced_demo: Path) -> None:
    done = clew("--home", synced_demo, "bundle", "create", "-o", synced_demo / ".claude/projects/b.tar")
    assert (done.code, "choose another place" in done.err) == (2, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_session_is_named_in_the_manifest(tmp_path: Path) -> None:
    home = home_with_secret(tmp_path / "home")
    log = next(home.rglob("*.jsonl"))
    other = log.with_name("99999999-2222-4333-8444-555555555555.jsonl")
    shutil.copy(log, other)
    other.chmod(0)
    _check_left_out(home, other, tmp_path)


def test_a_session_that_cannot_be_read_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_with_secret(tmp_path / "home")
    log = next(home.rglob("*.jsonl"))
    other = log.with_name("99999999-2222-4333-8444-555555555555.jsonl")
    shutil.copy(log, other)
    add = BundleWriter.add

    def fail(self: BundleWriter, session: StoredSession) -> None:
        if session.path == other:
            raise SourceUnreadable(f"{other}: Input/output error")
        add(self, session)

    monkeypatch.setattr(BundleWriter, "add", fail)
    _check_left_out(home, other, tmp_path)


def _check_left_out(home: Path, other: Path, folder: Path) -> None:
    done = clew("--home", home, "bundle", "create", "-o", folder / "b.tar")
    assert done.code == 3
    proof = verify(folder / "b.tar")
    assert proof.has_passed
    assert proof.manifest is not None
    assert len(proof.manifest.sessions) == 1
    assert [str(other) in problem for problem in proof.manifest.problems] == [True]
    assert "not in the bundle: " in clew("bundle", "verify", folder / "b.tar").out


def test_a_session_that_never_rests_is_not_written(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(demo, tmp_path / "home")
    session = some_sessions(tmp_path / "home")[0]
    attempts = []
    read = StoredSession.redacted

    def grow(*_: object) -> object:
        attempts.append(1)
        with session.path.open("ab") as log:
            log.write(b'{"type":"summary"}\n')
        return read

    monkeypatch.setattr("clew.bundle.create._record_pairs", lambda *_: (grow(), iter(()))[1])
    with pytest.raises(SourceUnreadable, match="was written to while it was read"):
        written([session])
    assert len(attempts) >= ATTEMPTS


def test_a_check_needs_neither_home_nor_data_folder(bundle: Path, tmp_path: Path) -> None:
    empty = tmp_path / "nobody"
    empty.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(empty), "PYTHONPATH": os.pathsep.join(filter(None, [_source()]))}
    done = run("bundle", "verify", bundle, env=env)
    assert (done.code, "intact" in done.out) == (0, True), done.err
    assert list(empty.rglob("*")) == []


def _source() -> str:
    import clew as package

    return str(Path(str(package.__file__)).parents[1])


def test_what_a_check_prints(bundle: Path, tmp_path: Path) -> None:
    good = clew("bundle", "verify", bundle)
    assert good.code == 0
    assert good.out.endswith(": intact\nnot signed: the hashes match, but nothing proves who wrote the file\n")
    report = clew("bundle", "verify", bundle, "--json")
    assert (report.code, report.json["intact"], report.json["passed"]) == (0, True, True)
    name = "sessions/000001/native/001.jsonl"
    (tmp_path / "bad.tar").write_bytes(changed(bundle.read_bytes(), name, lambda text: text.replace(b"a", b"o", 1)))
    bad = clew("bundle", "verify", tmp_path / "bad.tar")
    assert bad.code == 1
    assert bad.out.startswith(f"{name}:1: line 1 was changed\n")
    assert "NOT INTACT" in bad.out
    report = clew("bundle", "verify", tmp_path / "bad.tar", "--json")
    assert report.code == 1
    assert (report.json["intact"], report.json["passed"]) == (False, False)
    assert report.json["findings"][0]["what"] == "changed"
    assert report.json["findings"][0]["line"] == 1


def test_what_is_no_bundle_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert clew("bundle", "verify", tmp_path / "text").code == 4
    assert clew("bundle", "verify", tmp_path / "none").code == 3
    assert clew("bundle", "verify", tmp_path).code == 3


@needs_ssh_keygen
def test_a_signed_bundle(keys: Path, synced_demo: Path, tmp_path: Path) -> None:
    file, signers = tmp_path / "b.tar", keys / "signers"
    assert clew("--home", synced_demo, "bundle", "create", LATEST, "-o", file, "--sign", keys / "ada").code == 0
    assert "signed by ada@example.org with ED25519 key" in clew("bundle", "verify", file, "--signers", signers).out
    assert "use --signers to check whose key it is" in clew("bundle", "verify", file).out
    # ssh-keygen alone checks it too.
    manifest, name = dict(members_of(file.read_bytes())), tmp_path / "sig"
    name.write_bytes(manifest["manifest.json.sig"])
    words = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "ada@example.org", "-n", signature.NAMESPACE]
    subprocess.run([*words, "-s", str(name)], input=manifest["manifest.json"], check=True, capture_output=True)


@needs_ssh_keygen
def test_the_signature_of_another_key_is_named(keys: Path, synced_demo: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    assert clew("--home", synced_demo, "bundle", "create", LATEST, "-o", file, "--sign", keys / "eve").code == 0
    done = clew("bundle", "verify", file, "--signers", keys / "signers")
    assert done.code == 1
    assert "manifest.json.sig: signed with ED25519 key" in done.out
    assert f"; no line of {keys / 'signers'} allows this key to sign bundles\n" in done.out
    assert "contents intact, but NOT SIGNED BY AN ALLOWED SIGNER" in done.out
    assert "use --signers" not in done.out
    report = clew("bundle", "verify", file, "--signers", keys / "signers", "--json")
    assert (report.code, report.json["intact"], report.json["passed"]) == (1, True, False)
    # The file of a public key is easily taken for a list of signers, which also has names.
    mistaken = clew("bundle", "verify", file, "--signers", keys / "eve.pub")
    assert mistaken.code == 1 and f"{keys / 'eve.pub'}:1: " in mistaken.out
    unsigned = clew("--home", synced_demo, "bundle", "create", LATEST, "-o", tmp_path / "u.tar")
    assert unsigned.code == 0
    done = clew("bundle", "verify", tmp_path / "u.tar", "--signers", keys / "signers")
    assert done.code == 1
    assert "manifest.json.sig: missing: --signers needs a signed bundle" in done.out
    assert "contents intact, but NOT SIGNED" in done.out
    assert f"{keys}: not a file" in clew("bundle", "verify", file, "--signers", keys).err


@needs_ssh_keygen
def test_a_line_of_the_signers_that_excludes_bundles_is_named_with_the_reason(
    keys: Path, synced_demo: Path, tmp_path: Path
) -> None:
    file, signers, key = tmp_path / "b.tar", tmp_path / "signers", (keys / "ada.pub").read_text()
    assert clew("--home", synced_demo, "bundle", "create", LATEST, "-o", file, "--sign", keys / "ada").code == 0
    not_permitted = 'key is not permitted for use in signature namespace "clew-bundle"'
    for options, reason in (('namespaces="git"', not_permitted), ('valid-before="20200101"', "key has expired")):
        signers.write_text(f"eve@example.org {(keys / 'eve.pub').read_text()}ada@example.org {options} {key}")
        done = clew("bundle", "verify", file, "--signers", signers)
        assert done.code == 1
        assert f"; no line of {signers} allows this key to sign bundles ({signers}:2: {reason}" in done.out
    signers.write_text(f'ada@example.org namespaces="git,clew-bundle" {key}')
    assert clew("bundle", "verify", file, "--signers", signers).code == 0


@needs_ssh_keygen
def test_the_signature_of_another_manifest_and_a_changed_one_are_named(keys: Path, demo: Path, tmp_path: Path) -> None:
    sessions = some_sessions(demo)[:1]
    sign = lambda text: signature.sign(text, keys / "ada")  # noqa: E731
    one = written(sessions, sign=sign)
    other = dict(members_of(written(sessions, created_at="2027-01-01T00:00:00Z", sign=sign)))["manifest.json.sig"]
    (tmp_path / "b.tar").write_bytes(changed(one, "manifest.json.sig", lambda _: other))
    assert "is not a valid signature of the manifest" in str(verify(tmp_path / "b.tar").findings[0])
    shown = clew("bundle", "verify", tmp_path / "b.tar").out
    assert ": NOT INTACT\nthe signature is not valid\n" in shown
    text = dict(members_of(one))["manifest.json.sig"]
    for at in (0, 20, 40, len(text) // 2, len(text) - 40, len(text) - 31, len(text) - 1):
        flipped = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
        (tmp_path / "b.tar").write_bytes(changed(one, "manifest.json.sig", lambda _, flipped=flipped: flipped))  # type: ignore[misc]
        assert [finding.what for finding in verify(tmp_path / "b.tar").findings] == ["signature"]


def test_without_ssh_keygen(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = clew("--home", tmp_path, "bundle", "verify", bundle, "--signers", tmp_path / "key")
    assert done.code == 1  # it is not signed, which needs no ssh-keygen to be seen
    with pytest.raises(SourceUnreadable, match="ssh-keygen is not installed"):
        signature.sign(b"", tmp_path / "key")


def test_a_key_that_cannot_be_used_writes_nothing(synced_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    (tmp_path / "key").chmod(0o600)
    words = ("bundle", "create", LATEST, "-o", tmp_path / "b.tar", "--sign", tmp_path / "key")
    done = clew("--home", synced_demo, *words)
    assert (done.code, (tmp_path / "b.tar").exists()) == (3, False)
    assert "cannot be used to sign" in done.err


def test_a_masked_bundle_hides_secrets_and_their_hashes(tmp_path: Path) -> None:
    home = home_with_secret(tmp_path / "home")
    done = clew("--home", home, "bundle", "create", "--redact", "secrets", "-o", tmp_path / "b.tar")
    assert done.code == 0, done.err
    content = (tmp_path / "b.tar").read_bytes()
    assert SECRET.encode() not in content
    proof = verify(tmp_path / "b.tar")
    assert proof.has_passed
    assert proof.manifest is not None
    assert proof.manifest.redaction is not None
    assert proof.manifest.redaction["profile"] == "secrets"
    log = next(home.rglob("*.jsonl")).read_bytes()
    guesses = [log, *log.splitlines(), *log.splitlines(keepends=True), SECRET.encode()]
    for guess in guesses:
        if SECRET.encode() in guess:
            assert hashlib.sha256(guess).hexdigest().encode() not in content


def test_the_owner_of_the_originals_can_open_the_commitments(tmp_path: Path) -> None:
    sessions = list(Library(Host.at(home_with_secret(tmp_path / "home"))).sources())
    chain = dict(members_of(written(sessions, masked=True)))["sessions/000001/chain.jsonl"]
    entries = [decode_entry(sealed) for line in io.BytesIO(chain) if (sealed := unseal(line))]
    native = [entry for entry in entries if isinstance(entry, RecordEntry) and entry.file == 1]
    originals = sessions[0].path.read_bytes().splitlines(keepends=True)
    assert len(native) == len(originals) == 3
    for number, (entry, original) in enumerate(zip(native, originals, strict=True), 1):
        assert entry.original == commitment(KEY, 1, 1, number, original)
    assert len({entry.original for entry in native}) == 3


def test_originals_are_compared_with_what_was_masked(synced_demo: Path, tmp_path: Path) -> None:
    masked, whole, other = (tmp_path / name for name in ("masked.tar", "whole.tar", "other.tar"))
    create = ("--home", synced_demo, "bundle", "create", "--agent", "claude", "--agent", "gemini")
    assert clew(*create, "--redact", "all", "-o", masked).code == 0
    assert clew(*create, "-o", whole).code == 0
    done = clew("bundle", "verify", masked, "--original", whole)
    assert done.code == 0, done.out
    proof = verify(masked)
    assert done.out.endswith(f"\noriginals: {proof.records} records match\n")
    report = clew("bundle", "verify", masked, "--original", whole, "--json").json
    assert (report["passed"], report["original"]["passed"], report["original"]["compared"]) == (True, True, True)
    assert report["original"]["matching_records"] == proof.records
    assert clew("--home", synced_demo, "bundle", "create", "--agent", "codex", "-o", other).code == 0
    done = clew("bundle", "verify", masked, "--original", other)
    assert (done.code, "originals: DO NOT MATCH" in done.out) == (1, True)
    assert f"{other}: sessions/000001/native/001.jsonl:1: is not the original of what was masked" in done.out
    report = clew("bundle", "verify", masked, "--original", other, "--json").json
    assert (report["passed"], report["intact"], report["original"]["intact"]) == (False, True, True)
    assert report["findings"] == report["original"]["findings"] == []
    assert {one["file"] for one in report["original"]["differences"]} == {str(other)}
    assert clew("bundle", "verify", whole, "--original", whole).code == 4


@pytest.mark.parametrize("tampered", ["masked.tar", "whole.tar"])
def test_the_findings_name_the_bundle_that_was_changed(synced_demo: Path, tmp_path: Path, tampered: str) -> None:
    masked, whole = (tmp_path / name for name in ("masked.tar", "whole.tar"))
    create = ("--home", synced_demo, "bundle", "create", LATEST)
    assert clew(*create, "--redact", "all", "-o", masked).code == 0
    assert clew(*create, "-o", whole).code == 0
    file = tmp_path / tampered
    file.write_bytes(changed(file.read_bytes(), "sessions/000001/native/001.jsonl", lambda text: text[1:]))
    done = clew("bundle", "verify", masked, "--original", whole)
    assert done.code == 1
    verdicts = {
        line.partition(": ")[0]: line.rpartition(": ")[2] for line in done.out.splitlines() if "INTACT" in line.upper()
    }
    assert verdicts[str(file)] == "NOT INTACT"
    assert sorted(verdicts.values()) == ["NOT COMPARED, because a bundle is not intact", "NOT INTACT", "intact"]
    assert f"{file}: sessions/000001/native/001.jsonl:1: line 1 was changed" in done.out
    report = clew("bundle", "verify", masked, "--original", whole, "--json").json
    assert [report["intact"], report["original"]["intact"]] == [masked != file, whole != file]
    assert {one["file"] for one in (*report["findings"], *report["original"]["findings"])} == {str(file)}
    assert (report["passed"], report["original"]["compared"]) == (False, False)


def test_originals_are_compared_in_a_bundle_that_no_allowed_signer_signed(synced_demo: Path, tmp_path: Path) -> None:
    masked, other, signers = (tmp_path / name for name in ("masked.tar", "other.tar", "signers"))
    create = ("--home", synced_demo, "bundle", "create", LATEST)
    assert clew(*create, "--redact", "all", "-o", masked).code == 0
    assert clew("--home", synced_demo, "bundle", "create", "--agent", "codex", "-o", other).code == 0
    signers.touch()
    done = clew("bundle", "verify", masked, "--original", other, "--signers", signers)
    assert done.code == 1
    assert "--signers needs a signed bundle" in done.out
    assert "is not the original of what was masked" in done.out


def test_only_the_owner_of_the_key_compares_originals(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "elsewhere"))
    done = clew("bundle", "verify", bundle, "--original", bundle)
    assert (done.code, "only its owner can compare the originals" in done.err) == (3, True)


@pytest.mark.slow
def test_lines_that_are_too_long_to_be_scanned(tmp_path: Path) -> None:
    home = home_with_secret(tmp_path / "home")
    log = next(home.rglob("*.jsonl"))
    first = log.read_text().splitlines()[0]
    log.write_text(f"{first}\n{first.replace('high water', 'z' * 9_000_000 + SECRET)}\n{first}")
    env = {**os.environ, "CLEW_MAX_LINE": str(1 << 20)}
    masked, whole = tmp_path / "masked.tar", tmp_path / "whole.tar"
    for file, profile in ((masked, "secrets"), (whole, "none")):
        done = run("--home", home, "bundle", "create", "-o", file, "--redact", profile, env=env)
        assert done.code == 0, done.err
    assert SECRET.encode() not in masked.read_bytes()
    assert masked.stat().st_size < 100_000
    done = run("bundle", "verify", masked, "--original", whole, env=env)
    assert done.code == 0, done.out
    assert verify(whole).has_passed


def test_a_session_in_a_database_is_a_dump_of_its_rows(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with closing(goose_database.Database(goose_database.database_in(home))) as database:
        goose_database.write_conversation(database)
    for profile in ("none", "secrets"):
        file = tmp_path / f"{profile}.tar"
        done = clew("--home", home, "bundle", "create", "-o", file, "--redact", profile)
        assert done.code == 0, done.err
        assert verify(file).has_passed
    session = next(iter(Library(Host.at(home)).sources()))
    with open_main(session.source) as rows:
        assert rows.read() in dict(members_of((tmp_path / "none.tar").read_bytes())).values()
    assert clew("bundle", "verify", tmp_path / "secrets.tar", "--original", tmp_path / "none.tar").code == 0


def test_a_bundle_is_not_written_to_standard_output(
    synced_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = clew("--home", synced_demo, "bundle", "create", "-o", "-")
    assert (done.code, done.out, list(tmp_path.iterdir())) == (2, "", [])


def test_the_choice_of_sessions_is_masked_by_what_they_reveal(tmp_path: Path) -> None:
    password = "-".join(("Tangerine", "42", "harbour!"))
    log = tmp_path / ".claude/projects/-src-tide/11111111-2222-4333-8444-555555555555.jsonl"
    log.parent.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u1",
        "sessionId": log.stem,
        "cwd": "/src/tide",
        "timestamp": "2026-11-01T10:00:00Z",
        "message": {"role": "user", "content": f"export SHOP_PASSWORD={password}"},
    }
    log.write_text(json.dumps(record) + "\n")
    file = tmp_path / "masked.tar"
    options = ("bundle", "create", "--redact", "secrets", "-o", file)
    assert clew("--home", tmp_path, *options, "--text", password).code == 0
    assert password.encode() not in file.read_bytes()
    shown = clew("bundle", "verify", file)
    assert shown.code == 0 and password not in shown.out
