"""Sessions of an archive as `tables.ingest` takes them: the bytes of their files, and what is known beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from clew.agents import registry
from clew.archive.records import SourceHome
from clew.archive.sessions import ArchivedFile, ArchivedSession
from clew.host import Origin
from clew.warehouse.ingest import Meta
from clew.warehouse.publisher import Writer

_OWN = ("main", "part", "side")
"""What a session is read from; copies of the files it changed are not."""


def meta_of(session: ArchivedSession, writer: Writer) -> Meta:
    """What is known of a session; no content is read."""
    files = [file for file in session.files if file.role in _OWN]
    home = session.home
    origin = None if home.kind == "local" else Origin(home.kind, home.name, session.path)  # type: ignore[arg-type]
    return Meta(
        agent=session.agent,
        path=session.path,
        source_id=writer.source_id(session.agent, f"{home.kind}\0{home.name or ''}\0{session.path}"),
        origin=writer.origin,
        mtime_ns=max((file.mtime_ns for file in files), default=0),
        size=sum(file.size for file in files),
        policy=writer.policy,
        redact_version=writer.redact_version,
        price_version=writer.price_version,
        parts=tuple(_relative(session, files, "part")),
        sides=tuple(_relative(session, files, "side")),
        place=origin,
    )


class Files:
    """The files of an archive by home, so that what a session looks at beside its own is found."""

    def __init__(self, every: Iterable[ArchivedFile]) -> None:
        self._homes: dict[SourceHome, dict[str, ArchivedFile]] = {}
        for file in every:
            self._homes.setdefault(file.version.home, {})[str(_posix(file.path))] = file
        self._names = {home: list(files) for home, files in self._homes.items()}

    def of(self, session: ArchivedSession) -> Iterator[tuple[str, bytes]]:
        """The bytes of a session's own files, and of those that its agent looks at to read it, each in its turn."""
        main, *more = [file for file in session.files if file.role in _OWN]
        content = main.read()
        others = {file.path: file for file in (*more, *session.shared, *self._beside(session, main, content))}
        yield main.path, content
        del content
        for path, file in others.items():
            if path != main.path:
                yield path, file.read()

    def _beside(self, session: ArchivedSession, main: ArchivedFile, content: bytes) -> Iterator[ArchivedFile]:
        agent, home = registry.get(session.agent), main.version.home
        for name in agent.beside(_posix(main.path), content, self._names[home]):
            yield self._homes[home][name]


def _relative(session: ArchivedSession, files: list[ArchivedFile], role: str) -> Iterator[str]:
    """The names of files as seen from the folder of the main file."""
    folder = _posix(session.path).parent
    for file in files:
        if file.role == role:
            path = _posix(file.path)
            up = 0
            while not path.is_relative_to(folder.parents[up - 1] if up else folder):
                up += 1
            base = folder.parents[up - 1] if up else folder
            yield str(PurePosixPath(*[".."] * up, path.relative_to(base)))


def _posix(path: str) -> PurePosixPath:
    """A path of any system; only how its parts follow each other matters here."""
    return PurePosixPath(path.replace("\\", "/") if not path.startswith("/") else path)
