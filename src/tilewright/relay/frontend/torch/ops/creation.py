"""Tensors made from sizes and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import (
    Size,
    all_known,
    as_scalar,
    known_or_none,
    reshaped,
    size_of,
    sizes_of,
    vector,
    with_known,
)
from tilewright.relay.frontend.torch.dtypes import is_floating
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.registry import converter

LARGEST_CONSTANT = 1 << 16
"""Elements: what is computed at import and stored in the program is not larger."""


def filled(node: TorchNode, value: Operand, sizes: list[Size], dtype: str) -> Expr:
    """A tensor that is one number everywhere."""
    number = node.cast(value, dtype)
    if isinstance(value, Expr) and node.rank(value):
        number = relay.reshape(number, ())
    if all_known(sizes):
        return relay.full(number, tuple(sizes), dtype)
    return with_known(node, relay.full(number, vector(sizes), dtype), known_or_none(sizes))


def _dtype_of_fill(node: TorchNode, value: Operand) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    return node.dtype(value) if isinstance(value, Expr) else node.scope.default_dtype


@converter("aten::full")
def full(node: TorchNode, size: Any, fill_value: Operand, dtype: str | None = None) -> Expr:
    """One number everywhere."""
    return filled(node, fill_value, list(size), dtype or _dtype_of_fill(node, fill_value))


@converter("aten::zeros", "aten::empty", "aten::empty_strided", "aten::empty_permuted")
def zeros(
    node: TorchNode, size: Any, stride: Any = None, physical_layout: Any = None, dtype: str | None = None
) -> Expr:
    """Zeros, also where PyTorch promises nothing."""
    return filled(node, 0, list(size), dtype or node.scope.default_dtype)


@converter("aten::ones")
def ones(node: TorchNode, size: Any, dtype: str | None = None) -> Expr:
    """Ones."""
    return filled(node, 1, list(size), dtype or node.scope.default_dtype)


@converter("aten::full_like")
def full_like(node: TorchNode, input: Expr, fill_value: Operand, dtype: str | None = None) -> Expr:
    """One number in the shape of a tensor."""
    return filled(node, fill_value, sizes_of(node, input), dtype or node.dtype(input))


@converter("aten::zeros_like", "aten::empty_like")
def zeros_like(node: TorchNode, input: Expr, dtype: str | None = None) -> Expr:
    """Zeros in the shape of a tensor."""
    return full_like(node, input, 0, dtype)


@converter("aten::ones_like")
def ones_like(node: TorchNode, input: Expr, dtype: str | None = None) -> Expr:
    """Ones in the shape of a tensor."""
    return full_like(node, input, 1, dtype)


@converter("aten::new_zeros", "aten::new_empty", "aten::new_empty_strided")
def new_zeros(node: TorchNode, input: Expr, size: Any, stride: Any = None, dtype: str | None = None) -> Expr:
    """Zeros of a tensor's type."""
    return filled(node, 0, list(size), dtype or node.dtype(input))


@converter("aten::new_ones")
def new_ones(node: TorchNode, input: Expr, size: Any, dtype: str | None = None) -> Expr:
    """Ones of a tensor's type."""
    return filled(node, 1, list(size), dtype or node.dtype(input))


@converter("aten::new_full")
def new_full(node: TorchNode, input: Expr, size: Any, fill_value: Operand, dtype: str | None = None) -> Expr:
    """One number of a tensor's type."""
    return filled(node, fill_value, list(size), dtype or node.dtype(input))


@converter("aten::fill")
def fill(node: TorchNode, input: Expr, value: Operand) -> Expr:
    """The tensor with one number everywhere."""
    return full_like(node, input, value)


@converter("aten::zero")
def zero(node: TorchNode, input: Expr) -> Expr:
    """The tensor with zeros everywhere."""
    return full_like(node, input, 0)


@converter("aten::copy")
def copy(node: TorchNode, input: Expr, src: Expr) -> Expr:
    """What is copied, in the type and the shape of where it goes."""
    made = node.cast(src, node.dtype(input))
    if node.shape(made) == node.shape(input) and None not in node.shape(input):
        return made
    return relay.broadcast_to_like(made, input)


@converter("aten::scalar_tensor", "aten::tensor", "aten::as_tensor")
def scalar_tensor(
    node: TorchNode, s: Any = None, t: Any = None, data: Any = None, dtype: str | None = None
) -> Expr:
    """Numbers as a tensor."""
    given = next(one for one in (s, t, data) if one is not None)
    return _tensor(node, given, dtype)


def _tensor(node: TorchNode, given: Any, dtype: str | None) -> Expr:
    if isinstance(given, Expr):
        found = dtype or (
            node.scope.default_dtype if given in node.scope.numbers and not node.is_integral(given) else None
        )
        return node.cast(given, found) if found else given
    if isinstance(given, (list, tuple)):
        if not any(isinstance(one, Expr) for one in _leaves(given)):
            array = np.asarray(given)
            kind = dtype or {"b": "bool", "i": "int64"}.get(array.dtype.kind, node.scope.default_dtype)
            return const(array.astype(kind if kind != "bfloat16" else "float32"), kind)
        return relay.stack([_tensor(node, one, dtype) for one in given], 0)
    return node.cast(given, dtype or _dtype_of_fill(node, given))


def _leaves(given: Any) -> list[Any]:
    if isinstance(given, (list, tuple)):
        return [leaf for one in given for leaf in _leaves(one)]
    return [given]


# Ranges


@converter("aten::arange", "aten::range")
def arange(node: TorchNode, start: Any = 0, end: Any = None, step: Any = 1, dtype: str | None = None) -> Expr:
    """Numbers at equal distances, the end left out."""
    numbers = [0 if start is None else start, end, 1 if step is None else step]
    whole = all(isinstance(one, int) or (isinstance(one, Expr) and node.is_integral(one)) for one in numbers)
    kind = dtype or ("int64" if whole else node.scope.default_dtype)
    if kind == "int64" and node.fold(numbers):
        # Of what is counted in integers, start, end and step are integers before anything else.
        numbers, whole = [int(one) for one in numbers], True
    if node.fold(numbers):
        begin, stop, by = numbers
        if node.op_type.startswith("aten::range"):
            stop = stop + by
        count = max(math.ceil((stop - begin) / by), 0)
        if count <= LARGEST_CONSTANT:
            places = np.arange(count)
            array = places * by + begin if not whole else np.arange(begin, stop, by)
            return const(_as(array, kind), kind)
    work = "int64" if whole else "float64"
    first, last, by = (node.cast(one, work) for one in numbers)
    return node.cast(relay.arange(first, last, by, work), kind)


def _as(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    return array.astype("float32" if dtype == "bfloat16" else dtype)


@converter("aten::linspace")
def linspace(node: TorchNode, start: Any, end: Any, steps: int, dtype: str | None = None) -> Expr:
    """So many numbers from one to another, both included; the second half is counted from the end."""
    kind = dtype or node.scope.default_dtype
    count = int(node.number_of(steps, "steps"))
    if node.fold((start, end)):
        work = np.dtype(kind) if kind in ("float32", "float64") else np.dtype("float64")
        first, last = work.type(start), work.type(end)
        step = work.type((last - first) / max(count - 1, 1))
        places = np.arange(count, dtype=work)
        values = np.where(
            places < (count + 1) // 2, first + step * places, last - step * (count - 1 - places)
        )
        values = np.full(count, first) if count == 1 else values
        return const(_as(np.trunc(values) if not is_floating(kind) else values, kind), kind)
    work_type = kind if is_floating(kind) else "float64"
    one, two = node.cast(start, work_type), node.cast(end, work_type)
    shares = const(np.arange(count) / max(count - 1, 1), work_type)
    return node.cast(relay.add(one, relay.multiply(relay.subtract(two, one), shares)), kind)


@converter("aten::logspace")
def logspace(
    node: TorchNode, start: Any, end: Any, steps: int, base: float = 10.0, dtype: str | None = None
) -> Expr:
    """Powers of a base whose exponents are at equal distances."""
    kind = dtype or node.scope.default_dtype
    exponents = linspace(node, start, end, steps, "float64")
    return node.cast(relay.power(const(float(base), "float64"), exponents), kind)


def positions(node: TorchNode, count: Size) -> Expr:
    """0, 1, 2, ... as int64."""
    if isinstance(count, int) and count <= LARGEST_CONSTANT:
        return const(np.arange(count, dtype="int64"))
    zero, one = const(0, "int64"), const(1, "int64")
    return relay.arange(zero, as_scalar(count), one, "int64")


# Matrices


@converter("aten::eye")
def eye(node: TorchNode, n: Any, m: Any = None, dtype: str | None = None) -> Expr:
    """Ones on the diagonal."""
    rows = relay.expand_dims(positions(node, n), 1)
    columns = positions(node, n if m is None else m)
    return node.cast(relay.equal(rows, columns), dtype or node.scope.default_dtype)


def _band(node: TorchNode, data: Expr, diagonal: int, lower: bool) -> Expr:
    """The elements of matrices on one side of a diagonal, zeros on the other."""
    rows = relay.expand_dims(positions(node, size_of(node, data, -2)), 1)
    columns = positions(node, size_of(node, data, -1))
    edge = relay.add(rows, const(int(diagonal), "int64"))
    kept = relay.less_equal(columns, edge) if lower else relay.greater_equal(columns, edge)
    return relay.where(kept, data, node.constant(0, data))


@converter("aten::tril")
def tril(node: TorchNode, input: Expr, diagonal: int = 0) -> Expr:
    """Matrices without what is above a diagonal."""
    return _band(node, input, diagonal, True)


@converter("aten::triu")
def triu(node: TorchNode, input: Expr, diagonal: int = 0) -> Expr:
    """Matrices without what is below a diagonal."""
    return _band(node, input, diagonal, False)


@converter("aten::tril_indices")
def tril_indices(node: TorchNode, row: int, col: int, offset: int = 0, dtype: str | None = None) -> Expr:
    """The places on and below a diagonal."""
    return const(np.stack(np.tril_indices(row, offset, col)).astype(dtype or "int64"))


@converter("aten::triu_indices")
def triu_indices(node: TorchNode, row: int, col: int, offset: int = 0, dtype: str | None = None) -> Expr:
    """The places on and above a diagonal."""
    return const(np.stack(np.triu_indices(row, offset, col)).astype(dtype or "int64"))


@converter("aten::meshgrid")
def meshgrid(node: TorchNode, tensors: list[Expr], indexing: str = "ij") -> list[Expr]:
    """Coordinates of a grid from those of its axes."""
    given = [one if node.rank(one) else relay.reshape(one, (1,)) for one in tensors]
    if len(given) == 1:
        return given
    found = relay.meshgrid(given, indexing)
    return [found[place] for place in range(len(given))]


@converter("aten::cartesian_prod")
def cartesian_prod(node: TorchNode, tensors: list[Expr]) -> Expr:
    """All combinations of elements, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    return relay.stack([reshaped(node, one, [-1]) for one in meshgrid(node, tensors)], 1)


@converter("aten::one_hot")
def one_hot(node: TorchNode, input: Expr, num_classes: int = -1) -> Expr:
    """One at the place that each element says, zeros elsewhere."""
    if isinstance(num_classes, int) and num_classes < 0:
        raise node.fail(
            "num_classes is the greatest index here, which is not known before the model runs: give it"
        )
    rank = node.rank(input)
    return relay.one_hot(input, 1, 0, num_classes, rank, "int64")


@converter("aten::vander", "aten::linalg_vander")
def vander(node: TorchNode, x: Expr, N: int | None = None, increasing: bool | None = None) -> Expr:
    """Powers of a vector's elements."""
    rising = "linalg" in node.op_type if increasing is None else increasing
    x = x if node.rank(x) else relay.reshape(x, (1,))
    count = node.known_size(x, -1) if N is None else N
    powers = np.arange(count) if rising else np.arange(count)[::-1]
    dtype = "int64" if node.is_integral(x) else node.dtype(x)
    return relay.power(relay.expand_dims(node.cast(x, dtype), node.rank(x)), const(powers.astype(dtype)))


def _window(names: tuple[str, ...], shape: Any) -> None:
    """A window of a known length, which is a constant."""

    @converter(*names)
    def convert(
        node: TorchNode, window_length: int, periodic: bool = True, dtype: str | None = None, **more: Any
    ) -> Expr:
        count = int(window_length)
        kind = dtype or node.scope.default_dtype
        if count < 2:
            return const(np.ones(count), kind)
        given = {name: value for name, value in more.items() if value is not None}
        whole = count if periodic else count - 1
        return const(np.asarray(shape(np.arange(count), whole, **given)), kind)


def _hamming(places: Any, whole: int, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return alpha - beta * np.cos(2 * np.pi * places / whole)


def _blackman(places: Any, whole: int) -> Any:
    turn = 2 * np.pi * places / whole
    return 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn)


def _kaiser(places: Any, whole: int, beta: float = 12.0) -> Any:
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * places / whole - 1) ** 2, 0))) / np.i0(beta)


_window(("aten::hann_window",), lambda places, whole: _hamming(places, whole, 0.5, 0.5))
_window(("aten::hamming_window",), _hamming)
_window(("aten::blackman_window",), _blackman)
_window(("aten::bartlett_window",), lambda places, whole: 1 - np.abs(2 * places / whole - 1))
_window(("aten::kaiser_window",), _kaiser)
