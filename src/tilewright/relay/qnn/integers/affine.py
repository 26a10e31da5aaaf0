"""What integers stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.op.op import register_fake_quantization_to_integer
from tilewright.relay.qnn.op.parameters import is_same, limits, value_of
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object


class NotInteger(TilewrightError):
    """An expression cannot be computed on integers; it stays as it is."""


@dataclass(frozen=True, eq=False)
class TensorAffineType(Object):
    """Integers of ``dtype`` that stand for ``scale * (q - zero_point)``; vectors lie along ``axis``."""

    scale: RelayExpr
    zero_point: RelayExpr
    dtype: str
    axis: int = -1

    @property
    def is_scalar(self) -> bool:
        """True for constants with one element: a tensor may be moved around without them."""
        return all(
            isinstance(one, Constant) and one.data.numpy().size == 1 for one in (self.scale, self.zero_point)
        )

    def same(self, other: TensorAffineType) -> bool:
        """True if integers stand for the same numbers."""
        axes = self.axis == other.axis or (self.is_scalar and other.is_scalar)
        return axes and is_same(self.scale, other.scale) and is_same(self.zero_point, other.zero_point)


@dataclass(frozen=True, eq=False)
class TupleAffineType(Object):
    """The fields of a tuple."""

    types: Sequence[TensorAffineType]


Affine = TensorAffineType | TupleAffineType
Rule = Callable[[Call, dict[RelayExpr, Affine]], list[Any]]
"""From a call on integers, and what every expression stands for, to the integers of the result and what they stand
for. What is wanted of the result stands under the call itself."""


def integer_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""

    def register(rule: Rule) -> Rule:
        for name in names:
            register_fake_quantization_to_integer(name, rule)
        return rule

    return register


def tensor_type(affine: Any) -> TensorAffineType:
    """What a tensor stands for."""
    if not isinstance(affine, TensorAffineType):
        raise NotInteger("a tensor is needed here")
    return affine


def scalar_type(affine: Any) -> TensorAffineType:
    """What a tensor with one scale stands for."""
    found = tensor_type(affine)
    if not found.is_scalar:
        raise NotInteger("scales per channel are not carried along here")
    return found


def scalar(expr: RelayExpr) -> np.ndarray[Any, Any]:
    """The value of a scale or zero point that has to be known."""
    value = value_of(expr)
    if value is None:
        raise NotInteger("a scale is known only when the program runs")
    return value


def product_scale(one: RelayExpr, other: RelayExpr) -> RelayExpr:
    """The scale of products."""
    first, second = value_of(one), value_of(other)
    if first is None or second is None:
        return call("multiply", one, other)
    made = (first.astype(np.float32) * second.astype(np.float32)).astype(np.float32)
    return const(made.reshape(()) if made.size == 1 else made.reshape(-1))


def rescaled(data: RelayExpr, old: TensorAffineType, new: TensorAffineType, dtype: str) -> RelayExpr:
    """Integers with another scale and zero point, as another type."""
    if old.same(new):
        if old.dtype == dtype:
            return data
        least, most = limits(dtype)
        fits = limits(old.dtype)[0] >= least and limits(old.dtype)[1] <= most
        return call("cast", data if fits else call("clip", data, a_min=least, a_max=most), dtype=dtype)
    if not new.is_scalar:
        raise NotInteger("integers cannot be brought to scales per channel")
    return call(
        "qnn.requantize",
        data,
        old.scale,
        old.zero_point,
        new.scale,
        new.zero_point,
        axis=old.axis,
        out_dtype=dtype,
    )


def saturated(data: RelayExpr, dtype: str) -> RelayExpr:
    """int32 as a narrower type."""
    if dtype == "int32":
        return data
    least, most = limits(dtype)
    return call("cast", call("clip", data, a_min=least, a_max=most), dtype=dtype)


def quantized_constant(value: np.ndarray[Any, Any], like: TensorAffineType, dtype: str = "int32") -> Constant:
    """Real numbers as integers that stand for them."""
    scale, zero_point = (float(scalar(one).reshape(-1)[0]) for one in (like.scale, like.zero_point))
    moved = np.floor(value.astype(np.float64) / scale + 0.5) + zero_point
    return const(np.asarray(np.clip(moved, *limits(dtype))).astype(dtype))
