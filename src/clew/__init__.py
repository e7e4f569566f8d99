"""clew: read, search and record the sessions of AI coding agents.

Read sessions:

    import clew

    for session in clew.sessions(agent="claude", since="last year"):
        print(session.id, session.header.title, session.usage.output_tokens)

    session = clew.Library().get("@last")
    for message in session.messages:
        print(message.index, message.role, message.timestamp, message.text)

Record the sessions of an agent of your own, with the files that its tools change, and undo a change:

    from pathlib import Path

    with clew.Store(".").session() as session:
        session.user("Round the total to two digits")
        reply = session.assistant("I edit shop.py.")
        with session.watch(reply, ["shop.py"]):
            Path("shop.py").write_text("print(round(total, 2))")
        session.undo()
"""

from __future__ import annotations

from importlib import import_module

# Not that of `typing`, which takes longer to load than all else that `import clew` does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.annotations import Annotation, Annotations
    from clew.errors import ClewError
    from clew.export.verify import Proof, verify
    from clew.filters import Filters
    from clew.host import Host
    from clew.library import Library, StoredSession, sessions
    from clew.model import Document, Graph, Message, Metadata, Problem, Record, Session, TokenUsage
    from clew.model.load import dump_document, load_document
    from clew.store import Store

__version__ = "0.2.0"

_HOMES = {
    "Annotation": "clew.annotations",
    "Annotations": "clew.annotations",
    "ClewError": "clew.errors",
    "Document": "clew.model",
    "Filters": "clew.filters",
    "Graph": "clew.model",
    "Host": "clew.host",
    "Library": "clew.library",
    "Message": "clew.model",
    "Metadata": "clew.model",
    "Problem": "clew.model",
    "Proof": "clew.export.verify",
    "Record": "clew.model",
    "Session": "clew.model",
    "Store": "clew.store",
    "StoredSession": "clew.library",
    "TokenUsage": "clew.model",
    "dump_document": "clew.model.load",
    "load_document": "clew.model.load",
    "sessions": "clew.library",
    "verify": "clew.export.verify",
}

__all__ = [
    "Annotation",
    "Annotations",
    "ClewError",
    "Document",
    "Filters",
    "Graph",
    "Host",
    "Library",
    "Message",
    "Metadata",
    "Problem",
    "Proof",
    "Record",
    "Session",
    "Store",
    "StoredSession",
    "TokenUsage",
    "dump_document",
    "load_document",
    "sessions",
    "verify",
]


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used, so that `import clew` costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
