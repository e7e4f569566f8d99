"""Regular expressions that are compiled when they are first used: of hundreds, most commands use a few."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """A regular expression that is compiled when an attribute other than `pattern` is used first."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._arguments = pattern, flags
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        """Compile, and keep the attribute: it is looked up here once."""
        compiled = self.__dict__.get("_compiled")
        if compiled is None:
            compiled = self._compiled = re.compile(*self._arguments)
        value = self.__dict__[name] = getattr(compiled, name)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_compile, self._arguments


def lazy_compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile` at the first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))
