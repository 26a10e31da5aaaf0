"""Operators of the quantised dialect."""

from tilewright.relay.qnn.op.arithmetic import add, concatenate, mul, subtract
from tilewright.relay.qnn.op.products import batch_matmul, conv2d, conv2d_transpose, dense
from tilewright.relay.qnn.op.quantization import dequantize, quantize, requantize
from tilewright.relay.qnn.op.rules import register_qnn_canonicalize, register_qnn_legalize
from tilewright.relay.qnn.op.simulated import simulated_dequantize, simulated_quantize

__all__ = [
    "add",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dequantize",
    "mul",
    "quantize",
    "register_qnn_canonicalize",
    "register_qnn_legalize",
    "requantize",
    "simulated_dequantize",
    "simulated_quantize",
    "subtract",
]
