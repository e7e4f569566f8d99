"""Optional libraries, by the extra of the package that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from clew.errors import UsageError

MODULES = {
    "lake": ("pyarrow", "fsspec", "duckdb"),
    "s3": ("s3fs",),
    "postgres": ("pyarrow", "psycopg"),
    "spark": ("pyspark", "pyarrow", "pandas"),
}


def require_extra(extra: str) -> None:
    """Raise UsageError, with the command that installs it, if an extra is missing."""
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        raise UsageError(f"this needs {', '.join(missing)}: pip install '.[{extra}]' in a clone of clew")
