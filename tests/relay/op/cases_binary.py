"""Cases of the operators of two operands, and of sums of products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay

SHAPES: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("", (3, 4), (3, 4)),
    ("_right_repeats", (2, 3, 4), (3, 1)),
    ("_left_repeats", (1, 4), (2, 3, 4)),
    ("_both_repeat", (3, 1), (1, 4)),
    ("_scalar", (), (2, 3)),
    ("_scalars", (), ()),
]
"""The end of a case's name, and the shapes of the operands."""


def _broadcast() -> list[Case]:
    arithmetic: list[tuple[str, Callable[..., Any], float, float]] = [
        ("add", np.add, -2, 2),
        ("subtract", np.subtract, -2, 2),
        ("multiply", np.multiply, -2, 2),
        ("divide", np.divide, 0.5, 2),
        ("power", np.power, 0.5, 2),
        ("maximum", np.maximum, -2, 2),
        ("minimum", np.minimum, -2, 2),
    ]
    cases = []
    for name, expected, low, high in arithmetic:
        build = getattr(relay, name)
        for ending, left, right in SHAPES if name in ("subtract", "divide") else SHAPES[:2]:
            inputs = [Input(left, low=low, high=high), Input(right, low=low, high=high)]
            cases.append(Case(name + ending, build, inputs, expected, gradient=True))
        for dtype, rtol in (("float64", 1e-12), ("float16", 2e-3)):
            inputs = [Input((5,), dtype, low, high), Input((5,), dtype, low, high)]
            cases.append(Case(f"{name}_{dtype}", build, inputs, expected, rtol=rtol, atol=1e-3))
        for dtype in ("int32", "uint8"):
            inputs = [Input((9,), dtype, -4, 5), Input((9,), dtype, 1, 4)]
            if name != "divide":
                cases.append(Case(f"{name}_{dtype}", build, inputs, expected))
    return cases


def _comparisons() -> list[Case]:
    cases = []
    special = Input(values=[0.0, -0.0, 1.0, math.inf, -math.inf, math.nan])
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        build, expected = getattr(relay, name), getattr(np, name)
        cases += [
            Case(name, build, [Input((3, 4), "int32", 0, 3), Input((4,), "int32", 0, 3)], expected),
            Case(
                f"{name}_special", build, [special, Input(values=[[0.0], [math.nan], [math.inf]])], expected
            ),
            Case(f"{name}_bool", build, [Input((6,), "bool"), Input((6,), "bool")], expected),
            Case(
                f"{name}_uint8", build, [Input((6,), "uint8", 0, 255), Input((6,), "uint8", 0, 255)], expected
            ),
        ]
    return cases


def _division() -> list[Case]:
    """Every combination of signs, for each way to round."""
    dividends = [[-7], [-6], [-1], [0], [1], [6], [7]]
    divisors = [-3, -2, -1, 1, 2, 3]
    truncated: dict[str, Callable[..., Any]] = {
        "divide": lambda a, b: np.trunc(a / b).astype(a.dtype),
        "mod": np.fmod,
        "floor_divide": np.floor_divide,
        "floor_mod": np.mod,
    }
    cases = []
    for name, expected in truncated.items():
        build = getattr(relay, name)
        for dtype in ("int32", "int8", "int64"):
            inputs = [Input(values=dividends, dtype=dtype), Input(values=divisors, dtype=dtype)]
            cases.append(Case(f"{name}_{dtype}_signs", build, inputs, expected))
        inputs = [Input((6,), "uint8", 0, 255), Input((6,), "uint8", 1, 9)]
        cases.append(Case(f"{name}_uint8", build, inputs, expected))
        by_zero = [Input(values=[-5, 0, 5], dtype="int32"), Input(values=[0], dtype="int32")]
        quotient = name.endswith("divide")
        cases.append(
            Case(f"{name}_by_zero", build, by_zero, lambda a, b, quotient=quotient: a if quotient else a * 0)
        )
    for name in ("mod", "floor_divide", "floor_mod"):
        inputs = [Input(values=[[-7.5], [-1.0], [0.0], [2.25]]), Input(values=[-2.0, 0.5, 3.0])]
        cases.append(Case(f"{name}_float32", getattr(relay, name), inputs, truncated[name]))
    return cases


def _bits() -> list[Case]:
    cases = []
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        build, expected = getattr(relay, name), getattr(np, name)
        cases += [
            Case(name, build, [Input((3, 4), "int32", -99, 99), Input((4,), "int32", -99, 99)], expected),
            Case(
                f"{name}_uint8", build, [Input((5,), "uint8", 0, 255), Input((5,), "uint8", 0, 255)], expected
            ),
            Case(f"{name}_bool", build, [Input((5,), "bool"), Input((5,), "bool")], expected),
        ]
    for name in ("left_shift", "right_shift"):
        build, expected = getattr(relay, name), getattr(np, name)
        cases += [
            Case(name, build, [Input((8,), "int32", -99, 99), Input((8,), "int32", 0, 6)], expected),
            Case(
                f"{name}_uint8", build, [Input((8,), "uint8", 0, 255), Input((1,), "uint8", 0, 7)], expected
            ),
        ]
    for name in ("logical_and", "logical_or", "logical_xor"):
        build, expected = getattr(relay, name), getattr(np, name)
        cases += [
            Case(name, build, [Input((3, 4), "bool"), Input((3, 1), "bool")], expected),
            Case(
                f"{name}_numbers", build, [Input((6,), "int32", 0, 2), Input((6,), "int32", 0, 2)], expected
            ),
        ]
    return cases


def _einsum(equation: str, *shapes: tuple[int, ...], dtype: str = "float32", **more: Any) -> Case:
    return Case(
        f"einsum_{equation}_{dtype}",
        lambda *data: relay.einsum(data, equation),
        [Input(shape, dtype) for shape in shapes],
        lambda *data: np.einsum(equation, *data),
        **more,
    )


CASES = [
    *_broadcast(),
    *_comparisons(),
    *_division(),
    *_bits(),
    Case("multiply_bool", relay.multiply, [Input((8,), "bool"), Input((8,), "bool")], np.logical_and),
    Case(
        "add_wraps", relay.add, [Input(values=[127], dtype="int8"), Input(values=[1], dtype="int8")], np.add
    ),
    Case(
        "power_negative_integer",
        relay.power,
        [Input(values=[[-3], [-1], [1], [2]], dtype="int32"), Input(values=[-2, -1, 0, 3], dtype="int32")],
        lambda a, b: np.trunc(np.power(a.astype("float64"), b)).astype("int32"),
    ),
    Case(
        "maximum_nan",
        relay.maximum,
        [Input(values=[math.nan, 1.0, 2.0]), Input(values=[3.0, math.nan, 1.0])],
        np.maximum,
    ),
    Case(
        "divide_float_by_zero",
        relay.divide,
        [Input(values=[1.0, -1.0, 0.0]), Input(values=[0.0, 0.0, 0.0])],
        np.divide,
    ),
    _einsum("ij,jk->ik", (2, 3), (3, 4)),
    _einsum("ij,jk", (2, 3), (3, 4)),
    _einsum("ij,jk->ki", (2, 3), (3, 4), dtype="int32"),
    _einsum("ii", (3, 3), dynamic=False),
    _einsum("ij->", (2, 3)),
    _einsum("i,j->ij", (2,), (3,)),
    _einsum("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    _einsum("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4), dtype="float64"),
]
