"""CombineParallelDense: combines dense layers of one tensor into one, with more units or as a batched product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import known
from tilewright.relay.transform.lib.combine_parallel import (
    AlongAxis,
    Combination,
    combine_parallel,
    constant_extent,
)
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import is_call, shape_of, tensor_of


def _same_attributes(first: Call, second: Call) -> bool:
    attrs: Any = first.attrs
    others: Any = second.attrs
    same = attrs.replace(units=None) == others.replace(units=None)
    return same and tensor_of(first.args[1]).dtype == tensor_of(second.args[1]).dtype


class _MoreUnits(AlongAxis):
    """One layer with the units of all."""

    operator = "nn.dense"

    def axis(self, heavy: Call) -> int:
        """The last."""
        return len(shape_of(heavy)) - 1

    def supports(self, heavy: Call) -> bool:
        """The number of units must be known."""
        return known(*shape_of(heavy.args[1]))

    def compatible(self, first: Call, second: Call) -> bool:
        """The number of units may differ."""
        return _same_attributes(first, second)

    def combine(self, heavies: Sequence[Call], arguments: Sequence[Sequence[RelayExpr]]) -> RelayExpr:
        """The rows of the weights one after another."""
        attrs: Any = heavies[0].attrs
        units = sum(constant_extent(heavy.args[1], 0) for heavy in heavies)
        weight = call("concatenate", Tuple([each[1] for each in arguments]), axis=0)
        return Call(heavies[0].op, (arguments[0][0], weight), attrs.replace(units=units))

    def keeps_shape(self, before: Sequence[Any], after: Sequence[Any]) -> bool:
        """An operand of a higher rank may add dimensions in front."""
        return tuple(after)[len(after) - len(before) :] == tuple(before)

    def part(self, combined: RelayExpr, heavies: Sequence[Call], position: int) -> RelayExpr:
        """A slice of the units, which are last."""
        rank = len(shape_of(combined))
        units = [constant_extent(heavy, len(shape_of(heavy)) - 1) for heavy in heavies]
        return call(
            "strided_slice",
            combined,
            begin=(0,) * (rank - 1) + (sum(units[:position]),),
            end=(-1,) * (rank - 1) + (units[position],),
            strides=(1,) * rank,
            slice_mode="size",
        )

    def joins(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> bool:
        """Also operands that are broadcast along the units of their layer."""
        if super().joins(operands, heavies, axis):
            return True
        shapes = [shape_of(operand) for operand in operands]
        if axis is not None or not all(known(*shape) and shape[:-1] == shapes[0][:-1] for shape in shapes):
            return False
        units = [constant_extent(heavy, len(shape_of(heavy)) - 1) for heavy in heavies]
        same_rank = all(len(shape) == len(shapes[0]) for shape in shapes)
        return same_rank and all(
            not shape or shape[-1] in (1, count) for shape, count in zip(shapes, units, strict=True)
        )

    def join(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> RelayExpr:
        """One after another, each as often as its layer has units."""
        if super().joins(operands, heavies, axis):
            return super().join(operands, heavies, axis)
        repeated = []
        for operand, heavy in zip(operands, heavies, strict=True):
            units, shape = constant_extent(heavy, len(shape_of(heavy)) - 1), shape_of(operand)
            whole = operand if shape else call("expand_dims", operand, axis=-1, num_newaxis=1)
            last = max(len(shape) - 1, 0)
            single = not shape or shape[-1] == 1 != units
            repeated.append(call("repeat", whole, repeats=units, axis=last) if single else whole)
        return call("concatenate", Tuple(repeated), axis=max(len(shape_of(operands[0])) - 1, 0))


class _Batch(Combination):
    """A batch of products, one for each layer."""

    operator = "nn.dense"

    def __init__(self) -> None:
        self.splits: dict[RelayExpr, RelayExpr] = {}
        """The products of a batch, each batch cut once for all branches."""

    def supports(self, heavy: Call) -> bool:
        """Matrices."""
        return len(shape_of(heavy)) == 2 and known(*shape_of(heavy.args[1]))

    def compatible(self, first: Call, second: Call) -> bool:
        """All weights have one shape."""
        return _same_attributes(first, second) and shape_of(first.args[1]) == shape_of(second.args[1])

    def combine(self, heavies: Sequence[Call], arguments: Sequence[Sequence[RelayExpr]]) -> RelayExpr:
        """The data once for each weight."""
        attrs: Any = heavies[0].attrs
        data, weight = (
            call("stack", Tuple([each[position] for each in arguments]), axis=0) for position in (0, 1)
        )
        return call("nn.batch_matmul", data, weight, out_dtype=attrs.out_dtype)

    def part(self, combined: RelayExpr, heavies: Sequence[Call], position: int) -> RelayExpr:
        """One product of the batch."""
        if combined not in self.splits:
            self.splits[combined] = call("split", combined, indices_or_sections=len(heavies), axis=0)
        return call("squeeze", TupleGetItem(self.splits[combined], position), axis=(0,))

    def joins(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> bool:
        """They have one shape; a bias is along the units."""
        shape = shape_of(operands[0])
        same = known(*shape) and all(shape_of(operand) == shape for operand in operands)
        return same and (axis is None or axis % 2 == 1)

    def join(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> RelayExpr:
        """Stacked, each aligned with its own product."""
        shape = shape_of(operands[0])
        missing = 2 - len(shape)
        whole = [
            call("expand_dims", operand, axis=0, num_newaxis=missing) if missing else operand
            for operand in operands
        ]
        return call("stack", Tuple(whole), axis=0)

    def follow(self, step: Call, arguments: Sequence[RelayExpr]) -> RelayExpr:
        """The stacked bias is one that is added."""
        return call("add", *arguments) if is_call(step, "nn.bias_add") else super().follow(step, arguments)


@dataclass
class CombineParallelDense(FunctionPass):
    """Combine at least so many dense layers of one tensor, and the elementwise operators that follow them: into a batch
    of products where ``to_batch``, which needs weights of one shape, else into one layer with more units."""

    min_num_branches: int = 3
    to_batch: bool = True

    name = "CombineParallelDense"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Combine within one function."""
        return combine_parallel(func, _Batch() if self.to_batch else _MoreUnits(), self.min_num_branches)
