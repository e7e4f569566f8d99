"""sage-emacs: the conversation and the archives of every project, and saved sessions.

Saved sessions, sage/sessions/<name>.json, are a store of their own, to which no other agent's sessions go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.backups import is_link
from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.agents.folders import file_names, subfolders
from clew.agents.sage_emacs import locate
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.compress import plain_name
from clew.model.json import JSON


class SageEmacs(Agent):
    """The agent `sage-emacs`."""

    id = locate.AGENT
    title = "sage-emacs"
    homepage = "https://github.com/aygp-dr/sage.el"
    package = __name__

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def shares(self, root: Path) -> bool:
        return root.parent.name == ".claude"

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """The current conversation and every archive of every project below the root, or every saved session in it."""
        if locate.is_saved_folder(root):
            # A name with a dot in front is that of a lock or of a file that is being written.
            names = [name for name in file_names(root) if locate.is_saved(Path(name)) and not name.startswith(".")]
            yield from (self.locate(root / name) for name in names)
            return
        for folder in subfolders(root):
            names, history = file_names(folder), folder / locate.HISTORY
            archives = [] if is_link(history) else [name for name in file_names(history) if _is_lines(name)]
            current = [name for name in names if plain_name(name) == locate.CONVERSATION]
            # Without one of these two the folder belongs to another agent.
            if current or (archives and locate.METADATA in names):
                yield from (self.locate(folder / name) for name in current)
                yield from (self.locate(history / name) for name in archives)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        if locate.is_saved(path):
            return iter(())
        # An archive lies in a folder of the project that the metadata describe.
        places = (path.parent / locate.METADATA, path.parent.parent / locate.METADATA)
        return (name for name in known if PurePath(name) in places)

    def claims(self, path: Path, head: bytes) -> Claim:
        from clew.agents.sage_emacs.sniff import claims

        return claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.sage_emacs.records import MESSAGES

        return (MESSAGES,) if locate.is_saved(PurePath(name)) else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.sage_emacs.metadata import session_fields

        return super().session(source, facts) | session_fields(source, facts)

    def workspace_folder(self, source: SourceFile) -> str:
        return locate.project_folder(source.path).name

    def target(self, header: Header) -> str:
        return locate.target(header).as_posix()


def _is_lines(name: str) -> bool:
    return plain_name(name).endswith(".jsonl")
