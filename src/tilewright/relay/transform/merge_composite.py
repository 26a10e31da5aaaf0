"""MergeComposite: turns parts of a program that match a pattern into functions with the attribute "Composite"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.dataflow_pattern import DFPattern, partition
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.op.contrib.register import PatternTable, get_pattern_table
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import TilewrightError


@dataclass
class MergeComposite(FunctionPass):
    """Make a composite function of each part of the program that matches a pattern.

    ``pattern_table`` has entries (name, pattern) or (name, pattern, check), or is the name under which a code
    generator's table was registered. Patterns are tried in order; ``check`` gets the typed root of a match and says
    whether it is taken.
    """

    pattern_table: str | Sequence[tuple[str, DFPattern] | tuple[str, DFPattern, Callable[[Any], bool]]]

    name = "MergeComposite"
    opt_level = 0

    def __post_init__(self) -> None:
        for entry in self._table():
            if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3):
                raise TilewrightError(
                    f"an entry of a pattern table is (name, pattern) or (name, pattern, check), not {entry!r}"
                )

    def _table(self) -> PatternTable:
        if not isinstance(self.pattern_table, str):
            return self.pattern_table
        found = get_pattern_table(self.pattern_table)
        if found is None:
            raise TilewrightError(f"no pattern table is registered under the name {self.pattern_table!r}")
        return found

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Merge within one function."""
        for name, pattern, *check in self._table():
            accept = check[0] if check else lambda root: True
            made: Any = partition(pattern, func, {"Composite": name}, accept)
            if made is not func:
                # The checks of the next patterns need types.
                func = infer_function(made, mod)
        return func
