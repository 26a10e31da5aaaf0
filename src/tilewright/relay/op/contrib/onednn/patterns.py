"""The operators and groups of operators that oneDNN takes, and why it does not take others."""

from __future__ import annotations

from typing import Any

from tilewright.ir.op import Op
from tilewright.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.backends import Backend, register_backend
from tilewright.relay.op.contrib.checks import all_of, layout, of_type, rank, shape_of
from tilewright.relay.op.contrib.register import PatternTable
from tilewright.runtime.external.onednn import is_available

NAME = "onednn"
ACTIVATIONS = ("nn.relu", "clip", "sigmoid", "tanh")
"""Functions of one element that a convolution or product applies to its result."""
_FLOAT = of_type("float32")


def _same_batches(call: Call) -> str | None:
    left, right = (shape_of(argument)[0] for argument in call.args)
    return None if left == right or 1 in (left, right) else f"the batches are {left} and {right}"


def _pool_layout(call: Call) -> str | None:
    assert call.attrs is not None
    found = str(call.attrs["layout"])
    if found != "NCHW":
        return f"layout is {found}, not NCHW"
    dilation = call.attrs.get("dilation", (1, 1)) if hasattr(call.attrs, "get") else (1, 1)
    return None if all(int(one) == 1 for one in dilation) else "windows are dilated"


def _rounded_down(call: Call) -> str | None:
    """An average over a window that leaves the padded image is of fewer elements."""
    assert call.attrs is not None
    return "sizes are rounded up" if bool(call.attrs["ceil_mode"]) else None


def _broadcast(call: Call) -> str | None:
    """Both operands are tensors, and one has the shape of the result."""
    result = shape_of(call)
    shapes = [shape_of(argument) for argument in call.args]
    if result not in shapes:
        return f"both operands are broadcast: {shapes}"
    if not 1 <= len(result) <= 5:
        return f"the result has {len(result)} dimensions"
    return None


def _any_rank(call: Call) -> str | None:
    found = len(shape_of(call.args[0]))
    return None if 1 <= found <= 5 else f"the tensor has {found} dimensions"


_CONVOLUTION = all_of(_FLOAT, layout(data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW"))
_DENSE = all_of(_FLOAT, rank(2))
_BATCHED = all_of(_FLOAT, rank(3), _same_batches)
_SAME = all_of(_FLOAT, _any_rank)

OPERATORS = {
    "nn.conv2d": _CONVOLUTION,
    "nn.dense": _DENSE,
    "nn.batch_matmul": _BATCHED,
    "nn.max_pool2d": all_of(_FLOAT, _pool_layout),
    "nn.avg_pool2d": all_of(_FLOAT, _pool_layout, _rounded_down),
    "nn.global_avg_pool2d": all_of(_FLOAT, _pool_layout),
    "nn.softmax": _SAME,
    "nn.relu": _SAME,
    "clip": _SAME,
    "sigmoid": _SAME,
    "tanh": _SAME,
    "add": all_of(_FLOAT, _broadcast),
    "multiply": all_of(_FLOAT, _broadcast),
    "reshape": _SAME,
    "nn.batch_flatten": _SAME,
    "squeeze": all_of(_FLOAT, _any_rank, lambda call: None if shape_of(call) else "the result is a scalar"),
}

HEAVY = ("nn.conv2d", "nn.dense", "nn.batch_matmul", "nn.max_pool2d", "nn.avg_pool2d", "nn.softmax")
"""A part without any of these is not worth a call of the library."""


def _anchors(expr: Any, depth: int = 4) -> list[Call]:
    """The convolutions and products that a match may begin with, above its root."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or not depth:
        return []
    if expr.op.name in ("nn.conv2d", "nn.dense", "nn.batch_matmul"):
        return [expr]
    if expr.op.name not in (*ACTIVATIONS, "add", "nn.bias_add"):
        return []
    return [anchor for argument in expr.args for anchor in _anchors(argument, depth - 1)]


def _accepted(root: Any) -> bool:
    """True if every operator of a match is taken, and what is added has the result's shape or is a row."""
    found = _anchors(root)
    if not found or _FLOAT(root) is not None:
        return False
    result = shape_of(root)
    if any(shape_of(anchor) != result or OPERATORS[_name(anchor)](anchor) is not None for anchor in found):
        return False
    return all(_addend_fits(call, result) for call in _chain(root))


def _chain(expr: Any, depth: int = 4) -> list[Call]:
    """The operators between a root and its anchors."""
    if not isinstance(expr, Call) or not depth or _name(expr) not in (*ACTIVATIONS, "add", "nn.bias_add"):
        return []
    return [expr, *(one for argument in expr.args for one in _chain(argument, depth - 1))]


def _name(call: Any) -> str:
    return str(getattr(call.op, "name", ""))


def _addend_fits(call: Call, result: tuple[int, ...]) -> bool:
    """What is added has the shape of the result, or one element for each channel."""
    channel = 1 if len(result) == 4 else len(result) - 1
    if _name(call) == "nn.bias_add":
        assert call.attrs is not None
        return int(call.attrs["axis"]) % len(result) == channel
    if _name(call) != "add":
        return True
    row = (result[channel], *[1] * (len(result) - 1 - channel))
    rows = [(*[1] * missing, *row) for missing in range(len(result) - len(row) + 1)]
    return all(shape_of(argument) in (result, *rows) for argument in call.args)


def _with_tail(anchor: DFPattern) -> list[tuple[str, DFPattern]]:
    """An anchor with a bias, a sum and an activation, the longest first, each with the name of what follows."""
    biased = [
        ("_bias", is_op("nn.bias_add")(anchor, is_constant())),
        ("_bias", is_op("add")(anchor, is_constant())),
    ]
    heads = [*biased, ("", anchor)]
    summed = [(f"{name}_sum", is_op("add")(head, wildcard())) for name, head in heads]
    activated = []
    for name, head in (*summed, *heads):
        for activation in ACTIVATIONS:
            activated.append((f"{name}_{activation.removeprefix('nn.')}", is_op(activation)(head)))
    return [*activated, *summed, *biased]


def pattern_table(name: str = NAME) -> PatternTable:
    """Convolutions and products with their bias, a sum and an activation."""
    table: list[tuple[Any, ...]] = []
    for operator in ("conv2d", "dense"):
        anchor = is_op(f"nn.{operator}")(wildcard(), wildcard())
        for tail, pattern in _with_tail(anchor):
            table.append((f"{name}.{operator}{tail}", pattern, _accepted))
    return table


def why_missing() -> str | None:
    """What to install where the library is not there."""
    return None if is_available() else "oneDNN is not installed: pip install 'tilewright[onednn]'"


BACKEND = register_backend(Backend(NAME, pattern_table, OPERATORS, why_missing, heavy=HEAVY))
