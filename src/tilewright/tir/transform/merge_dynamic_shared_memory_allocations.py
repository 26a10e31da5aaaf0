"""Merges all dynamic shared memory of a kernel into one allocation, because a launch provides only one.

Before: several ``Allocate`` in scope "shared.dyn". After: one array of bytes, ``buf_dyn_shmem``, at the outermost
thread binding; each buffer has an offset in it, aligned to the largest access, or to what an attribute
``storage_alignment`` of the buffer says.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, Load, PrimExpr, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_SCOPE = "shared.dyn"
_ALIGNMENT = "storage_alignment"
_LARGEST_ACCESS = 16
"""Bytes: what one thread reads at once at most, and so what buffers are aligned to."""


def _element_bytes(node: Allocate) -> int:
    return node.dtype.itemsize * node.dtype.lanes


class _Place(Mutator):
    """Replaces buffers by their place in the merged one."""

    memoize = True

    def __init__(self, merged: Var, offsets: dict[Var, PrimExpr]) -> None:
        super().__init__()
        self.merged = merged
        self.offsets = offsets

    def _index(self, buffer: Var, itemsize: int, index: PrimExpr) -> PrimExpr:
        offset = operators.floordiv(self.offsets[buffer], itemsize)
        return operators.add(index, offset)

    def visit_allocate(self, node: Allocate) -> Stmt:
        return self.visit(node.body) if node.buffer_var in self.offsets else node.map_children(self.visit)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        # The alignment of a merged buffer is in its offset.
        if node.attr_key == _ALIGNMENT and node.node in self.offsets:
            return self.visit(node.body)  # type: ignore[no-any-return]
        return node.map_children(self.visit)

    def visit_load(self, node: Load) -> PrimExpr:
        index, predicate = self.visit(node.index), self.visit(node.predicate)
        if node.buffer_var not in self.offsets:
            same = index is node.index and predicate is node.predicate
            return node if same else Load(node.dtype, node.buffer_var, index, predicate, node.span)
        index = self._index(node.buffer_var, node.dtype.itemsize, index)
        return Load(node.dtype, self.merged, index, predicate, node.span)

    def visit_store(self, node: Store) -> Stmt:
        value, index, predicate = self.visit(node.value), self.visit(node.index), self.visit(node.predicate)
        if node.buffer_var not in self.offsets:
            return Store(node.buffer_var, value, index, predicate, node.span)
        index = self._index(node.buffer_var, node.value.dtype.itemsize, index)
        return Store(self.merged, value, index, predicate, node.span)

    def visit_call(self, node: Call) -> PrimExpr:
        if (
            node.op.name == "tir.tvm_access_ptr"
            and isinstance(node.args[1], Var)
            and node.args[1] in self.offsets
        ):
            kind, _, offset, extent, mask = node.args
            offset = self._index(node.args[1], kind.dtype.itemsize * kind.dtype.lanes, self.visit(offset))
            return Call(node.dtype, node.op, [kind, self.merged, offset, self.visit(extent), mask], node.span)
        return node.map_children(self.visit)

    def visit_var(self, node: Var) -> PrimExpr:
        if node in self.offsets:
            raise LoweringError(
                f"dynamic shared memory {node.name} is used as a bare pointer; pass an access_ptr instead"
            )
        return node


class _Merge(StmtMutator):
    """Merges at each outermost thread binding."""

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != "thread_extent":
            return node.map_children(self.visit)
        return _merge(node)


def _merge(kernel: AttrStmt) -> Stmt:
    found = [
        part
        for part in post_order(kernel)
        if isinstance(part, Allocate) and part.buffer_var.storage_scope == _SCOPE
    ]
    if len(found) < 2:
        return kernel
    least = max(_LARGEST_ACCESS, *[_element_bytes(part) for part in found])
    wanted = {
        part.node: part.value.value
        for part in post_order(kernel)
        if isinstance(part, AttrStmt) and part.attr_key == _ALIGNMENT and isinstance(part.value, IntImm)
    }
    merged = Var("buf_dyn_shmem", PointerType(PrimType("uint8"), _SCOPE))
    offsets: dict[Var, PrimExpr] = {}
    total: PrimExpr = operators.const(0)
    for part in found:
        alignment = max(least, wanted.get(part.buffer_var, 0))
        total = _rounded_up(total, alignment)
        offsets[part.buffer_var] = total
        size: PrimExpr = operators.const(_element_bytes(part))
        for extent in part.extents:
            size = operators.multiply(size, extent)
        total = operators.add(total, size)
    total = _rounded_up(total, least)
    body = _Place(merged, offsets).visit(kernel.body)
    return kernel.replace(body=Allocate(merged, "uint8", [total], operators.const_true(), body))


def _rounded_up(size: PrimExpr, alignment: int) -> PrimExpr:
    return operators.multiply(operators.floordiv(operators.add(size, alignment - 1), alignment), alignment)


@dataclass(frozen=True)
class MergeDynamicSharedMemoryAllocations(PrimFuncPass):
    """Make one dynamic shared allocation of all that a kernel has."""

    name = "tir.MergeDynamicSharedMemoryAllocations"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Merge().visit(function.body))
