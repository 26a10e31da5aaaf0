"""MergeComposite: turns parts of a program that match a pattern into functions with the attribute "Composite"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.dataflow_pattern import partition
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import TilewrightError


@dataclass
class MergeComposite(FunctionPass):
    """``pattern_table`` has entries (name, pattern) or (name, pattern, check). Patterns are tried in order; ``check``
    gets the typed root of a match and says whether it is taken."""

    pattern_table: Sequence[tuple[Any, ...]]

    name = "MergeComposite"
    opt_level = 0

    def __post_init__(self) -> None:
        for entry in self.pattern_table:
            if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3):
                raise TilewrightError(
                    f"an entry of a pattern table is (name, pattern) or (name, pattern, check), not {entry!r}"
                )

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Merge within one function."""
        for name, pattern, *check in self.pattern_table:
            accept = check[0] if check else lambda root: True
            made: Any = partition(pattern, func, {"Composite": name}, accept)
            if made is not func:
                # The checks of the next patterns need types.
                func = infer_function(made, mod)
        return func
