"""What only some installations have: libraries for other engines, asked for when they are needed."""

from __future__ import annotations

from importlib.util import find_spec

from clew.errors import UsageError

MODULES = {
    "lake": ("pyarrow", "fsspec", "duckdb"),
    "s3": ("s3fs",),
    "postgres": ("pyarrow", "psycopg"),
    "spark": ("pyspark", "pyarrow", "pandas"),
}
"""The modules that each extra brings."""


def need(extra: str) -> None:
    """Raise UsageError where an extra is not installed, with the words that install it."""
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        raise UsageError(f"this needs {', '.join(missing)}: pip install '.[{extra}]' in a clone of clew")
