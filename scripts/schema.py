"""Write the JSON Schema of the unified document to schemas/."""

import json
from pathlib import Path

from clew.model.schema import FILE_NAME, json_schema

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "schemas" / FILE_NAME


def render_schema() -> str:
    """The text of the schema file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema() -> None:
    """Write the schema file."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render_schema(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_schema()
