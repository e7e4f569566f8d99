"""The list of sources: the user's own home, homes of another system on this machine, and those that the user added."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from clew.errors import RemoteFailed, UsageError, WouldLose
from clew.host import REMOTES, Host, Kind, data_dir
from clew.sources import config
from clew.sources.config import Entry, default_name
from clew.sources.wsl import WslDetector, host_at

if TYPE_CHECKING:
    # Only sources over ssh need these modules, and most users have none.
    from clew.sources.fetch import FetchResult
    from clew.sources.mirror import Mirror
    from clew.sources.ssh import Target


class Source(NamedTuple):
    """A home folder or host that sessions are read from."""

    name: str
    kind: Literal["local", "home", "wsl", "windows", "ssh"]
    where: str
    host: Host | None
    """None for a host that nothing was fetched from yet."""
    enabled: bool = True
    mirror: Mirror | None = None

    @property
    def type(self) -> Kind:
        """Return the type of source as in documents."""
        return "remote" if self.mirror is not None else self.host.kind if self.host is not None else "local"

    @property
    def host_name(self) -> str | None:
        """Return the name of its host as in documents."""
        return self.mirror.host_name if self.mirror is not None else self.host.name if self.host is not None else None

    @property
    def is_damaged(self) -> bool:
        """Return whether files were fetched from the host, but the state file of the mirror is lost."""
        return self.host is None and self.mirror is not None and self.mirror.files.is_dir()

    @property
    def target(self) -> Target:
        """Return the host to connect to."""
        from clew.sources.ssh import Target

        return Target.parse(self.where)


def sources(machine: WslDetector | None = None) -> list[Source]:
    """Return all sources, the user's own home first, including those that are switched off."""
    entries = config.load().entries
    off = {entry.name.casefold() for entry in entries if entry.kind == "off"}
    own = Host.local()
    found = [source._replace(enabled=source.name.casefold() not in off) for source in _found(machine or WslDetector())]
    named = [_named(entry) for entry in entries if entry.kind != "off"]
    return [Source("local", "local", str(own.home), own), *found, *named]


def _found(machine: WslDetector) -> Iterator[Source]:
    taken: set[str] = set()
    for text, host in machine.homes():
        name = default_name(text)
        while name.casefold() in taken:
            name += "-2"
        taken.add(name.casefold())
        yield Source(name, "windows" if host.kind == "windows" else "wsl", str(host.home), host)


def _named(entry: Entry) -> Source:
    if entry.kind == "home":
        return Source(entry.name, "home", entry.where, host_at(Path(entry.where)))
    from clew.sources.mirror import Mirror
    from clew.sources.ssh import Target

    mirror = Mirror(data_dir() / REMOTES / entry.name, Target.parse(entry.where).host)
    state = mirror.state()
    host = None
    if state is not None:
        try:
            host = mirror.host(state.home, state.env)
        except UsageError:
            host = None
    return Source(entry.name, "ssh", entry.where, host, mirror=mirror)


def chosen(every: Iterable[Source], names: Iterable[str]) -> list[Source]:
    """Return the sources with these names; without names all that are switched on."""
    every, names = list(every), list(names)
    if not names:
        return [source for source in every if source.enabled]
    by_name = {source.name.casefold(): source for source in every}
    for name in names:
        if name.casefold() not in by_name:
            raise UsageError(f"unknown source {name!r}; known: {', '.join(source.name for source in every)}")
    return list({name.casefold(): by_name[name.casefold()] for name in names}.values())


def hosts(every: Iterable[Source]) -> tuple[Host, ...]:
    """Return the homes that can be read now."""
    return tuple(source.host for source in every if source.host is not None)


def entry_for(where: str, name: str | None) -> Entry:
    """Return the entry for a host or a folder: a text with a slash, or that begins like a path, is a folder."""
    if is_path(where):
        folder = Path(where).expanduser().absolute()
        return Entry(name=name or default_name(folder.name), kind="home", where=str(folder))
    from clew.sources.ssh import Target

    target = Target.parse(where)
    plain = f"{target.user}@{target.host}" if target.user else target.host
    return Entry(name=name or default_name(plain), kind="ssh", where=where)


def is_path(text: str) -> bool:
    """Return whether a text can only mean a folder."""
    return not text.startswith("ssh://") and (text in (".", "..", "~") or "/" in text or "\\" in text)


def add(entry: Entry) -> None:
    """Add a source; refuse a name that another source has, or that a leftover mirror of another host has."""
    config.checked(entry)
    if any(source.name.casefold() == entry.name.casefold() for source in sources()):
        raise UsageError(f"source {entry.name} already exists; choose another name with --name")
    if entry.kind == "ssh":
        _refuse_leftover_mirror(entry)
    config.add(entry)


def _refuse_leftover_mirror(entry: Entry) -> None:
    """Raise UsageError if the folder for the mirror holds files that are not known to be of this host.

    Such a folder is left where the list of sources was lost. Fetching into it would list the sessions of one machine
    as those of another one, and replace files that may have no other copy.
    """
    from clew.sources.mirror import Mirror
    from clew.sources.ssh import Target

    remotes = data_dir() / REMOTES
    names = [path.name for path in remotes.iterdir()] if remotes.is_dir() else []
    for name in names:
        mirror = Mirror(remotes / name, "")
        if name.casefold() != entry.name.casefold() or not (mirror.extent()[0] or mirror.kept_files()):
            continue
        state = mirror.state()
        if state is None or state.target != str(Target.parse(entry.where)):
            owner = state.target if state is not None and state.target else "an unknown machine"
            raise UsageError(
                f"{mirror.folder} holds the files of {owner}; choose another name with --name, or move that folder away"
            )


def remove(source: Source, visit: Callable[[Source], FetchResult] | None = None) -> None:
    """Remove a source: its entry and its copies. One that is found by itself is switched off.

    `visit` fetches from the host, so that it is known which files are still there; WouldLose is raised where the only
    copy of a file may be here. Without `visit`, copies are deleted unasked.
    """
    if source.kind == "local":
        raise UsageError("your own home is always a source; --source NAME reads others only")
    if source.kind in ("wsl", "windows"):
        if source.enabled:
            config.add(Entry(name=source.name, kind="off"))
        return
    if source.mirror is not None:
        if visit is not None:
            _refuse_loss(source, source.mirror, visit)
        if source.mirror.folder.exists():
            shutil.rmtree(source.mirror.folder)
    config.remove(source.name)


def _refuse_loss(source: Source, mirror: Mirror, visit: Callable[[Source], FetchResult]) -> None:
    """Raise WouldLose where the host does not answer, or no longer has all that was copied from it."""
    count = mirror.extent()[0] + mirror.kept_files()
    if not count:
        return
    try:
        only_here = visit(source).gone + mirror.kept_files()
    except RemoteFailed as error:
        unknown = f"{source.name} does not answer, so the only copy of {count} files may be here"
        raise WouldLose(f"{error} {unknown}; use --allow-loss to remove them anyway") from None
    if only_here:
        raise WouldLose(f"{source.name}: {only_here} files exist only here; use --allow-loss to remove them")
