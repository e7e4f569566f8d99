"""The files of one session over time: found in one pass, with contents read on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from clew.agents.base import Agent, Unit, session_object
from clew.agents.file_evidence import KnownContent, absolute
from clew.agents.source import SourceFile, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.prompts import is_prompt
from clew.errors import UnknownReference, UsageError
from clew.file_history.message_ancestry import MessageAncestry
from clew.file_history.replay import Replay, Wanted
from clew.file_history.timeline import Answer, Evidence, Timeline
from clew.sources import moved_projects

_PROMPT_CHARS = 200
"""How much of a prompt is kept."""


class FileHistory:
    """What the records of a session prove about files. Each pass over them costs as much as reading the session."""

    def __init__(self, agent: Agent, source: SourceFile, *, keep_contents_of: Collection[str] = ()) -> None:
        """Read the files of a session. All contents of the files in `keep_contents_of` stay in memory."""
        self.agent = agent
        self.source = with_current_size(source)
        self.times: dict[int, str] = {}
        """When each message was written."""
        self._prompts: dict[int, str] = {}
        self._prompt_indexes: list[int] = []
        self._last = 0
        self._kept_paths = keep_contents_of

    @cached_property
    def ancestry(self) -> MessageAncestry:
        return MessageAncestry(self._facts.tree)

    @cached_property
    def _facts(self) -> Facts:
        return self.agent.facts(self.source)

    @cached_property
    def workspace(self) -> str:
        """The folder of the project as the agent recorded it; empty where it did not."""
        workspace: str = session_object(self.agent, self.source, self._facts)["workspace"]
        return absolute(workspace, None) if workspace else ""

    @cached_property
    def _replay(self) -> Replay:
        replay = Replay(self.ancestry, keep_contents_of=self._kept_paths)
        return replay.run(self.agent.file_changes(self.source, self._noted()))

    @property
    def timelines(self) -> dict[str, Timeline]:
        """By path."""
        return self._replay.timelines

    def all_evidence(self) -> list[Evidence]:
        """All evidence, in the order of the session."""
        found = [
            evidence for timeline in self.timelines.values() for evidence in (*timeline.all_evidence, *timeline.notes)
        ]
        return sorted(found, key=lambda evidence: (evidence.call, evidence.number))

    def unexplained_changes(self) -> list[Evidence]:
        """Changes of files that no record explains: two pieces of evidence disagree, and nothing ran between them."""
        return [evidence for timeline in self.timelines.values() for evidence in timeline.unexplained_changes()]

    def cut_off(self) -> list[str]:
        """A sentence for each tool that was interrupted: it may have changed any file."""
        calls = [span.call for span in self._replay.spans if span.is_cut_off]
        return [f"a tool of message {call} was interrupted: what it did to files is not known" for call in calls]

    def at(self, message: int, path: str) -> Answer:
        """A file as it was when the message was written."""
        self.require(message)
        return self.timelines[path].at(message) if path in self.timelines else _nothing(path)

    def all_at(self, message: int) -> list[Answer]:
        """Every file that the session touches, as it was when the message was written."""
        self.require(message)
        return [self.timelines[path].at(message) for path in sorted(self.timelines)]

    def contents(self, answers: Iterable[Answer]) -> list[KnownContent | None]:
        """The contents that answers are about, by one more pass; None where there is none."""
        keys = [_key(answer) for answer in answers]
        found = self.contents_of(key for key in keys if key is not None)
        return [found.get(key) if key is not None else None for key in keys]

    @property
    def kept_contents(self) -> dict[Wanted, KnownContent]:
        """The contents before and after all evidence of the files in `keep_contents_of`."""
        return self._replay.contents

    def contents_of(self, wanted: Iterable[Wanted]) -> dict[Wanted, KnownContent]:
        """The contents before or after pieces of evidence, by one more pass that ends when it has them all."""
        wanted = set(wanted)
        if not wanted:
            return {}
        return (
            Replay(self.ancestry, wanted)
            .run(self.agent.file_changes(self.source, self.agent.units(self.source)))
            .contents
        )

    def resolve_path(self, name: str, shown_as: Callable[[list[str]], list[str]] = list) -> str:
        """Return the path that a name refers to: absolute, in the project's folder, or the end of exactly one path.

        A file of a moved project is also known by the path it has now. Names are compared with paths as they are shown:
        `shown_as` masks them.
        """
        paths, moved = list(self.timelines), moved_projects.load()
        shown = list(zip(shown_as(paths), paths, strict=True))
        for wanted in (*moved_projects.recorded_paths(name, moved), absolute(name, self.workspace or None)):
            found = [path for path_shown, path in shown if path_shown == wanted]
            if len(found) == 1:
                return found[0]
        ending = "/" + name.replace("\\", "/").strip("/")
        matching = [(path_shown, path) for path_shown, path in shown if path_shown.endswith(ending)]
        if len(matching) > 1:
            raise UsageError(f"{name} is ambiguous: {', '.join(sorted(path_shown for path_shown, _ in matching)[:5])}")
        if not matching:
            raise UnknownReference(f"no record of the session mentions {name}; `clew files` lists the files")
        return matching[0][1]

    def require(self, message: int) -> None:
        """Refuse a message that the session does not have."""
        if message not in self.all_messages:
            raise UnknownReference(f"the session has no message {message}")

    @property
    def all_messages(self) -> range:
        """The indexes of all messages."""
        self._replay  # noqa: B018
        return range(1, self._last + 1)

    def prompt(self, message: int) -> tuple[int, str] | None:
        """The prompt that led to a message: its index and how it begins."""
        for index in reversed(self._prompt_indexes):
            if index <= message and self.ancestry.is_ancestor(index, message):
                return index, self._prompts[index]
        return None

    def _noted(self) -> Iterator[Unit]:
        """The units, with prompts and times noted on the way."""
        for unit in self.agent.units(self.source):
            if unit.is_message:
                self._note(unit)
            yield unit

    def _note(self, unit: Unit) -> None:
        index = self._last = unit.value["index"]
        time = unit.value.get("timestamp")
        if isinstance(time, str):
            self.times[index] = time
        if is_prompt(unit.value):
            texts = [block["text"] for block in unit.value["content"] if block["type"] == "text"]
            # 200 words have at least 200 characters. Splitting a long prompt completely would take many times its
            # size in memory.
            self._prompts[index] = " ".join(" ".join(texts).split(None, _PROMPT_CHARS)[:_PROMPT_CHARS])[:_PROMPT_CHARS]
            self._prompt_indexes.append(index)


def _key(answer: Answer) -> Wanted | None:
    if answer.evidence is None or answer.fingerprint is None:
        return None
    return answer.evidence.number, answer.is_after


def _nothing(path: str) -> Answer:
    return Answer(path, "unknown", None, reason="no record mentions it")
