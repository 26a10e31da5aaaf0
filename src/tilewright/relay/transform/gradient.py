"""``gradient``: from a function to the function that returns its result and the gradients of its parameters."""

from __future__ import annotations

from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.transform.first_order_gradient import first_order_gradient
from tilewright.relay.transform.higher_order_gradient import higher_order_gradient
from tilewright.support.errors import TilewrightError

_MODES = {"higher_order": higher_order_gradient, "first_order": first_order_gradient}


def gradient(expr: RelayExpr, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """The function ``fn (x...) -> (value, (gradient of each x...))`` of a function of tensors, or of the module's
    function that a variable names. The gradients are those of the sum of all elements of the result.

    "first_order" is for graphs of operators, and gives another graph. "higher_order" is for every program; functions of
    the module that the program calls get forms of their own, which are added to the module.
    """
    if mode not in _MODES:
        raise TilewrightError(f"the modes of gradient are {' and '.join(_MODES)}, not {mode!r}")
    if isinstance(expr, GlobalVar):
        if mod is None:
            raise TilewrightError(f"gradient of @{expr.name_hint}: give the module that holds it")
        expr = mod[expr.name_hint]
    if not isinstance(expr, Function):
        raise TilewrightError(f"gradient takes a function, not {type(expr).__name__}")
    function = infer_expr(expr, mod)
    assert isinstance(function, Function)
    return _MODES[mode](function, mod)
