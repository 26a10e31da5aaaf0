"""KeepWeightsPacked: products with dequantised constant weights read the integers, not the numbers.

Constant folding would store such a weight as float32, four or eight times its size, and a product of few rows takes as
long as its weight takes to be read. However a model writes it (``MatMulNBits``, ``DequantizeLinear`` with or without
blocks, arithmetic on integers), a dequantised weight is a product of whole numbers and scales, reshaped and transposed.
The values of both factors, which are constants, tell the bits, the groups and the zero points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    constant_expressions,
    constant_shape,
    is_call,
    rewritten,
    tensor_of,
)
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.schedule.cpu.weight_only import has_dot_products, weight_only_block
from tilewright.topi.nn.weight_only import WORD_BITS, WeightOnly, pack_groups, pack_weight

MOVING: Final = ("reshape", "transpose", "strided_slice", "squeeze", "expand_dims", "copy")
FLOATS: Final = ("float16", "float32")
INTEGERS: Final = ("int8", "uint8", "int32")
"""The types in which integers arrive: where a zero point was subtracted already, as int32."""
FEWEST: Final = 16
"""Features of a group below which scales are a large part of the weight."""
MOST_ROWS: Final = 32
"""Rows up to which unpacking the weight for every few of them costs less than reading it whole."""
MOST_ROWS_OF_DOT_PRODUCTS: Final = 64
"""The same where dot-product instructions need no conversion of the weight."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Quantized:
    """A weight (units, features): whole numbers, and a scale for each group of adjacent features."""

    integers: Array
    scales: Array
    group: int


class _Packer(OperatorRewriter):
    def __init__(self, constants: set[Any], most_rows: int) -> None:
        super().__init__({"nn.dense": self._dense, "nn.matmul": self._matmul})
        self.constants = constants
        self.most_rows = most_rows

    def _dense(self, old: Call, new: Call) -> RelayExpr | None:
        return self._packed(old, new, transposed=True)

    def _matmul(self, old: Call, new: Call) -> RelayExpr | None:
        attrs: Any = new.attrs
        return None if attrs.transpose_a else self._packed(old, new, transposed=bool(attrs.transpose_b))

    def _packed(self, old: Call, new: Call, transposed: bool) -> RelayExpr | None:
        """The product with its weight packed; None to leave it."""
        data, weight = old.args
        attrs: Any = new.attrs
        shape, kind = constant_shape(data), str(tensor_of(data).dtype)
        if isinstance(weight, Constant) or weight not in self.constants or kind not in FLOATS:
            return None
        if shape is None or len(shape) != 2 or not 0 < shape[0] <= self.most_rows:
            return None
        if attrs.out_dtype not in ("", kind):
            return None
        found = _quantized(weight, transposed)
        return None if found is None else _product(new.args[0], shape[0], found)


def _quantized(weight: RelayExpr, transposed: bool) -> _Quantized | None:
    """The factors of a weight; ``transposed`` if it has units before features."""
    moves: list[Call] = []
    while isinstance(weight, Call) and (is_call(weight, *MOVING) or _is_float_cast(weight)):
        moves.append(weight)
        weight = weight.args[0]
    shape = constant_shape(weight)
    if not isinstance(weight, Call) or shape is None or not _reads_integers(weight):
        return None
    # A scale of one multiplies nothing.
    arguments = weight.args if is_call(weight, "multiply") else (weight, const(1.0, "float32"))
    factors = [_moved(argument, shape, moves) for argument in arguments]
    for whole, scale in (factors, factors[::-1]):
        integers = whole if transposed else whole.T
        scales = scale if transposed else scale.T
        if not np.array_equal(integers, np.rint(integers)) or np.abs(integers).max(initial=0) > 255:
            continue
        group = _group(scales)
        if group is not None:
            return _Quantized(integers.astype(np.int32), scales[:, ::group].astype(np.float32), group)
    return None


def _is_float_cast(expr: Call) -> bool:
    return is_call(expr, "cast") and all(str(tensor_of(one).dtype) in FLOATS for one in (expr, expr.args[0]))


def _reads_integers(expr: RelayExpr) -> bool:
    """True if an expression reads a tensor of integers."""
    return any(
        isinstance(one, Constant) and str(one.data.dtype) in INTEGERS and len(one.data.shape) > 1
        for one in post_order(expr)
    )


def _moved(factor: RelayExpr, shape: tuple[int, ...], moves: list[Call]) -> Array:
    """The values of a factor, moved as the product is."""
    made: RelayExpr = call("broadcast_to", factor, shape=shape, dtype="")
    for move in reversed(moves):
        if not is_call(move, "cast"):
            assert isinstance(move.op, Op)
            made = Call(move.op, [made], move.attrs)
    return np.asarray(Interpreter().run(made))


def _group(scales: Array) -> int | None:
    """How many adjacent features have the same scale in every unit: all, or a divisor of the places where one changes.
    None if too few."""
    depth = scales.shape[1]
    changes = np.flatnonzero((scales[:, 1:] != scales[:, :-1]).any(axis=0)) + 1
    if not len(changes):
        return int(depth)
    group = int(np.gcd.reduce(changes))
    return group if group >= FEWEST else None


def _product(data: RelayExpr, rows: int, weight: _Quantized) -> RelayExpr | None:
    """The product with a packed weight; None where it does not fit into bytes."""
    units, depth = weight.integers.shape
    groups = -(-depth // weight.group)
    zeros = _zero_points(weight, groups)
    if zeros is None:
        return None
    bits, zero, points = zeros
    fields = WORD_BITS // bits
    if groups > 1 and weight.group % fields:
        return None
    words = groups * -(-weight.group // fields)
    extents = WeightOnly(units, depth, bits, words, groups, weight_only_block(rows), zero)
    shift = zero if points is None else points.repeat(weight.group, axis=1)[:, :depth]
    operands = [const(pack_weight(weight.integers + shift, extents)), _scales(weight.scales, extents)]
    if points is not None:
        operands.append(const(pack_groups(points.astype(np.uint8), extents)))
    return call("nn.contrib_dense_weight_only", data, *operands, units=units, bits=bits, zero=zero)


def _zero_points(weight: _Quantized, groups: int) -> tuple[int, int, Array | None] | None:
    """The bits of a weight, and the zero point of all groups, or that of each (units, groups)."""
    integers = weight.integers
    least, most = int(integers.min(initial=0)), int(integers.max(initial=0))
    for bits in (2, 4, 8):
        for zero in (1 << (bits - 1), 0):
            if least + zero >= 0 and most + zero < 1 << bits:
                return bits, zero, None
        padded = np.pad(integers, ((0, 0), (0, groups * weight.group - integers.shape[1])), "edge")
        grouped = padded.reshape(len(integers), groups, weight.group)
        lowest = np.minimum(grouped.min(axis=2), 0)
        if lowest.min() >= -255 and (grouped.max(axis=2) - lowest).max() < 1 << bits:
            return bits, 0, -lowest
    return None


def _scales(scales: Array, extents: WeightOnly) -> RelayExpr:
    """Packed scales, in half the bytes where that loses nothing."""
    packed = pack_groups(scales, extents)
    with np.errstate(over="ignore"):
        half = packed.astype(np.float16)
    return const(half if np.array_equal(half.astype(np.float32), packed) else packed)


@dataclass
class KeepWeightsPacked(FunctionPass):
    """Multiply few rows by the integers of a dequantised weight."""

    name = "KeepWeightsPacked"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        most = MOST_ROWS_OF_DOT_PRODUCTS if has_dot_products(current_cpu()) else MOST_ROWS
        return rewritten(_Packer(constant_expressions(func.body), most), func)
