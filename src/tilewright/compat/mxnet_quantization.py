"""The functions of TVM's ``relay.frontend.mxnet_qnn_op_utils``: how MXNet quantises with MKL-DNN (now oneDNN).

Zero is always the integer zero, and a scale maps the larger end of a range to half a step above the largest integer,
for ``uint8`` and ``int8`` alike.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.qnn.op.quantization import dequantize, quantize

__all__ = [
    "dequantize_mxnet_min_max",
    "get_conv_mkldnn_requantized_scale_outDtype",
    "get_mkldnn_int8_scale",
    "get_mkldnn_requantize_scale_outDtype",
    "get_mkldnn_uint8_scale",
    "quantize_conv_bias_mkldnn_from_var",
    "quantize_conv_weights_bias_channel_mkldnn_from_var",
    "quantize_mxnet_min_max",
    "zero_centered_int8_quantized_range",
    "zero_centered_uint8_quantized_range",
]

zero_centered_uint8_quantized_range: Final = np.float32(255.5)
zero_centered_int8_quantized_range: Final = np.float32(127.5)
_RANGES: Final = {
    "int8": zero_centered_int8_quantized_range,
    "uint8": zero_centered_uint8_quantized_range,
}
_INT32: Final = np.iinfo("int32")


def get_mkldnn_requantize_scale_outDtype(
    min_output_range: float, max_output_range: float, out_dtype: str
) -> np.float32:
    """The scale of a range in ``"int8"`` or ``"uint8"``."""
    if out_dtype not in _RANGES:
        raise ValueError(f"MXNet quantises to int8 or uint8, not to {out_dtype}")
    reach = max(abs(np.float32(min_output_range)), abs(np.float32(max_output_range)))
    return np.float32(reach / _RANGES[out_dtype])


def get_mkldnn_int8_scale(range_min: float, range_max: float) -> np.float32:
    """The scale of a range in ``int8``."""
    return get_mkldnn_requantize_scale_outDtype(range_min, range_max, "int8")


def get_mkldnn_uint8_scale(range_min: float, range_max: float) -> np.float32:
    """The scale of a range in ``uint8``."""
    return get_mkldnn_requantize_scale_outDtype(range_min, range_max, "uint8")


def get_conv_mkldnn_requantized_scale_outDtype(
    min_output_range: float, max_output_range: float
) -> tuple[np.float32, str]:
    """The scale and the type of a convolution's result: ``uint8`` where it cannot be negative, else ``int8``."""
    chosen = "uint8" if min_output_range >= 0.0 else "int8"
    return get_mkldnn_requantize_scale_outDtype(min_output_range, max_output_range, chosen), chosen


def quantize_mxnet_min_max(
    data: Any, min_range: float, max_range: float, out_dtype: str = "int8"
) -> tuple[Call, Constant, Constant]:
    """Data of a range as integers, their scale, and their zero point."""
    scale = const(get_mkldnn_requantize_scale_outDtype(min_range, max_range, out_dtype))
    zero = const(0, "int32")
    return quantize(data, scale, zero, out_dtype=out_dtype), scale, zero


def dequantize_mxnet_min_max(data: Any, min_range: float, max_range: float, in_dtype: str = "int8") -> Call:
    """The real numbers that integers of a range stand for."""
    scale = get_mkldnn_requantize_scale_outDtype(min_range, max_range, in_dtype)
    return dequantize(data, const(scale), const(0, "int32"))


def quantize_conv_bias_mkldnn_from_var(bias_var: Any, bias_scale: Any) -> Call:
    """A convolution's bias as ``int32``, each channel by its own scale."""
    return quantize(bias_var, const(bias_scale, "float32"), const(0, "int32"), axis=0, out_dtype="int32")


def quantize_conv_weights_bias_channel_mkldnn_from_var(
    weights_var: Any, bias: Any, min_vector_range: Any, max_vector_range: Any, data_scale: float
) -> tuple[Call, np.ndarray[Any, Any], int]:
    """A convolution's weights as ``int8``, each output channel by a scale of its own, those scales, and the zero point.

    A channel without weights has the smallest scale. With a bias, scales are so large that twice the bias, in steps of
    the products, still fits 32 bits.
    """
    reach = np.maximum(np.abs(np.asarray(min_vector_range)), np.abs(np.asarray(max_vector_range)))
    scales = np.where(reach == 0, 1.0 / _INT32.max, reach / zero_centered_int8_quantized_range)
    if bias is not None:
        doubled = 2.0 * np.asarray(bias, "float32") / data_scale
        scales = np.maximum(scales, np.where(doubled > 0, doubled / _INT32.max, doubled / _INT32.min))
    scales = scales.astype("float32")
    made = quantize(weights_var, const(scales), const(0, "int32"), axis=0, out_dtype="int8")
    return made, scales, 0
