"""Turns multi-dimensional buffers into flat memory.

``BufferRealize`` becomes ``Allocate``, ``BufferLoad`` and ``BufferStore`` become ``Load`` and ``Store`` with one index,
relative to the region that is allocated. The attributes ``buffer_bind_scope`` (one buffer is a window of another),
``buffer_dim_align`` (a stride has a given remainder), ``storage_scope`` and ``double_buffer_scope`` are handled on the
way. A bool is stored as int8. A buffer without a storage scope is private to the threads around it: shared under a
block index, local under a thread index.

Invariant from here on: no ``BufferLoad``, ``BufferStore``, ``BufferRealize`` or ``Prefetch`` is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import BufferLoad, Call, IntImm, Load, PrimExpr, StringImm, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    Prefetch,
    Stmt,
    Store,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import has_blocks
from tilewright.tir.transform.lib.buffer_view import BufferView, aligned_strides, bind_view
from tilewright.tir.transform.lib.statement_rewriter import bind_range, thread_axis, with_one_definition

FROM_SCHEDULE = "from_legacy_te_schedule"
"""The attribute of a function that was made from a schedule of tensor expressions."""

_INT8 = DataType("int8")


class _Flattener(Mutator):
    """Knows, at each place, the view of every buffer and the value of every variable that a binding gave."""

    def __init__(self, cache_line_size: int, create_bound_attribute: bool) -> None:
        super().__init__()
        self.cache_line_size = cache_line_size
        self.create_bound_attribute = create_bound_attribute
        self.analyzer = Analyzer()
        self.views: dict[Buffer, BufferView] = {}
        self.values: dict[Var, PrimExpr] = {}
        self.alignment: dict[Buffer, dict[int, tuple[int, int]]] = {}
        self.scopes: dict[Buffer, str] = {}
        self.thread_tags: list[str] = []

    def visit(self, node: Any) -> Any:
        # An expression gives the same result until another buffer or variable comes into scope.
        if not isinstance(node, PrimExpr):
            return super().visit(node)
        found = self._memo.get(id(node))
        if found is not None:
            return found[1]
        made = super().visit(node)
        self._memo[id(node)] = (node, made)
        return made

    def view_of(self, buffer: Buffer) -> BufferView:
        """Where the buffer lies; one that nothing in the function gives memory to has it from outside."""
        found = self.views.get(buffer)
        if found is None:
            found = BufferView.of_buffer(buffer)
            if self.values:
                found = dataclasses.replace(
                    found,
                    data=self.visit(found.data),
                    offset=self.visit(buffer.elem_offset),
                    shape=tuple([self.visit(extent) for extent in found.shape]),
                    strides=tuple([self.visit(stride) for stride in found.strides]),
                )
        return found

    # Expressions

    def visit_var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_buffer_load(self, node: BufferLoad) -> PrimExpr:
        view = self.view_of(node.buffer)
        indices = [self.visit(index) for index in node.indices]
        offset = view.element_offset(indices, self.analyzer)
        if node.dtype.is_bool:
            return operators.cast(
                node.dtype, Load(_INT8.with_lanes(node.dtype.lanes), view.data, offset, span=node.span)
            )
        return Load(node.dtype, view.data, offset, span=node.span)

    # Statements

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        view = self.view_of(node.buffer)
        value = self.visit(node.value)
        indices = [self.visit(index) for index in node.indices]
        offset = view.element_offset(indices, self.analyzer)
        if node.buffer.dtype.is_bool:
            value = operators.cast(_INT8.with_lanes(value.dtype.lanes), value)
        if value.dtype.lanes != offset.dtype.lanes:
            raise LoweringError(
                f"buffer {node.buffer.name} is stored to with {value.dtype} at {offset.dtype.lanes} places",
                span=node.span,
            )
        return Store(view.data, value, offset, span=node.span)

    def visit_for(self, node: For) -> Stmt:
        start, extent = self.visit(node.min), self.visit(node.extent)
        bind_range(self.analyzer, node.loop_var, start, extent)
        body = self.visit(node.body)
        if start is node.min and extent is node.extent and body is node.body:
            return node
        return node.rebuild(min=start, extent=extent, body=body)

    def visit_buffer_realize(self, node: BufferRealize) -> Stmt:
        buffer = node.buffer
        starts = tuple([self.analyzer.simplify(self.visit(bound.min)) for bound in node.bounds])
        extents = tuple([self.analyzer.simplify(self.visit(bound.extent)) for bound in node.bounds])
        condition = self.visit(node.condition)
        data = self._allocated_variable(buffer)
        strides: tuple[PrimExpr, ...] = ()
        if extents and buffer in self.alignment:
            strides = aligned_strides(extents, self.alignment[buffer], self.analyzer)
        view = BufferView(buffer.name, data, buffer.dtype, extents, strides, None, starts)
        values: dict[Var, PrimExpr] = {} if data is buffer.data else {buffer.data: data}
        body = self._inside(buffer, view, values, lambda: self.visit(node.body))
        element = _INT8 if buffer.dtype.is_bool else buffer.dtype.element
        sizes = self._allocated_extents(view)
        if self.create_bound_attribute:
            body = _with_bound(view, body)
        return Allocate(data, element, sizes, condition, body, span=node.span)

    def _allocated_variable(self, buffer: Buffer) -> Var:
        """The pointer to the memory of a realized buffer, in the scope that the buffer or its threads give."""
        annotation = buffer.data.type_annotation
        declared = annotation.storage_scope if isinstance(annotation, PointerType) else ""
        scope = self.scopes.get(buffer) or declared or self._default_scope()
        if scope in ("", declared) and isinstance(annotation, PointerType):
            return buffer.data
        element = _INT8 if buffer.dtype.is_bool else buffer.dtype
        return Var(buffer.data.name, PointerType(PrimType(element), scope))

    def _default_scope(self) -> str:
        if not self.thread_tags:
            return ""
        return "shared" if self.thread_tags[-1].startswith("blockIdx") else "local"

    def _allocated_extents(self, view: BufferView) -> list[PrimExpr]:
        lanes = view.dtype.lanes
        if not view.shape:
            return [operators.const(lanes, "int32")]
        if view.strides:
            total = operators.multiply(view.strides[0], view.shape[0])
            return [self.analyzer.simplify(operators.multiply(total, lanes))]
        return [*view.shape[:-1], operators.multiply(view.shape[-1], lanes)]

    def _inside(
        self, buffer: Buffer, view: BufferView, values: dict[Var, PrimExpr], visit: Callable[[], Any]
    ) -> Any:
        """Visits with this view of the buffer and these values of the variables."""
        outer_views, outer_values, outer_memo = self.views, self.values, self._memo
        self.views = {**outer_views, buffer: view}
        self.values = {**outer_values, **values} if values else outer_values
        self._memo = {}
        made = visit()
        self.views, self.values, self._memo = outer_views, outer_values, outer_memo
        return made

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        key = node.attr_key
        if key == "buffer_bind_scope":
            return self._bind_scope(node)
        if key == "buffer_dim_align":
            self._record_alignment(node)
            return self.visit(node.body)  # type: ignore[no-any-return]
        if key in ("storage_scope", "realize_scope") and isinstance(node.value, StringImm):
            buffer = _attribute_buffer(node)
            if buffer is not None:
                self.scopes[buffer] = node.value.value
                return self.visit(node.body)  # type: ignore[no-any-return]
        axis = thread_axis(node)
        if axis is not None and key == "thread_extent":
            return self._thread(node, axis.var, axis.thread_tag)
        made: AttrStmt = node.map_children(self.visit)
        if isinstance(node.node, Buffer):
            return made.replace(node=self.view_of(node.node).data)
        renamed = self.values.get(node.node) if isinstance(node.node, Var) else None
        return made if renamed is None else made.replace(node=renamed)

    def _thread(self, node: AttrStmt, variable: Var, tag: str) -> Stmt:
        extent = self.visit(node.value)
        bind_range(self.analyzer, variable, operators.const(0, variable.dtype), extent)
        self.thread_tags.append(tag)
        made: Stmt = node.map_children(self.visit)
        self.thread_tags.pop()
        return made

    def _record_alignment(self, node: AttrStmt) -> None:
        buffer = _attribute_buffer(node)
        value = node.value
        if buffer is None or not isinstance(value, Call) or len(value.args) != 3:
            raise LoweringError("buffer_dim_align needs a buffer and tvm_tuple(dimension, factor, offset)")
        numbers = [argument.value for argument in value.args if isinstance(argument, IntImm)]
        if len(numbers) != 3:
            raise LoweringError(f"the alignment of {buffer.name} must be constants, not {value}")
        dimension, factor, offset = numbers
        self.alignment.setdefault(buffer, {})[dimension] = (factor, offset)

    def _bind_scope(self, node: AttrStmt) -> Stmt:
        """A buffer that is a window of another, within the body."""
        pair = node.node
        box = node.value
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(box, Call)):
            raise LoweringError("buffer_bind_scope needs a pair of buffers and tvm_tuple(start, extent, ...)")
        buffer, target = pair
        numbers = [self.visit(argument) for argument in box.args]
        view, values = bind_view(
            buffer,
            self.view_of(target),
            list(zip(numbers[::2], numbers[1::2], strict=True)),
            self.analyzer,
        )
        return self._inside(buffer, view, values, lambda: self.visit(node.body))  # type: ignore[no-any-return]

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        """A hint for every cache line of the box."""
        view = self.view_of(node.buffer)
        indices: list[PrimExpr] = []
        loops: list[tuple[Var, PrimExpr]] = []
        steps = self._lines(node, max(self.cache_line_size // (view.dtype.itemsize * view.dtype.lanes), 1))
        for dimension, (bound, step) in enumerate(zip(node.bounds, steps, strict=True)):
            extent = self.visit(bound.extent)
            start = self.visit(bound.min)
            count = self.analyzer.simplify(operators.floordiv(operators.add(extent, step - 1), step))
            if isinstance(count, IntImm) and count.value == 1:
                indices.append(start)
                continue
            variable = Var(f"prefetch.{dimension}", count.dtype)
            bind_range(self.analyzer, variable, operators.const(0, count.dtype), count)
            loops.append((variable, count))
            indices.append(operators.add(start, operators.multiply(variable, step)))
        offset = view.element_offset(indices, self.analyzer)
        address = operators.call("address_of", "handle", [Load(view.dtype, view.data, offset)])
        stmt: Stmt = Evaluate(operators.call("prefetch", view.dtype, [address, 0, 3, 1]))
        for variable, count in reversed(loops):
            stmt = For(variable, 0, count, ForKind.SERIAL, stmt)
        return stmt

    def _lines(self, node: Prefetch, line: int) -> list[int]:
        """How many indices of each dimension are one step: a line of so many elements, across dimensions that the box
        covers wholly."""
        steps = [1] * len(node.bounds)
        for dimension in reversed(range(len(node.bounds))):
            steps[dimension] = line
            extent, whole = node.bounds[dimension].extent, node.buffer.shape[dimension]
            compact = not node.buffer.strides and isinstance(whole, IntImm) and line % whole.value == 0
            if not (compact and self.analyzer.can_prove_equal(extent, whole)):
                break
            line //= whole.value
        return steps


def _attribute_buffer(node: AttrStmt) -> Buffer | None:
    """The buffer that an attribute speaks of."""
    return node.node if isinstance(node.node, Buffer) else None


def _with_bound(view: BufferView, body: Stmt) -> Stmt:
    """The body with the number of elements of a buffer attached, for ``InstrumentBoundCheckers``."""
    return AttrStmt(view.data, "buffer_bound", view.size(), body)


def is_from_schedule(function: PrimFunc) -> bool:
    """True if a function was made from a schedule of tensor expressions."""
    return bool(function.attrs.get(FROM_SCHEDULE, False))


def storage_flatten(
    function: PrimFunc, cache_line_size: int = 64, create_bound_attribute: bool = False
) -> PrimFunc:
    """The function with flat memory; see the module's text."""
    flattener = _Flattener(cache_line_size, create_bound_attribute)
    body = flattener.visit(function.body)
    if create_bound_attribute:
        for buffer in reversed(list(function.buffer_map.values())):
            body = _with_bound(BufferView.of_buffer(buffer), body)
    return function if body is function.body else function.with_body(with_one_definition(body))


@dataclass(frozen=True)
class StorageFlatten(PrimFuncPass):
    """Turns multi-dimensional buffers of functions that were made from schedules into flat memory.

    Functions written in another way keep them: ``FlattenBuffer`` flattens those. With ``handwritten`` this pass does,
    unless they have blocks.
    """

    cache_line_size: int = 64
    create_bound_attribute: bool = False
    handwritten: bool = False

    name = "tir.StorageFlatten"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        # A program of blocks needs its blocks lowered first: FlattenBuffer ends that line of passes.
        if has_blocks(function) or not (self.handwritten or is_from_schedule(function)):
            return function
        return storage_flatten(function, self.cache_line_size, self.create_bound_attribute)
