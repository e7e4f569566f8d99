"""Problems that only the rules of ATIF know of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.harbor.records import SOURCES, STEPS, Step, Trajectory
from clew.io.json_document import read_document_stream
from clew.model import Problem
from clew.model.codes import problem


def check(source: SourceFile) -> Iterator[Problem]:
    """Find members of the wrong type, steps of unknown sources, and steps that are not numbered 1, 2, 3 and so on."""
    file, number = str(source.path), 0
    with open_main(source) as stream:
        for record in read_document_stream(stream, STEPS):
            if record.value is None:
                continue
            place: dict[str, Any] = {"line": record.line, "start": record.start, "end": record.stop}
            try:
                part = msgspec.convert(record.value, Trajectory if record.is_header else Step)
            except msgspec.ValidationError as error:
                what, _, path = str(error).partition(" - at `")
                where = path.rstrip("`") or "$"
                name = "the trajectory" if record.is_header else f"step {number + 1}"
                yield problem("wrong-type", f"{name}, {where}: {what}", file=file, path=where, **place)
                part = None
            if record.is_header:
                continue
            number += 1
            step_id, step_source = record.value.get("step_id"), record.value.get("source")
            if part is not None and step_id != number:
                yield problem("bad-ordinal", f"step {number} has the step_id {step_id}", file=file, **place)
            if step_source not in SOURCES:
                yield problem("bad-role", f"the source of step {number} is {step_source!r}", file=file, **place)
