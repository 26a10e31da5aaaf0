"""From the statement of a schedule to a function: tensors become buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import BufferLoad, IterVar, PrimExpr, ProducerLoad, Var
from tilewright.support.errors import LoweringError
from tilewright.support.recursion import with_recursion_room
from tilewright.te.tensor import Tensor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    AttrStmt,
    BufferRealize,
    BufferStore,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    Stmt,
)
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator
from tilewright.tir.transform.storage_flatten import FROM_SCHEDULE


class _ToBuffers(ScopedMutator):
    """Replaces tensors by buffers. Threads that are already running around a statement are not launched again."""

    def __init__(self, given: Mapping[Tensor, Buffer]) -> None:
        super().__init__()
        self.given = dict(given)
        self.buffers: dict[Tensor, Buffer] = dict(given)
        self.running: set[IterVar] = set()

    def buffer_of(self, tensor: Any) -> Buffer:
        """The buffer of a tensor; an argument's, or one made when its memory was realised."""
        found = self.buffers.get(tensor)
        if found is None:
            raise LoweringError(
                f"tensor {tensor.name} is used but is neither an argument nor computed by the schedule; "
                "add it to the argument list",
                span=getattr(tensor.op, "span", None),
            )
        return found

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        return BufferLoad(self.buffer_of(node.producer), made.indices, made.span)

    def visit_producer_store(self, node: ProducerStore) -> Stmt:
        made = node.map_children(self.visit)
        return BufferStore(self.buffer_of(node.producer), made.value, made.indices, made.span)

    def visit_producer_realize(self, node: ProducerRealize) -> Stmt:
        tensor = node.producer
        assert isinstance(tensor, Tensor)
        if tensor in self.given:
            body: Stmt = self.visit(node.body)
            return body
        self.buffers[tensor] = decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=node.storage_scope)
        made = node.map_children(self.visit)
        return BufferRealize(self.buffers[tensor], made.bounds, made.condition, made.body, made.span)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        key = node.attr_key
        if key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            if node.node in self.running:
                body: Stmt = self.visit(node.body)
                return body
            self.running.add(node.node)
            made = node.map_children(self.visit)
            self.running.discard(node.node)
            return made
        made = node.map_children(self.visit)
        if key == "buffer_bind_scope":
            buffer, tensor = node.node
            return made.replace(node=(buffer, self.buffer_of(tensor)))
        if isinstance(node.node, Tensor):
            tensor = node.node
            # The attribute is outside the realisation, so its buffer is known only after the body was
            # rewritten.
            return (
                made.body
                if tensor in self.given and key == "buffer_dim_align"
                else made.replace(node=self.buffer_of(tensor))
            )
        return made

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        made = node.map_children(self.visit)
        return made.replace(buffer=self.buffer_of(node.buffer)) if isinstance(node.buffer, Tensor) else made


@with_recursion_room
def to_prim_func(
    arguments: Sequence[Any], body: Stmt, binds: Mapping[Tensor, Buffer] | None = None
) -> PrimFunc:
    """The function with these parameters: tensors, buffers or scalar variables. ``binds`` gives buffers for
    tensors."""
    given: dict[Tensor, Buffer] = dict(binds or {})
    parameters: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    for argument in arguments:
        if isinstance(argument, Var):
            parameters.append(argument)
            continue
        if isinstance(argument, Tensor):
            buffer = given.get(argument)
            if buffer is None:
                buffer = decl_buffer(argument.shape, argument.dtype, argument.name)
                given[argument] = buffer
        elif isinstance(argument, Buffer):
            buffer = argument
        else:
            raise LoweringError(f"an argument is a tensor, a buffer or a variable, not {argument!r}")
        if any(buffer is one for one in buffer_map.values()):
            raise LoweringError(f"{buffer.name} occurs twice in the argument list")
        handle = Var(buffer.name, "handle")
        parameters.append(handle)
        buffer_map[handle] = buffer
    function = PrimFunc(parameters, _ToBuffers(given).visit(body), None, buffer_map)
    return function.with_attr(FROM_SCHEDULE, True)
