"""Pattern tables: the groups of operators that an external code generator takes as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.support.errors import TilewrightError

PatternTable = Sequence[tuple[Any, ...]]
"""Triples of a name, a pattern and, if there is one, a check of what matched."""

_TABLES: dict[str, PatternTable] = {}


def register_pattern_table(compiler: str, table: Callable[[], PatternTable] | None = None) -> Any:
    """Set the table of a code generator, which the function makes; a decorator where there is none."""

    def register(make: Callable[[], PatternTable]) -> Callable[[], PatternTable]:
        try:
            table = make()
        except (Exception, SystemExit) as error:
            text = str(error) or "no message"
            raise TilewrightError(
                f"the pattern table of {compiler!r} cannot be made: {type(error).__name__}: {text}"
            ) from error
        if isinstance(table, str) or not isinstance(table, Sequence):
            raise TilewrightError(
                f"the pattern table of {compiler!r} is a {type(table).__name__}, not a list"
            )
        _TABLES[compiler] = table
        return make

    return register(table) if table is not None else register


def get_pattern_table(compiler: str) -> PatternTable | None:
    """The table of a code generator; None where it has none."""
    return _TABLES.get(compiler)
