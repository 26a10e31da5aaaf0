"""ToMixedPrecision: computes heavy operators in float16 or bfloat16, the rest in float32.

Convolutions and matrix products get 16-bit arguments, and accumulate in float32. Operators after them stay in the
16-bit type as long as they tolerate it; the others get float32 again. The lists are in ``mixed_precision_lists``; an
operator's own rule (``register_mixed_precision_conversion``) takes precedence.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.change_precision import PrecisionChanger
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import made_type
from tilewright.support.errors import OpNotImplemented, TilewrightError

WIDE = "float32"
NARROW = ("float16", "bfloat16")

ERROR, WARN, QUIET = 0, 1, 2


@dataclass
class ToMixedPrecision(FunctionPass):
    """Compute in ``mixed_precision_type`` where that pays and harms little.

    Operators that are in no list and have no rule keep float32: silently where ``missing_op_mode`` is 2, with a warning
    where it is 1; where it is 0 they are an error. The results of ``main`` may be narrow; those of other functions have
    the types that they had.
    """

    mixed_precision_type: str = "float16"
    missing_op_mode: int = WARN

    name = "ToMixedPrecision"
    opt_level = 0

    def __post_init__(self) -> None:
        if self.mixed_precision_type not in NARROW:
            raise TilewrightError(
                f"the mixed-precision type is one of {', '.join(NARROW)}, not {self.mixed_precision_type!r}"
            )
        if self.missing_op_mode not in (ERROR, WARN, QUIET):
            raise TilewrightError(f"missing_op_mode is 0, 1 or 2, not {self.missing_op_mode!r}")

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Convert one function."""
        convert = PrecisionChanger(WIDE, self.mixed_precision_type)
        body = convert.visit(func.body)
        if convert.unknown and self.missing_op_mode != QUIET:
            self._report(list(convert.unknown))
        if "main" not in mod or mod["main"] is not func:
            body = convert.as_type(body, made_type(func.body))
        return func if body is func.body else func.replace(body=body, ret_type=None)

    def _report(self, names: list[str]) -> None:
        listed = ", ".join(sorted(names))
        if self.missing_op_mode == ERROR:
            raise OpNotImplemented(
                f"ToMixedPrecision has no rule for {listed}; register one with register_mixed_precision_conversion, "
                "or leave them in float32 with missing_op_mode=1"
            )
        warnings.warn(f"left in float32, because there is no rule: {listed}", stacklevel=3)
