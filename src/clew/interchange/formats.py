"""The formats that `clew export` writes. Those of other tools are modules of this package, loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from clew.agents.base import Agent
    from clew.agents.source import SourceFile
    from clew.convert.losses import Loss
    from clew.interchange.thread import FindSubagentSource


class Format(NamedTuple):
    """How sessions are written in one format."""

    suffix: str
    other_names: tuple[str, ...] = ()
    """Accepted by --format; as suffixes they mean the format too."""
    is_masked: bool = False
    """Secrets are masked unless --redact none is given: the format is for people, or leaves the machine."""
    is_text: bool = False
    """For people, with --detail."""
    is_one_per_line: bool = False
    """A file may hold many sessions, each on a line."""
    is_dataset: bool = False
    """Sessions go to a folder of a certain layout."""
    lists_losses: bool = False
    """A file says what the format cannot hold of its session."""
    module: str = ""
    """The module of this package that writes it; empty for clew's own formats."""


FORMATS = {
    "json": Format(".json"),
    "ndjson": Format(".ndjson", ("jsonl",), is_one_per_line=True),
    "markdown": Format(".md", ("md",), is_masked=True, is_text=True),
    "html": Format(".html", ("htm",), is_masked=True, is_text=True),
    "atif": Format(".atif.json", is_masked=True, lists_losses=True, module="atif"),
    "hf": Format("", is_masked=True, is_dataset=True, module="hugging_face"),
    "otel": Format(".otlp.jsonl", is_masked=True, is_one_per_line=True, module="otel"),
}


def write_session(
    form: Format, agent: Agent, source: SourceFile, find: FindSubagentSource, out: IO[bytes], options: dict[str, Any]
) -> list[Loss]:
    """Write a session and its sub-agents in a format of another tool; returns what the format cannot hold.

    `find` gives the sessions of sub-agents, `options` are those of `write` in the module of the format.
    """
    from clew.interchange.thread import Thread

    write = import_module(f"clew.interchange.{form.module}").write
    losses: list[Loss] = write(Thread(agent, source, find), out, **options)
    return losses


def format_of_name(name: str) -> str | None:
    """The format that the name of a file says by its suffix, in small letters and without that of a compression."""
    suffixes = [(format.suffix, key) for key, format in FORMATS.items() if format.suffix]
    suffixes += [(f".{other}", key) for key, format in FORMATS.items() for other in format.other_names]
    found = [(suffix, key) for suffix, key in suffixes if name.endswith(suffix)]
    return max(found, key=lambda each: len(each[0]))[1] if found else None
