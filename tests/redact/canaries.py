"""Homes of every agent with a canary in every member of their sessions, and the search for canaries in outputs.

A canary is a token that the redactor knows by its own form. Each member has one of its own, so that a leak names the
member it came from. Tokens are made at run time: no file of the project holds one.

There are two homes of each agent. In the `valid` one every record stays what the agent could have written: canaries
stand in texts, titles, paths, file names, file contents, branches and models. In the `odd` one the sessions go on with
copies of their records that are spoiled: canaries stand in types, roles, times, tool names, unknown members and their
names, and in the place of numbers. Ids and hashes are left alone in both.
"""

from __future__ import annotations

import base64
import copy
import gzip
import html
import json
import random
import re
import sqlite3
import string
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import zstandard

VARIANTS = ("valid", "odd")
_FIXTURES = Path(__file__).parents[1] / "fixtures"
_DEMO = Path(str(files("clew.demo"))) / "home"
_BASES: dict[str, tuple[tuple[Path, str], ...]] = {
    "claude-code": ((_DEMO / "claude", ".claude"),),
    "codex": ((_DEMO / "codex", ".codex"), (_FIXTURES / "codex", ".codex")),
    "gemini": ((_DEMO / "gemini", ".gemini"), (_FIXTURES / "gemini", ".gemini")),
    "qwen-code": ((_FIXTURES / "qwen-code", ".qwen"),),
    "sage-agent": ((_DEMO / "sage", ".sage"),),
    "sage-emacs": ((_DEMO / "emacs.d", ".emacs.d"), (_FIXTURES / "sage-emacs/emacs.d", ".emacs.d")),
}
"""Where the sessions of each agent are taken from, and the folder below the home that they go to."""
AGENTS = tuple(_BASES)
_UNREAD = frozenset({"history.jsonl", "config.json"})
"""Files that hold nothing that clew gives out."""

_PROJECTS = ("tidepool", "tidebell", "moon-phase", "tide.tables", "tide-tables", "harbour-bell", "bell")
_PROJECT = re.compile(rf"/home/ada/src/({'|'.join(map(re.escape, _PROJECTS))})(?![\w.-])")
_ENCODED_PROJECT = re.compile(r"-home-ada-src-(?:tidepool|tidebell|moon-phase|tide[.-]tables)(?![a-z])")
"""A project as the name of the folder that its sessions are filed under."""
_FILE_NAME = re.compile(r"(?<![\w-])([a-z]\w*)\.(py|org|toml|wav|log|pdf)(?![a-z])")
_LINE_OF_CODE = re.compile(r"\b(return|PERIOD =|HORN =|offset =)(?= )")
"""What stands in the content of files that sessions tell of."""

_BRANCH_KEYS = frozenset({"gitBranch", "branch"})
_TEXT_STAYS = frozenset(
    """type role subtype status state level kind operation name toolName tool_name version cli_version stop_reason
    media_type mimeType source originator effort model_provider record_type move_path cwd workdir project
    workingDirectory project_dir workspace working_directory realParentDir file_path filePath path dir_path
    trackingPath backupPath notebook_path""".split()
)
"""Members that mean something to a reader only as they are, or that the names within them are planted in."""
_CONTENT_KEYS = frozenset(
    """old_string new_string oldString newString originalFile lines originalContent unified_diff input patch
    fileDiff newContent""".split()
)
"""Contents of files: they hold a canary in their lines, and must go on fitting each other."""
_ID_KEY = re.compile(r"(?:^|[_a-z])(?:[Ii][Dd]s?|ID|[Uu]uid|UUID|[Hh]ash|Uuids)$")
_ID_KEYS = frozenset({"$rewindTo", "backupFileName", "blocks", "blockedBy"})
_IS_ID = re.compile(r"[\w@:-]{1,80}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")

_RESULT = re.compile(r"(?i)tool_?result|output|resultDisplay|\.result")
_LINES = "\n" + "one of many lines that a tool gave back\n" * 5200
"""One result of each home is too long for a page; it has its canary before and behind these."""

JSON = Any
Place = tuple[Any, ...]
"""The way to a member: keys and indexes; `_NESTED` leads into JSON that is the text of a member."""
_NESTED = ("nested JSON",)


class Canary(NamedTuple):
    """A token, and the member that it was planted in."""

    member: str
    token: str

    @property
    def tail(self) -> str:
        """The random part, which no other text holds."""
        runs: list[str] = re.findall(r"[A-Za-z0-9]+", self.token)
        return max(runs, key=len)


class Tokens:
    """Makes tokens of many services from a seed."""

    _ALL = string.ascii_letters + string.digits

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._made = 0

    def _chars(self, count: int, alphabet: str = _ALL) -> str:
        while True:
            text = "".join(self._random.choices(alphabet, k=count))
            # A token of letters alone could be a word.
            if len(set(text)) > 6 and any(char in string.digits for char in text):
                return text

    def text(self) -> str:
        """A token for a text."""
        forms = (
            lambda: "gh" + "p_" + self._chars(36),
            lambda: "xo" + "xb-" + self._digits(12) + "-" + self._digits(12) + "-" + self._chars(24),
            lambda: "np" + "m_" + self._chars(36),
            lambda: "sk-" + "proj-" + self._chars(48),
        )
        return self._next((*forms, *self._plain_forms()))

    def name(self) -> str:
        """A token that the name of a file or folder may hold, and that stays one when a path is encoded."""
        return self._next(self._plain_forms())

    def encoded(self) -> str:
        """A token that is spelled otherwise in the name of a folder that agents make of a path."""
        return "gh" + "o_" + self._chars(36)

    def _plain_forms(self) -> tuple[Callable[[], str], ...]:
        return (
            lambda: "sk-" + "ant-api03-" + self._chars(93) + "AA",
            lambda: "AK" + "IA" + self._chars(16, string.ascii_uppercase + "234567"),
            lambda: "AI" + "za" + self._chars(35),
            lambda: "gl" + "pat-" + self._chars(20),
        )

    def _digits(self, count: int) -> str:
        return self._chars(count, string.digits)

    def _next(self, forms: tuple[Callable[[], str], ...]) -> str:
        self._made += 1
        return forms[self._made % len(forms)]()


class Planted(NamedTuple):
    """A home with canaries in it."""

    agent: str
    variant: str
    home: Path
    canaries: list[Canary]


def write_home(agent: str, variant: str, home: Path) -> Planted:
    """Write a home of one agent with canaries below a new folder."""
    return _Planter(agent, variant, home).write()


class _Planter:
    def __init__(self, agent: str, variant: str, home: Path) -> None:
        self._agent, self._variant, self._home = agent, variant, home
        self._tokens = Tokens(f"{agent} {variant}")
        self._canaries: dict[str, Canary] = {}
        self._hashes: dict[str, str] = {}
        self._has_long = False

    def _canary(self, member: str, *, is_name: bool = False) -> str:
        """The token of a member; always the same."""
        if member not in self._canaries:
            token = self._tokens.name() if is_name else self._tokens.text()
            self._canaries[member] = Canary(member, token)
        return self._canaries[member].token

    def write(self) -> Planted:
        found = {
            str(PurePosixPath(folder) / path.relative_to(base).as_posix()): path.read_bytes()
            for base, folder in _BASES[self._agent]
            for path in sorted(base.rglob("*"))
            if path.is_file() and path.name not in _UNREAD
        }
        self._learn_hashes(found)
        for name, content in found.items():
            path = self._home / self._renamed_path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._planted(name, content))
        self._add_files()
        return Planted(self._agent, self._variant, self._home, list(self._canaries.values()))

    # Names: the same canary wherever the same name stands

    def _renamed(self, text: str) -> str:
        """The text with canaries in the names of projects and files, and in lines of code."""
        text = _PROJECT.sub(lambda found: f"{found[0]}-{self._project(found[1])}", text)
        text = _FILE_NAME.sub(lambda found: f"{found[1]}-{self._file(found[1])}.{found[2]}", text)
        text = _LINE_OF_CODE.sub(lambda found: f"{found[1]} {self._canary('content of files')} or", text)
        return re.sub(r"[0-9a-f]{16,64}", lambda found: self._hashes.get(found[0], found[0]), text)

    def _renamed_value(self, value: JSON) -> JSON:
        """The same for every text and key of a value, and in the JSON that a text may be."""
        if isinstance(value, dict):
            return {self._renamed(key): self._renamed_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._renamed_value(item) for item in value]
        if not isinstance(value, str):
            return value
        inner = _nested(value)
        return self._renamed(value) if inner is None else _spelled(self._renamed_value(inner))

    def _project(self, name: str) -> str:
        member = f"path of the project {name.replace('.', '-')}"
        if self._variant == "odd" and member not in self._canaries:
            self._canaries[member] = Canary(member, self._tokens.encoded())
        return self._canary(member, is_name=True)

    def _file(self, name: str) -> str:
        return self._canary(f"file name {name}", is_name=True)

    def _renamed_path(self, name: str) -> str:
        """The name of a file in the home, with canaries in what the agent made from names."""
        name = "/".join(f".{part}" if part == "project_root" else part for part in name.split("/"))
        name = _ENCODED_PROJECT.sub(
            lambda found: f"{found[0]}-{self._project(found[0].removeprefix('-home-ada-src-'))}".replace("_", "-"), name
        )
        if self._agent == "gemini":
            name = name.replace("tmp/tidepool/", f"tmp/{self._short_name()}/")
            name = name.replace("checkpoint-", f"checkpoint-{self._canary('tag of a saved chat', is_name=True)}-")
        if "/sessions/" in name and self._agent == "sage-emacs":
            name = name.replace(".json", f"-{self._canary('file name of a saved session', is_name=True)}.json")
        if "/history/" in name:
            name = name.replace(".jsonl", f"-{self._canary('file name of an archive', is_name=True)}.jsonl")
        return self._renamed(name) if "backups/" in name else self._with_hashes(name)

    def _short_name(self) -> str:
        return f"tidepool-{self._canary('short name of a project', is_name=True)}"

    def _with_hashes(self, text: str) -> str:
        return re.sub(r"[0-9a-f]{16,64}", lambda found: self._hashes.get(found[0], found[0]), text)

    def _learn_hashes(self, found: dict[str, bytes]) -> None:
        """Agents name projects and contents by their hashes, which must go on fitting."""
        texts: list[str] = []
        for content in found.values():
            texts.append(content.decode())
            for record in _records(content.decode()):
                texts += [value for _, _, value in _leaves(record) if isinstance(value, str)]
        for text in [text for text in texts if not text.startswith("{")]:
            old, new = (sha256(each.encode()).hexdigest() for each in (text, self._renamed(text)))
            self._hashes |= {old: new, old[:16]: new[:16]}

    # Members

    def _planted(self, name: str, content: bytes) -> bytes:
        text, kind = content.decode(), _kind_of(name)
        if name.endswith("projects.json"):
            return self._renamed(text).replace('"tidepool"', json.dumps(self._short_name())).encode()
        if name.endswith(".jsonl"):
            return self._lines(kind, text).encode()
        if name.endswith(".json"):
            return self._document(kind, self._renamed_value(json.loads(text))).encode()
        return self._renamed(text).encode()

    def _lines(self, kind: str, text: str) -> str:
        records: list[JSON] = []
        for line in text.splitlines():
            try:
                records.append(self._renamed_value(json.loads(line)))
            except ValueError:
                records.append(f"{self._renamed(line)} {self._canary(f'{kind}: line that is no JSON')}")
        records = self._spoiled(kind, records) if self._variant == "odd" else self._filled(kind, records)
        return "".join(f"{each if isinstance(each, str) else _spelled(each)}\n" for each in records)

    def _document(self, kind: str, value: JSON) -> str:
        listed = next((key for key in ("messages", "items", "history") if key in value), None)
        if isinstance(value, list):
            value = self._spoiled(kind, value) if self._variant == "odd" else self._filled(kind, value)
        elif self._variant == "valid":
            [value] = self._filled(kind, [value])
        else:
            records = value.pop(listed) if listed else None
            value = self._all_spoiled(kind, value)
            if listed and records is not None:
                value[listed] = self._spoiled(f"{kind} {listed}", records)
        return json.dumps(value, indent=2, ensure_ascii=False)

    def _filled(self, kind: str, records: list[JSON]) -> list[JSON]:
        """Records with a canary behind every text, twice for each member: where it stands first and last."""
        places: dict[str, list[tuple[int, Place]]] = {}
        for number, record in enumerate(records):
            for place, label, value in _leaves(record) if isinstance(record, dict) else ():
                key = _key_of(place)
                if key in _BRANCH_KEYS or key == "model":
                    self._fill_name(records[number], place, key, value)
                elif isinstance(value, str) and _may_follow(place, key, value):
                    places.setdefault(label, []).append((number, place))
        for label, found in places.items():
            for number, place in dict.fromkeys((found[0], found[-1])):
                text = f" {self._canary(f'{kind}: {label}')}"
                if _RESULT.search(label) and not self._has_long:
                    self._has_long = True
                    text += _LINES + text
                _change(records[number], place, partial(_followed, text))
        return records

    def _fill_name(self, record: JSON, place: Place, key: str, value: JSON) -> None:
        if isinstance(value, str) and value:
            name = "model" if key == "model" else "branch"
            token = self._canary(f"{name} {value}", is_name=True)
            _change(record, place, lambda value: f"{value}-{token}")

    def _spoiled(self, kind: str, records: list[JSON]) -> list[JSON]:
        """The records, and behind them copies in which other members hold canaries."""
        copies: list[JSON] = []
        for record in [each for each in records if isinstance(each, dict)]:
            changes = [
                (place, value, self._canary(f"{kind}: {label}"))
                for place, label, value in _leaves(record)
                if not _is_opaque(place, value) and f"{kind}: {label}" not in self._canaries
            ]
            # What a reader goes by is spoiled alone: what stands beside it would not be read any more.
            alone = [each for each in changes if _key_of(each[0]) in _TEXT_STAYS]
            texts = [each for each in changes if each not in alone and isinstance(each[1], str)]
            others = [each for each in changes if each not in alone and not isinstance(each[1], str)]
            for group in (texts, others, *([each] for each in alone)):
                copies += [_with_tokens(record, group)] if group else []
            copies += self._with_members(kind, record)
        return _chained(records, copies)

    def _with_members(self, kind: str, record: JSON) -> list[JSON]:
        """A copy with unknown members in those objects that have none yet anywhere."""
        objects = [
            (place, f"{kind}: {label}")
            for place, label in _objects(record)
            if f"{kind}: {label}: unknown member" not in self._canaries
        ]
        new = copy.deepcopy(record)
        # Inner objects come first: outer ones are made anew.
        for place, member in reversed(objects):
            new = _change(new, place, self._with_member(member))
        return [new] if objects else []

    def _all_spoiled(self, kind: str, value: JSON) -> JSON:
        """A document that is one record: every member holds a canary."""
        for place, label, leaf in list(_leaves(value)):
            if not _is_opaque(place, leaf):
                token = self._canary(f"{kind}: {label}")
                _change(value, place, partial(_with_token, token))
        return self._with_member(kind)(value)

    def _with_member(self, member: str) -> Callable[[JSON], JSON]:
        name, text = self._canary(f"{member}: unknown member"), self._canary(f"{member}: text of an unknown member")
        return lambda value: {**value, f"extra {name}": [f"words {text}"]}

    # What lies beside the sessions

    def _add_files(self) -> None:
        for path, text in getattr(self, f"_add_{self._agent.replace('-', '_')}", lambda: ())():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _add_claude_code(self) -> Iterator[tuple[Path, str]]:
        session = next(self._home.glob(".claude/projects/*/d75994b4*.jsonl"))
        output = session.with_suffix("") / "tool-results" / "toolu_017QmZe92c3NQkgwwWFKtJju.txt"
        yield output, f"a long output {self._canary('long output in a file')}\n"

    def _add_codex(self) -> Iterator[tuple[Path, str]]:
        threads = (
            ("019f8a00-1c00-7e10-9000-0123456789ab", f"Named {self._canary('name in the database')}", None),
            ("019cd3f0-51aa-7b20-a3c4-1122334455aa", None, f"Titled {self._canary('title in the database')}"),
        )
        with closing(sqlite3.connect(self._home / ".codex" / "state_5.sqlite")) as database:
            database.execute("CREATE TABLE threads (id TEXT, name TEXT, title TEXT)")
            database.executemany("INSERT INTO threads VALUES (?, ?, ?)", threads)
            database.commit()
        yield from ()

    def _add_sage_agent(self) -> Iterator[tuple[Path, str]]:
        path = self._home / ".sage/sessions/65e3e58a-4436-41d2-b07c-28cc2b6f97b8/messages.jsonl"
        record = {
            "type": "branch",
            "uuid": "d28b3c00-74c7-4eaf-bacd-100000000014",
            "timestamp": "2026-10-26T11:03:00.000Z",
            "sessionId": "65e3e58a-4436-41d2-b07c-28cc2b6f97b8",
            "action": "name",
            "branchId": "47940444",
            "name": f"test-{self._canary('name of a branch in the store', is_name=True)}",
            "metadata": {},
        }
        yield path, f"{path.read_text()}{_spelled(record)}\n"


def _kind_of(name: str) -> str:
    """What a file is, in a word."""
    path = PurePosixPath(name)
    if path.suffix == ".jsonl" and ("subagents" in path.parts or path.name.startswith("agent-")):
        return "sub-agent"
    named = re.sub(r"[0-9a-f@v-]{8,}|\d{4}-\d\d-\d\dT[\d-]+", "", path.name).strip("-.")
    return named if named not in ("jsonl", "json") else "session"


def _records(text: str) -> Iterator[JSON]:
    """The JSON values that a file holds."""
    for part in (text, *text.splitlines()):
        try:
            yield json.loads(part)
        except ValueError:
            continue


def _spelled(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _word_for(value: JSON) -> str:
    """What tells objects of a list apart: their type, the tool they call, who speaks."""
    if not isinstance(value, dict):
        return ""
    words = [value[key] for key in ("type", "name", "role") if isinstance(value.get(key), str)]
    inner = value.get("payload")
    words += [inner["type"]] if isinstance(inner, dict) and isinstance(inner.get("type"), str) else []
    return " ".join(words)


def _leaves(value: JSON, place: Place = (), label: str = "") -> Iterator[tuple[Place, str, JSON]]:
    """Every member of a value that is no object and no list: the way to it, what it is called, and its value."""
    label = label or _word_for(value)
    if isinstance(value, dict):
        for key, item in value.items():
            # The keys of an object that has files by their paths are no names of members.
            name = key if re.fullmatch(r"[$\w-]{1,40}", key) else "*"
            yield from _leaves(item, (*place, key), f"{label}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, number), f"{label}[{_word_for(item)}]")
    elif isinstance(value, str) and (inner := _nested(value)) is not None:
        yield from _leaves(inner, (*place, _NESTED), f"{label}(JSON)")
    else:
        yield place, label, value


def _objects(value: JSON, place: Place = (), label: str = "") -> Iterator[tuple[Place, str]]:
    """Every object of a value."""
    label = label or _word_for(value)
    if isinstance(value, dict):
        yield place, label
        for key, item in value.items():
            name = key if re.fullmatch(r"[$\w-]{1,40}", key) else "*"
            yield from _objects(item, (*place, key), f"{label}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _objects(item, (*place, number), f"{label}[{_word_for(item)}]")
    elif isinstance(value, str) and (inner := _nested(value)) is not None:
        yield from _objects(inner, (*place, _NESTED), f"{label}(JSON)")


def _nested(text: str) -> JSON | None:
    """The object or list that a text is the JSON of."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _key_of(place: Place) -> str:
    """The last key on the way to a member."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _is_opaque(place: Place, value: JSON) -> bool:
    """True for ids and hashes."""
    key = _key_of(place)
    if not isinstance(value, str):
        return _ID_KEY.search(key) is not None
    if _UUID.fullmatch(value):
        return True
    return bool(value) and (_ID_KEY.search(key) is not None or key in _ID_KEYS) and _IS_ID.fullmatch(value) is not None


def _may_follow(place: Place, key: str, value: str) -> bool:
    """True where a word more makes a text no other kind of thing."""
    is_named = key in _TEXT_STAYS or key in _CONTENT_KEYS or _TIME.fullmatch(value) is not None
    is_written = key == "content" and len(place) > 1 and place[-2] in ("arguments", "args", "input", "file")
    return not (is_named or is_written or _is_opaque(place, value))


def _followed(text: str, value: JSON) -> str:
    return f"{value}{text}".lstrip()


def _with_token(token: str, value: JSON) -> str:
    return f"{value} {token}" if isinstance(value, str) and value else token


def _with_tokens(record: JSON, changes: list[tuple[Place, JSON, str]]) -> JSON:
    """A copy of a record with tokens in some members."""
    new = copy.deepcopy(record)
    for place, _, token in changes:
        new = _change(new, place, partial(_with_token, token))
    return new


def _change(record: JSON, place: Place, change: Callable[[JSON], JSON]) -> JSON:
    """Change a member of a record, in place where it has one; returns the record."""
    if not place:
        return change(record)
    head, *rest = place
    if head == _NESTED:
        return _spelled(_change(json.loads(record), tuple(rest), change))
    record[head] = _change(record[head], tuple(rest), change)
    return record


def _chained(records: list[JSON], copies: list[JSON]) -> list[JSON]:
    """Records and their copies, as one conversation: each copy has an id of its own, and follows what comes before."""
    last = [each for each in records if isinstance(each, dict) and each.get("type") == "last-prompt"]
    before = next((each["uuid"] for each in reversed(records) if isinstance(each, dict) and "uuid" in each), None)
    for number, record in enumerate(copies):
        for key in ("uuid", "id"):
            if isinstance(record.get(key), str) and _UUID.fullmatch(record[key]):
                record[key] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{record[key]} {number}"))
        if "parentUuid" in record and "uuid" in record:
            record["parentUuid"], before = before, record["uuid"]
    ending = [{**each, "leafUuid": before} for each in last[-1:]]
    return [*records, *copies, *ending]


WINDOW = 12
"""So many characters of a canary are a leak: what is cut off somewhere is still there."""
_RUN = re.compile(rf"[a-z0-9+/_-]{{{WINDOW},}}")
_HEX = re.compile(r"(?:28b52ffd|1f8b08)(?:[0-9a-f]{2}){16,}")
"""Packed bytes in hex, as SQL gives them."""
_ESCAPED = re.compile(r"\\+u00([0-9a-f]{2})")


class Finder:
    """Finds canaries in outputs: in any case, in parts, in JSON, URL and HTML escapes, in base64 and in hex."""

    def __init__(self, canaries: Iterable[Canary]) -> None:
        self._windows: dict[str, Canary] = {}
        self._clean: set[str] = set()
        for canary in canaries:
            for form in _forms(canary.tail):
                for at in range(len(form) - WINDOW + 1):
                    self._windows[form[at : at + WINDOW]] = canary

    def found(self, content: bytes) -> set[Canary]:
        """The canaries that an output holds."""
        found: set[Canary] = set()
        for text in _readings(content):
            for run in set(_RUN.findall(text)) - self._clean:
                windows = {run[at : at + WINDOW] for at in range(len(run) - WINDOW + 1)} & self._windows.keys()
                if not windows:
                    self._clean.add(run)
                found |= {self._windows[window] for window in windows}
        return found

    def found_below(self, folder: Path) -> dict[str, set[Canary]]:
        """The canaries in the files of a folder and in their names."""
        found: dict[str, set[Canary]] = {}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            held = self.found(name.encode())
            if path.is_file():
                held |= self.found(path.read_bytes())
            if held:
                found[name] = held
        return found


def _forms(text: str) -> Iterator[str]:
    """A text in small letters: as it is, in base64 wherever it stands in a longer text, and in hex."""
    yield text.lower()
    raw = text.encode()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        # The first and the last characters depend on what stands around the text.
        yield encoded[4:-4].lower()
        yield encoded[4:-4].lower().translate(str.maketrans("+/", "-_"))
    yield raw.hex()


def _readings(content: bytes) -> Iterator[str]:
    """An output as it is, and as it reads when escapes and packing are taken off."""
    content = _unpacked(content)
    text = content.decode("latin-1").lower()
    yield text
    for packed in _HEX.findall(text):
        yield _unpacked(bytes.fromhex(packed)).decode("latin-1").lower()
    if "%" in text:
        yield urllib.parse.unquote(text, "latin-1")
    if "\\u00" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)).lower(), text)
    if "&#" in text:
        yield html.unescape(text).lower()


def _unpacked(content: bytes) -> bytes:
    """What was packed by gzip or zstd; anything else as it is."""
    if content[:2] == b"\x1f\x8b":
        return gzip.decompress(content)
    if content[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content
