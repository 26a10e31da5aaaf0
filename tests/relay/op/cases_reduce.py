"""Cases of the operators that combine elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from tests.relay.op.cases import Case, Input

from tilewright import relay

Axes = int | tuple[int, ...] | None

FORMS: list[tuple[str, dict[str, Any], Axes]] = [
    ("_all", {}, None),
    ("_one", {"axis": 1}, (1,)),
    ("_back", {"axis": -1, "keepdims": True}, (2,)),
    ("_two", {"axis": (0, -1)}, (0, 2)),
    ("_empty_axes", {"axis": ()}, None),
    ("_kept", {"axis": [0, 1], "keepdims": True}, (0, 1)),
    ("_all_kept", {"keepdims": True}, None),
    ("_exclude", {"axis": 1, "exclude": True}, (0, 2)),
    ("_exclude_kept", {"axis": (0, 2), "exclude": True, "keepdims": True}, (1,)),
]
"""The end of a case's name, the arguments of the operator, and NumPy's axes, for data of shape (2, 3, 4)."""
FEW = FORMS[1:4]


def _forms(
    name: str,
    expected: Callable[..., Any],
    dtype: str = "float32",
    forms: list[tuple[str, dict[str, Any], Axes]] = FORMS,
    **more: Any,
) -> list[Case]:
    build = getattr(relay, name)
    cases = []
    for ending, arguments, axes in forms:
        kept = bool(arguments.get("keepdims"))
        cases.append(
            Case(
                f"{name}_{dtype}{ending}",
                lambda x, arguments=arguments: build(x, **arguments),
                [Input((2, 3, 4), dtype, -4 if dtype != "bool" else 0, 4)],
                lambda x, axes=axes, kept=kept: expected(x, axis=axes, keepdims=kept),
                **more,
            )
        )
    return cases


def _same_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function with the result in the type of the data."""
    return lambda x, **arguments: np.asarray(function(x, dtype=x.dtype, **arguments))


def _positions(function: Callable[..., Any], last: bool = False) -> Callable[..., Any]:
    """NumPy's argmax over one axis or all of them."""

    def found(x: Any, axis: Axes, keepdims: bool) -> Any:
        chosen = tuple(range(x.ndim)) if axis is None else axis
        others = [place for place in range(x.ndim) if place not in chosen]
        rows = np.moveaxis(x, others, range(len(others))).reshape([x.shape[place] for place in others] + [-1])
        made = function(rows[..., ::-1], -1) if last else function(rows, -1)
        made = rows.shape[-1] - 1 - made if last else made
        return np.expand_dims(made, chosen).astype("int32") if keepdims else made.astype("int32")

    return found


def _single() -> list[Case]:
    """A scalar, a tensor of one element, and one without axes to reduce."""
    cases = []
    for name in ("sum", "prod", "max", "min", "mean"):
        build = getattr(relay, name)
        cases += [
            Case(f"{name}_scalar", build, [Input(())], lambda x: x),
            Case(f"{name}_one_element", build, [Input((1, 1))], lambda x: x.reshape(())),
            Case(
                f"{name}_no_axis",
                lambda x, build=build: build(x, axis=(0, 1), exclude=True),
                [Input((2, 3))],
                lambda x: x,
            ),
        ]
    for name in ("argmax", "argmin"):
        build = getattr(relay, name)
        cases.append(Case(f"{name}_scalar", build, [Input(())], lambda x: np.asarray(0, "int32")))
        cases.append(
            Case(
                f"{name}_no_rows",
                lambda x, build=build: build(x, axis=1),
                [Input((0, 3))],
                lambda x: np.zeros((0,), "int32"),
            )
        )
        cases.append(
            Case(
                f"{name}_no_axis",
                lambda x, build=build: build(x, axis=(0, 1), exclude=True),
                [Input((2, 3))],
                lambda x: np.zeros((2, 3), "int32"),
            )
        )
    return cases


def _ties() -> list[Case]:
    data = Input(values=[[3, 1, 3, 1], [0, 0, 0, 0]], dtype="int32")
    cases = []
    for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        build = getattr(relay, name)
        cases.append(Case(f"{name}_first", lambda x, build=build: build(x, 1), [data], _along_last(function)))
        cases.append(
            Case(
                f"{name}_last",
                lambda x, build=build: build(x, 1, select_last_index=True),
                [data],
                lambda x, function=function: _positions(function, last=True)(x, (1,), False),
            )
        )
    return cases


def _along_last(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(x, -1).astype("int32")


def _deviations() -> list[Case]:
    data = [Input((2, 3, 4))]
    return [
        Case("variance", lambda x: relay.variance(x, 1), data, lambda x: np.var(x, 1), gradient=True),
        Case("variance_all", relay.variance, data, np.var, gradient=True),
        Case(
            "variance_unbiased",
            lambda x: relay.variance(x, (0, 2), True, unbiased=True),
            data,
            lambda x: np.var(x, (0, 2), ddof=1, keepdims=True),
            gradient=True,
        ),
        Case(
            "variance_exclude",
            lambda x: relay.variance(x, 1, exclude=True),
            data,
            lambda x: np.var(x, (0, 2)),
        ),
        Case(
            "variance_float16",
            lambda x: relay.variance(x, -1),
            [Input((2, 8), "float16", 200, 300)],
            lambda x: np.var(x.astype("float64"), -1).astype("float16"),
            # The mean is rounded to float16 on the way: its error adds its square.
            rtol=2e-2,
        ),
        Case("std", lambda x: relay.std(x, -1), data, lambda x: np.std(x, -1), gradient=True),
        Case(
            "std_unbiased",
            lambda x: relay.std(x, -1, unbiased=True),
            data,
            lambda x: np.std(x, -1, ddof=1),
        ),
        Case(
            "mean_variance",
            lambda x: relay.mean_variance(x, 1).astuple(),
            data,
            lambda x: (np.mean(x, 1), np.var(x, 1)),
        ),
        Case(
            "mean_variance_exclude",
            lambda x: relay.mean_variance(x, 1, exclude=True).astuple(),
            data,
            lambda x: (np.mean(x, (0, 2)), np.var(x, (0, 2))),
        ),
        Case(
            "mean_std",
            lambda x: relay.mean_std(x, (0, 1), True).astuple(),
            data,
            lambda x: (np.mean(x, (0, 1), keepdims=True), np.std(x, (0, 1), keepdims=True)),
        ),
        Case(
            "mean_std_all",
            lambda x: relay.mean_std(x).astuple(),
            data,
            lambda x: (np.mean(x), np.std(x)),
        ),
    ]


def _logsumexp() -> list[Case]:
    extremes = [
        [1000.0, 1000.0],
        [-1000.0, -1001.0],
        [-math.inf, -math.inf],
        [-math.inf, 2.0],
        [math.inf, 1.0],
    ]
    cases = [
        Case(
            "logsumexp_extremes",
            lambda x: relay.logsumexp(x, 1),
            [Input(values=extremes)],
            lambda x: scipy.special.logsumexp(x, 1),
        ),
        Case(
            "logsumexp_kept",
            lambda x: relay.logsumexp(x, (0, 2), True),
            [Input((2, 3, 4))],
            lambda x: scipy.special.logsumexp(x, (0, 2), keepdims=True),
        ),
    ]
    cases.append(
        Case(
            "logsumexp", relay.logsumexp, [Input((3, 4))], lambda x: scipy.special.logsumexp(x), gradient=True
        )
    )
    return cases


CASES = [
    *_forms("sum", np.sum, gradient=True, atol=1e-5),
    *_forms("mean", np.mean, gradient=True, atol=1e-5),
    *_forms("argmax", _positions(np.argmax)),
    *_forms("max", np.max, forms=FEW, gradient=True),
    *_forms("min", np.min, forms=FEW, gradient=True),
    *_forms("prod", np.prod, forms=FEW, rtol=1e-4),
    *_forms("sum", _same_type(np.sum), "int8", FEW),
    *_forms("prod", _same_type(np.prod), "int32", FEW),
    *_forms("max", np.max, "uint8", FEW),
    *_forms("min", np.min, "int64", FEW),
    *_forms("all", np.all, "bool", FEW),
    *_forms("any", np.any, "bool", FEW),
    *_forms("argmin", _positions(np.argmin), forms=FEW),
    *_forms("argmax", _positions(np.argmax), "int8", FEW),
    *_single(),
    *_ties(),
    *_deviations(),
    *_logsumexp(),
    Case("all_numbers", relay.all, [Input((2, 2), "int32", 0, 2)], np.all),
    Case("any_numbers", relay.any, [Input((2, 2), "int32", 0, 2)], np.any),
    Case(
        "argmax_nan",
        lambda x: relay.argmax(x, 1),
        [Input(values=[[1.0, math.nan, 3.0], [-math.inf, -math.inf, -math.inf]])],
        lambda x: np.asarray([1, 0], "int32"),
    ),
    Case(
        "mean_int32",
        lambda x: relay.mean(x, 1),
        [Input(values=[[-3, -4], [3, 4], [2, 4]], dtype="int32")],
        lambda x: np.asarray([-3, 3, 3], "int32"),
    ),
    Case(
        "mean_float16_overflow",
        lambda x: relay.mean(x, 0),
        [Input(values=[60032.0, 49984.0], dtype="float16")],
        lambda x: np.asarray(55008.0, "float16"),
    ),
    Case(
        "sum_float16",
        lambda x: relay.sum(x, -1),
        [Input((2, 100), "float16", 0, 1)],
        lambda x: np.sum(x.astype("float64"), -1).astype("float16"),
        rtol=1e-3,
    ),
    Case("sum_float64", relay.sum, [Input((50,), "float64")], np.sum, rtol=1e-12, gradient=True),
    Case(
        "sum_empty",
        lambda x: relay.sum(x, 0),
        [Input((0, 3))],
        lambda x: np.zeros(3, "float32"),
        dynamic=False,
    ),
]
