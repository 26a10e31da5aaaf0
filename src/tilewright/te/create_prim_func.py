"""Converting tensor expressions to a function of blocks, for ``tir`` schedules and passes."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import BufferLoad, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var, is_const
from tilewright.ir.functor import Mutator
from tilewright.support.errors import LoweringError
from tilewright.support.recursion import with_recursion_room
from tilewright.te.extern import ExternOp
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.schedule.compute_stmt import combine
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.analysis.block_access_region import get_block_read_write_region
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    stmt_seq,
)


@with_recursion_room
def create_prim_func(ops: Sequence[Tensor]) -> PrimFunc:
    """A function whose parameters are these tensors, in this order; every computation becomes a block."""
    arguments = [ops] if isinstance(ops, Tensor) else list(ops)
    for argument in arguments:
        if not isinstance(argument, Tensor):
            raise LoweringError(f"create_prim_func takes tensors, not {argument!r}")
    return _Creator(arguments).build()


def create_prim_func_from_outputs(outputs: Tensor | Sequence[Tensor]) -> PrimFunc:
    """Like ``create_prim_func``, with the inputs found from the outputs and put before them."""
    wanted = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    order = operations_in_order([tensor.op for tensor in wanted])
    inputs = [operation.output(0) for operation in order if isinstance(operation, PlaceholderOp)]
    return create_prim_func([*inputs, *wanted])


class _Loads(Mutator):
    """Reads of tensors become reads of buffers."""

    memoize = True

    def __init__(self, buffers: dict[Tensor, Buffer]) -> None:
        super().__init__()
        self.buffers = buffers

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        tensor = node.producer
        assert isinstance(tensor, Tensor)
        return BufferLoad(self.buffers[tensor], made.indices)


class _Creator:
    def __init__(self, arguments: list[Tensor]) -> None:
        self.arguments = arguments
        self.buffers: dict[Tensor, Buffer] = {}
        self.allocated: list[Buffer] = []

    def build(self) -> PrimFunc:
        handles: dict[Var, Buffer] = {}
        for tensor in self.arguments:
            self.buffers[tensor] = decl_buffer(tensor.shape, tensor.dtype, tensor.name)
            handles[Var(f"var_{tensor.name}", "handle")] = self.buffers[tensor]
        statements = [
            self.statement(operation)
            for operation in operations_in_order([tensor.op for tensor in self.arguments])
        ]
        body = stmt_seq(*[statement for statement in statements if statement is not None])
        root = Block([], [], [], "root", body, alloc_buffers=self.allocated)
        function = PrimFunc(list(handles), BlockRealize([], True, root), None, handles)
        return function.with_attr({"global_symbol": "main", "tir.noalias": True})

    def statement(self, operation: Operation) -> Stmt | None:
        for tensor in operation.outputs:
            if tensor not in self.buffers:
                if isinstance(operation, PlaceholderOp):
                    raise LoweringError(
                        f"the input {tensor.name} is not among the arguments", span=operation.span
                    )
                self.buffers[tensor] = decl_buffer(tensor.shape, tensor.dtype, tensor.name)
                self.allocated.append(self.buffers[tensor])
        if isinstance(operation, PlaceholderOp):
            return None
        if isinstance(operation, ComputeOp):
            return self.compute(operation)
        if isinstance(operation, ExternOp):
            return self.extern(operation)
        raise LoweringError(
            f"{operation.name} is a {type(operation).__name__}, which has no block form", span=operation.span
        )

    def compute(self, operation: ComputeOp) -> Stmt:
        """One block for all outputs, inside a loop for each axis."""
        axes = operation.root_iter_vars
        fresh = {axis: Var(f"v_{axis.var.name}", axis.var.dtype) for axis in axes}
        mapping: dict[Var, PrimExpr] = {axis.var: variable for axis, variable in fresh.items()}
        indices: list[PrimExpr] = [fresh[axis] for axis in operation.axes]
        outputs = [self.buffers[tensor] for tensor in operation.outputs]
        rewriter = _Loads(self.buffers)
        init: Stmt | None = None
        first = operation.body[0]
        if isinstance(first, Reduce):
            start = first.init or first.combiner.identity_element
            init = stmt_seq(
                *[
                    BufferStore(buffer, rewriter.visit(value), indices)
                    for buffer, value in zip(outputs, start, strict=True)
                ]
            )
            current: list[PrimExpr] = [BufferLoad(buffer, indices) for buffer in outputs]
            values = combine(first, current, [rewriter.visit(value) for value in first.source])
            body = _store_together(outputs, values, indices)
            if not is_const(first.condition, 1):
                body = IfThenElse(rewriter.visit(first.condition), body)
        else:
            stores = [
                BufferStore(buffer, rewriter.visit(value), indices)
                for buffer, value in zip(outputs, operation.body, strict=True)
            ]
            body = stmt_seq(*stores)
        body = substitute(body, mapping)
        init = substitute(init, mapping) if init is not None else None
        block_axes = [IterVar(axis.dom, fresh[axis], axis.iter_type) for axis in axes]
        block = Block(
            block_axes,
            [],
            [
                BufferRegion(buffer, tuple(Range.from_min_extent(index, 1) for index in indices))
                for buffer in outputs
            ],
            operation.name,
            body,
            init,
            annotations=operation.attrs,
        )
        # One box for each buffer, as TVMScript gives a block that says nothing: steps of schedules count them.
        reads, _ = get_block_read_write_region(block, {one.data: one for one in self.buffers.values()})
        block = block.replace(reads=tuple(reads))
        loops = [Var(axis.var.name, axis.var.dtype) for axis in axes]
        made: Stmt = BlockRealize(loops, True, block)
        for axis, loop in zip(reversed(axes), reversed(loops), strict=True):
            assert axis.dom is not None
            start_value = axis.dom.min
            if is_const(start_value, 0):
                made = For(loop, 0, axis.dom.extent, ForKind.SERIAL, made)
            else:
                made = For(loop, start_value, axis.dom.extent, ForKind.SERIAL, made)
        return made

    def extern(self, operation: ExternOp) -> Stmt:
        """The statement on the buffers themselves."""
        mapping: dict[Var, PrimExpr] = {}
        pairs = [
            *zip(operation.input_placeholders, operation.inputs, strict=True),
            *zip(operation.output_placeholders, operation.outputs, strict=True),
        ]
        for placeholder, tensor in pairs:
            mapping[placeholder.data] = self.buffers[tensor].data
        body = substitute(operation.body, mapping)
        reads = [_whole(self.buffers[tensor]) for tensor in operation.inputs]
        writes = [_whole(self.buffers[tensor]) for tensor in operation.outputs]
        return BlockRealize([], True, Block([], reads, writes, operation.name, body))


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range(0, extent) for extent in buffer.shape))


def _store_together(outputs: list[Buffer], values: list[PrimExpr], indices: list[PrimExpr]) -> Stmt:
    """Store a tuple of which every value is computed before the first is stored."""
    if len(outputs) == 1:
        return BufferStore(outputs[0], values[0], indices)
    names = [Var(f"{buffer.name}.next", buffer.dtype) for buffer in outputs]
    body = stmt_seq(
        *[BufferStore(buffer, name, indices) for buffer, name in zip(outputs, names, strict=True)]
    )
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = LetStmt(name, operators.cast(name.dtype, value), body)
    return body
