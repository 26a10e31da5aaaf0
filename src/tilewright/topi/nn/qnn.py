"""Quantisation that is only simulated: values stay floating-point, the type is chosen while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import as_expr
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError

SQNN_DISABLE = 0
SQNN_INT8 = 1
SQNN_UINT8 = 2
SQNN_INT32 = 3

SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {code: name for name, code in SQNN_DTYPE_TO_CODE.items()}


def _parameter(value: Any, default: float, axis: int, dtype: str) -> Callable[..., Any]:
    """A scale or a zero point at an index: a constant, a scalar, or one for each index along ``axis``."""
    if isinstance(value, Tensor) and len(value.shape) == 1:
        return lambda *indices: value(indices[axis] % value.shape[0]).astype(dtype)
    if isinstance(value, Tensor) and value.shape:
        raise InvalidShapeError(f"a scale or zero point has at most one dimension, not {len(value.shape)}")
    scalar = as_expr(default if value is None else value)
    return lambda *indices: scalar.astype(dtype)


def _code(dtype: Any) -> Any:
    """The number of a type, from its name, the number itself, or a scalar tensor of it."""
    return as_expr(SQNN_DTYPE_TO_CODE[dtype] if isinstance(dtype, str) else dtype)


def simulated_quantize(
    data: Tensor, out_dtype: Any, output_scale: Any = None, output_zero_point: Any = None, axis: int = -1
) -> Tensor:
    """``clip(round(data / scale) + zero_point)`` to the range of a type, or ``data`` itself where that is disabled.

    ``out_dtype`` is a name or a number of ``SQNN_DTYPE_TO_CODE``, or a scalar tensor that holds one.
    """
    kind = data.dtype
    scale = _parameter(output_scale, 1.0, axis, kind)
    zero_point = _parameter(output_zero_point, 0, axis, kind)
    code = _code(out_dtype)

    def element(*indices: Any) -> Any:
        value = data(*indices)
        moved = te.round(value / scale(*indices)) + zero_point(*indices)
        result = value
        for each in (SQNN_INT8, SQNN_UINT8, SQNN_INT32):
            name = SQNN_CODE_TO_DTYPE[each]
            low, high = tir.min_value(name).astype(kind), tir.max_value(name).astype(kind)
            result = tir.Select(code.equal(each), tir.Max(tir.Min(moved, high), low), result)
        return result

    made: Tensor = te.compute(data.shape, element, name="simulated_quantize", tag=tag.BROADCAST)
    return made


def simulated_dequantize(
    data: Tensor, in_dtype: Any, input_scale: Any = None, input_zero_point: Any = None, axis: int = -1
) -> Tensor:
    """``(data - zero_point) * scale``, or ``data`` itself where the type is disabled."""
    kind = data.dtype
    scale = _parameter(input_scale, 1.0, axis, kind)
    zero_point = _parameter(input_zero_point, 0, axis, kind)
    code = _code(in_dtype)

    def element(*indices: Any) -> Any:
        value = data(*indices)
        widened = (value - zero_point(*indices)) * scale(*indices)
        return tir.Select(code.equal(SQNN_DISABLE), value, widened)

    made: Tensor = te.compute(data.shape, element, name="simulated_dequantize", tag=tag.BROADCAST)
    return made
