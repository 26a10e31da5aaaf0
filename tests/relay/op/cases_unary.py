"""Cases of the operators that compute each element from one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from tests.relay.op.cases import Case, Input

from tilewright import relay
from tilewright.relay.op.calls import call

INFINITY, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.5, INFINITY, -INFINITY, NAN]
HALVES = [-2.5, -1.5, -0.5, -0.49999997, 0.0, 0.49999997, 0.5, 1.5, 2.5, 8388609.0]

SMOOTH: list[tuple[str, Callable[..., Any], float, float]] = [
    ("log", np.log, 0.2, 4),
    ("log2", np.log2, 0.2, 4),
    ("log10", np.log10, 0.2, 4),
    ("exp", np.exp, -3, 3),
    ("sqrt", np.sqrt, 0.1, 4),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 0.3, 4),
    ("sigmoid", scipy.special.expit, -4, 4),
    ("erf", scipy.special.erf, -2, 2),
    ("sin", np.sin, -3, 3),
    ("cos", np.cos, -3, 3),
    ("tan", np.tan, -1, 1),
    ("asin", np.arcsin, -0.9, 0.9),
    ("acos", np.arccos, -0.9, 0.9),
    ("atan", np.arctan, -3, 3),
    ("sinh", np.sinh, -2, 2),
    ("cosh", np.cosh, -2, 2),
    ("tanh", np.tanh, -2, 2),
    ("asinh", np.arcsinh, -3, 3),
    ("acosh", np.arccosh, 1.2, 4),
    ("atanh", np.arctanh, -0.9, 0.9),
]
"""Name, independent reference, and the range of the inputs."""


def _smooth() -> list[Case]:
    cases = []
    for name, expected, low, high in SMOOTH:
        build = getattr(relay, name)
        cases.append(Case(name, build, [Input((3, 5), low=low, high=high)], expected, gradient=True))
        cases.append(
            Case(
                f"{name}_float64",
                build,
                [Input((7,), "float64", low, high)],
                expected,
                rtol=1e-12,
                atol=1e-14,
            )
        )
        cases.append(
            Case(
                f"{name}_float16",
                build,
                [Input((4,), "float16", low, high)],
                lambda x, expected=expected: expected(x.astype("float64")).astype("float16"),
                rtol=3e-3,
                atol=1e-3,
            )
        )
    return cases


def _rounding() -> list[Case]:
    def away(x: Any) -> Any:
        return np.sign(x) * np.floor(np.abs(x.astype("float64")) + 0.5)

    cases = []
    functions = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": away, "nearbyint": np.rint}
    for name, expected in functions.items():
        build = getattr(relay, name)
        cases += [
            Case(name, build, [Input((3, 5), low=-9, high=9)], expected, gradient=True),
            Case(f"{name}_halves", build, [Input(values=HALVES)], expected),
            Case(f"{name}_special", build, [Input(values=SPECIAL)], expected),
            Case(
                f"{name}_int64", build, [Input(values=[2**53 + 1, -(2**53) - 1], dtype="int64")], lambda x: x
            ),
        ]
    return cases


def _tables() -> list[Case]:
    """Each byte as its square, modulo 256."""
    squares = (np.arange(256) ** 2).astype("uint8")
    table = squares.tobytes().hex()
    data = Input(values=np.arange(256).reshape(4, 64).tolist(), dtype="uint8")
    return [
        Case(
            "byte_lookup",
            lambda x: call("nn.contrib_byte_lookup", x, table=table),
            [data],
            lambda x: squares[x],
        )
    ]


def _signs() -> list[Case]:
    cases = []
    for name, expected in (("abs", np.abs), ("sign", np.sign), ("negative", np.negative)):
        build = getattr(relay, name)
        cases += [
            Case(name, build, [Input((2, 1, 3))], expected, gradient=True),
            Case(f"{name}_special", build, [Input(values=SPECIAL)], expected),
            Case(f"{name}_float16", build, [Input((5,), "float16")], expected),
            Case(f"{name}_int32", build, [Input((6,), "int32", -9, 9)], expected),
            Case(f"{name}_int8_ends", build, [Input(values=[-128, -1, 0, 127], dtype="int8")], expected),
        ]
    cases.append(Case("abs_uint8", relay.abs, [Input((4,), "uint8", 0, 255)], lambda x: x))
    cases.append(Case("sign_uint8", relay.sign, [Input((4,), "uint8", 0, 2)], np.sign))
    return cases


def _tests() -> list[Case]:
    cases = []
    for name, expected in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        build = getattr(relay, name)
        cases += [
            Case(name, build, [Input(values=SPECIAL)], expected),
            Case(f"{name}_float16", build, [Input(values=SPECIAL, dtype="float16")], expected),
            Case(f"{name}_int32", build, [Input((3,), "int32")], expected),
        ]
    return cases


def _clip(low: float, high: float) -> Callable[..., Any]:
    return lambda x: relay.clip(x, low, high)


def _exact_product(x: Any, multiplier: int, shift: int) -> Any:
    """In Python's integers: x * multiplier * 2**(shift - 31), halves upwards."""
    down = 31 - shift
    return np.asarray([(int(v) * multiplier + (1 << (down - 1))) >> down for v in x.reshape(-1)], "int32")


CASES = [
    *_smooth(),
    *_rounding(),
    *_signs(),
    *_tables(),
    *_tests(),
    Case("exp_scalar", relay.exp, [Input(())], np.exp, gradient=True),
    Case("exp_special", relay.exp, [Input(values=SPECIAL)], np.exp),
    Case("log_special", relay.log, [Input(values=SPECIAL)], np.log),
    Case("tanh_special", relay.tanh, [Input(values=SPECIAL)], np.tanh),
    Case(
        "sigmoid_far", relay.sigmoid, [Input(values=[-200.0, -90.0, 0.0, 90.0, 200.0])], scipy.special.expit
    ),
    Case("fast_exp", relay.op.tensor.fast_exp, [Input((9,), low=-20, high=20)], np.exp, gradient=False),
    Case("fast_tanh", relay.op.tensor.fast_tanh, [Input((9,), low=-9, high=9)], np.tanh),
    Case("fast_erf", relay.op.tensor.fast_erf, [Input((9,), low=-5, high=5)], scipy.special.erf),
    Case("copy", relay.copy, [Input((2, 3))], np.copy, gradient=True),
    Case("copy_bool", relay.copy, [Input((5,), "bool")], np.copy),
    Case("copy_empty", relay.copy, [Input((0, 3))], np.copy, dynamic=False),
    Case("zeros_like", relay.zeros_like, [Input((2, 3), "int16")], np.zeros_like),
    Case("zeros_like_bool", relay.zeros_like, [Input((4,), "bool")], np.zeros_like),
    Case("ones_like", relay.ones_like, [Input((2, 3))], np.ones_like, gradient=True),
    Case("ones_like_scalar", relay.ones_like, [Input((), "float64")], np.ones_like),
    Case("logical_not", relay.logical_not, [Input((7,), "bool")], np.logical_not),
    Case("logical_not_numbers", relay.logical_not, [Input((7,), "int32", 0, 2)], np.logical_not),
    Case("bitwise_not", relay.bitwise_not, [Input((7,), "int32", -9, 9)], np.bitwise_not),
    Case("bitwise_not_uint8", relay.bitwise_not, [Input((7,), "uint8", 0, 255)], np.bitwise_not),
    Case("clip", _clip(-1.0, 1.5), [Input((4, 5))], lambda x: np.clip(x, -1.0, 1.5), gradient=True),
    Case("clip_special", _clip(-1.0, 1.0), [Input(values=SPECIAL)], lambda x: np.clip(x, -1.0, 1.0)),
    Case("clip_open", _clip(0.0, INFINITY), [Input((5,))], lambda x: np.maximum(x, 0)),
    Case("clip_int8", _clip(-1000, 6.5), [Input((9,), "int8", -128, 127)], lambda x: np.clip(x, -128, 6)),
    Case("clip_uint8", _clip(-3.0, 200.0), [Input((9,), "uint8", 0, 255)], lambda x: np.clip(x, 0, 200)),
    Case(
        "shape_of",
        relay.shape_of,
        [Input((2, 0, 3))],
        lambda x: np.asarray([2, 0, 3], "int32"),
        dynamic=False,
    ),
    Case("shape_of_unknown", relay.shape_of, [Input((4, 3))], lambda x: np.asarray([4, 3], "int32")),
    Case(
        "shape_of_int64",
        lambda x: relay.shape_of(x, dtype="int64"),
        [Input((5,), "bool")],
        lambda x: np.asarray([5], "int64"),
    ),
    Case("ndarray_size", relay.ndarray_size, [Input((2, 7, 3))], lambda x: np.asarray(42, "int32")),
    Case("ndarray_size_scalar", relay.ndarray_size, [Input(())], lambda x: np.asarray(1, "int32")),
    Case(
        "fixed_point_multiply",
        lambda x: relay.fixed_point_multiply(x, 1431655765, -3),
        [Input((16,), "int32", -100000, 100000)],
        lambda x: _exact_product(x, 1431655765, -3),
    ),
    Case(
        "fixed_point_multiply_up",
        lambda x: relay.fixed_point_multiply(x, 1073741824, 2),
        [Input(values=[-3, -2, -1, 0, 1, 2, 3, 1000], dtype="int32")],
        lambda x: _exact_product(x, 1073741824, 2),
    ),
    Case(
        "fixed_point_multiply_halves",
        lambda x: relay.fixed_point_multiply(x, 1073741824, 0),
        [Input(values=[-3, -2, -1, 0, 1, 2, 3], dtype="int32")],
        lambda x: _exact_product(x, 1073741824, 0),
    ),
]
