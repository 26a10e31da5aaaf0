"""MergeComposite: turns parts of a program that match a pattern into functions with the attribute "Composite"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.dataflow_pattern import DFPattern, WildcardPattern, partition
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
        table = self._table()
        if isinstance(table, str) or not isinstance(table, Sequence):
            raise TilewrightError(f"a pattern table is a list of entries, not a {type(table).__name__}")
        for entry in table:
            if not (
                isinstance(entry, (tuple, list))
                and len(entry) in (2, 3)
                and isinstance(entry[0], str)
                and isinstance(entry[1], DFPattern)
                and (len(entry) == 2 or callable(entry[2]))
            ):
                raise TilewrightError(
                    f"an entry of a pattern table is (name, pattern) or (name, pattern, check), not {entry!r}"
                )
            if isinstance(entry[1], WildcardPattern):
                raise TilewrightError(
                    f"the pattern {entry[0]!r} matches everything: a pattern names an operator at its root"
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
            accept = _guarded(name, check[0]) if check else lambda root: True
            made: Any = partition(pattern, func, {"Composite": name}, accept)
            if not isinstance(made, Function):
                raise TilewrightError(
                    f"the pattern {name!r} matches the whole function: a pattern names an operator at its root"
                )
            if made is not func:
                # The checks of the next patterns need types.
                func = infer_function(made, mod)
        return func


def _guarded(name: str, check: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """A code generator's check; what goes wrong in it is an error that names the pattern, and with it the generator."""

    def ask(root: Any) -> bool:
        try:
            said = check(root)
            if isinstance(said, str):
                raise TypeError(f"it gave {said!r}, not True or False")
            return bool(said)
        except (Exception, SystemExit) as error:
            text = str(error) or "no message"
            raise TilewrightError(
                f"the check of the pattern {name!r} failed: {type(error).__name__}: {text}", span=root.span
            ) from error

    return ask
