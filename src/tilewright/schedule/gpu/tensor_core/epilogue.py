"""What follows a product: the element of the output that each sum becomes, and where it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.arith.iter_detect import detect_iter_map, inverse_affine_iter_map
from tilewright.ir.expr import PrimExpr, ProducerLoad, Var
from tilewright.ir.functor import Mutator, post_order, substitute_expr
from tilewright.schedule.gpu.tensor_core.factors import Product
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar


@dataclass(frozen=True)
class Epilogue:
    """``operation`` computes each of its elements from one sum of ``result`` and from other tensors. ``axes`` are its
    axes in terms of ``places``, the indices of the sum."""

    operation: ComputeOp
    result: ComputeOp
    places: tuple[Var, ...]
    axes: Mapping[Var, PrimExpr]

    def indices(self, sum_indices: Mapping[Var, PrimExpr]) -> dict[Var, PrimExpr]:
        """The operation's axes at a place of the product's result."""
        values = {
            place: sum_indices[axis.var] for place, axis in zip(self.places, self.result.axes, strict=True)
        }
        return {variable: substitute_expr(value, values) for variable, value in self.axes.items()}


def find_epilogue(product: Product, output: ComputeOp) -> Epilogue | None:
    """The epilogue that an operation is for a product, if each of its elements comes from one sum and each sum is used
    once: elementwise operations, in any order of the axes, reshaped or not."""
    if output is product.result:
        variables = tuple([axis.var for axis in output.axes])
        return Epilogue(output, output, variables, {variable: variable for variable in variables})
    if output.reduce_axis:
        return None
    result = product.result.output(0)
    reads: list[ProducerLoad] = [
        part
        for value in output.body
        for part in post_order(value)
        if isinstance(part, ProducerLoad) and part.producer == result
    ]
    if not reads or any(one.indices != reads[0].indices for one in reads[1:]):
        return None
    ranges = {axis.var: axis.dom for axis in output.axes if axis.dom is not None}
    found = detect_iter_map(reads[0].indices, ranges, True, require_bijective=True)
    if not found:
        return None
    variables = tuple([Var(f"s{number}", index.dtype) for number, index in enumerate(reads[0].indices)])
    inverse = inverse_affine_iter_map(found, variables)
    axes: dict[Var, PrimExpr] = {}
    for axis in output.axes:
        assert axis.dom is not None
        # An axis of one place takes no part in the map.
        axes[axis.var] = inverse.get(axis.var, axis.dom.min)
    return Epilogue(output, product.result, variables, axes)


class ReadBuffers(Mutator):
    """Turns reads of tensors into reads of memory, and of the product into a sum that is at hand."""

    memoize = True

    def __init__(
        self, buffers: Mapping[Tensor, BufferVar], result: Tensor | None, value: PrimExpr | None
    ) -> None:
        super().__init__()
        self.buffers = buffers
        self.result, self.value = result, value

    def visit_producer_load(self, node: ProducerLoad) -> Any:
        if node.producer == self.result:
            return self.value
        assert isinstance(node.producer, Tensor)
        return self.buffers[node.producer][tuple([self.visit(index) for index in node.indices])]
