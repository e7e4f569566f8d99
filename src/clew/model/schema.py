"""The JSON Schema of the unified document, made from the types."""

from __future__ import annotations

import msgspec

from clew.model.document import Document
from clew.model.json import JSON
from clew.model.version import SCHEMA_VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILE_NAME = f"clew-session-{SCHEMA_VERSION}.schema.json"
_ROLES = ("user", "assistant", "system")


def json_schema() -> dict[str, JSON]:
    """The schema of version SCHEMA_VERSION; fields it does not name are allowed everywhere."""
    made = msgspec.json.schema(Document)
    parts: dict[str, JSON] = made["$defs"]
    document = parts.pop("Document")
    schema: dict[str, JSON] = {
        "$schema": DIALECT,
        "$id": f"urn:clew:session:{SCHEMA_VERSION}",
        "title": "clew session",
        "description": f"One session of a coding agent, schema version {SCHEMA_VERSION}. {document['description']}",
        **{name: value for name, value in document.items() if name not in ("title", "description")},
        "$defs": parts,
    }
    major = SCHEMA_VERSION.partition(".")[0]
    schema["properties"]["schema_version"]["pattern"] = rf"^{major}\.\d+(\.\d+)?$"
    parts["Message"]["properties"]["role"]["enum"] = list(_ROLES)
    for part in parts.values():
        _describe_extensions(part)
        _name_the_tag(part)
    _describe_extensions(schema)
    parts["Message"]["properties"]["content"]["items"] = _one_of_blocks(parts)
    return schema


def _describe_extensions(part: dict[str, JSON]) -> None:
    extensions = part["properties"].get("extensions")
    if extensions is not None:
        extensions["description"] = "What the model has no place for, by the id of the agent that wrote it."


def _name_the_tag(part: dict[str, JSON]) -> None:
    """A block is known by its type, which says one thing only."""
    tag = part["properties"].get("type", {})
    if len(tag.get("enum", ())) == 1:
        part["properties"]["type"] = {"const": tag["enum"][0]}


def _one_of_blocks(parts: dict[str, JSON]) -> dict[str, JSON]:
    blocks = [name for name, part in parts.items() if "const" in part["properties"].get("type", {})]
    return {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in blocks]}
