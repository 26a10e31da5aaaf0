"""``relay.build_config``: the older name of a pass context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.instrument import PassInstrument
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, PassInfo


class _Trace(PassInstrument):
    """Calls a function before and after each pass."""

    def __init__(self, function: Callable[[IRModule, PassInfo, bool], Any]) -> None:
        self.function = function

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.function(mod, info, True)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.function(mod, info, False)


def build_config(
    opt_level: int = 2,
    required_pass: Sequence[str] | None = None,
    disabled_pass: Sequence[str] | None = None,
    trace: Callable[[IRModule, PassInfo, bool], Any] | None = None,
) -> PassContext:
    """A ``PassContext``; ``trace`` is called with the module, the pass, and whether it is before the pass."""
    return PassContext(
        opt_level, required_pass, disabled_pass, [_Trace(trace)] if trace is not None else None
    )
