"""Operators that work element by element, and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.relay.backend.onnx_export.builder import GraphWriter, dtype_of, shape_of, writes

_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "copy": "Identity",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "fast_erf": "Erf",
    "fast_exp": "Exp",
    "fast_tanh": "Tanh",
    "floor": "Floor",
    "isinf": "IsInf",
    "isnan": "IsNaN",
    "log": "Log",
    "logical_not": "Not",
    "negative": "Neg",
    "nn.relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "nn.dropout_raw": "Identity",
    "annotation.stop_fusion": "Identity",
    "on_device": "Identity",
}
_BINARY = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "power": "Pow",
    "equal": "Equal",
    "less": "Less",
    "greater": "Greater",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
}


def _register(table: dict[str, str]) -> None:
    for name, operator in table.items():

        @writes(name)
        def write(graph: GraphWriter, call: Any, *inputs: str, operator: str = operator) -> str:
            return graph.node(operator, inputs)


_register(_UNARY)
_register(_BINARY)


@writes("not_equal", "less_equal", "greater_equal")
def write_negated(graph: GraphWriter, call: Any, left: str, right: str) -> str:
    """Comparisons that older opsets only have as their negation."""
    opposite = {"not_equal": "Equal", "less_equal": "Greater", "greater_equal": "Less"}[call.op.name]
    return graph.node("Not", [graph.node(opposite, [left, right])])


@writes("maximum", "minimum")
def write_extreme(graph: GraphWriter, call: Any, left: str, right: str) -> str:
    """The larger or the smaller of two."""
    chosen = graph.larger if call.op.name == "maximum" else graph.smaller
    return chosen(left, right, dtype_of(call))


@writes("rsqrt")
def write_rsqrt(graph: GraphWriter, call: Any, data: str) -> str:
    """One divided by the root."""
    return graph.node("Reciprocal", [graph.node("Sqrt", [data])])


@writes("log2", "log10")
def write_log(graph: GraphWriter, call: Any, data: str) -> str:
    """Logarithms to other bases."""
    base = 2.0 if call.op.name == "log2" else 10.0
    return graph.node("Mul", [graph.node("Log", [data]), graph.constant(1 / np.log(base), dtype_of(call))])


@writes("trunc")
def write_trunc(graph: GraphWriter, call: Any, data: str) -> str:
    """Towards zero."""
    return graph.node("Mul", [graph.node("Sign", [data]), graph.node("Floor", [graph.node("Abs", [data])])])


@writes("round", "nearbyint")
def write_round(graph: GraphWriter, call: Any, data: str) -> str:
    """To the nearest, a half to the even one."""
    return graph.node("Round", [data])


@writes("floor_divide")
def write_floor_divide(graph: GraphWriter, call: Any, left: str, right: str) -> str:
    """Division rounded down: of integers by way of the remainder, which has the sign of the divisor."""
    if dtype_of(call).startswith("float"):
        return graph.node("Floor", [graph.node("Div", [left, right])])
    whole = graph.node("Sub", [left, graph.node("Mod", [left, right])])
    return graph.node("Div", [whole, right])


@writes("floor_mod")
def write_floor_mod(graph: GraphWriter, call: Any, left: str, right: str) -> str:
    """The remainder of division rounded down."""
    if not dtype_of(call).startswith("float"):
        return graph.node("Mod", [left, right])
    quotient = graph.node("Floor", [graph.node("Div", [left, right])])
    return graph.node("Sub", [left, graph.node("Mul", [quotient, right])])


@writes("mod")
def write_mod(graph: GraphWriter, call: Any, left: str, right: str) -> str:
    """The remainder with the sign of the dividend."""
    return graph.node("Mod", [left, right], fmod=1)


@writes("clip")
def write_clip(graph: GraphWriter, call: Any, data: str) -> str:
    """Between two limits."""
    limits = [graph.constant(value, dtype_of(call)) for value in (call.attrs.a_min, call.attrs.a_max)]
    return graph.node("Clip", [data, *limits])


@writes("cast")
def write_cast(graph: GraphWriter, call: Any, data: str) -> str:
    """Another element type."""
    return graph.node("Cast", [data], to=graph.element_type(dtype_of(call)))


@writes("cast_like")
def write_cast_like(graph: GraphWriter, call: Any, data: str, like: str) -> str:
    """The element type of another tensor."""
    return graph.node("Cast", [data], to=graph.element_type(dtype_of(call)))


@writes("where")
def write_where(graph: GraphWriter, call: Any, condition: str, left: str, right: str) -> str:
    """One of two by a condition, which ONNX has as booleans."""
    if dtype_of(call.args[0]) != "bool":
        condition = graph.node("Cast", [condition], to=graph.element_type("bool"))
    return graph.node("Where", [condition, left, right])


@writes("nn.leaky_relu")
def write_leaky_relu(graph: GraphWriter, call: Any, data: str) -> str:
    """A slope below zero."""
    return graph.node("LeakyRelu", [data], alpha=float(call.attrs.alpha))


@writes("nn.prelu")
def write_prelu(graph: GraphWriter, call: Any, data: str, slope: str) -> str:
    """A slope below zero for each channel."""
    rank, axis = len(shape_of(call)), call.attrs.axis % len(shape_of(call))
    shape = [-1, *[1] * (rank - axis - 1)]
    return graph.node("PRelu", [data, graph.reshape(slope, shape)])


# Reductions

_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "logsumexp": "ReduceLogSumExp",
}


def reduced_axes(call: Any) -> list[int]:
    """The axes of a reduction, from the front."""
    rank = len(shape_of(call.args[0]))
    given = call.attrs.axis
    axes = (
        range(rank)
        if given is None or given == ()
        else given
        if isinstance(given, (list, tuple))
        else [given]
    )
    found = sorted({int(axis) % rank for axis in axes})
    if getattr(call.attrs, "exclude", False):
        return [axis for axis in range(rank) if axis not in found]
    return found


@writes(*_REDUCTIONS)
def write_reduction(graph: GraphWriter, call: Any, data: str) -> str:
    """Sums and the like over axes."""
    return graph.reduce(_REDUCTIONS[call.op.name], data, reduced_axes(call), bool(call.attrs.keepdims))


@writes("all", "any")
def write_logical(graph: GraphWriter, call: Any, data: str) -> str:
    """The least and the largest of booleans."""
    operator = "ReduceMin" if call.op.name == "all" else "ReduceMax"
    numbers = graph.node("Cast", [data], to=graph.element_type("int32"))
    made = graph.reduce(operator, numbers, reduced_axes(call), bool(call.attrs.keepdims))
    return graph.node("Cast", [made], to=graph.element_type("bool"))


@writes("variance")
def write_variance(graph: GraphWriter, call: Any, data: str, mean: str) -> str:
    """The mean of squared differences from a mean."""
    axes = reduced_axes(call)
    difference = graph.node("Sub", [data, mean])
    square = graph.node("Mul", [difference, difference])
    made = graph.reduce("ReduceMean", square, axes, bool(call.attrs.keepdims))
    if not getattr(call.attrs, "unbiased", False):
        return made
    count = int(np.prod([shape_of(call.args[0])[axis] for axis in axes]))
    return graph.node("Mul", [made, graph.constant(count / max(count - 1, 1), dtype_of(call))])


@writes("argmax", "argmin")
def write_argument(graph: GraphWriter, call: Any, data: str) -> str:
    """Where the largest or the least element is, along one axis or in all."""
    operator = "ArgMax" if call.op.name == "argmax" else "ArgMin"
    axes = reduced_axes(call)
    keepdims = int(bool(call.attrs.keepdims))
    if len(axes) > 1:
        data, axes = graph.reshape(data, [-1]), [0]
        made = graph.node(operator, [data], axis=0, keepdims=0)
        made = graph.reshape(made, shape_of(call))
    else:
        last = int(bool(getattr(call.attrs, "select_last_index", False)))
        extra = {"select_last_index": last} if graph.opset >= 12 else {}
        made = graph.node(operator, [data], axis=axes[0], keepdims=keepdims, **extra)
    return graph.node("Cast", [made], to=graph.element_type(dtype_of(call)))
