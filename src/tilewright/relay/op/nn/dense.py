"""Matrix products: dense, matmul, batch_matmul, and dense with packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, tensor_type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.nn.windows import wide_product
from tilewright.relay.op.shapes import Dimension, broadcast_dimension, combine, dims, known, same, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout
from tilewright.topi.nn.batch_matmul import known_shape
from tilewright.topi.nn.dense import copy_if_identical


@attributes
class DenseAttrs(OpAttrs):
    """dense: ``units`` tells the weight's shape where its type does not."""

    units: Any = None
    auto_scheduler_rewritten_layout: str = ""
    out_dtype: str = ""


@attributes
class MatmulAttrs(OpAttrs):
    """matmul: which of the matrices are transposed first."""

    units: Any = None
    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = False
    auto_scheduler_rewritten_layout: str = ""


@attributes
class DensePackAttrs(OpAttrs):
    """contrib_dense_pack: the weight is in blocks of units, NC16n say, or of words of units, NC16n4c."""

    units: Any = None
    out_dtype: str = ""
    weight_layout: str = "NC"
    auto_scheduler_rewritten_layout: str = ""


@attributes
class BatchMatmulAttrs(OpAttrs):
    """batch_matmul: which of the matrices are transposed first."""

    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = True
    auto_scheduler_rewritten_layout: str = ""


def _flags(attrs: Any) -> tuple[bool, bool]:
    """Which matrices are transposed; dense has its weight as (units, features)."""
    return getattr(attrs, "transpose_a", False), getattr(attrs, "transpose_b", True)


def _cast(array: Any, attrs: Any, data: Any) -> Any:
    wanted = numpy_dtype(DataType(attrs.out_dtype)) if attrs.out_dtype else data.dtype
    return array.astype(wanted, copy=False)


# matmul and dense


def matrix_product(types: Sequence[Type], attrs: Any) -> Type | None:
    """The relation of dense and matmul; the first matrix, unless it is transposed, may have more dimensions."""
    a, b = tensor(types[0], "the first matrix"), tensor(types[1], "the second matrix")
    if a is None or b is None:
        return None
    transpose_a, transpose_b = _flags(attrs)
    of_a, of_b = dims(a), dims(b)
    if len(of_b) != 2 or len(of_a) < 2 or (transpose_a and len(of_a) != 2):
        raise RelationError(f"matrices are multiplied, not tensors of {len(of_a)} and {len(of_b)} dimensions")
    columns, depth = of_b if transpose_b else of_b[::-1]
    same(of_a[0 if transpose_a else -1], depth, "the dimensions that are summed over")
    if attrs.units is not None:
        columns = same(columns, attrs.units, "the second matrix, and the attribute units")
    rows = (of_a[1],) if transpose_a else of_a[:-1]
    return TensorType((*rows, columns), attrs.out_dtype or a.dtype)


def matrix_completion(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
    """A weight's type from the data's and ``units``."""
    if (
        not isinstance(types[0], TensorType)
        or not isinstance(types[1], IncompleteType)
        or attrs.units is None
    ):
        return (None, None)
    transpose_a, transpose_b = _flags(attrs)
    depth = dims(types[0])[0 if transpose_a else -1]
    shape: tuple[Dimension, ...] = (attrs.units, depth) if transpose_b else (depth, attrs.units)
    return (None, TensorType(shape, types[0].dtype))


def _matmul_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.nn.matmul(inputs[0], inputs[1], None, attrs.out_dtype or None, *_flags(attrs))]


def _dense_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, weight = inputs[0], copy_if_identical(inputs[0], inputs[1])
    return [topi.nn.dense(data, weight, None, attrs.out_dtype or None)]


def _matmul_reference(attrs: Any, a: Any, b: Any) -> Any:
    transpose_a, transpose_b = _flags(attrs)
    return _cast(wide_product(a.T if transpose_a else a, b.T if transpose_b else b), attrs, a)


def _matmul(a: RelayExpr, b: RelayExpr, transpose_a: bool, transpose_b: bool) -> Call:
    return call("nn.matmul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_matmul(a: RelayExpr, b: RelayExpr, transpose_a: bool, transpose_b: bool) -> Call:
    return call("nn.batch_matmul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def _in_data_type(orig: Any, grad: RelayExpr) -> RelayExpr:
    dtype = tensor_type(orig.args[0]).dtype
    return grad if tensor_type(orig).dtype is dtype else call("cast", grad, dtype=str(dtype))


def _by_first(multiply: Any, b: RelayExpr, grad: RelayExpr, flags: tuple[bool, bool]) -> RelayExpr:
    """The gradient of a product by its first matrix."""
    made: RelayExpr = (
        multiply(b, grad, flags[1], True) if flags[0] else multiply(grad, b, False, not flags[1])
    )
    return made


def _by_second(multiply: Any, a: RelayExpr, grad: RelayExpr, flags: tuple[bool, bool]) -> RelayExpr:
    """The gradient of a product by its second matrix."""
    made: RelayExpr = (
        multiply(grad, a, True, flags[0]) if flags[1] else multiply(a, grad, not flags[0], False)
    )
    return made


def _matmul_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    a, b = orig.args
    flags = _flags(orig.attrs)
    grad = _in_data_type(orig, grad)
    by_first = _by_first(_matmul, b, grad, flags)
    if len(tensor_type(a).shape) > 2:
        # The sum for the weight runs over all rows, however they are arranged.
        depth, units = tensor_type(a).concrete_shape[-1], tensor_type(orig).concrete_shape[-1]
        a = call("reshape", a, newshape=(-1, depth))
        grad = call("reshape", grad, newshape=(-1, units))
    return [by_first, _by_second(_matmul, a, grad, flags)]


def dense_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Rows and features, units and features: the weight can be put into blocks by name."""
    plain = Layout("NC")
    rows = plain if len(dims(types[0])) == 2 else None
    return Layouts((rows, plain), (rows,), attrs)


DENSE = define(
    "nn.dense",
    arguments=("data", "weight"),
    attrs=DenseAttrs,
    relation=matrix_product,
    completion=matrix_completion,
    compute=_dense_compute,
    reference=_matmul_reference,
    gradient=_matmul_gradient,
    layout=dense_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="Data times the transposed weight.",
)

MATMUL = define(
    "nn.matmul",
    arguments=("tensor_a", "tensor_b"),
    attrs=MatmulAttrs,
    relation=matrix_product,
    completion=matrix_completion,
    compute=_matmul_compute,
    reference=_matmul_reference,
    gradient=_matmul_gradient,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="The product of two matrices, either transposed first.",
)


def dense(data: RelayExpr, weight: RelayExpr, units: int | None = None, out_dtype: str = "") -> Call:
    """``data`` times the transposed ``weight``, which is (units, features)."""
    return Call(DENSE, (data, weight), DenseAttrs(units=units, out_dtype=out_dtype))


def matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    units: int | None = None,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """The product of two matrices, either transposed first; (units, features) is the weight of a dense layer."""
    if not transpose_a and transpose_b:
        return dense(tensor_a, tensor_b, units, out_dtype)
    return Call(MATMUL, (tensor_a, tensor_b), MatmulAttrs(units, out_dtype, transpose_a, transpose_b))


# dense with a weight in blocks


def _blocked_product(types: Sequence[Type], attrs: Any) -> Type | None:
    data, weight = tensor(types[0], "the data"), tensor(types[1], "the weight")
    if data is None or weight is None:
        return None
    given, packed = dims(data), dims(weight)
    if len(given) < 2 or len(packed) not in (3, 4):
        raise RelationError(
            "data of at least two and a weight of three or four dimensions are needed, "
            f"not {len(given)} and {len(packed)}"
        )
    depth = packed[1] if len(packed) == 3 else combine(lambda words, word: words * word, packed[1], packed[3])
    same(given[-1], depth, "the dimensions that are summed over")
    units = combine(lambda blocks, block: blocks * block, packed[0], packed[2])
    if attrs.units is not None and known(units, packed[2]):
        if not units - packed[2] < attrs.units <= units:
            raise RelationError(f"{packed[0]} blocks of {packed[2]} units do not hold just {attrs.units}")
        units = attrs.units
    return TensorType((*given[:-1], units), attrs.out_dtype or data.dtype)


def _blocked_reference(attrs: Any, data: Any, weight: Any) -> Any:
    units = weight.shape[0] * weight.shape[2]
    whole = weight.swapaxes(1, 2).reshape(units, -1)[: attrs.units]
    return _cast(wide_product(data, whole.T), attrs, data)


def _blocked_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    rows = Layout("NC") if len(types[0].shape) == 2 else None
    return Layouts((rows, Layout(attrs.weight_layout)), (rows,), attrs)


DENSE_PACK = define(
    "nn.contrib_dense_pack",
    arguments=("data", "weight"),
    attrs=DensePackAttrs,
    relation=_blocked_product,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.dense_pack(inputs[0], inputs[1], None, attrs.out_dtype or None, out_type.shape[-1])
    ],
    reference=_blocked_reference,
    layout=_blocked_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="dense with a weight in blocks of units.",
)


def contrib_dense_pack(
    data: RelayExpr,
    weight: RelayExpr,
    weight_layout: str = "NC",
    units: int | None = None,
    out_dtype: str = "",
) -> Call:
    """``dense`` with a weight (units / block, features, block), or (units / block, words, block, features of a word);
    ``units`` where the last block has fewer."""
    return Call(DENSE_PACK, (data, weight), DensePackAttrs(units, out_dtype, weight_layout))


# Batches of matrices


def _batched_product(types: Sequence[Type], attrs: Any) -> Type | None:
    a, b = tensor(types[0], "the first operand"), tensor(types[1], "the second operand")
    if a is None or b is None:
        return None
    of_a, of_b = dims(a), dims(b)
    if len(of_a) != 3 or len(of_b) != 3:
        raise RelationError(f"operands have three dimensions, not {len(of_a)} and {len(of_b)}")
    depth, rows = of_a[1:] if attrs.transpose_a else of_a[:0:-1]
    columns, other_depth = of_b[1:] if attrs.transpose_b else of_b[:0:-1]
    same(depth, other_depth, "the dimensions that are summed over")
    batch = broadcast_dimension(of_a[0], of_b[0])
    return TensorType((batch, rows, columns), attrs.out_dtype or a.dtype)


def _batched_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [
        topi.nn.batch_matmul(
            inputs[0],
            copy_if_identical(inputs[0], inputs[1]),
            known_shape(out_type),
            out_dtype=attrs.out_dtype or None,
            transpose_a=attrs.transpose_a,
            transpose_b=attrs.transpose_b,
        )
    ]


def _batched_reference(attrs: Any, a: Any, b: Any) -> Any:
    left = a.swapaxes(1, 2) if attrs.transpose_a else a
    right = b.swapaxes(1, 2) if attrs.transpose_b else b
    return _cast(wide_product(left, right), attrs, a)


def _batched_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    a, b = orig.args
    flags = _flags(orig.attrs)
    grad = _in_data_type(orig, grad)
    made = [_by_first(_batch_matmul, b, grad, flags), _by_second(_batch_matmul, a, grad, flags)]
    batches = [dims(tensor_type(each))[0] for each in (a, b)]
    if isinstance(batches[0], int) and batches[0] == batches[1]:
        return made
    return [call("collapse_sum_like", one, each) for one, each in zip(made, (a, b), strict=True)]


BATCH_MATMUL = define(
    "nn.batch_matmul",
    arguments=("tensor_a", "tensor_b"),
    attrs=BatchMatmulAttrs,
    relation=_batched_product,
    compute=_batched_compute,
    reference=_batched_reference,
    gradient=_batched_gradient,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="The products of two batches of matrices.",
)


def batch_matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call:
    """The product of each pair of matrices, either transposed first; a batch of one serves all of the other's."""
    return Call(BATCH_MATMUL, (tensor_a, tensor_b), BatchMatmulAttrs(out_dtype, transpose_a, transpose_b))
