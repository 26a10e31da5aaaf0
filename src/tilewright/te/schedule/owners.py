"""Which operation's memory a tensor lives in.

A scheduling step may have replaced the operation of a stage; the user holds tensors of the original operation, whose
memory is used. The initial value, the update and the state of a scan live in the scan's output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.expr import PrimExpr, ProducerLoad
from tilewright.ir.functor import Mutator
from tilewright.te.scan import ScanOp
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import AttrStmt, Prefetch, ProducerRealize, ProducerStore, Stmt


def in_memory_of_owners(body: Stmt, stages: Sequence[Stage]) -> Stmt:
    """The statement with every tensor replaced by the one whose memory it lives in."""
    originals: dict[Tensor, Tensor] = {}
    aliases: dict[Tensor, Tensor] = {}
    for stage in stages:
        for old, new in zip(stage.origin_op.outputs, stage.op.outputs, strict=False):
            if old is not new:
                originals[new] = old
        operation = stage.op
        if isinstance(operation, ScanOp):
            for group in (operation.init, operation.update, operation.state_placeholder):
                aliases.update(zip(group, operation.outputs, strict=True))
    if not originals and not aliases:
        return body
    made: Stmt = _ToOwners(originals, aliases).visit(body)
    return made


class _ToOwners(Mutator):
    """Replaces tensors; a tensor in another's memory is not realised itself."""

    def __init__(self, originals: Mapping[Tensor, Tensor], aliases: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.originals = originals
        self.aliases = aliases

    def owner(self, producer: Any) -> Any:
        """The tensor whose memory this one lives in."""
        aliased = self.aliases.get(producer, producer)
        return self.originals.get(aliased, aliased)

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        return ProducerLoad(self.owner(node.producer), made.indices, made.span)

    def visit_producer_store(self, node: ProducerStore) -> Stmt:
        return node.map_children(self.visit).replace(producer=self.owner(node.producer))

    def visit_producer_realize(self, node: ProducerRealize) -> Stmt:
        if node.producer in self.aliases:
            body: Stmt = self.visit(node.body)
            return body
        return node.map_children(self.visit).replace(producer=self.owner(node.producer))

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made = node.map_children(self.visit)
        if node.attr_key == "buffer_bind_scope":
            buffer, tensor = node.node
            return made.replace(node=(buffer, self.owner(tensor)))
        return made.replace(node=self.owner(node.node)) if isinstance(node.node, Tensor) else made

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        made = node.map_children(self.visit)
        return made.replace(buffer=self.owner(node.buffer)) if isinstance(node.buffer, Tensor) else made
