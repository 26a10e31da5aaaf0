"""Apple's BNNS as TVM's programs name it: what it takes is found and taken out of a graph. The code generator
``relay.ext.bnns`` and its runtime are not in this version: who has one registers it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op, register_op_attr
from tilewright.ir.transform import Sequential
from tilewright.relay import transform
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.register import PatternTable, register_pattern_table

NAME = "bnns"
_CHANNEL_AXIS = 1


def _calls(root: Any) -> list[Any]:
    """The operators of a match, from the root backwards through first arguments to the convolution."""
    found = []
    while isinstance(root, Call) and isinstance(root.op, Op):
        found.append(root)
        if root.op.name == "nn.conv2d":
            break
        root = root.args[0]
    return found


def _is_float(expr: Any) -> bool:
    return str(expr.checked_type.dtype) == "float32"


def _takes_images(call: Any) -> bool:
    return _is_float(call.args[0]) and len(call.args[0].checked_type.shape) == 4


def _is_supported(call: Any) -> bool:
    """NCHW, of float32, with constant weights."""
    attrs, weight = call.attrs, call.args[1]
    plain = attrs["data_layout"] == "NCHW" and attrs["out_dtype"] in ("", "float32")
    return plain and is_constant().match(weight) and _takes_images(call) and _is_float(weight)


def _is_bias(call: Any) -> bool:
    """True for a constant that is added for each channel."""
    name, value = call.op.name, call.args[1]
    if name == "nn.bias_add":
        return int(call.attrs["axis"]) == _CHANNEL_AXIS
    sizes = [int(extent) for extent in value.checked_type.shape]
    # Aligned at the right: one number for each channel, broadcast over height and width.
    return len(sizes) in (3, 4) and all(
        size == 1 for axis, size in enumerate(sizes) if axis != len(sizes) - 3
    )


def _convolution(root: Any) -> bool:
    calls = _calls(root)
    biases = [call for call in calls if call.op.name in ("add", "nn.bias_add")]
    return _is_supported(calls[-1]) and all(map(_is_bias, biases))


def _convolution_pattern(activation: str | None, has_bias: bool) -> DFPattern:
    made: DFPattern = is_op("nn.conv2d")(wildcard(), is_constant())
    if has_bias:
        made = (is_op("nn.bias_add") | is_op("add"))(made, is_constant())
    return made if activation is None else is_op(activation)(made)


def pattern_table() -> PatternTable:
    """The groups of operators that the library takes, the longest first, with the checks of types and layouts."""
    table: list[tuple[Any, ...]] = []
    for activation, has_bias in product(("nn.relu", "sigmoid", None), (True, False)):
        if activation is None and not has_bias:
            continue  # one convolution is not a group
        parts = [
            "conv2d",
            *(["bias"] if has_bias else []),
            *([activation.split(".")[-1]] if activation else []),
        ]
        name = f"{NAME}.{'_'.join(parts)}"
        table.append((name, _convolution_pattern(activation, has_bias), _convolution))
    dense = is_op("nn.dense")(wildcard(), is_constant())
    biased = (is_op("nn.bias_add") | is_op("add"))(dense, is_constant())
    return [*table, (f"{NAME}.dense_bias", biased, lambda root: _is_float(root))]


def _register_operators() -> None:
    """The single operators that the library takes."""
    register_op_attr("nn.conv2d", f"target.{NAME}", _is_supported)
    for name in ("nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d"):
        register_op_attr(name, f"target.{NAME}", _takes_images)
    for name in ("nn.dense", "nn.batch_matmul", "nn.instance_norm"):
        register_op_attr(name, f"target.{NAME}", lambda call: all(map(_is_float, call.args)))


register_pattern_table(NAME, pattern_table)
_register_operators()


def partition_for_bnns(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The module with the library's parts as functions whose ``Compiler`` is "bnns"."""
    if params:
        mod = with_main(mod, bind_params_by_name(mod["main"], params))
    passes = [
        transform.InferType(),
        transform.FoldConstant(),
        transform.FoldScaleAxis(),
        transform.DynamicToStatic(),
        transform.FoldConstant(),
        transform.MergeComposite(pattern_table()),
        transform.AnnotateTarget(NAME),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
    return Sequential(passes)(mod)
