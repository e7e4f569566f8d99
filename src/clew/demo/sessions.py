"""Builds agent-neutral sessions from `stories.toml`: prompts, steps and answers with their times.

The same day gives the same sessions: every choice comes from a random generator seeded with the story's title.
"""

from __future__ import annotations

import difflib
import tomllib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib.resources import files
from random import Random
from typing import Any, NamedTuple

from clew.demo.pictures import bar_chart

SOURCE_FOLDER = "/home/ada/src"
CHANGELOG = "CHANGELOG.md"
SECONDS_SINCE_LAST_RECORD = 150
"""Age of the last record of the session that is still running."""
FOLLOW_UPS = (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8)
"""How many prompts follow the first; one of these, chosen at random."""
PAUSE_CHANCE, PAUSE_SECONDS = 0.12, (50_000, 72_000)
"""How often a session goes on the next day, and after how long."""
LONGEST_SESSION_DAYS = 10
OLDER_DAYS = 200
"""Sessions before this many days ago used the models and program versions of that time."""
MODELS = {
    "claude-code": (("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929"), ("claude-opus-4-8", "claude-sonnet-5")),
    "cline": (("claude-sonnet-4-5-20250929",), ("claude-sonnet-5", "claude-opus-4-8")),
    "codex": (("gpt-5.2-codex", "gpt-5.1-codex"), ("gpt-5.3-codex", "gpt-5.5")),
    "continue": (("gpt-5.1",), ("gpt-5.5",)),
    "copilot-cli": (("claude-sonnet-4.5", "gpt-5.1"), ("claude-sonnet-4.6", "gpt-5.4")),
    "gemini": (("gemini-2.5-pro", "gemini-3-pro-preview"), ("gemini-3.1-pro-preview", "gemini-3.5-flash")),
    "kimi-code": (("kimi-k2-thinking", "kimi-k2.5"), ("kimi-k2.6", "kimi-k2.7-code")),
    "mistral-vibe": (("devstral-medium",), ("devstral-medium", "devstral-small")),
    "pi": (("claude-sonnet-4-5",), ("claude-sonnet-5",)),
    "qwen-code": (("qwen3-coder",), ("qwen3-coder-next", "qwen3.8-max")),
    "sage-agent": (("claude-sonnet-4-5-20250929",), ("gpt-5",)),
    "sage-emacs": (("gemini-2.5-flash",), ("gemini-2.5-flash",)),
}
"""The models of each agent: older ones, newer ones."""


class Thought(NamedTuple):
    text: str


class Plan(NamedTuple):
    items: tuple[tuple[str, str], ...]
    """Subject and status."""


class SubagentTask(NamedTuple):
    description: str
    prompt: str
    answer: str


class Read(NamedTuple):
    path: str
    content: str


class Grep(NamedTuple):
    pattern: str
    output: str


class Command(NamedTuple):
    command: str
    output: str
    is_failure: bool = False


class Change(NamedTuple):
    """A file that was edited or, without `old`, written whole."""

    path: str
    before: str | None
    after: str
    old: str | None = None
    new: str = ""


Work = Thought | Plan | SubagentTask | Read | Grep | Command | Change


class Step(NamedTuple):
    work: Work
    begun: datetime
    done: datetime
    remark: str = ""
    """Text of the assistant before it."""


@dataclass(frozen=True)
class Turn:
    prompt: str
    asked: datetime
    steps: tuple[Step, ...]
    answer: str | None
    """None while the turn is running."""
    answered: datetime
    picture: bytes | None = None
    is_rewound: bool = False
    """The next turn replaces this one."""
    summary: str | None = None
    """The conversation was compacted into this text before the turn."""


@dataclass(frozen=True)
class Session:
    agent: str
    title: str
    project: str
    branch: str
    model: str
    is_older: bool
    turns: tuple[Turn, ...]
    random: Random = field(repr=False)

    @property
    def folder(self) -> str:
        return f"{SOURCE_FOLDER}/{self.project}"

    @property
    def started(self) -> datetime:
        return self.turns[0].asked

    @property
    def ended(self) -> datetime:
        return self.turns[-1].answered

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


class TokenCounter:
    """Invents the token usage of a conversation: the input of each call is all that came before it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.context = random.randrange(14_000, 22_000)
        self.cached = 0

    def count_call(self, text: str) -> tuple[int, int, int]:
        """The tokens of the next API call, which replies `text`: new input, cached input, output."""
        new, cached = self.context - self.cached, self.cached
        output = len(text) // 3 + self._random.randrange(80, 1_500)
        self.cached = self.context
        self.context += output + self._random.randrange(300, 4_000)
        return new, cached, output

    def compact(self) -> None:
        self.context, self.cached = self._random.randrange(16_000, 24_000), 0


def build_sessions(now: datetime) -> list[Session]:
    """The sessions of the year before `now`, project by project, in the order of time."""
    stories = tomllib.loads(files("clew.demo").joinpath("stories.toml").read_text(encoding="utf-8"))
    return [session for project in stories["project"] for session in _project_sessions(stories, project, now)]


def _project_sessions(stories: dict[str, Any], project: dict[str, Any], now: datetime) -> Iterator[Session]:
    contents: dict[str, str] = dict(project["files"])
    earliest = now - timedelta(days=400)
    for days, story in zip(project["days"], project["story"], strict=True):
        random = Random(f"{project['name']}: {story['title']}")
        start = max(earliest, _working_hour(now, days, random))
        has_pauses = days > LONGEST_SESSION_DAYS
        turns = _TurnBuilder(stories, project, story, contents, random, start=start, has_pauses=has_pauses).turns()
        if story.get("running"):
            turns = _shifted(turns, now - timedelta(seconds=SECONDS_SINCE_LAST_RECORD) - turns[-1].answered)
        is_older = days > OLDER_DAYS
        session = Session(
            agent=story["agent"],
            title=story["title"],
            project=project["name"],
            branch=story.get("branch", "main"),
            model=random.choice(MODELS[story["agent"]][not is_older]),
            is_older=is_older,
            turns=tuple(turns),
            random=random,
        )
        earliest = session.ended + timedelta(hours=1)
        yield session


def _working_hour(now: datetime, days: int, random: Random) -> datetime:
    """A time within working hours, `days` before now; one on a weekend is mostly moved to the Friday before."""
    day = (now - timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0)
    works_on_weekend = random.random() < 0.25
    if day.weekday() >= 5 and not works_on_weekend:
        day -= timedelta(days=day.weekday() - 4)
    return day + timedelta(hours=random.choice((8, 9, 9, 10, 11, 13, 14, 15, 16, 20)), seconds=random.randrange(3600))


def _choose_follow_ups(follow_ups: list[dict[str, Any]], story: dict[str, Any], random: Random) -> list[dict[str, Any]]:
    """Some of the prompts that can follow a story, in their order."""
    if story.get("running"):
        return []
    has_diff = "edit" in story or "write" in story
    possible = [number for number, each in enumerate(follow_ups) if has_diff or not each.get("needs_diff")]
    count = min(max(random.choice(FOLLOW_UPS), 4 if "compact" in story else 0), len(possible))
    numbers = sorted(random.sample(possible, count))
    return [follow_ups[n] for n in numbers if not follow_ups[n].get("follows") or n - 1 in numbers]


def _shifted(turns: Sequence[Turn], by: timedelta) -> list[Turn]:
    return [
        replace(
            turn,
            asked=turn.asked + by,
            answered=turn.answered + by,
            steps=tuple(step._replace(begun=step.begun + by, done=step.done + by) for step in turn.steps),
        )
        for turn in turns
    ]


class _TurnBuilder:
    """Builds the turns of one session. It advances a clock and updates the contents of the project's files."""

    def __init__(
        self,
        stories: dict[str, Any],
        project: dict[str, Any],
        story: dict[str, Any],
        contents: dict[str, str],
        random: Random,
        *,
        start: datetime,
        has_pauses: bool,
    ) -> None:
        self._stories, self._project, self._story = stories, project, story
        self._contents, self._random = contents, random
        self._clock, self._has_pauses = start, has_pauses
        self._changes: list[Change] = []

    def turns(self) -> list[Turn]:
        story = self._story
        picture = bar_chart(self._random) if story.get("image") else None
        turns = [self._turn(story["prompt"], list(self._story_work()), story["answer"], picture=picture)]
        if "rewind" in story:
            prompt, answer = story["rewind"]
            turns.append(self._turn(prompt, [], answer, is_rewound=True))
        for number, follow_up in enumerate(_choose_follow_ups(self._stories["follow_up"], story, self._random)):
            summary = self._summary(turns) if story.get("compact") and number == 2 else None
            values = self._values()
            work = list(self._follow_up_work(follow_up, values))
            turns.append(self._turn(follow_up["prompt"], work, follow_up["answer"].format_map(values), summary=summary))
        if turns[-1].is_rewound:
            turns.append(self._turn("Then leave it as it is.", [], "Agreed. Nothing was changed."))
        if story.get("running"):
            turns[-1] = replace(turns[-1], answer=None, answered=turns[-1].steps[-1].begun)
        return turns

    def _turn(
        self,
        prompt: str,
        work: Sequence[Work],
        answer: str,
        *,
        picture: bytes | None = None,
        is_rewound: bool = False,
        summary: str | None = None,
    ) -> Turn:
        asked = self._clock
        steps = []
        for each in work:
            begun = self._later(3, 25)
            done = self._later(1, 90 if isinstance(each, SubagentTask) else 12)
            steps.append(Step(each, begun, done, self._remark(each)))
        answered = self._later(3, 30)
        self._later(45, 900)
        if self._has_pauses and self._random.random() < PAUSE_CHANCE:
            self._later(*PAUSE_SECONDS)
        return Turn(prompt, asked, tuple(steps), answer, answered, picture, is_rewound, summary)

    def _later(self, least_seconds: int, most_seconds: int) -> datetime:
        self._clock += timedelta(milliseconds=self._random.randrange(least_seconds * 1000, most_seconds * 1000))
        return self._clock

    def _remark(self, work: Work) -> str:
        is_failure = isinstance(work, Command) and work.is_failure
        remarks = self._stories["remarks"].get("Failure" if is_failure else type(work).__name__)
        if remarks is None or self._random.random() < 0.5:
            return ""
        return str(self._random.choice(remarks)).format_map(work._asdict())

    def _story_work(self) -> Iterator[Work]:
        story = self._story
        plan: list[str] = story.get("plan", [])
        if "thought" in story:
            yield Thought(story["thought"])
        if plan:
            yield _plan(plan, done=0)
        if "subagent" in story:
            yield SubagentTask(*story["subagent"])
        if "first_command" in story:
            yield Command(*story["first_command"])
        if "grep" in story:
            yield Grep(*story["grep"])
        if "read" in story:
            yield Read(story["read"], self._contents[story["read"]])
        if "failing_command" in story:
            yield Command(*story["failing_command"])._replace(is_failure=True)
        if "edit" in story:
            path, old, new = story["edit"]
            yield self._change(path, self._contents[path].replace(old, new), old, new)
        if "failing_after_edit" in story:
            yield Command(*story["failing_after_edit"])._replace(is_failure=True)
        if plan and len(plan) > 2:
            yield _plan(plan, done=len(plan) // 2)
        if "write" in story:
            yield self._change(*story["write"])
        if "last_command" in story:
            yield Command(*story["last_command"])
        if plan and not story.get("running"):
            yield _plan(plan, done=len(plan))

    def _follow_up_work(self, follow_up: dict[str, Any], values: dict[str, str]) -> Iterator[Work]:
        if "thought" in follow_up:
            yield Thought(follow_up["thought"])
        if "run" in follow_up:
            command, output = (text.format_map(values) for text in follow_up["run"])
            yield Command(command, output, follow_up.get("is_failure", False))
        if follow_up.get("changelog"):
            before = self._contents.get(CHANGELOG, "# Changelog\n\n")
            yield self._change(CHANGELOG, f"{before}- {self._story['title']}.\n")

    def _change(self, path: str, after: str, old: str | None = None, new: str = "") -> Change:
        change = Change(path, self._contents.get(path), after, old, new)
        self._contents[path] = after
        self._changes.append(change)
        return change

    def _values(self) -> dict[str, str]:
        """The values of the placeholders in follow-ups."""
        project = self._project
        return {
            "project": project["name"],
            "test": project["test"],
            "passed": project["passed"],
            "title": self._story["title"],
            "file": self._changes[0].path if self._changes else "",
            "diff": "".join(
                f"diff --git a/{change.path} b/{change.path}\n{unified_diff(change)}" for change in self._changes
            ),
        }

    def _summary(self, turns: Sequence[Turn]) -> str:
        asked = "; ".join(turn.prompt.removeprefix("[Image #1] ") for turn in turns)
        return (
            "This session is being continued from a previous conversation that ran out of context. "
            f"The user asked: {asked} Outcome so far: {self._story['answer']} Nothing is pending."
        )


def _plan(items: Sequence[str], done: int) -> Plan:
    statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
    return Plan(tuple(zip(items, statuses, strict=False)))


def unified_diff(change: Change, context_lines: int = 3) -> str:
    """The change as a unified diff with its two file lines."""
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    old_name = "/dev/null" if change.before is None else f"a/{change.path}"
    return "".join(difflib.unified_diff(before, after, old_name, f"b/{change.path}", n=context_lines))
