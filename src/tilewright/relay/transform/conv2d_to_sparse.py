"""Conv2dToSparse and Conv2dToSparse2: turn convolutions with the given weights, or with sufficiently sparse constant
ones, into sparse products.

A sparse convolution has stride one and preserves the extents of its data; others are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.windows import pad_tuple, per_axis
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten, shape_of
from tilewright.relay.transform.lib.sparse_weights import SparseVariables, block_sparse
from tilewright.tir.data_layout import Layout


def _fits(old: Call, layout: str, size: int) -> bool:
    """True if a convolution is one that a sparse one can say."""
    attrs: Any = old.attrs
    kernel = Layout(attrs.kernel_layout)
    if attrs.data_layout != layout or attrs.out_layout not in ("", layout) or len(kernel) != 4:
        return False
    shape = shape_of(old.args[1])
    if (shape[kernel.index_of("H")], shape[kernel.index_of("W")]) != (size, size) or size % 2 == 0:
        return False
    plain = (*per_axis(attrs.strides, 2, "strides"), *per_axis(attrs.dilation, 2, "dilation"), attrs.groups)
    return set(plain) == {1} and set(pad_tuple(attrs.padding, 2)) == {size // 2}


@dataclass
class Conv2dToSparse(FunctionPass):
    """Make convolutions with sparse weights use block-sparse products.

    ``weight_name`` are the variables; ``weight_shape`` gives for each the extents of the values, then the number of
    columns, then that of row starts.

    A weight is a matrix of (output channels, height x width x input channels).
    """

    weight_name: Sequence[str]
    weight_shape: Sequence[Sequence[int]]
    layout: str
    kernel_size: int

    name = "Conv2dToSparse"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        variables = SparseVariables.of(self.weight_name, self.weight_shape)

        def rule(old: Call, new: Call) -> RelayExpr | None:
            parts = variables.parts(new.args[1]) if _fits(old, self.layout, self.kernel_size) else None
            if parts is None:
                return None
            return call(
                "nn.sparse_conv2d", new.args[0], *parts, layout=self.layout, kernel_size=self.kernel_size
            )

        return variables.rewrite(func, {"nn.conv2d": rule})


@dataclass
class Conv2dToSparse2(FunctionPass):
    """Constant weights of which at least a part of ``sparsity_threshold`` are zeros are stored as those blocks of
    ``blocksize`` (output channels, the rest) that have other elements."""

    layout: str
    kernel_size: int
    blocksize: Sequence[int]
    sparsity_threshold: float

    name = "Conv2dToSparse2"
    opt_level = 5

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.conv2d": self._rule}), func)

    def _rule(self, old: Call, new: Call) -> RelayExpr | None:
        weight = new.args[1]
        if not isinstance(weight, Constant) or not _fits(old, self.layout, self.kernel_size):
            return None
        attrs: Any = old.attrs
        kernel = Layout(attrs.kernel_layout)
        values = weight.data.numpy().transpose([kernel.index_of(axis) for axis in "OHWI"])
        matrix = values.reshape(values.shape[0], -1)
        rows, columns = self.blocksize
        divides = matrix.shape[0] % rows == 0 and matrix.shape[1] % columns == 0
        if not divides or (matrix == 0).mean() < self.sparsity_threshold:
            return None
        parts = [const(part) for part in block_sparse(matrix, rows, columns)]
        return call("nn.sparse_conv2d", new.args[0], *parts, layout=self.layout, kernel_size=self.kernel_size)
