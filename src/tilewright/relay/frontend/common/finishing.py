"""The function that a model becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Tuple, Var
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.output_names import with_output_names
from tilewright.runtime.ndarray import NDArray


def finished(
    module: IRModule,
    inputs: Sequence[Var],
    outputs: Sequence[RelayExpr],
    names: Sequence[str],
    values: Mapping[str, NDArray],
) -> tuple[IRModule, dict[str, NDArray]]:
    """The module whose ``main`` takes the inputs and the weights that it uses, and the values of those."""
    body = outputs[0] if len(outputs) == 1 else Tuple(list(outputs))
    found = _Variables()
    found.visit(body)
    taken = set(inputs)
    weights = [variable for variable in found.order if variable.name_hint in values and variable not in taken]
    module["main"] = with_output_names(Function([*inputs, *weights], body), names)
    used = {variable.name_hint for variable in weights}
    return infer_module(module), {name: value for name, value in values.items() if name in used}


class _Variables(ExprVisitor):
    """The variables of an expression, in the order in which they are met."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[Var] = []

    def visit_var(self, var: Var) -> None:
        self.order.append(var)
