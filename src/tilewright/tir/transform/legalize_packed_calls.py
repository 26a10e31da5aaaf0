"""Wraps bare pointers that are passed to packed functions.

A function without packed arguments gets its tensors as pointers. A packed function expects a tensor, so the pointer
becomes a ``DLTensor`` on the stack, of which only the data pointer is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass

_PACKED_CALLS = frozenset({"tir.tvm_call_packed", "tir.tvm_call_cpacked"})


class _Wrap(Mutator):
    memoize = True

    def __init__(self, pointers: set[Var]) -> None:
        super().__init__()
        self.pointers = pointers

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        if getattr(node.op, "name", "") not in _PACKED_CALLS:
            return made
        args = [made.args[0], *(self._wrapped(argument) for argument in made.args[1:])]
        same = all(new is old for new, old in zip(args, made.args, strict=True))
        return made if same else Call(made.dtype, made.op, args, made.span)

    def _wrapped(self, argument: PrimExpr) -> PrimExpr:
        if not (isinstance(argument, Var) and argument in self.pointers):
            return argument
        element = argument.element_type or operators.const(0, "uint8").dtype
        shape = operators.call("tvm_stack_make_shape", "handle", [])
        zero = operators.const(0)
        parts = [argument, shape, zero, zero, operators.const(0, element), zero]
        return operators.call("tvm_stack_make_array", "handle", parts)


@dataclass(frozen=True)
class LegalizePackedCalls(PrimFuncPass):
    """Give packed functions tensors where they are called with the function's own pointers."""

    name = "tir.LegalizePackedCalls"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        pointers = {param for param in function.params if param.dtype.is_handle}
        return function.with_body(_Wrap(pointers).visit(function.body)) if pointers else function
