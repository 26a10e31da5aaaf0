"""Constants of external functions become arguments: loops read tensors, and the executor keeps the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Call, Constant, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.transform.lib.straight_line import straight_line


@dataclass(eq=False)
class _Lift(ExprMutator):
    """Constants of a body as variables; scalars stay."""

    symbol: str
    lifted: dict[Constant, Var] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def visit_constant(self, const: Constant) -> RelayExpr:
        if const.data.shape == ():
            return const
        if const not in self.lifted:
            name = f"{self.symbol}_c{len(self.lifted)}"
            self.lifted[const] = Var(name, const.tensor_type)
        return self.lifted[const]


class _PassConstants(ExprMutator):
    def __init__(self, constants: dict[str, Sequence[Constant]]) -> None:
        super().__init__()
        self.constants = constants

    def visit_call(self, call: Call) -> RelayExpr:
        made = call.map_children(self.visit)
        assert isinstance(made, Call)
        more = self.constants.get(made.op.name_hint, ()) if isinstance(made.op, GlobalVar) else ()
        return Call(made.op, (*made.args, *more), made.attrs, span=made.span) if more else made


def lift_constants(module: IRModule, compiler: str) -> IRModule:
    """The module whose functions for one code generator take their constants, other than scalars, as parameters.
    Composite functions within them are inlined."""
    constants: dict[str, Sequence[Constant]] = {}
    functions = dict(module.functions)
    for variable, function in module.functions.items():
        if isinstance(function, Function) and function.attrs.get("Compiler") == compiler:
            lift = _Lift(variable.name_hint)
            body = lift.visit(straight_line(function))
            functions[variable] = function.replace(
                params=[*function.params, *lift.lifted.values()], body=body
            )
            constants[variable.name_hint] = list(lift.lifted)
    for variable, function in functions.items():
        if isinstance(function, Function) and not function.attrs.get("Compiler"):
            functions[variable] = function.replace(body=_PassConstants(constants).visit(function.body))
    return infer_module(module.with_functions(functions))
