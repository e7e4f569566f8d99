"""Any sequence of appends, rewrites, renames, deletions, copies and syncs, killed ones too, ends as one first sync."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.catalog.sync_level import SyncLevel
from tests.catalog.worlds import (
    SESSION_VIEWS,
    append,
    claude_lines,
    claude_path,
    dump,
    indexed,
    kill_at,
    run,
    searchable,
    spelled,
)

_NAMES = [f"{letter * 8}-7777-4777-8777-777777777777" for letter in "abc"]
_name = st.sampled_from(_NAMES)
_few = st.integers(1, 7)
_level = st.sampled_from(SyncLevel)

_steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), _name, _few),
        st.tuples(st.just("tear"), _name, _few),
        st.tuples(st.just("rewrite"), _name, _few, st.integers(0, 2)),
        st.tuples(st.just("patch"), _name),
        st.tuples(st.just("rename"), _name, _name),
        st.tuples(st.just("delete"), _name),
        st.tuples(st.just("fork"), _name, _name),
        st.tuples(st.just("title"), _name, st.sampled_from(["Warp", "Weft"])),
        st.tuples(st.just("gemini"), _few),
        st.tuples(st.just("codex"), _few),
        st.tuples(st.just("sync"), _level),
        st.tuples(st.just("kill"), st.integers(0, 8), _level),
    ),
    min_size=1,
    max_size=10,
)


class _World:
    """A home and its catalog."""

    def __init__(self, top: Path) -> None:
        self.home, self.folder = top / "home", top / "catalog"
        self.home.mkdir()
        self._count: dict[Path, int] = {}

    def do(self, kind: str, *given: Any) -> None:
        getattr(self, kind)(*given)

    def append(self, name: str, count: int) -> None:
        path = self._path(name)
        first = self._count.get(path, 0)
        append(path, spelled(claude_lines(name, first, count)))
        self._count[path] = first + count

    def tear(self, name: str, count: int) -> None:
        append(self._path(name), spelled(claude_lines(name, 90, 1))[: 9 * count])

    def rewrite(self, name: str, count: int, seed: int) -> None:
        path = self._path(name)
        path.write_bytes(spelled(claude_lines(name, 0, count, seed)))
        self._count[path] = count

    def patch(self, name: str) -> None:
        path = self._path(name)
        path.write_bytes(path.read_bytes().replace(b"weave", b"waive") if path.exists() else b"")

    def rename(self, name: str, other: str) -> None:
        if name != other and self._path(name).exists():
            self._path(name).replace(self._path(other))

    def delete(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def fork(self, name: str, other: str) -> None:
        if name != other and self._path(name).exists():
            old, new = (f'"sessionId":"{session}"'.encode() for session in (name, other))
            self._path(other).write_bytes(self._path(name).read_bytes().replace(old, new))

    def title(self, name: str, title: str) -> None:
        append(self._path(name), spelled([{"type": "custom-title", "customTitle": title, "sessionId": name}]))

    def gemini(self, count: int) -> None:
        path = self.home / ".gemini" / "tmp" / "loom" / "chats" / "session-2026-10-01T10-00-aaaaaaaa.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_gemini(count)))

    def codex(self, count: int) -> None:
        thread = "019a0000-8888-7888-8888-888888888888"
        path = self.home / ".codex/sessions/2026/10/01" / f"rollout-2026-10-01T10-00-00-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        append(path, spelled(_codex(thread, path.stat().st_size if path.exists() else 0, count)))

    def sync(self, level: SyncLevel) -> None:
        run(self.home, self.folder, level=level)

    def kill(self, step: int, level: SyncLevel) -> None:
        kill_at(step, lambda: run(self.home, self.folder, level=level))

    def _path(self, name: str) -> Path:
        path = claude_path(self.home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _gemini(count: int) -> dict[str, Any]:
    messages = [
        {"id": f"g{n}", "timestamp": f"2026-10-01T10:{n:02}:00.000Z", "type": "user", "content": f"spin {n}"}
        for n in range(count)
    ]
    head = {"sessionId": "aaaaaaaa-9999-4999-8999-999999999999", "projectHash": "0" * 64}
    times = {"startTime": "2026-10-01T10:00:00.000Z", "lastUpdated": "2026-10-01T10:30:00.000Z"}
    return {**head, **times, "messages": messages}


def _codex(thread: str, size: int, count: int) -> list[dict[str, Any]]:
    stamp = f"2026-10-01T10:00:{size % 60:02}.000Z"
    about = {"id": thread, "timestamp": stamp, "cwd": "/home/mira"}
    head = {"timestamp": stamp, "type": "session_meta", "payload": about}
    texts = [[{"type": "input_text", "text": f"dye {size} {n}"}] for n in range(count)]
    items = [{"type": "message", "role": "user", "content": text} for text in texts]
    said = [{"timestamp": stamp, "type": "response_item", "payload": item} for item in items]
    return said if size else [head, *said]


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(_steps)
def test_any_sequence_ends_as_one_first_sync(steps: list[tuple[Any, ...]]) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        world = _World(top)
        for kind, *given_ in steps:
            world.do(kind, *given_)
        run(world.home, top / "fresh")
        world.sync(SyncLevel.SESSIONS)
        found, expected = dump(world.folder), dump(top / "fresh")
        assert {view: found[view] for view in SESSION_VIEWS} == {view: expected[view] for view in SESSION_VIEWS}
        world.sync(SyncLevel.TEXT)
        assert dump(world.folder) == dump(top / "fresh")
        assert indexed(world.folder) == searchable(world.folder)
        assert run(world.home, world.folder).work == (0, 0, 0, 0)
    finally:
        shutil.rmtree(top)
