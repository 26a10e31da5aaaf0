"""Lowers pointers into buffers.

``tvm_access_ptr(type, buffer, offset, extent, mask)`` says which part of a buffer a call accesses and how; the passes
before this one use that. Code generators only need the address.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, Load, PrimExpr, Ramp, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.support.node import Node
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


def _is_pointer(node: Node) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == "tir.tvm_access_ptr"


class _Lower(Mutator):
    memoize = True

    def visit_call(self, node: Call) -> PrimExpr:
        if not _is_pointer(node):
            return node.map_children(self.visit)
        annotation, buffer, offset = node.args[0], node.args[1], self.visit(node.args[2])
        if not isinstance(buffer, Var):
            raise LoweringError("tvm_access_ptr points into a buffer's memory", span=node.span)
        dtype = annotation.dtype
        if dtype.lanes == 1:
            return operators.call("address_of", "handle", [Load(dtype, buffer, offset)])
        first = operators.multiply(offset, operators.const(dtype.lanes, offset.dtype))
        return operators.call("address_of", "handle", [Load(dtype, buffer, Ramp(first, 1, dtype.lanes))])


@dataclass(frozen=True)
class LowerDeviceStorageAccessInfo(PrimFuncPass):
    """Turn access pointers into addresses."""

    name = "tir.LowerDeviceStorageAccessInfo"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        # Few functions have access pointers, and looking for one takes less time than rewriting.
        if not any(_is_pointer(part) for part in post_order(function.body)):
            return function
        return function.with_body(_Lower().visit(function.body))
