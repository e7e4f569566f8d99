"""clew bundle: sessions as evidence, in one file that can be checked by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from clew.cli.completion import complete_session
from clew.cli.options import (
    as_json_option,
    common,
    filtering,
    force_option,
    given_filters,
    open_library,
    take_filters,
    wants_json,
)
from clew.cli.output import open_output, print_json, print_message, refuse_stores
from clew.cli.redaction import Redaction, redacting, redacting_output, redaction
from clew.cli.sessions import do_each, for_each_session, print_problem
from clew.errors import SourceUnreadable, UnknownReference, UsageError
from clew.host import data_dir
from clew.io.compress import SUFFIXES
from clew.library import Library
from clew.model.json import JSON
from clew.stored_session import StoredSession

if TYPE_CHECKING:
    from clew.bundle.create import BundleDescription, Masking
    from clew.bundle.format import Manifest
    from clew.bundle.verify import Proof
    from clew.filters import Filters


@click.group("bundle")
def command() -> None:
    """Write sessions as evidence that others can check, and check such a file."""


@command.command("create")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="PATH", help="The file to write, a tar."
)
@force_option
@click.option(
    "--sign",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="KEY",
    help="Sign with this ssh key, through `ssh-keygen -Y sign`.",
)
@redacting
@filtering
@common
@click.pass_context
def create_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    output: Path,
    force: bool,
    sign: Path | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Write sessions to an evidence bundle.

    It has their documents, their native files, and a hash chain over all records. Without a reference: all sessions
    that pass the filters, each as a whole. Native files are byte for byte those of the agent; with --redact they are
    masked, and the chain holds commitments to the original records. A session that cannot be read is left out, and the
    manifest says so.
    """
    from clew.bundle.create import BundleWriter
    from clew.bundle.signature import sign as sign_with
    from clew.cli.command_export import without_collector

    if str(output) == "-":
        raise UsageError("a bundle is written to a file, and not to standard output")
    if output.suffix in SUFFIXES:
        raise UsageError(f"{output.name}: a bundle is not compressed; name it .tar, and compress it later if you like")
    library = open_library(context, homes)
    refuse_stores(library, output)
    filters = take_filters(options, library)
    masking = redaction(context, for_programs=True)
    masking.prepare()
    problems: list[str] = []

    def report(problem: str) -> None:
        print_problem(problem)
        problems.append(masking.text(problem))

    found: list[StoredSession] = []
    unreadable = for_each_session(library, references, filters, found.append, report)
    if not found:
        raise UnknownReference("no session to bundle")
    found.sort(key=lambda session: (session.agent.id, str(session.path)))
    description = _description(context, library, references, filters, found, masking)
    with open_output(output, None, force) as out, without_collector():
        writer = BundleWriter(out, description, _masking(masking, description.created_at))
        unreadable += do_each(found, writer.add, report)
        if not writer.sessions:
            # An exception keeps `open_output` from replacing an existing file by an empty bundle.
            raise click.exceptions.Exit(SourceUnreadable.exit_code)
        signed = (lambda text: sign_with(text, sign)) if sign is not None else None
        manifest = writer.finish(problems, _redaction_stamp(masking), signed)
    if wants_json(context, as_json):
        print_json({"file": str(output), "signed": sign is not None, **_summary(manifest)})
    else:
        _print_written(output, manifest, masking, sign)
    return SourceUnreadable.exit_code if unreadable else 0


def _description(
    context: click.Context,
    library: Library,
    references: tuple[str, ...],
    filters: Filters,
    found: list[StoredSession],
    masking: Redaction,
) -> BundleDescription:
    from clew import __version__
    from clew.bundle.create import BundleDescription
    from clew.model.time import spell_time

    sources: list[JSON] = []
    for host in library.hosts:
        sessions = sum(host.holds(session.path) for session in found)
        sources.append({"type": host.kind, "name": host.name, "home": str(host.home), "sessions": sessions})
    return BundleDescription(
        clew_version=__version__,
        created_at=spell_time(library.now()),
        filters=masking.text(" ".join([*references, given_filters(context)]).strip()),
        since=spell_time(filters.since) if filters.since is not None else None,
        until=spell_time(filters.until) if filters.until is not None else None,
        sources=masking.value(sources),
    )


def _masking(masking: Redaction, created_at: str) -> Masking | None:
    if not masking.is_on:
        return None
    from clew.bundle.create import Masking
    from clew.bundle.format import bundle_key
    from clew.redact.settings import marker_key

    return Masking(masking.redactor, bundle_key(marker_key(data_dir()), created_at))


def _redaction_stamp(masking: Redaction) -> dict[str, JSON] | None:
    return masking.redactor().stamp() if masking.is_on else None


def _summary(manifest: Manifest) -> dict[str, JSON]:
    """The manifest as it is printed: without the sessions, of which there may be many."""
    return {name: value for name, value in msgspec.to_builtins(manifest).items() if name != "sessions"}


def _print_written(output: Path, manifest: Manifest, masking: Redaction, sign: Path | None) -> None:
    from clew.render.tables import count, size

    counts = manifest.counts
    totals = f"{_counted(counts)}, {size(output.stat().st_size)}"
    print_message(f"{output}: {totals}{', signed' if sign is not None else ''}")
    print_message(f"head {manifest.head}", mask=False)
    if manifest.problems:
        print_message(f"{count(len(manifest.problems))} could not be read and are not in it; the manifest names them")
    if not masking.is_on and not masking.was_asked:
        print_message("not masked; use --redact secrets to mask keys and passwords", mask=False)


def _counted(counts: dict[str, int]) -> str:
    from clew.render.tables import counted

    return ", ".join(counted(counts.get(f"{name}s", 0), name) for name in ("session", "file", "record"))


@command.command("verify")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Require a signature with a key of this file, an allowed_signers file as in `man ssh-keygen`.",
)
@click.option(
    "--original",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="For a masked bundle that you wrote: its originals must be those in this bundle of the same sessions.",
)
@redacting_output
@as_json_option
@click.pass_context
def verify_command(
    context: click.Context, /, file: Path, signers: Path | None, original: Path | None, as_json: bool
) -> int:
    """Check an evidence bundle, and name what was changed in it.

    Needs nothing but the file. Exit code 1: something was changed, removed, added or reordered, or no key of --signers
    signed the bundle. Without a signature and --signers, the check proves only that the file is consistent: a person
    who changed it could also have computed all hashes again.
    """
    from clew.bundle.verify import verify

    proof = verify(file, signers)
    originals = _check_originals(proof, file, original) if original is not None else None
    has_passed = proof.has_passed and (originals is None or originals.match)
    if wants_json(context, as_json):
        report = {**_report(file, proof), "passed": has_passed, "original": originals and originals.report()}
        print_json(redaction(context, for_programs=True).value(report))
        return 0 if has_passed else 1
    masking = redaction(context, for_programs=False)
    if originals is None:
        _print_proof("", proof, masking)
    else:
        _print_proof(f"{file}: ", proof, masking)
        _print_proof(f"{originals.file}: ", originals.proof, masking)
        _print_comparison(originals, masking)
    return 0 if has_passed else 1


class Originals(NamedTuple):
    """The bundle that should hold the originals of a masked one."""

    file: Path
    proof: Proof
    comparison: Proof | None
    """How its records differ from what was masked; None if one of the two bundles was changed."""

    @property
    def match(self) -> bool:
        return self.proof.has_passed and self.comparison is not None and self.comparison.has_passed

    def report(self) -> dict[str, JSON]:
        comparison = self.comparison
        return {
            **_report(self.file, self.proof),
            "compared": comparison is not None,
            "matching_records": comparison.records if comparison is not None else 0,
            "differences": _findings(self.file, comparison) if comparison is not None else [],
            "more_differences": comparison.more_findings if comparison is not None else 0,
        }


def _check_originals(proof: Proof, file: Path, original: Path) -> Originals:
    """Verify the bundle of the originals, and compare it with the masked one if both are unchanged."""
    from clew.bundle.verify import compare_originals, verify
    from clew.redact.settings import KEY_FILE, marker_key

    if not (data_dir() / KEY_FILE).is_file():
        raise SourceUnreadable(f"{data_dir() / KEY_FILE}: no such file; only its owner can compare the originals")
    proof_of_original = verify(original)
    if not (proof.is_unchanged and proof_of_original.is_unchanged):
        return Originals(original, proof_of_original, None)
    return Originals(original, proof_of_original, compare_originals(file, original, marker_key(data_dir())))


def _report(file: Path, proof: Proof) -> dict[str, JSON]:
    return {
        "file": str(file),
        "intact": proof.is_unchanged,
        "passed": proof.has_passed,
        "sessions": proof.sessions,
        "records": proof.records,
        "bytes": proof.bytes,
        "signature": msgspec.to_builtins(proof.signature),
        "manifest": _summary(proof.manifest) if proof.manifest is not None else None,
        "findings": _findings(file, proof),
        "more_findings": proof.more_findings,
    }


def _findings(file: Path, proof: Proof) -> list[JSON]:
    return [{"file": str(file), **msgspec.to_builtins(one), "text": str(one)} for one in proof.findings]


def _print_findings(label: str, proof: Proof, masking: Redaction) -> None:
    """Print findings, each behind the label of its file."""
    from clew.render.tables import count
    from clew.render.text_safety import one_line

    for finding in proof.findings:
        click.echo(one_line(masking.text(f"{label}{finding}")))
    if proof.more_findings:
        click.echo(one_line(masking.text(f"{label}and {count(proof.more_findings)} more findings")))


def _print_proof(label: str, proof: Proof, masking: Redaction) -> None:
    """Print what was found in a bundle, and the verdict; the label of its file begins each line."""
    from clew.render.tables import counted, size
    from clew.render.text_safety import one_line

    def print_line(text: str) -> None:
        click.echo(one_line(masking.text(f"{label}{text}")))

    _print_findings(label, proof, masking)
    manifest = proof.manifest
    if manifest is not None:
        masked = f", masked ({manifest.redaction.get('profile')})" if manifest.redaction is not None else ""
        filters = f", filters: {manifest.filters}" if manifest.filters else ""
        print_line(f"written {manifest.created_at} by clew {manifest.clew}{masked}{filters}")
        for problem in manifest.problems:
            print_line(f"not in the bundle: {problem}")
    totals = f"{counted(proof.sessions, 'session')}, {counted(proof.records, 'record')}, {size(proof.bytes)}"
    verdict = "intact" if proof.is_unchanged else "NOT INTACT"
    if proof.is_unchanged and not proof.has_passed:
        verdict = f"contents intact, but NOT SIGNED{' BY AN ALLOWED SIGNER' if proof.signature is not None else ''}"
    print_line(f"{totals}: {verdict}")
    print_line(_signature_line(proof))


def _print_comparison(originals: Originals, masking: Redaction) -> None:
    from clew.render.tables import counted

    comparison = originals.comparison
    if comparison is None:
        click.echo("originals: NOT COMPARED, because a bundle is not intact")
        return
    _print_findings(f"{originals.file}: ", comparison, masking)
    verb = "matches" if comparison.records == 1 else "match"
    matching = f"{counted(comparison.records, 'record')} {verb}"
    click.echo(f"originals: {matching}" if comparison.has_passed else f"originals: DO NOT MATCH; only {matching}")


def _signature_line(proof: Proof) -> str:
    state = proof.signature
    if state is None:
        return "not signed" + (": the hashes match, but nothing proves who wrote the file" if proof.has_passed else "")
    if not state.is_checked:
        return "the signature was not checked: ssh-keygen is not installed"
    if state.key is None:
        return "the signature is not valid"
    if state.signer is not None:
        return f"signed by {state.signer} with {state.key}"
    return f"signed with {state.key}" + ("; use --signers to check whose key it is" if proof.has_passed else "")
