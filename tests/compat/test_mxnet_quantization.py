"""MXNet's quantisation, as programs written for TVM import it."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.compat import mxnet_quantization as quantization


def evaluated(expression, **values):
    function = relay.Function(relay.analysis.free_vars(expression), expression)
    executor = relay.create_executor("debug", tvm.IRModule.from_expr(function))
    return executor.evaluate()(**values).numpy()


def test_served_under_the_name_of_tvm():
    """The module has TVM's path; ``relay.frontend`` has one of its functions, as there."""
    served = importlib.import_module("tilewright.relay.frontend.mxnet_qnn_op_utils")
    assert served.quantize_mxnet_min_max is quantization.quantize_mxnet_min_max
    assert (
        relay.frontend.quantize_conv_bias_mkldnn_from_var is quantization.quantize_conv_bias_mkldnn_from_var
    )


@pytest.mark.parametrize(("dtype", "steps"), [("int8", 127.5), ("uint8", 255.5)])
def test_there_and_back(dtype, steps):
    """The larger end of the range is half a step above the largest integer; zero stays zero."""
    data = np.array([0, 1, 2.5, 10], "float32")
    made, scale, zero = quantization.quantize_mxnet_min_max(
        relay.var("x", shape=(4,)), min_range=-8, max_range=10, out_dtype=dtype
    )
    assert float(scale.data.numpy()) == pytest.approx(10 / steps) and int(zero.data.numpy()) == 0
    quantised = evaluated(made, x=data)
    np.testing.assert_array_equal(
        quantised, np.minimum(np.round(data * steps / 10), int(steps)).astype(dtype)
    )
    back = quantization.dequantize_mxnet_min_max(
        relay.var("q", shape=(4,), dtype=dtype), min_range=-8, max_range=10, in_dtype=dtype
    )
    np.testing.assert_allclose(evaluated(back, q=quantised), data, atol=10 / steps)


def test_type_of_a_result():
    """Unsigned where nothing is negative."""
    chosen = quantization.get_conv_mkldnn_requantized_scale_outDtype
    assert chosen(0.0, 511.0) == (np.float32(2), "uint8")
    assert chosen(-255.0, 3.0) == (np.float32(2), "int8")
    with pytest.raises(ValueError, match="int32"):
        quantization.get_mkldnn_requantize_scale_outDtype(0, 1, "int32")


def test_scales_of_channels():
    """A scale for each output channel; a channel without weights, and one with a very large bias."""
    weights = np.array([[-1, 2], [0, 0], [0.5, 0.25]], "float32")
    given = weights.min(1), weights.max(1), np.float32(0.5)
    variable = relay.var("w", shape=(3, 2))
    made, scales, zero = quantization.quantize_conv_weights_bias_channel_mkldnn_from_var(
        variable, None, *given
    )
    np.testing.assert_allclose(scales, [2 / 127.5, 1 / (2**31 - 1), 0.5 / 127.5], rtol=1e-6)
    assert zero == 0
    np.testing.assert_array_equal(evaluated(made, w=weights), [[-64, 127], [0, 0], [127, 64]])
    bias = np.array([0, 0, -1e9], "float32")
    _, scales, _ = quantization.quantize_conv_weights_bias_channel_mkldnn_from_var(variable, bias, *given)
    np.testing.assert_allclose(scales[2], 4e9 / 2**31, rtol=1e-6)
