"""Wraps bare pointers that are passed to packed functions.

A function without packed arguments gets its tensors as pointers. A packed function expects a tensor, so the pointer
becomes a ``DLTensor`` on the stack, of which only the data pointer is known. A call that is made directly
(``tvm_call_cpacked``) is inside a function whose own arguments are tensors already: there the pointers to memory of the
function itself are wrapped, in a variable each.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import StructField
from tilewright.tir.stmt import Evaluate, LetStmt, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass


class _Wrap(Mutator):
    memoize = True

    def __init__(self, pointers: set[Var]) -> None:
        super().__init__()
        self.pointers = pointers
        self.wrappers = 0

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        made: Evaluate = node.map_children(self.visit)
        call = made.value
        if not (isinstance(call, Call) and getattr(call.op, "name", "") == "tir.tvm_call_cpacked"):
            return made
        arrays: list[Var] = []
        filled: list[Stmt] = []
        args = list(call.args[:1])
        for argument in call.args[1:]:
            if isinstance(argument, Var) and argument.dtype.is_handle and argument not in self.pointers:
                array = Var(f"tvm_value_{self.wrappers}", "handle")
                self.wrappers += 1
                arrays.append(array)
                parts = [array, 0, int(StructField.DATA), argument]
                filled.append(Evaluate(operators.call("tvm_struct_set", "handle", parts)))
                argument = array
            args.append(argument)
        if not arrays:
            return made
        body: Stmt = stmt_seq(*filled, Evaluate(Call(call.dtype, call.op, args, call.span), made.span))
        for array in arrays:
            body = LetStmt(array, operators.call("tvm_stack_alloca", "handle", ["array", 1]), body)
        return body

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        if getattr(node.op, "name", "") != "tir.tvm_call_packed":
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
    """Give packed functions tensors where they are called with pointers."""

    name = "tir.LegalizePackedCalls"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        pointers = {param for param in function.params if param.dtype.is_handle}
        return function.with_body(_Wrap(pointers).visit(function.body))
