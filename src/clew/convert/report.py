"""A report about a conversion that holds no content: counts, hashes and versions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from clew.agents.base import Agent, SourceFile
from clew.convert.losses import Converted, serious
from clew.convert.origin import describe
from clew.model.json import JSON

REPORT_VERSION = 1


def conversion_report(
    agent: Agent,
    source: SourceFile,
    target: Agent,
    converted: Converted,
    *,
    clew_version: str,
    client_version: str | None,
) -> dict[str, JSON]:
    """The report; `client_version` is that of the target's installed program."""
    written = target.locate(Path(converted.files[0]))
    lost = len(serious(converted.losses))
    return {
        "report_version": REPORT_VERSION,
        "clew_version": clew_version,
        "source": {
            "agent": agent.id,
            "client_version": agent.facts(source).version or None,
            "counts": count_content(agent, source),
            "files": [
                {"name": Path(file.name).name or source.path.name, "bytes": file.size, "sha256": file.sha256}
                for file in describe(source)
            ],
        },
        "target": {
            "agent": target.id,
            "client_version": client_version,
            "newest_tested_version": target.newest_tested_version or None,
            "counts": count_content(target, written),
            "files": _hashed(map(Path, converted.files)),
        },
        "losses": lost,
        "notes": len(converted.losses) - lost,
    }


def count_content(agent: Agent, source: SourceFile) -> dict[str, int]:
    """How many messages of each role, texts, calls, results, images and so on a session holds."""
    counts: Counter[str] = Counter()
    for unit in agent.units(source):
        if not unit.is_message:
            continue
        counts[f"{unit.value['role']}_messages"] += 1
        for block in unit.value["content"]:
            counts[block["type"]] += 1
            output = block.get("output")
            for inner in output if isinstance(output, list) else ():
                if isinstance(inner, dict) and inner.get("type") in ("image", "document"):
                    counts[f"{inner['type']}_in_result"] += 1
            counts["failed_tool_result"] += bool(block.get("is_error"))
    return {name: count for name, count in sorted(counts.items()) if count}


def _hashed(files: Iterable[Path]) -> list[dict[str, JSON]]:
    return [{"name": path.name, "bytes": path.stat().st_size, "sha256": _sha256(path)} for path in files]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
