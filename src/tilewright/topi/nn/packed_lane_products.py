"""int8 and bfloat16 convolutions and matrix products in packed lanes, as dot-product instructions multiply them.

Where the weights are int16, 8-bit data are widened once, in memory, and multiplied in lanes of two int16 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.tir.packed_lanes import dot_word, numbers_per_lane, pack_word
from tilewright.topi.nn.conv2d import conv2d_of_packed_lanes
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.dense import add_bias
from tilewright.topi.nn.packing import PACK
from tilewright.topi.nn.utils import as_type
from tilewright.topi.utils import get_const_int, get_const_tuple, simplify


def packed_lane_at(tensor: Tensor, *indices: Any) -> Any:
    """The packed lane of adjacent numbers along the last axis; the last index counts lanes."""
    numbers = numbers_per_lane(tensor.dtype)
    *outer, word = indices
    return pack_word(*[tensor(*outer, word * numbers + place) for place in range(numbers)])


def lane_type(data: Tensor, weight: Tensor) -> str:
    """The type of the numbers in the lanes of the data: int16 where the weights are."""
    return "int16" if str(weight.dtype) == "int16" else str(data.dtype)


def widened(data: Tensor, dtype: str) -> Tensor:
    """The data as a stage of this type; as it is, if it has it."""
    if str(data.dtype) == dtype:
        return data
    made: Tensor = te.compute(
        data.shape, lambda *indices: data(*indices).astype(dtype), name="widened", tag=PACK
    )
    return made


def conv2d_NCHWc_packed_lanes(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str = "int32",
    n_elems: int = 4,
) -> Tensor:
    """The int8 or bfloat16 convolution with blocked channels, in packed lanes of ``n_elems`` channels.

    The kernel is (output blocks, input blocks, height, width, lanes of an input block, channels of an output block,
    channels of a lane).
    """
    numbers = lane_type(data, kernel)
    require_equal(n_elems, numbers_per_lane(numbers), "n_elems and the numbers in a packed lane")

    def product(padded: Tensor, at: Sequence[Any], weight_at: Sequence[Any]) -> Any:
        weight = pack_word(*[kernel(*weight_at, place) for place in range(n_elems)])
        return _product(padded, kernel, packed_lane_at(padded, *at), weight)

    made = conv2d_of_packed_lanes(
        data,
        kernel,
        stride,
        padding,
        dilation,
        layout,
        n_elems,
        product,
        prepare=lambda padded: widened(padded, numbers),
    )
    return as_type(made, out_dtype)


def _product(data: Tensor, weight: Tensor, first: Any, second: Any) -> Any:
    return dot_word(first, second, str(data.dtype), str(weight.dtype))


def dense_pack_packed_lanes(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, units: Any = None
) -> Tensor:
    """``dense`` with weights (blocks of units, packed lanes, units of a block, numbers of a lane). With ``units``, the
    last block may be partial."""
    out_dtype = out_dtype or str(data.dtype)
    data = widened(data, lane_type(data, weight))
    numbers, block = get_const_int(weight.shape[3]), get_const_int(weight.shape[2])
    require_equal(data.shape[1], weight.shape[1] * numbers, "the summed dimensions of dense_pack")
    k = te.reduce_axis((0, weight.shape[1]), name="k")

    def element(y: Any, x: Any) -> Any:
        packed = pack_word(*[weight(x // block, k, x % block, place) for place in range(numbers)])
        return te.sum(_product(data, weight, packed_lane_at(data, y, k.var), packed), axis=k)

    made: Tensor = te.compute(
        (data.shape[0], simplify(weight.shape[0] * block) if units is None else units),
        element,
        name="T_dense_pack",
        tag="dense_pack",
        attrs={"layout_free_placeholders": [weight]},
    )
    return add_bias(as_type(made, out_dtype), bias)


def batch_matmul_packed_lanes(
    tensor_a: Tensor,
    tensor_b: Tensor,
    shape: Any,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """``A[b] @ B[b]`` for each ``b``, with ``B`` packed into lanes by the kernel. The reduction is padded with zeros
    to whole lanes."""
    depth = tensor_a.shape[1 if transpose_a else 2]
    numbers = numbers_per_lane(tensor_a.dtype)
    packed_lanes = simplify((depth + numbers - 1) // numbers)
    whole = get_const_tuple([depth])[0]
    is_whole = isinstance(whole, int) and whole % numbers == 0

    def packed(
        tensor: Tensor, transposed: bool, name: str, order: Callable[[Any, Any], tuple[Any, Any]]
    ) -> Tensor:
        """(batch, lanes and rows in the given order); ``transposed``: the numbers of a lane are along the second
        axis."""
        extent = tensor.shape[2 if transposed else 1]
        zero = tir.const(0, tensor.dtype)

        def element(b: Any, first: Any, second: Any) -> Any:
            row, word = order(first, second)
            found = []
            for place in range(numbers):
                k = word * numbers + place
                value = tensor(b, k, row) if transposed else tensor(b, row, k)
                found.append(value if is_whole else tir.if_then_else(k < depth, value, zero))
            return pack_word(*found)

        made: Tensor = te.compute(
            (tensor.shape[0], *order(extent, packed_lanes)), element, name=name, tag=PACK
        )
        return made

    of_b = packed(tensor_b, not transpose_b, "packed_lanes", lambda one, other: (other, one))
    plain = is_whole and not transpose_a
    of_a = None if plain else packed(tensor_a, transpose_a, "packed_rows", lambda one, other: (one, other))
    batches = get_const_tuple([tensor_a.shape[0], tensor_b.shape[0]])
    k = te.reduce_axis((0, packed_lanes), name="k")

    def element(b: Any, i: Any, j: Any) -> Any:
        at_a, at_b = (0 if batch == 1 else b for batch in batches)
        value = packed_lane_at(tensor_a, at_a, i, k.var) if of_a is None else of_a(at_a, i, k)
        return te.sum(_product(tensor_a, tensor_b, value, of_b(at_b, k, j)), axis=k)

    made: Tensor = te.compute(
        shape,
        element,
        name="T_batch_matmul_packed_lanes",
        tag="batch_matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
    return as_type(made, out_dtype or str(tensor_a.dtype))
