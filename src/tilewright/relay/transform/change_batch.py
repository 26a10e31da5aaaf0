"""ChangeBatch: changes the batch size without importing the model again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import dims, normal_axis
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import TilewrightError


class _Replace(ExprMutator):
    """Replaces variables by others, wherever they occur."""

    def __init__(self, variables: Mapping[Var, Var]) -> None:
        super().__init__()
        for old, new in variables.items():
            self.memo_map[old] = new


@dataclass
class ChangeBatch(FunctionPass):
    """Change the batch size of a model; ``data`` gives, for each variable with a batch, the axis on which it is.

    Types are found again from the variables, so a program in which the old batch size is written out is an error of the
    next type inference.
    """

    data: Mapping[Var, int]
    batch_size: int = 16

    name = "ChangeBatch"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Change the variables of one function."""
        changed: dict[Var, Var] = {}
        for parameter in func.params:
            if parameter in self.data:
                changed[parameter] = self._changed(parameter, self.data[parameter])
        if not changed:
            return func
        params = [changed.get(parameter, parameter) for parameter in func.params]
        body: RelayExpr = _Replace(changed).visit(func.body)
        return func.replace(params=tuple(params), body=body, ret_type=None)

    def _changed(self, variable: Var, axis: int) -> Var:
        kind = variable.type_annotation
        if not isinstance(kind, TensorType):
            raise TilewrightError(f"variable {variable.name_hint} is not a tensor: it has no batch")
        shape = list(dims(kind))
        shape[normal_axis(axis, len(shape))] = self.batch_size
        return Var(variable.name_hint, TensorType(shape, kind.dtype), variable.span)
