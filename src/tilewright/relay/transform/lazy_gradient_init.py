"""LazyGradientInit: materializes tensors of zeros and ones only where their elements are needed.

Gradients begin as zeros, and many are added to once or multiplied by one. Within a function every tensor becomes a
``GradCell`` (``gradient.rly`` of the standard library): a tensor, or a function that makes zeros or ones. Sums with
zero and products with zero or one then cost nothing; other operators unwrap the tensors and wrap their results. The
function's own type does not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import Pass, PassContext
from tilewright.ir.type import GlobalTypeVar, TupleType, Type, TypeCall
from tilewright.relay.adt import Pattern, PatternConstructor
from tilewright.relay.expr import Call, Constant, If, Tuple, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call as call_operator
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.transform.lib.gradient_rules import field_of, is_made_of_tensors
from tilewright.relay.type_functor import TypeMutator, TypeVisitor
from tilewright.support.recursion import recursion_room

_FILLED = {"zeros": "Zero", "zeros_like": "Zero", "ones": "One", "ones_like": "One"}
_COMBINED = {"add": "AddGradCell", "multiply": "MultiplyGradCell"}


class _CannotBeLazyError(Exception):
    """A function holds something whose tensors cannot become cells; it stays as it is."""


class _CellTypes(TypeMutator):
    """Cells in place of tensors."""

    def __init__(self, cell: GlobalTypeVar) -> None:
        self.cell = cell

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return TypeCall(self.cell, [tt])


class _HoldsTensors(TypeVisitor):
    found = False

    def visit_tensor_type(self, tt: TensorType) -> None:
        self.found = True


def _is_generic(constructor: Constructor) -> bool:
    """True if a constructor takes tensors only where its type is generic: then it takes cells too."""
    look = _HoldsTensors()
    for given in constructor.inputs:
        look.visit(given)
    return not look.found


class _Lazy(ExprMutator):
    """Rewrites a typed function to compute with cells."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod = mod
        cell, self.raw, self.one, self.zero = mod.get_type("GradCell")
        self.types = _CellTypes(cell)
        self.taken_out: dict[RelayExpr, RelayExpr] = {}

    def run(self, function: Function) -> Function:
        """The function with cells inside."""
        if function.type_params:
            raise _CannotBeLazyError
        for parameter in function.params:
            self.memo_map[parameter] = self.put_in(parameter, parameter.checked_type)
        body = self.take_out(self.visit(function.body), function.body.checked_type)
        return function.replace(body=body)

    def put_in(self, value: RelayExpr, kind: Type) -> RelayExpr:
        """Cells of the tensors of a value."""
        if not is_made_of_tensors(kind):
            raise _CannotBeLazyError
        if isinstance(kind, TupleType):
            fields = enumerate(kind.fields)
            return Tuple([self.put_in(field_of(value, index), field) for index, field in fields])
        return Call(self.raw, [value])

    def take_out(self, value: RelayExpr, kind: Type) -> RelayExpr:
        """The tensors of the cells of a value."""
        if not is_made_of_tensors(kind):
            raise _CannotBeLazyError
        if isinstance(kind, TupleType):
            fields = enumerate(kind.fields)
            return Tuple([self.take_out(field_of(value, index), field) for index, field in fields])
        if isinstance(value, Call) and value.op is self.raw:
            return value.args[0]
        if value not in self.taken_out:
            self.taken_out[value] = Call(self.mod.get_global_var("FromGradCell"), [value])
        return self.taken_out[value]

    def visit_var(self, var: Var) -> RelayExpr:
        return Var(var.name_hint, self.types.visit(var.checked_type), var.span)

    def visit_constant(self, const: Constant) -> RelayExpr:
        return self.put_in(const, const.checked_type)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        raise _CannotBeLazyError

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        if not _is_generic(con):
            raise _CannotBeLazyError
        return con

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.type_params or fn.is_primitive:
            raise _CannotBeLazyError
        result = self.types.visit(fn.body.checked_type)
        params = [self.visit(parameter) for parameter in fn.params]
        return Function(params, self.visit(fn.body), result, (), fn.attrs, span=fn.span)

    def visit_if(self, ite: If) -> RelayExpr:
        condition = self.take_out(self.visit(ite.cond), ite.cond.checked_type)
        return If(condition, self.visit(ite.true_branch), self.visit(ite.false_branch), span=ite.span)

    def visit_pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, PatternConstructor) and not _is_generic(pattern.constructor):
            raise _CannotBeLazyError
        return super().visit_pattern(pattern)

    def visit_call(self, call: Call) -> RelayExpr:
        if isinstance(call.op, Op):
            return self.operator(call, call.op)
        if isinstance(call.op, GlobalVar):
            # Other functions keep their types.
            arguments = [self.take_out(self.visit(one), one.checked_type) for one in call.args]
            return self.put_in(call.replace(args=tuple(arguments)), call.checked_type)
        arguments = [self.visit(argument) for argument in call.args]
        type_args = [self.types.visit(one) for one in call.type_args]
        return Call(self.visit(call.op), arguments, call.attrs, type_args, span=call.span)

    def operator(self, call: Call, op: Op) -> RelayExpr:
        """Zeros, ones, sums and products as cells; other operators on tensors."""
        kind = call.checked_type
        if op.name in _FILLED and isinstance(kind, TensorType):
            return self.filled(call, op, kind)
        arguments = [self.visit(argument) for argument in call.args]
        if op.name in _COMBINED and all(argument.checked_type == kind for argument in call.args):
            pair = [Var("a", kind), Var("b", kind)]
            function = Function(pair, Call(op, pair, call.attrs), kind)
            return Call(self.mod.get_global_var(_COMBINED[op.name]), [function, *arguments], span=call.span)
        tensors = [
            self.take_out(made, old.checked_type) for made, old in zip(arguments, call.args, strict=True)
        ]
        return self.put_in(call.replace(args=tuple(tensors)), kind)

    def filled(self, call: Call, op: Op, kind: TensorType) -> RelayExpr:
        """A cell that makes zeros or ones when it is asked. Where the shape is known, it holds nothing else."""
        if known(*dims(kind)):
            name = "zeros" if _FILLED[op.name] == "Zero" else "ones"
            body: RelayExpr = call_operator(name, shape=dims(kind), dtype=str(kind.dtype))
        else:
            given = [self.take_out(self.visit(one), one.checked_type) for one in call.args]
            body = call.replace(args=tuple(given))
        constructor = self.zero if _FILLED[op.name] == "Zero" else self.one
        return Call(constructor, [Function([], body, kind)], span=call.span)


@dataclass
class LazyGradientInit(Pass):
    """Materialize zeros and ones only where they are needed, in every function of tensors."""

    name = "LazyGradientInit"
    opt_level = 2

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Rewrite the functions; the definitions of cells are added where the module lacks them."""
        mod = mod.copy()
        own = set(mod.functions)
        mod.import_from_std("gradient.rly")
        mod = infer_module(mod)
        names = {name.name_hint for name in own} - {"FromGradCell", *_COMBINED.values()}

        def change(variable: GlobalVar, function: BaseFunc) -> BaseFunc:
            if not isinstance(function, Function) or variable.name_hint not in names:
                return function
            if function.is_primitive or function.attrs.get("Compiler"):
                return function
            try:
                return _Lazy(mod).run(function)
            except _CannotBeLazyError:
                return function

        with recursion_room():
            return infer_module(mod.map_functions(change))
