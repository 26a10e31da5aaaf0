"""Joins and splits under the names that NumPy gave them, and what makes shapes alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import Size, broadcast_to, reshaped, sizes_of
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.ops.matrices import common_sizes
from tilewright.relay.frontend.torch.ops.reductions import any_
from tilewright.relay.frontend.torch.ops.views import cat, split, split_with_sizes, tensor_split
from tilewright.relay.frontend.torch.registry import converter

_AXES = {"h": 1, "v": 0, "d": 2}


def _at_least(node: TorchNode, data: Expr, rank: int) -> Expr:
    """With axes of one: before the others, but behind them for the third."""
    sizes: list[Size] = sizes_of(node, data)
    while len(sizes) < min(rank, 2):
        sizes.insert(0, 1)
    if rank == 3 and len(sizes) < 3:
        sizes.append(1)
    return reshaped(node, data, sizes)


@converter("aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d")
def at_least(
    node: TorchNode, input: Expr | None = None, tensors: Sequence[Expr] | None = None
) -> Expr | list[Expr]:
    """Tensors with so many axes or more."""
    rank = int(node.op_type.partition("atleast_")[2][0])
    if tensors is not None:
        return [_at_least(node, one, rank) for one in tensors]
    assert input is not None
    return _at_least(node, input, rank)


@converter("aten::hstack", "aten::vstack", "aten::row_stack", "aten::dstack", "aten::column_stack")
def stacked(node: TorchNode, tensors: Sequence[Expr]) -> Expr:
    """Tensors side by side, one below another, or one behind another."""
    name = node.op_type.partition("::")[2]
    if name == "dstack":
        return cat(node, [_at_least(node, one, 3) for one in tensors], 2)
    if name in ("vstack", "row_stack"):
        return cat(node, [_at_least(node, one, 2) for one in tensors], 0)
    if name == "column_stack":
        columns = [
            one
            if node.rank(one) > 1
            else reshaped(node, one, [*sizes_of(node, one), *[1] * (2 - node.rank(one))])
            for one in tensors
        ]
        return cat(node, columns, 1)
    given = [_at_least(node, one, 1) for one in tensors]
    return cat(node, given, 0 if node.rank(given[0]) == 1 else 1)


@converter("aten::hsplit", "aten::vsplit", "aten::dsplit")
def split_on_axis(node: TorchNode, input: Expr, sections: Any = None, indices: Any = None) -> list[Expr]:
    """Parts of the axis that the name says."""
    axis = _AXES[node.op_type.partition("::")[2][0]]
    if axis == 1 and node.rank(input) == 1:
        axis = 0
    return tensor_split(node, input, sections, indices, axis)


@converter("aten::unsafe_split", "aten::unsafe_split_with_sizes")
def unsafe_split(
    node: TorchNode, input: Expr, split_size: Any = None, split_sizes: Any = None, dim: int = 0
) -> list[Expr]:
    """Parts of an axis, in memory of their own."""
    if split_sizes is not None:
        return split_with_sizes(node, input, split_sizes, dim=dim)
    return split(node, input, split_size, dim)


@converter("aten::broadcast_tensors")
def broadcast_tensors(node: TorchNode, tensors: Sequence[Expr]) -> list[Expr]:
    """Tensors in their common shape."""
    shape: list[Size] = []
    for one in tensors:
        shape = common_sizes(node, shape, sizes_of(node, one))
    return [broadcast_to(node, one, shape) for one in tensors]


@converter("aten::sum_to_size", "aten::_sum_to_size")
def sum_to_size(node: TorchNode, input: Expr, size: Any) -> Expr:
    """Summed over the axes along which a shape was broadcast."""
    rank = node.rank(input)
    lead = rank - len(size)
    ones = [lead + place for place, one in enumerate(size) if isinstance(one, int) and one == 1]
    kept = [axis for axis in ones if node.shape(input)[axis] != 1]
    made = node.cast(input, "int64") if (kept or lead) and node.is_integral(input) else input
    made = relay.sum(made, kept, keepdims=True) if kept else made
    return relay.sum(made, list(range(lead))) if lead else made


@converter("aten::isin")
def isin(
    node: TorchNode,
    elements: Operand | None = None,
    test_elements: Operand | None = None,
    element: Operand | None = None,
    test_element: Operand | None = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> Expr:
    """Where elements are among others."""
    given = elements if elements is not None else element
    others = test_elements if test_elements is not None else test_element
    assert given is not None and others is not None
    one, two = node.promoted(given, others)
    same = relay.equal(relay.expand_dims(one, node.rank(one)), reshaped(node, two, [-1]))
    found = any_(node, same, node.rank(same) - 1)
    return relay.logical_not(found) if invert else found


@converter("aten::_weight_norm", "aten::_weight_norm_interface")
def weight_norm(node: TorchNode, v: Expr, g: Expr, dim: int = 0) -> Any:
    """A weight from its direction and its length."""
    rank = node.rank(v)
    axes = (
        [axis for axis in range(rank) if axis != node.axis_of(dim, rank)] if dim != -1 else list(range(rank))
    )
    length = relay.sqrt(relay.sum(relay.multiply(v, v), axes, keepdims=True))
    made = relay.multiply(v, relay.divide(g, length))
    return [made, length] if "interface" in node.op_type else made


@converter("aten::_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_mm(
    node: TorchNode,
    input: Expr,
    mat2: Expr | None = None,
    weight: Expr | None = None,
    offs: Expr | None = None,
    bias: Expr | None = None,
    out_dtype: str | None = None,
) -> Expr:
    """Rows times the matrix of the group that they are in; groups end at offsets. Every group multiplies all rows, and
    those of other groups are not used: the sizes of groups are not known before the program runs."""
    matrices = mat2 if mat2 is not None else weight
    assert matrices is not None
    if offs is None or node.rank(input) != 2 or node.rank(matrices) != 3 or bias is not None:
        raise node.fail("only groups of rows, each with a matrix of its own, are supported")
    rows = relay.arange(node.constant(0, "int64"), _rows_of(node, input), node.constant(1, "int64"), "int64")
    group = relay.searchsorted(relay.cast(offs, "int64"), rows, right=True, dtype="int64")
    here = relay.expand_dims(group, 1)
    made: Expr | None = None
    zero = node.constant(0, input)
    for number in range(node.known_size(matrices, 0)):
        matrix = relay.take(matrices, node.constant(number, "int64"), axis=0)
        product = relay.where(
            relay.equal(here, node.constant(number, "int64")), relay.nn.matmul(input, matrix), zero
        )
        made = product if made is None else relay.add(made, product)
    if made is None:
        raise node.fail("there are no groups")
    return node.cast(made, out_dtype) if out_dtype else made


def _rows_of(node: TorchNode, data: Expr) -> Expr:
    size = sizes_of(node, data)[0]
    return node.constant(size, "int64") if isinstance(size, int) else size
