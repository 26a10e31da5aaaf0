"""The methods of ``OperatorConverter`` that convert one operator each, under TVM's names.

They convert as the frontend does, so that a converter of one's own can call them, or take the place of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright.relay.expr import Tuple, TupleWrapper
from tilewright.relay.frontend.tflite.node import LiteNode

_SAME_NAMES: Final = """
abs add add_n arg_max arg_min batch_to_space_nd cast ceil concatenation cos densify depth_to_space dequantize div elu
equal exp expand_dims fake_quant fill floor floor_div floor_mod fully_connected gather gather_nd greater greater_equal
hard_swish l2_normalization leaky_relu less less_equal log log_softmax logical_and logical_not logical_or logistic
matrix_diag matrix_set_diag maximum minimum mirror_pad mul neg not_equal one_hot pack pow prelu quantize range
reduce_any reduce_max reduce_min reduce_prod relu relu6 relu_n1_to_1 reshape resize_bilinear resize_nearest_neighbor
reverse_sequence reverse_v2 round rsqrt shape sin slice softmax space_to_batch_nd space_to_depth sparse_to_dense split
split_v sqrt square squared_difference squeeze strided_slice sub tan tanh tile topk_v2 transpose transpose_conv unpack
zeros_like
"""
_OTHER_NAMES: Final = {
    "average_pool2d": ("AVERAGE_POOL_2D",),
    "conv2d": ("CONV_2D",),
    "depthwise_conv2d": ("DEPTHWISE_CONV_2D",),
    "detection_postprocess": ("CUSTOM:TFLite_Detection_PostProcess",),
    "l2_pool2d": ("L2_POOL_2D",),
    "lrn": ("LOCAL_RESPONSE_NORMALIZATION",),
    "max_pool2d": ("MAX_POOL_2D",),
    "pad": ("PAD", "PADV2"),
    "reduce_mean": ("MEAN",),
    "reduce_sum": ("SUM",),
    "select": ("SELECT", "SELECT_V2"),
}

OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    **{f"convert_{name}": (name.upper(),) for name in _SAME_NAMES.split()},
    **{f"convert_{name}": operators for name, operators in _OTHER_NAMES.items()},
}
"""The operators that each method converts."""


def convert_as_usual(op: LiteNode, operators: tuple[str, ...] = ()) -> Any:
    """The result of an operator as the frontend converts it; of several results, a ``TupleWrapper``. An error where it
    is none of ``operators``."""
    if operators and op.op_type not in operators:
        raise op.fail(f"this converts {' and '.join(operators)}, not {op.op_type}")
    results = op.graph.usual_results(op)
    return results[0] if len(results) == 1 else TupleWrapper(Tuple(results), len(results))


def _method(name: str, operators: tuple[str, ...]) -> Callable[[Any, LiteNode], Any]:
    def convert(self: Any, op: LiteNode) -> Any:
        return convert_as_usual(op, operators)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The result of {' or '.join(operators)}."
    return convert


class OperatorMethods:
    """One method for each operator."""


for _name, _operators in OPERATORS.items():
    setattr(OperatorMethods, _name, _method(_name, _operators))
