"""The number of operations of a function, the memory that it accesses, and the nodes of the model that it came from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.analysis.mac_count import MAC_COUNTS
from tilewright.relay.analysis.winograd_work import WINOGRAD_CONVOLUTIONS, winograd_operations
from tilewright.relay.expr import Call, Tuple, Var
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern

# Convolutions under other names, with a window in their attributes.
_CONVOLUTIONS = WINOGRAD_CONVOLUTIONS | {
    "nn.contrib_conv2d_gemm_without_weight_transform",
    "nn.deformable_conv2d",
}
_WINDOWS = frozenset(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))

# Operations an element of the input, where one for each element of the result is far off.
_PER_INPUT_ELEMENT = {
    "nn.softmax": 4,
    "nn.log_softmax": 4,
    "nn.layer_norm": 6,
    "nn.instance_norm": 6,
    "nn.group_norm": 6,
    "nn.l2_normalize": 3,
    "nn.lrn": 6,
    "nn.global_avg_pool2d": 1,
    "nn.global_max_pool2d": 1,
    **{f"nn.adaptive_{kind}_pool{rank}d": 1 for kind in ("avg", "max") for rank in (1, 2, 3)},
    "variance": 3,
}

# They move values and compute none.
_MOVERS = frozenset(
    {
        "layout_transform",
        "reshape",
        "transpose",
        "concatenate",
        "copy",
        "take",
        "gather",
        "gather_nd",
        "split",
    }
    | {
        "strided_slice",
        "squeeze",
        "expand_dims",
        "nn.contrib_channel_shuffle",
        "nn.contrib_frames_to_rows",
        "nn.contrib_rows_to_frames",
        "nn.pad",
        "nn.batch_flatten",
        "broadcast_to",
        "stack",
        "tile",
    }
    | {
        "repeat",
        "reverse",
        "one_hot",
        "zeros",
        "ones",
        "full",
        "zeros_like",
        "ones_like",
        "full_like",
        "cast",
    }
    | {"scatter", "scatter_nd", "nn.mirror_pad", "nn.depth_to_space", "nn.space_to_depth", "on_device"}
)

# They read of their first argument no more than they give.
_PARTIAL_READERS = frozenset({"take", "gather", "gather_nd", "strided_slice", "split"})


def _tensors(kind: Type) -> Iterator[TensorType]:
    if isinstance(kind, TensorType):
        yield kind
    elif isinstance(kind, TupleType):
        for field in kind.fields:
            yield from _tensors(field)


def _elements(expr: RelayExpr) -> int:
    return sum(math.prod(kind.concrete_shape) for kind in _tensors(expr.checked_type))


def _bytes(expr: RelayExpr) -> int:
    return sum(
        math.prod(kind.concrete_shape) * ((kind.dtype.bits * kind.dtype.lanes + 7) // 8)
        for kind in _tensors(expr.checked_type)
    )


def _flops(call: Call) -> int:
    """The arithmetic operations that a call's definition names; a multiply-accumulate is two."""
    assert isinstance(call.op, Op)
    name = call.op.name
    attrs: Any = call.attrs
    count = call.op.get_attr("FMacCount") or MAC_COUNTS.get(name)
    if count is None and name in _CONVOLUTIONS and attrs.kernel_size is not None:
        count = MAC_COUNTS["nn.conv2d"]
    if count is not None:
        return 2 * int(count(call))
    if name in _MOVERS:
        return 0
    if name in _PER_INPUT_ELEMENT:
        return _PER_INPUT_ELEMENT[name] * _elements(call.args[0])
    if name in _WINDOWS:
        return _elements(call) * math.prod(int(extent) for extent in attrs.pool_size)
    if call.op.get_attr("TOpPattern") == OpPattern.COMM_REDUCE:
        return _elements(call.args[0])
    return _elements(call)


def _operator_calls(function: Function) -> Iterator[tuple[Call, str]]:
    """Every call of an operator in a function, with the operator's name."""
    for expr in post_order(function.body):
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            yield expr, expr.op.name


def count_flops(function: Function) -> int:
    """The arithmetic operations of a typed function of constant shapes, as its operators define them: Winograd counts
    as the convolution that it computes. See ``count_operations``."""
    return sum(_flops(call) for call, _ in _operator_calls(function))


def count_operations(function: Function) -> int:
    """The arithmetic operations that a kernel of a typed function of constant shapes really does: as ``count_flops``,
    but with Winograd's own products and transforms."""
    return sum(
        winograd_operations(call) if name in WINOGRAD_CONVOLUTIONS else _flops(call)
        for call, name in _operator_calls(function)
    )


def arithmetic_dtype(function: Function) -> str:
    """The element type that most of a function's operations multiply or add in: that of the operands of the operator
    with the most. It decides how fast the machine could be at best."""
    most, found = -1, "float32"
    for call, _ in _operator_calls(function):
        flops = _flops(call)
        first = next((kind for argument in call.args for kind in _tensors(argument.checked_type)), None)
        if flops > most and first is not None:
            most, found = flops, str(first.dtype)
    return found


def count_bytes(function: Function) -> int:
    """The bytes that a kernel of a typed function has to read and write: each argument and each result once. Of an
    argument that is only indexed, as many as the result has."""
    partial: dict[RelayExpr, int] = {}
    whole: set[RelayExpr] = set()
    for expr in post_order(function.body):
        if isinstance(expr, Call):
            for position, argument in enumerate(expr.args):
                reads_part = position == 0 and isinstance(expr.op, Op) and expr.op.name in _PARTIAL_READERS
                if reads_part:
                    partial[argument] = partial.get(argument, 0) + _bytes(expr)
                else:
                    whole.add(argument)
        elif isinstance(expr, Tuple):
            whole.update(expr.fields)
    total = _bytes(function.body)
    for parameter in function.params:
        size = _bytes(parameter)
        only_partly = parameter in partial and parameter not in whole
        total += min(size, partial[parameter]) if only_partly else size
    return total


def source_names(function: Function) -> list[str]:
    """The places in the model that a function's operators came from, each once, in the order of computation."""
    found: dict[str, None] = {}
    for expr in post_order(function.body):
        if isinstance(expr, Call) and not isinstance(expr.op, Var) and expr.span is not None:
            found.setdefault(span_name(expr))
    return list(found)


def span_name(expr: RelayExpr) -> str:
    """A place as a person would say it: the model's node, or file and line; empty where none is known. Folders are left
    out: what is compiled says nothing of the machine that it was compiled on."""
    span = expr.span
    if span is None:
        return ""
    name = str(span.source_name)
    return f"{Path(name).name}:{span.line}" if span.line else name
