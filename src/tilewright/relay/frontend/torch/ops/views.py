"""Operators that arrange elements anew: views, permutations, joins and slices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import (
    Size,
    as_scalar,
    broadcast_to,
    multiplied,
    reshaped,
    size_of,
    sizes_of,
    vector,
    with_known,
)
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import converter

LAST = 2**63 - 1
"""The end of a slice that has none."""


@converter("aten::sym_size.int", "aten::size.int")
def size(node: TorchNode, input: Expr, dim: int) -> Any:
    """One dimension."""
    found = size_of(node, input, node.axis_of(dim, node.rank(input)))
    return found if isinstance(found, int) else node.scope.number(found)


@converter("aten::sym_numel", "aten::numel")
def numel(node: TorchNode, input: Expr) -> Any:
    """The number of elements."""
    found = multiplied(sizes_of(node, input))
    return found if isinstance(found, int) else node.scope.number(found)


@converter("aten::sym_stride.int", "aten::stride.int")
def stride(node: TorchNode, input: Expr, dim: int) -> Any:
    """The distance of elements along an axis of a contiguous tensor."""
    axis = node.axis_of(dim, node.rank(input))
    found = multiplied(sizes_of(node, input)[axis + 1 :])
    return found if isinstance(found, int) else node.scope.number(found)


@converter("aten::sym_storage_offset")
def storage_offset(node: TorchNode, input: Expr) -> int:
    """Zero: every tensor has memory of its own."""
    return 0


@converter("aten::_shape_as_tensor")
def shape_as_tensor(node: TorchNode, input: Expr) -> Expr:
    """The sizes as a vector."""
    return vector(sizes_of(node, input))


# Shapes


@converter("aten::view", "aten::reshape", "aten::_unsafe_view", "aten::_reshape_alias", "aten::view_copy")
def view(
    node: TorchNode,
    input: Expr,
    size: Any = None,
    shape: Any = None,
    stride: Any = None,
    dtype: str | None = None,
) -> Expr:
    """The elements in another shape."""
    return reshaped(node, input, size if size is not None else shape)


@converter("aten::view.dtype", "aten::view_copy.dtype")
def view_dtype(node: TorchNode, input: Expr, dtype: str) -> Expr:
    """The same bits as another type of the same width."""
    return input if node.dtype(input) == dtype else relay.reinterpret(input, dtype)


@converter("aten::view_as", "aten::reshape_as")
def view_as(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """The elements in the shape of another tensor."""
    return reshaped(node, input, sizes_of(node, other))


@converter("aten::flatten.using_ints", "aten::flatten")
def flatten(node: TorchNode, input: Expr, start_dim: int = 0, end_dim: int = -1) -> Expr:
    """Several axes as one."""
    rank = node.rank(input)
    if not rank:
        return relay.reshape(input, (1,))
    first, last = node.axis_of(start_dim, rank), node.axis_of(end_dim, rank)
    sizes = sizes_of(node, input)
    return reshaped(node, input, [*sizes[:first], multiplied(sizes[first : last + 1]), *sizes[last + 1 :]])


@converter("aten::ravel")
def ravel(node: TorchNode, input: Expr) -> Expr:
    """All elements in one row."""
    return reshaped(node, input, [-1])


@converter("aten::unflatten.int", "aten::unflatten")
def unflatten(node: TorchNode, input: Expr, dim: int, sizes: Any) -> Expr:
    """One axis as several."""
    axis = node.axis_of(dim, node.rank(input))
    have = sizes_of(node, input)
    parts = list(sizes)
    if -1 in [one for one in parts if isinstance(one, int)]:
        rest = multiplied([one for one in parts if not (isinstance(one, int) and one == -1)])
        whole = have[axis]
        left: Size
        if isinstance(rest, int) and isinstance(whole, int):
            left = whole // rest
        else:
            left = relay.floor_divide(as_scalar(whole), as_scalar(rest))
        parts = [left if isinstance(one, int) and one == -1 else one for one in parts]
    return reshaped(node, input, [*have[:axis], *parts, *have[axis + 1 :]])


@converter("aten::squeeze", "aten::squeeze_copy")
def squeeze(node: TorchNode, input: Expr, dim: Any = None) -> Expr:
    """Without axes of one; axes of other sizes that are named stay."""
    shape = node.shape(input)
    if dim is None:
        shape = node.static_shape(input, "the tensor, all of whose dimensions of one are dropped,")
        axes = list(range(len(shape)))
    else:
        axes = node.axes_of(dim, len(shape)) if dim not in ([], ()) else []
    if shape and any(shape[axis] is None for axis in axes):
        # A size that is open is taken to be more than one, as the exporter does.
        axes = [axis for axis in axes if shape[axis] is not None]
    gone = [axis for axis in axes if shape and shape[axis] == 1]
    return relay.squeeze(input, axis=gone) if gone else input


@converter("aten::unsqueeze", "aten::unsqueeze_copy")
def unsqueeze(node: TorchNode, input: Expr, dim: int) -> Expr:
    """With a new axis of one."""
    return relay.expand_dims(input, node.axis_of(dim, node.rank(input) + 1))


@converter("aten::expand", "aten::expand_copy", "aten::broadcast_to")
def expand(node: TorchNode, input: Expr, size: Any) -> Expr:
    """Repeated along axes of one; -1 keeps an axis."""
    have = sizes_of(node, input)
    lead = len(size) - len(have)
    wanted = [
        have[place - lead] if isinstance(one, int) and one == -1 else one for place, one in enumerate(size)
    ]
    return broadcast_to(node, input, wanted)


@converter("aten::expand_as")
def expand_as(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """Repeated to the shape of another tensor."""
    return broadcast_to(node, input, sizes_of(node, other))


@converter("aten::permute", "aten::permute_copy")
def permute(node: TorchNode, input: Expr, dims: Any) -> Expr:
    """The axes in another order."""
    rank = node.rank(input)
    return _transposed(input, [node.axis_of(axis, rank) for axis in dims])


def _transposed(data: Expr, order: list[int]) -> Expr:
    return data if order == sorted(order) else relay.transpose(data, order)


@converter("aten::transpose", "aten::swapaxes", "aten::swapdims", "aten::transpose_copy")
def transpose(
    node: TorchNode,
    input: Expr,
    dim0: int | None = None,
    dim1: int | None = None,
    axis0: int | None = None,
    axis1: int | None = None,
) -> Expr:
    """Two axes exchanged."""
    rank = node.rank(input)
    one = node.axis_of(int(dim0 if dim0 is not None else axis0 or 0), rank)
    two = node.axis_of(int(dim1 if dim1 is not None else axis1 or 0), rank)
    order = list(range(rank))
    if rank:
        order[one], order[two] = two, one
    return _transposed(input, order)


@converter("aten::t", "aten::t_copy")
def t(node: TorchNode, input: Expr) -> Expr:
    """A matrix transposed; a vector stays."""
    return relay.transpose(input, (1, 0)) if node.rank(input) == 2 else input


@converter("aten::numpy_T", "aten::T", "aten::mT", "aten::adjoint", "aten::mH", "aten::matrix_H")
def reversed_axes(node: TorchNode, input: Expr) -> Expr:
    """All axes turned around, or those of the matrices."""
    rank = node.rank(input)
    order = list(range(rank))
    if node.op_type in ("aten::numpy_T", "aten::T"):
        return _transposed(input, order[::-1])
    order[-2:] = order[-2:][::-1]
    return _transposed(input, order)


@converter("aten::movedim", "aten::moveaxis")
def movedim(node: TorchNode, input: Expr, source: Any, destination: Any) -> Expr:
    """Axes moved to other places; the others keep their order."""
    rank = node.rank(input)
    sources = [source] if isinstance(source, int) else list(source)
    places = [destination] if isinstance(destination, int) else list(destination)
    sources = [node.axis_of(axis, rank) for axis in sources]
    places = [node.axis_of(axis, rank) for axis in places]
    rest = [axis for axis in range(rank) if axis not in sources]
    order = [0] * rank
    for place, axis in zip(places, sources, strict=True):
        order[place] = axis
    for place in range(rank):
        if place not in places:
            order[place] = rest.pop(0)
    return _transposed(input, order)


# The same tensor


@converter(
    "aten::contiguous", "aten::clone", "aten::detach", "aten::detach_copy", "aten::alias", "aten::alias_copy",
    "aten::lift_fresh_copy", "aten::lift_fresh", "aten::lift", "aten::requires_grad_", "aten::cpu",
    "aten::pin_memory", "aten::_lazy_clone", "aten::data", "aten::detach_", "aten::_conj",
)  # fmt: skip
def identity(node: TorchNode, input: Expr) -> Expr:
    """The tensor itself."""
    return input


@converter("aten::to", "aten::_to_copy", "aten::type_as", "aten::_autocast_to_reduced_precision",
           "aten::_autocast_to_full_precision")  # fmt: skip
def to(node: TorchNode, input: Expr, dtype: str | None = None, other: Expr | None = None, **_: Any) -> Expr:
    """In another element type, given by its name or by a tensor."""
    if other is not None:
        dtype = node.dtype(other)
    return input if dtype is None else node.cast(input, dtype_name(dtype))


@converter("prims::convert_element_type")
def convert_element_type(node: TorchNode, a: Expr, dtype: str) -> Expr:
    """In another element type, as decompositions of PyTorch say it."""
    return node.cast(a, dtype_name(dtype))


# Joins and parts


@converter("aten::cat", "aten::concat", "aten::concatenate")
def cat(node: TorchNode, tensors: list[Expr], dim: int = 0, axis: int | None = None) -> Expr:
    """Tensors one after another along an axis; empty ones of one dimension are left out."""
    given = [one for one in tensors if node.shape(one) != (0,)] or tensors[:1]
    dtype = node.result_dtype(*tensors)
    given = [node.cast(one, dtype) for one in given]
    place = node.axis_of(dim if axis is None else axis, node.rank(given[0]))
    return given[0] if len(given) == 1 else relay.concatenate(given, place)


@converter("aten::stack")
def stack(node: TorchNode, tensors: list[Expr], dim: int = 0) -> Expr:
    """Tensors one after another along a new axis."""
    dtype = node.result_dtype(*tensors)
    return relay.stack(
        [node.cast(one, dtype) for one in tensors], node.axis_of(dim, node.rank(tensors[0]) + 1)
    )


def part(node: TorchNode, data: Expr, axis: int, begin: Size, end: Size, step: int = 1) -> Expr:
    """A slice along one axis, between bounds that count from the front."""
    if isinstance(begin, int) and isinstance(end, int):
        whole = node.shape(data)[axis]
        if begin == 0 and step == 1 and (end >= LAST or (whole is not None and end >= whole)):
            return data
        return relay.strided_slice(data, [begin], [min(end, LAST)], [step], axes=[axis])
    first, last, steps = [0] * axis + [begin], [LAST] * axis + [end], [1] * axis + [step]
    made = relay.strided_slice(data, vector(first), vector(last), vector(steps))
    known = list(node.shape(data))
    known[axis] = None
    return with_known(node, made, known)


@converter("aten::slice.Tensor", "aten::slice", "aten::slice_copy")
def slice_(
    node: TorchNode, input: Expr, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Expr:
    """Part of an axis, as Python slices."""
    axis = node.axis_of(dim, node.rank(input))
    return part(node, input, axis, 0 if start is None else start, LAST if end is None else end, step)


@converter("aten::select.int", "aten::select", "aten::select_copy")
def select(node: TorchNode, input: Expr, dim: int, index: Any) -> Expr:
    """One place of an axis, which the result does not have."""
    axis = node.axis_of(dim, node.rank(input))
    if isinstance(index, int):
        whole = node.shape(input)[axis]
        if whole is not None:
            if not -whole <= index < whole:
                raise node.fail(f"index {index} is out of range for dimension {axis} of size {whole}")
            index %= whole
        elif index < 0:
            end = LAST if index == -1 else index + 1
            return relay.squeeze(
                with_known_axis(node, relay.strided_slice(input, [index], [end], [1], axes=[axis]), axis),
                axis=[axis],
            )
        return relay.take(input, const(index, "int64"), axis=axis)
    size_here = as_scalar(size_of(node, input, axis))
    place = relay.where(relay.less(index, const(0, "int64")), relay.add(index, size_here), index)
    return relay.take(input, place, axis=axis)


def with_known_axis(node: TorchNode, data: Expr, axis: int, size: int = 1) -> Expr:
    """A tensor of which one dimension is known to have a size."""
    known = [None] * node.rank(data)
    return with_known(node, data, [*known[:axis], size, *known[axis + 1 :]])


@converter("aten::narrow", "aten::narrow_copy")
def narrow(node: TorchNode, input: Expr, dim: int, start: Any, length: Any) -> Expr:
    """Part of an axis of a given length."""
    axis = node.axis_of(dim, node.rank(input))
    whole = size_of(node, input, axis)
    begin = start
    if isinstance(begin, Expr):
        if node.rank(begin):
            begin = relay.reshape(begin, ())
        begin = node.cast(begin, "int64")
    elif begin < 0:
        begin = begin + whole
    end = (
        begin + length
        if isinstance(begin, int) and isinstance(length, int)
        else as_scalar(begin) + as_scalar(length)
    )
    made = part(node, input, axis, begin, end)
    return with_known_axis(node, made, axis, length) if isinstance(length, int) else made


@converter("aten::split_with_sizes", "aten::split.sizes", "aten::split_with_sizes_copy")
def split_with_sizes(
    node: TorchNode, input: Expr, split_sizes: Any = None, split_size: Any = None, dim: int = 0
) -> list[Expr]:
    """Parts of given sizes along an axis."""
    axis = node.axis_of(dim, node.rank(input))
    begin: Size = 0
    made: list[Expr] = []
    for length in split_sizes if split_sizes is not None else split_size:
        end: Size = (
            begin + length
            if isinstance(begin, int) and isinstance(length, int)
            else as_scalar(begin) + as_scalar(length)
        )
        piece = part(node, input, axis, begin, end)
        made.append(with_known_axis(node, piece, axis, length) if isinstance(length, int) else piece)
        begin = end
    return made


@converter("aten::split.Tensor", "aten::split", "aten::split_copy")
def split(node: TorchNode, input: Expr, split_size: Any, dim: int = 0) -> list[Expr]:
    """Parts of one size along an axis; the last may be shorter."""
    if isinstance(split_size, (list, tuple)):
        return split_with_sizes(node, input, split_size, dim=dim)
    axis = node.axis_of(dim, node.rank(input))
    whole = node.known_size(input, axis)
    length = int(node.number_of(split_size, "split_size"))
    count = max(-(-whole // length) if length else 1, 1)
    sizes = [min(length, whole - place * length) for place in range(count)]
    return split_with_sizes(node, input, sizes if length else [whole], dim=axis)


@converter("aten::chunk", "aten::unsafe_chunk")
def chunk(node: TorchNode, input: Expr, chunks: int, dim: int = 0) -> list[Expr]:
    """About so many equal parts along an axis."""
    axis = node.axis_of(dim, node.rank(input))
    whole = node.known_size(input, axis)
    return split(node, input, max(-(-whole // chunks), 1), axis)


@converter("aten::tensor_split")
def tensor_split(
    node: TorchNode, input: Expr, sections: Any = None, indices: Any = None, dim: int = 0,
    tensor_indices_or_sections: Any = None,
) -> list[Expr]:  # fmt: skip
    """Parts between places of an axis, or as many nearly equal ones."""
    axis = node.axis_of(dim, node.rank(input))
    whole = node.known_size(input, axis)
    if tensor_indices_or_sections is not None:
        value = node.required_value(tensor_indices_or_sections, "the places of the split")
        sections, indices = (int(value), None) if value.ndim == 0 else (None, [int(one) for one in value])
    if indices is None:
        short, more = divmod(whole, int(sections))
        lengths = [short + 1] * more + [short] * (int(sections) - more)
        return split_with_sizes(node, input, lengths, dim=axis)
    places = [slice(None, place).indices(whole)[1] for place in indices]
    bounds = [0, *places, whole]
    return [part(node, input, axis, one, max(one, two)) for one, two in pairwise(bounds)]


@converter("aten::unbind", "aten::unbind_copy")
def unbind(node: TorchNode, input: Expr, dim: int = 0) -> list[Expr]:
    """All places of an axis."""
    axis = node.axis_of(dim, node.rank(input))
    return [select(node, input, axis, place) for place in range(node.known_size(input, axis))]
