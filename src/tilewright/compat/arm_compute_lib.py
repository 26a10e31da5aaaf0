"""Arm's Compute Library as TVM's programs name it: what it takes is found and taken out of a graph. The code generator
``relay.ext.arm_compute_lib`` and its runtime are not in this version: who has one registers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op, register_op_attr
from tilewright.ir.transform import Sequential
from tilewright.relay import transform
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.dataflow_pattern import DFPattern, is_constant, is_expr, is_op, wildcard
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.contrib.register import PatternTable, register_pattern_table
from tilewright.runtime.registry import get_global_func

NAME = "arm_compute_lib"


def is_arm_compute_runtime_enabled() -> bool:
    """True if somebody has registered the library's code generator."""
    return get_global_func(f"relay.ext.{NAME}", True) is not None


def _typed(call: Any, *dtypes: str) -> bool:
    return str(call.checked_type.dtype) in dtypes


def _find(root: Any, *names: str) -> Call:
    """The first operator of these names, from the root backwards through first arguments."""
    while isinstance(root, Call) and not (isinstance(root.op, Op) and root.op.name in names):
        root = root.args[0]
    assert isinstance(root, Call), "a match has its anchor"
    return root


def _convolution(root: Any) -> bool:
    """NHWC, in one group or depthwise, of float32."""
    call = _find(root, "nn.conv2d")
    attrs, weight = call.attrs, call.args[1]
    assert attrs is not None
    if attrs["data_layout"] != "NHWC" or not _typed(call, "float32") or not _typed(call.args[0], "float32"):
        return False
    groups = int(attrs["groups"])
    if groups == 1:
        return True
    # A depthwise convolution of one output a channel, whose windows have sizes that the library has kernels for.
    window = tuple(int(one) for one in attrs["kernel_size"])
    depthwise = groups == int(call.args[0].checked_type.shape[3]) == int(weight.checked_type.shape[2])
    return depthwise and window in ((3, 3), (5, 5))


def _quantized_convolution(root: Any) -> bool:
    call = _find(root, "qnn.conv2d")
    assert call.attrs is not None
    plain = call.attrs["data_layout"] == "NHWC" and int(call.attrs["groups"]) == 1
    return plain and _typed(root, "uint8") and _typed(call.args[0], "uint8")


def _product(root: Any) -> bool:
    call = _find(root, "nn.dense")
    return _typed(call, "float32") and _typed(call.args[0], "float32")


def _quantized_product(root: Any) -> bool:
    return _typed(root, "uint8") and _typed(_find(root, "qnn.dense").args[0], "uint8")


def _pool(call: Any, *dtypes: str) -> bool:
    return call.attrs["layout"] == "NHWC" and _typed(call.args[0], *dtypes)


def _square_pool(root: Any) -> bool:
    return _pool(_find(root, "nn.avg_pool2d"), "float32")


def _average_of_bytes(root: Any) -> bool:
    return _typed(root, "uint8") and _pool(_find(root, "nn.avg_pool2d", "nn.global_avg_pool2d"), "int32")


def _with_tail(anchor: DFPattern) -> DFPattern:
    """With a bias and an activation, both of which may be missing."""
    biased = anchor.optional(lambda one: is_op("nn.bias_add")(one, is_constant()))
    return biased.optional(is_op("nn.relu"))


def _quantized(name: str, data: DFPattern) -> DFPattern:
    parameters = [is_constant() for _ in range(4)]
    tail = _with_tail(is_op(name)(data, is_constant(), *parameters))
    return is_op("qnn.requantize")(tail, wildcard(), wildcard(), is_constant(), is_constant())


def pattern_table() -> PatternTable:
    """The groups of operators that the library takes, with the checks of their types and layouts."""
    padded = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    two = is_expr(const(2.0))
    averages = is_op("nn.avg_pool2d") | is_op("nn.global_avg_pool2d")
    product = is_op("nn.dense")(wildcard(), is_constant())
    return [
        ("arm_compute_lib.conv2d", _with_tail(is_op("nn.conv2d")(padded, is_constant())), _convolution),
        ("arm_compute_lib.qnn_conv2d", _quantized("qnn.conv2d", padded), _quantized_convolution),
        (
            "arm_compute_lib.dense",
            product.optional(lambda one: is_op("nn.bias_add")(one, is_constant())),
            _product,
        ),
        ("arm_compute_lib.qnn_dense", _quantized("qnn.dense", wildcard()), _quantized_product),
        (
            "arm_compute_lib.avg_pool2d",
            is_op("cast")(averages(is_op("cast")(wildcard()))),
            _average_of_bytes,
        ),
        (
            "arm_compute_lib.l2_pool2d",
            is_op("sqrt")(is_op("nn.avg_pool2d")(is_op("power")(wildcard(), two))),
            _square_pool,
        ),
    ]


def _register_operators() -> None:
    """The single operators that the library takes."""
    for name in ("nn.max_pool2d", "nn.global_max_pool2d"):
        register_op_attr(name, f"target.{NAME}", lambda call: _pool(call, "float32", "uint8"))
    for name in ("nn.avg_pool2d", "nn.global_avg_pool2d"):
        register_op_attr(name, f"target.{NAME}", lambda call: _pool(call, "float32"))
    for name in ("add", "maximum"):
        register_op_attr(
            name, f"target.{NAME}", lambda call: all(_typed(one, "float32") for one in call.args)
        )
    register_op_attr("reshape", f"target.{NAME}", lambda call: _typed(call.args[0], "float32", "uint8"))
    register_op_attr("qnn.add", f"target.{NAME}", _adds_bytes)


def _adds_bytes(call: Any) -> bool:
    return all(_typed(one, "uint8") for one in call.args[:2]) and all(
        isinstance(one, Constant) for one in call.args[2:]
    )


register_pattern_table(NAME, pattern_table)
_register_operators()


def partition_for_arm_compute_lib(
    mod: IRModule, params: Mapping[str, Any] | None = None, **opts: Any
) -> IRModule:
    """The module with the library's parts as functions whose ``Compiler`` is "arm_compute_lib"."""
    if params:
        mod = with_main(mod, bind_params_by_name(mod["main"], params))
    passes = [
        transform.InferType(),
        transform.MergeComposite(pattern_table()),
        transform.AnnotateTarget(NAME, False),
        transform.PartitionGraph(),
    ]
    return Sequential(passes)(mod)
