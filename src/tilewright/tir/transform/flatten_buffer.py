"""Turns a program of blocks into flat loops.

Blocks without axes disappear: their predicate becomes a branch (or branches marked likely), their buffers become
allocations, and accesses get one index. A loop bound to a thread becomes a ``thread_extent``, a pragma among a loop's
annotations an attribute, and a loop of one iteration its body. Programs without blocks are left to ``StorageFlatten``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import (
    And,
    BufferLoad,
    Call,
    IntImm,
    IterVar,
    Load,
    PrimExpr,
    StringImm,
    Var,
    is_const,
)
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import DataType
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.op import likely
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    Store,
)
from tilewright.tir.storage_rank import thread_attribute
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import has_blocks
from tilewright.tir.transform.lib.buffer_view import BufferView
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator
from tilewright.tir.transform.lib.statement_rewriter import bind_range, with_one_definition
from tilewright.tir.transform.storage_flatten import is_from_schedule, storage_flatten
from tilewright.tir.undefined import undefined_vars

_INT8 = DataType("int8")


class _Flattener(ScopedMutator):
    def __init__(self, likely_predicates: bool, keep_trivial_loops: bool) -> None:
        super().__init__()
        self.likely_predicates = likely_predicates
        self.analyzer = Analyzer()
        self.keep_trivial_loops = keep_trivial_loops
        self.values: dict[Var, PrimExpr] = {}

    def visit_var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_block_realize(self, node: BlockRealize) -> Stmt:
        block = node.block
        if block.iter_vars or block.init is not None or block.match_buffers:
            raise LoweringError(
                f"block {block.name_hint} still has axes, an initialisation or views: run ConvertBlocksToOpaque, "
                "LowerInitBlock and LowerMatchBuffer first"
            )
        predicate = self.visit(node.predicate)
        body: Stmt = self.visit(block.body)
        if self.likely_predicates:
            for condition in reversed(_conjuncts(predicate)):
                body = IfThenElse(likely(condition), body)
        elif not is_const(predicate, 1):
            body = IfThenElse(predicate, body)
        for buffer in reversed(block.alloc_buffers):
            view = BufferView.of_buffer(buffer)
            element = _INT8 if buffer.dtype.is_bool else buffer.dtype.element
            area: PrimExpr = operators.const(1, "int32")
            for extent in buffer.shape:
                area = operators.multiply(area, self.visit(extent))
            if buffer.strides:
                area = operators.multiply(buffer.strides[0], buffer.shape[0])
            body = Allocate(buffer.data, element, [operators.multiply(area, view.dtype.lanes)], True, body)
        return body

    def visit_for(self, node: For) -> Stmt:
        start, extent = self.visit(node.min), self.visit(node.extent)
        bind_range(self.analyzer, node.loop_var, start, extent)
        pragmas = {key: value for key, value in node.annotations.items() if key.startswith("pragma_")}
        if node.kind == ForKind.THREAD_BINDING:
            body: Stmt = self._thread(node, extent)
        elif is_const(extent, 1) and not node.annotations and not self.keep_trivial_loops:
            self.values[node.loop_var] = start
            return self.visit(node.body)  # type: ignore[no-any-return]
        else:
            others = {key: value for key, value in node.annotations.items() if key not in pragmas}
            body = For(
                node.loop_var, start, extent, node.kind, self.visit(node.body), None, others, node.span
            )
        for key, value in reversed(pragmas.items()):
            body = AttrStmt(node.loop_var, key, _attribute_value(key, value), body)
        return body

    def _thread(self, node: For, extent: PrimExpr) -> Stmt:
        binding = node.thread_binding
        if binding is None:
            raise LoweringError(f"loop {node.loop_var.name} is bound to a thread, but does not say to which")
        tag = binding.thread_tag
        axis = IterVar(None, node.loop_var, IterVar.ThreadIndex, tag)
        return AttrStmt(axis, thread_attribute(tag), extent, self.visit(node.body), node.span)

    def _offset(self, node: BufferLoad | BufferStore) -> PrimExpr:
        indices = [self.visit(index) for index in node.indices]
        return BufferView.of_buffer(node.buffer).element_offset(indices, self.analyzer)

    def visit_buffer_load(self, node: BufferLoad) -> PrimExpr:
        offset, data = self._offset(node), node.buffer.data
        if node.dtype.is_bool:
            return operators.cast(
                node.dtype, Load(_INT8.with_lanes(node.dtype.lanes), data, offset, span=node.span)
            )
        return Load(node.dtype, data, offset, span=node.span)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        value = self.visit(node.value)
        if node.buffer.dtype.is_bool:
            value = operators.cast(_INT8.with_lanes(value.dtype.lanes), value)
        return Store(node.buffer.data, value, self._offset(node), span=node.span)


def _conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that one joins by ``and``; none if it always holds."""
    if isinstance(condition, And):
        return _conjuncts(condition.a) + _conjuncts(condition.b)
    if isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely":
        return _conjuncts(condition.args[0])
    return [] if is_const(condition, 1) else [condition]


def _attribute_value(key: str, value: Any) -> PrimExpr:
    """The value of a pragma as an expression."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (bool, int)):
        return IntImm("int32", int(value))
    raise LoweringError(f"the value of {key} is {value!r}; a number or a string is expected")


def _flattened(function: PrimFunc) -> PrimFunc:
    """A function without blocks in flat memory, all of which must be the function's or its caller's."""
    made = storage_flatten(function)
    if made is not function:
        given = [*function.params, *(buffer.data for buffer in function.buffer_map.values())]
        missing = [variable for variable in undefined_vars(made.body, given) if variable.dtype.is_handle]
        if missing:
            raise LoweringError(
                f"buffer {missing[0].name} is nobody's memory: it is not a parameter, and nothing allocates it"
            )
    return made


@dataclass(frozen=True)
class FlattenBuffer(PrimFuncPass):
    """Turns a program of blocks, or a function with buffers that was written by hand, into flat loops.

    With ``likely_predicates`` each condition of a block is a branch marked likely: where a split does not divide, it
    fails only at the end, which ``LoopPartition`` splits off.
    """

    name = "tir.FlattenBuffer"
    likely_predicates: bool = False

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not has_blocks(function):
            return function if is_from_schedule(function) else _flattened(function)
        body = _Flattener(self.likely_predicates, context.get("tir.debug_keep_trivial_loop")).visit(
            function.body
        )
        return function.with_body(with_one_definition(body))
