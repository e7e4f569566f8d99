"""The way back: a converted session brought back to the files it once was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from clew.agents.base import Agent, Header
from clew.agents.target_profile import TargetProfile
from clew.convert import origin
from clew.convert.conversation import is_custom_title
from clew.convert.file_transaction import DryRun, FileTransaction, roll_back_on_signal
from clew.convert.losses import Loss
from clew.convert.origin import Member
from clew.convert.target_files import Files, Registration, patiently, reader
from clew.convert.writing import Converted, refuse_losses
from clew.errors import UsageError, WouldLose
from clew.io.compress import open_source
from clew.io.paths import safe_below
from clew.model import SCHEMA_VERSION
from clew.store.layout import refuse_copy


class Return:
    """The original of a converted session, byte for byte; its agent is told of it as of any other session."""

    def __init__(
        self,
        kept: origin.Kept,
        target: Agent,
        members: Sequence[Member],
        workspace: str,
        home: Path | None = None,
    ) -> None:
        self._kept, self._target, self._workspace = kept, target, workspace
        self._receiver: TargetProfile | None = target.target_profile()
        self._session, self._folder = members[0].session, str(members[0].session.get("workspace_encoded") or "")
        self._first_prompt = members[0].first_prompt
        self._resume: list[str] = []
        self.losses: list[Loss] = []
        try:
            self._resume = self._receiver.command(self._session) if self._receiver else []
        except UsageError as error:
            self.losses.append(Loss(None, "the command that goes on with it", str(error)))
        if self._receiver is not None and home is not None:
            absent = self._receiver.absent(self._session, home)
            self.losses += [Loss(None, what, "the original only refers to it, and it is not there") for what in absent]

    def describe(self, home: Path) -> Converted:
        """What `write` would do to the files of the sessions themselves."""
        family = self._kept.origin.family()
        mains = [self._main(each, home) for each in family]
        pairs = ((main, file.name) for main, each in zip(mains, family, strict=True) for file in each.files)
        return self._converted([main.parent / safe_below(name) if name else main for main, name in pairs])

    def rehearse(self, home: Path) -> Converted:
        """What `write` would do, file by file; writes nothing, and refuses what is in the way."""
        return self._place(DryRun(home), home)

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the files of the original; each is checked against its hash."""
        refuse_losses(self.losses, allow_loss)
        return patiently(lambda: self._write(home))

    def _write(self, home: Path) -> Converted:
        refuse_copy(home)
        with roll_back_on_signal(), FileTransaction(home) as placing:
            return self._place(placing, home)

    def _converted(self, files: Sequence[Path]) -> Converted:
        return Converted(self._session["id"], [str(path) for path in files], self._resume, self.losses)

    def _place(self, placing: FileTransaction, home: Path) -> Converted:
        self._check_free(home)
        family = self._kept.origin.family()
        mains = [self._main(each, home) for each in family]
        files = [Files(placing, main, self._receiver, is_last=main == mains[0]) for main in mains]
        pairs = list(zip(files, family, strict=True))
        outs: list[origin.Out] = [out.open(file.name) for out, each in pairs for file in each.files]
        for out, each in pairs:
            outs += [out.copy(self._target.id, copy.name) or origin.NOWHERE for copy in each.copies]
        with open_source(self._kept.path) as stream:
            origin.unpack(stream, self._kept.origin, outs)
        placed = list(chain.from_iterable(out.finish() for out in files))
        registration = self._registration(home)
        if registration is not None:
            registration.place(placing)
        placing.finish()
        return self._converted([*placed, *(registration.files if registration else ())])

    def _check_free(self, home: Path) -> None:
        """In a home in which it lies where it was, it does not come back to another folder."""
        main = home / safe_below(self._kept.origin.target)
        if main.exists():
            raise WouldLose(f"{main} exists already")

    def _main(self, each: origin.Origin, home: Path) -> Path:
        """Where a session goes: as it was, in the folder that this home has for its project."""
        filed = self._receiver.filed_under(self._workspace, reader(home)) if self._receiver else ""
        parts = safe_below(each.target).split("/")
        if filed and self._folder in parts:
            parts[parts.index(self._folder)] = filed
        place = safe_below("/".join(parts))
        return self._receiver.main(place, home) if self._receiver else home / place

    def _registration(self, home: Path) -> Registration | None:
        if self._receiver is None:
            return None
        folder = self._receiver.filed_under(self._workspace, reader(home)) or self._folder
        told = {"id": self._session["id"], "workspace": self._workspace, "workspace_encoded": folder}
        told |= {"title": self._title(), "ended_at": self._session.get("ended_at")}
        return Registration(self._receiver, Header(SCHEMA_VERSION, "", self._target.id, told, {}), home)

    def _title(self) -> str | None:
        """A name that somebody gave the session, and that its own files do not tell."""
        title = self._kept.origin.title
        if not isinstance(title, str) or title == self._session.get("title"):
            return None
        return title if is_custom_title(title, self._first_prompt) else None
