"""Measures recall, precision and speed of redaction on texts with planted secrets, beside other tools.

python -m benchmarks redaction                       with our own generator, and the shared one where it exists
python -m benchmarks.redaction --seeds 1-20 --peer-seeds 1-1 --peers PYTHON --kinds
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

from benchmarks.measure import Options
from clew.redact import Marker, scan, scan_all
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact import labelled
from tests.redact.labelled import Record
from tests.redact.scoring import SECRETS_GENERATOR, Score, Spans, load_generator, mask_lines, ours, score

_SHARED = Path(__file__).resolve().parents[2] / "shared"
GENERATOR = _SHARED / SECRETS_GENERATOR
CORPUS = _SHARED / "corpus"
_TRANSCRIPTS = {".jsonl", ".json", ".md"}
_PEERS = Path(__file__).with_name("redaction_peers.py")


def peers(records: Sequence[Record], python: Path | str) -> Iterator[tuple[str, Score | str]]:
    """The scores of the tools of an environment, or a message for a tool that is missing."""
    lines = "".join(json.dumps(record["text"]) + "\n" for record in records)
    # -P: the modules beside the script must not take the place of the standard library's.
    done = subprocess.run([str(python), "-P", str(_PEERS)], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        yield "peers", f"failed: {done.stderr.strip().splitlines()[-1:] or ['no message']}"
        return
    for name, result in json.loads(done.stdout).items():
        if "missing" in result:
            yield name, f"not installed ({result['missing']})"
        else:
            yield name, score(records, [[(a, b) for a, b in spans] for spans in result["spans"]], result["cpu"])


def sets(seeds: range, generator: Path) -> Iterator[tuple[str, list[Record]]]:
    """The sets of labelled texts, each with its name."""
    own = [row for seed in seeds for row in labelled.records(seed, 18)]
    yield f"our own, seeds {seeds.start}-{seeds.stop - 1}", own
    if generator.is_file():
        module = load_generator(generator)
        yield (
            f"{generator.name}, seeds {seeds.start}-{seeds.stop - 1}",
            [row for seed in seeds for row in module.generate(seed)],
        )


def transcript_lines(seeds: range, generator: Path) -> Iterator[str]:
    """Measure the shared set inside of Claude Code records; the records of a seed are masked as one session."""
    module = load_generator(generator)
    total: list[Record] = []
    spans: Spans = []
    broken = touched = size = 0
    seconds = 0.0
    for seed in seeds:
        records = list(module.generate(seed))
        done = mask_lines([module.wrap_claude(record, seed)["line"] for record in records])
        total, spans = total + records, spans + done.spans
        broken, touched = broken + done.broken, touched + done.touched
        size, seconds = size + done.size, seconds + done.seconds
    yield f"  {generator.name}, seeds {seeds.start}-{seeds.stop - 1}, in lines of Claude Code: {len(total)} lines"
    result = score(total, spans, seconds)
    yield result.line("clew") + f" ({size / 1e6 / seconds:.2f} of lines)"
    yield f"  {broken} lines with other keys, ids or order; {touched} changed without a finding"
    yield from (f"  under 100 %: {kind} {row[0]} of {row[1]}" for kind, row in result.kinds.items() if row[0] < row[1])


def transcripts(folder: Path) -> Iterator[str]:
    """Measure the speed of masking recorded transcripts, file by file."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in _TRANSCRIPTS and path.is_file()]
    for profile in ("secrets", "all"):
        size, seconds = 0, 0.0
        for number, content in enumerate([b"{}", *[path.read_bytes() for path in files]]):
            redactor = Redactor(MaskSettings(profile, Marker(b"benchmark")))
            begin = time.process_time()
            for _ in mask_file(partial(BytesIO, content), redactor):
                pass
            if number:
                size, seconds = size + len(content), seconds + time.process_time() - begin
        yield f"  {len(files)} transcripts, {size / 1e6:.1f} MB, {profile:8} {size / 1e6 / seconds:7.1f} MB/s"


def speeds() -> Iterator[str]:
    """Measure the speed on text without secrets: the source of clew as one text, and as many short texts."""
    root = Path(__file__).resolve().parents[1] / "src"
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py")))
    code = code * (20_000_000 // len(code) + 1)
    shorts = [code[place : place + 95] for place in range(0, len(code), 95)]
    for name, work in (
        ("floor, one str.find", lambda: code.find("\0")),
        ("one text of code", lambda: scan(code)),
        ("short texts, scan_all", lambda: scan_all(shorts)),
        ("one text, profile all", lambda: scan(code, "all")),
    ):
        begin = time.process_time()
        work()
        yield f"  {name:24} {len(code) / 1e6 / (time.process_time() - begin):7.1f} MB/s"


def lines(
    seeds: range,
    generator: Path,
    python: Path | str,
    every_kind: bool,
    peer_seeds: range | None = None,
) -> Iterator[str]:
    """The lines of the report. `peer_seeds` are for the other tools, which are slow."""
    yield "redaction: share of planted values found, share of findings that are right, characters per processor second"
    yield from speeds()
    if CORPUS.is_dir():
        yield from transcripts(CORPUS)
    if generator.is_file():
        yield from transcript_lines(seeds, generator)
    for name, records in sets(seeds, generator):
        yield f"  {name}: {len(records)} texts"
        mine = ours(records)
        yield mine.line("clew")
        if every_kind:
            yield from _by_kind([("clew", mine)])
    for name, records in sets(peer_seeds or seeds, generator):
        yield f"  beside others, {name}: {len(records)} texts"
        scores = [("clew", ours(records)), *peers(records, python)]
        yield from (each.line(tool) if isinstance(each, Score) else f"  {tool:16} {each}" for tool, each in scores)


def _by_kind(scores: list[tuple[str, Score]]) -> Iterator[str]:
    yield "    " + "".join(f"{name:>16}" for name, _ in scores) + "  kind"
    for label, kind in sorted(scores[0][1].kinds):
        cells = (each.kinds[label, kind] for _, each in scores)
        yield "    " + "".join(f"{100 * found / planted:14.1f} %" for found, planted in cells) + f"  {kind}"


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    return lines(range(1, options.rounds + 1), GENERATOR, options.peers or sys.executable, every_kind=False)


def main() -> None:
    """Run this benchmark alone, with further options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-20", help="from-to")
    parser.add_argument("--generator", type=Path, default=GENERATOR, help="a file with generate(seed)")
    parser.add_argument(
        "--peers", type=Path, default=Path(sys.executable), help="interpreter of an environment with the other tools"
    )
    parser.add_argument("--peer-seeds", help="from-to; default: the same as --seeds")
    parser.add_argument("--kinds", action="store_true", help="print the recall of every kind of secret")
    chosen = parser.parse_args()
    fewer = _range(chosen.peer_seeds) if chosen.peer_seeds else None
    for line in lines(_range(chosen.seeds), chosen.generator, chosen.peers, chosen.kinds, fewer):
        print(line, flush=True)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    main()
