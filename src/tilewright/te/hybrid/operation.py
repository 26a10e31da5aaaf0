"""The operation of a hybrid script: a statement over tensors, whose loops a schedule can transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.expr import IterVar, ProducerLoad
from tilewright.ir.functor import post_order
from tilewright.support.node import node
from tilewright.support.recursion import recursion_room
from tilewright.support.span import Span
from tilewright.te.operation import ReplaceTensors
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.stmt import ProducerRealize, ProducerStore, Stmt


@node
class HybridOp(Operation):
    """``body`` reads ``inputs`` and writes ``output_placeholders``, which stand for the outputs in it. ``axes`` are its
    loops, in the order of the text."""

    inputs: tuple[Tensor, ...]
    output_placeholders: tuple[Tensor, ...]
    axes: tuple[IterVar, ...]
    body: Stmt

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        inputs: Sequence[Tensor],
        output_placeholders: Sequence[Tensor],
        axes: Sequence[IterVar],
        body: Stmt,
        span: Span | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.output_placeholders = tuple(output_placeholders)
        self.axes = tuple(axes)
        self.body = body
        shapes = [tensor.shape for tensor in self.output_placeholders]
        dtypes = [tensor.dtype for tensor in self.output_placeholders]
        self._finish(name, tag, attrs, span, shapes, dtypes)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return self.axes

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return self.inputs

    def replace_inputs(self, mapping: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in mapping for tensor in self.inputs):
            return self
        # The axes are the stage's roots: they must outlive the replacement of what is read.
        return HybridOp(
            self.name,
            self.tag,
            self.attrs,
            [mapping.get(tensor, tensor) for tensor in self.inputs],
            self.output_placeholders,
            self.axes,
            replace_tensors_in(self.body, mapping),
            self.span,
        )


class _ReplaceInStatement(ReplaceTensors):
    def visit_producer_store(self, node: ProducerStore) -> Stmt:
        made = node.map_children(self.visit)
        target = self.mapping.get(node.producer)  # type: ignore[call-overload]
        return made if target is None else made.replace(producer=target)


def replace_tensors_in(body: Stmt, mapping: Mapping[Tensor, Tensor]) -> Stmt:
    """The statement with other tensors read and written."""
    with recursion_room():
        made: Stmt = _ReplaceInStatement(mapping).visit(body)
    return made


def tensors_used(body: Stmt) -> tuple[Tensor, ...]:
    """The tensors that a statement reads or writes and has no memory for, in the order of the first use."""
    found: dict[Tensor, None] = {}
    own: set[Tensor] = set()
    for part in post_order(body):
        if isinstance(part, (ProducerLoad, ProducerStore)) and isinstance(part.producer, Tensor):
            found.setdefault(part.producer)
        elif isinstance(part, ProducerRealize) and isinstance(part.producer, Tensor):
            own.add(part.producer)
    return tuple(tensor for tensor in found if tensor not in own)
