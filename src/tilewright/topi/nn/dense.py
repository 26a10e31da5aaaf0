"""Products of matrices: matmul, dense, and dense with packed weights."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.utils import as_type, in_rewritten_layout, sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_int, simplify


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "",
) -> Tensor:
    """``A @ B + bias``, either matrix transposed before; a plain ``A`` may have more than two dimensions."""
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            tensor_b,
            auto_scheduler_rewritten_layout,
            ["j", "k"] if transpose_b else ["k", "j"],
            lambda original: matmul(tensor_a, original, bias, out_dtype, transpose_a, transpose_b),
        )
    if len(tensor_b.shape) != 2 or len(tensor_a.shape) < 2 or (transpose_a and len(tensor_a.shape) != 2):
        raise InvalidShapeError(
            f"matmul multiplies matrices, not tensors of {len(tensor_a.shape)} and {len(tensor_b.shape)} dimensions"
        )
    depth = tensor_a.shape[0 if transpose_a else -1]
    columns, other_depth = tensor_b.shape if transpose_b else tensor_b.shape[::-1]
    require_equal(depth, other_depth, "the summed dimensions of a matrix product")
    inner, result = sum_types(tensor_a.dtype, out_dtype)
    rows = (tensor_a.shape[1],) if transpose_a else tensor_a.shape[:-1]
    k = te.reduce_axis((0, depth), name="k")

    def element(*indices: Any) -> Any:
        *row, column = indices
        a = tensor_a(k, *row) if transpose_a else tensor_a(*row, k)
        b = tensor_b(column, k) if transpose_b else tensor_b(k, column)
        return te.sum(a.astype(inner) * b.astype(inner), axis=k)

    plain_dense = transpose_b and not transpose_a
    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    product = te.compute(
        (*rows, columns),
        element,
        name="T_dense" if plain_dense else f"T_matmul_{letters}",
        tag="dense" if plain_dense else "matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
    return add_bias(as_type(product, result), bias)


def add_bias(product: Tensor, bias: Tensor | None) -> Tensor:
    """The product with a bias added to each column, if there is one."""
    if bias is None:
        return product
    if len(bias.shape) != 1:
        raise InvalidShapeError(f"a bias has one dimension, not {len(bias.shape)}")
    require_equal(bias.shape[0], product.shape[-1], "the bias and the columns of the product")
    made: Tensor = te.compute(
        product.shape,
        lambda *indices: product(*indices) + bias(indices[-1]).astype(product.dtype),
        name="Tadd_bias",
        tag=tag.BROADCAST,
    )
    return made


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
) -> Tensor:
    """``data @ weight.T + bias``: the weights are (units, features)."""
    return matmul(data, weight, bias, out_dtype, False, True, auto_scheduler_rewritten_layout)


def dense_pack(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    units: Any = None,
) -> Tensor:
    """``dense`` with weights in blocks of units: (units / block, features, block). With ``units``, the last block
    may be partial. Weights (units / block, lanes, block, features of a lane) have packed lanes. All axes of the data
    but the last are rows."""
    if len(data.shape) < 2 or len(weight.shape) not in (3, 4):
        raise InvalidShapeError(
            "dense_pack takes data of at least two dimensions and weights of three or four, "
            f"not {len(data.shape)} and {len(weight.shape)}"
        )
    word = get_const_int(weight.shape[3]) if len(weight.shape) == 4 else None
    depth = weight.shape[1] if word is None else simplify(weight.shape[1] * word)
    require_equal(data.shape[-1], depth, "the summed dimensions of dense_pack")
    block = get_const_int(weight.shape[2])
    inner, result = sum_types(data.dtype, out_dtype)
    k = te.reduce_axis((0, data.shape[-1]), name="k")

    def element(*indices: Any) -> Any:
        *rows, x = indices
        if word is None:
            factor = weight(x // block, k, x % block)
        else:
            factor = weight(x // block, k.var // word, x % block, k.var % word)
        return te.sum(data(*rows, k).astype(inner) * factor.astype(inner), axis=k)

    product = te.compute(
        (*data.shape[:-1], simplify(weight.shape[0] * block) if units is None else units),
        element,
        name="T_dense_pack",
        tag="dense_pack",
        attrs={"layout_free_placeholders": [weight]},
    )
    return add_bias(as_type(product, result), bias)


def copy_if_identical(tensor_a: Tensor, tensor_b: Tensor) -> Tensor:
    """The second tensor, copied if it is also the first: scheduling one must not affect the other."""
    if tensor_a is not tensor_b:
        return tensor_b
    made: Tensor = te.compute(
        tensor_b.shape, lambda *indices: tensor_b(*indices), name="copy", tag=tag.ELEMWISE
    )
    return made


@generic_func
def matmul_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None


@generic_func
def dense_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None


@generic_func
def dense_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """The call in a layout that the target prefers, or None to keep it."""
    return None
