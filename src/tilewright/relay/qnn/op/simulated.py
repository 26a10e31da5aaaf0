"""Quantisation that is only simulated: values stay floating-point, and the integer type is a value of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import dims, tensor
from tilewright.relay.op.tensor.reference import half_away_from_zero
from tilewright.relay.qnn.op.parameters import Array, limits, spread_array
from tilewright.topi.nn.qnn import SQNN_CODE_TO_DTYPE, SQNN_DISABLE, SQNN_DTYPE_TO_CODE


@attributes
class SimulatedQuantizeAttrs(OpAttrs):
    """The axis along which scales and zero points lie."""

    axis: int = -1


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of the data."""
    data = tensor(types[0], "the data")
    code = tensor(types[1], "the number of the type")
    if data is None or code is None:
        return None
    if dims(code) not in ((), (1,)):
        raise RelationError(f"the number of the type is a scalar, not {code}")
    return data


def _dtype(code: Array) -> str:
    return SQNN_CODE_TO_DTYPE.get(int(code.reshape(-1)[0]), SQNN_CODE_TO_DTYPE[SQNN_DISABLE])


def _parameters(attrs: Any, data: Array, *given: Array) -> list[Array]:
    return [spread_array(one.astype(data.dtype), data.ndim, attrs.axis) for one in given]


def _quantized(attrs: Any, data: Array, code: Array, scale: Array, zero_point: Array) -> Array:
    dtype = _dtype(code)
    if dtype == "disable":
        return data
    scale, zero_point = _parameters(attrs, data, scale, zero_point)
    return np.asarray(np.clip(half_away_from_zero(data / scale) + zero_point, *limits(dtype))).astype(
        data.dtype
    )


def _dequantized(attrs: Any, data: Array, code: Array, scale: Array, zero_point: Array) -> Array:
    if _dtype(code) == "disable":
        return data
    scale, zero_point = _parameters(attrs, data, scale, zero_point)
    return np.asarray((data - zero_point) * scale).astype(data.dtype)


def _define(name: str, reference: Any, computation: Any, description: str) -> Any:
    return define(
        f"qnn.{name}",
        arguments=("data", "dtype", "scale", "zero_point"),
        attrs=SimulatedQuantizeAttrs,
        relation=_relation,
        compute=lambda attrs, inputs, out_type: [computation(*inputs, attrs.axis)],
        reference=reference,
        kind=OpPattern.ELEMWISE,
        level=11,
        description=description,
    )


_simulated_quantize = _define(
    "simulated_quantize", _quantized, topi.nn.simulated_quantize, "quantize, with floating-point results."
)
_simulated_dequantize = _define(
    "simulated_dequantize",
    _dequantized,
    topi.nn.simulated_dequantize,
    "dequantize of floating-point numbers.",
)


def _code(dtype: str | RelayExpr) -> RelayExpr:
    """The number of a type, from its name or as a value of the program."""
    return const(SQNN_DTYPE_TO_CODE[dtype], "int32") if isinstance(dtype, str) else dtype


def simulated_quantize(
    data: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str | RelayExpr = "int8",
) -> Call:
    """``quantize`` with floating-point results. ``out_dtype`` is "int8", "uint8", "int32" or "disable", or a value of
    the program with its number in ``topi.nn.qnn.SQNN_DTYPE_TO_CODE``."""
    arguments = (data, _code(out_dtype), output_scale, output_zero_point)
    return Call(_simulated_quantize, arguments, SimulatedQuantizeAttrs(axis=axis))


def simulated_dequantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    axis: int = -1,
    in_dtype: str | RelayExpr = "int8",
) -> Call:
    """``dequantize`` of floating-point numbers; ``in_dtype`` as in ``simulated_quantize``."""
    arguments = (data, _code(in_dtype), input_scale, input_zero_point)
    return Call(_simulated_dequantize, arguments, SimulatedQuantizeAttrs(axis=axis))
