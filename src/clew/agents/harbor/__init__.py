"""Harbor: trajectories in the Agent Trajectory Interchange Format (ATIF), of any tool that writes it."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from clew.agents.base import Agent, Claim, Header, SourceFile, file_stem, open_main
from clew.errors import InvalidDocument
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.jsonstream import Scanner
from clew.io.paths import safe_relative

FOLDER = ".harbor/trajectories"
"""Where `clew import` puts trajectories. Harbor itself writes them to the folder of each job."""
_HEAD_BYTES = 4096
_MAX_BYTES_BEFORE_ID = 1 << 16


class Harbor(Agent):
    """The agent `harbor`."""

    id = "harbor"
    title = "Harbor"
    homepage = "https://github.com/harbor-framework/harbor"
    package = __name__
    export_format = "atif"
    session_files = ("**/*.json",)

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.home / FOLDER

    def claims(self, path: Path, head: bytes) -> Claim:
        # A unified document has a version of its own, and may carry a trajectory. Of JSON lines, clew reads none.
        if b'"ATIF-v' not in head[:_HEAD_BYTES] or plain_name(path.name).endswith((".jsonl", ".ndjson")):
            return Claim.NO
        version = _read_member(head[:_HEAD_BYTES], "schema_version")
        return Claim.YES if version is not None and version.startswith("ATIF-v") else Claim.NO

    def session_id(self, source: SourceFile) -> str:
        """The id of the run, where the beginning of the file has it: most files are called `trajectory.json`."""
        with open_main(source) as stream:
            identity = _read_member(stream.read(_MAX_BYTES_BEFORE_ID), "session_id")
        return identity or file_stem(source.path).removesuffix(".atif")

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.harbor.records import STEPS

        return STEPS

    def target(self, header: Header) -> str:
        return f"{FOLDER}/{safe_relative(str(header.session['id']))}.json"


def _read_member(head: bytes, name: str) -> str | None:
    """A text that is a member of the document itself: `extra` and sub-agents may have others of this name."""
    scanner = Scanner(BytesIO(head.removeprefix(BOM_UTF8)))
    try:
        for key in scanner.members():
            scanner.key_done()
            if key == name and scanner.peek() == b'"':
                return str(scanner.value())
            scanner.skip()
    except InvalidDocument:
        pass  # the head ends here
    return None
