"""How well masking finds labelled values: in texts, and in the lines of a transcript masked as one session."""

from __future__ import annotations

import gc
import importlib.util
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from clew.redact import scan, scan_all
from clew.redact.masks import MARKER, Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.labelled import Record

SECRETS_GENERATOR = "tools/make_secrets.py"
"""Below the folder of shared reference material."""
_MARKER = re.compile(MARKER.pattern)
_MIN_COVERED_SHARE = 0.95
Spans = list[list[tuple[int, int]]]


class Masked(NamedTuple):
    """What masking did to the lines of one session."""

    spans: Spans
    """Of the text in each line, what was masked."""
    broken: int
    """Lines that are no JSON any more, or have other keys, ids or order."""
    touched: int
    """Lines that hold no marker, and yet are not the bytes they were."""
    seconds: float
    size: int


def mask_lines(lines: Sequence[dict[str, Any]], profile: str = "pii") -> Masked:
    """Mask lines as one session."""
    raw = [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines]
    content = b"".join(raw)
    redactor = Redactor(MaskSettings(profile, Marker(b"benchmark")))
    begin = time.process_time()
    whole = b"".join(mask_file(partial(BytesIO, content), redactor))
    seconds = time.process_time() - begin
    masked = list(BytesIO(whole))
    broken = touched = 0
    spans: Spans = []
    for line, old, new in zip(lines, raw, masked, strict=True):
        found = _parsed(new)
        broken += _outline(found) != _outline(line)
        touched += new != old and not MARKER.search(new.decode())
        spans.append(list(_between(_text(line), _text(found))) if found else [])
    return Masked(spans, broken, touched, seconds, len(content))


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(line: dict[str, Any]) -> str:
    content = line["message"]["content"]
    return str(content if isinstance(content, str) else content[0]["content"])


def _outline(value: Any, key: str = "") -> Any:
    """Keys in their order, and every value but the one text."""
    if isinstance(value, dict):
        return [(name, _outline(value[name], name)) for name in value]
    if isinstance(value, list):
        return [_outline(item) for item in value]
    return None if key == "content" else value


def _between(old: str, new: str) -> Iterator[tuple[int, int]]:
    """What markers stand for: all between the pieces that stayed."""
    pieces, place = _MARKER.split(new), 0
    if len(pieces) < 2:
        return
    place = len(pieces[0])
    for piece in pieces[1:-1]:
        stop = old.find(piece, place)
        stop = place if stop < 0 else stop
        yield place, stop
        place = stop + len(piece)
    yield place, len(old) - len(pieces[-1])


class Score(NamedTuple):
    """Of one tool on one set."""

    kinds: dict[tuple[str, str], tuple[int, int]]
    right: int
    reported: int
    seconds: float
    characters: int

    def recall(self, label: str) -> float:
        """The share of the planted values of a label that were found."""
        rows = [row for (each, _), row in self.kinds.items() if each == label]
        return 100 * sum(found for found, _ in rows) / max(1, sum(planted for _, planted in rows))

    def precision(self) -> float:
        """The share of what was reported that touches a planted value."""
        return 100 * self.right / max(1, self.reported)

    def line(self, name: str) -> str:
        """The row of a tool."""
        speed = self.characters / 1e6 / self.seconds if self.seconds else 0
        return (
            f"  {name:16} secrets {self.recall('secret'):6.2f} %  pii {self.recall('pii'):6.2f} %"
            f"  precision {self.precision():6.2f} %  {speed:7.2f} MB/s"
        )


def score(records: Sequence[Record], spans: Spans, seconds: float) -> Score:
    """How the spans that a tool reports cover those that were planted."""
    kinds: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    right = reported = 0
    for record, found in zip(records, spans, strict=True):
        regions = _merged(found)
        for span in record["spans"]:
            row = kinds[span["class"], span["kind"]]
            row[1] += 1
            row[0] += _covered(span, regions) >= _MIN_COVERED_SHARE * (span["end"] - span["start"])
        reported += len(regions)
        right += sum(any(start < s["end"] and end > s["start"] for s in record["spans"]) for start, end in regions)
    rows = {kind: (found, planted) for kind, (found, planted) in kinds.items()}
    return Score(rows, right, reported, seconds, sum(len(record["text"]) for record in records))


def _covered(span: dict[str, Any], regions: list[tuple[int, int]]) -> int:
    return sum(max(0, min(span["end"], end) - max(span["start"], start)) for start, end in regions)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for start, end in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def ours(records: Sequence[Record]) -> Score:
    """The score of clew, with the profile `pii`, which includes secrets."""
    texts = [record["text"] for record in records]
    scan_all(texts[:200], "pii")
    gc.collect()
    begin = time.process_time()
    found = [scan(text, "pii") for text in texts]
    seconds = time.process_time() - begin
    return score(records, [[(each.start, each.end) for each in findings] for findings in found], seconds)


def load_generator(path: Path) -> ModuleType:
    """The shared generator, from its file."""
    spec = importlib.util.spec_from_file_location("make_secrets", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
