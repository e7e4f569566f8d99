"""The one place where raw JSON is untyped."""

from typing import Any, TypeAlias

JSON: TypeAlias = Any
Extensions: TypeAlias = dict[str, Any]
