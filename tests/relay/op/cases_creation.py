"""Cases of the operators that make tensors from numbers."""

from __future__ import annotations

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay

CASES = [
    Case("full", lambda x: relay.full(x, (2, 3)), [Input(())], lambda x: np.full((2, 3), x), gradient=True),
    Case(
        "full_other_type",
        lambda x: relay.full(x, (4,), "int64"),
        [Input(values=7, dtype="int32")],
        lambda x: np.full((4,), 7, "int64"),
    ),
    Case("full_scalar", lambda x: relay.full(x), [Input(())], lambda x: x),
    Case(
        "full_like",
        relay.full_like,
        [Input((2, 3)), Input(())],
        lambda x, value: np.full((2, 3), value),
    ),
    Case("zeros", lambda: relay.zeros((2, 3), "float32"), [], lambda: np.zeros((2, 3), "float32")),
    Case("ones", lambda: relay.ones((3,), "int8"), [], lambda: np.ones((3,), "int8")),
    Case("arange", lambda: relay.arange(5), [], lambda: np.arange(5, dtype="float32")),
    Case(
        "arange_steps",
        lambda: relay.arange(1, 10, 3, "int32"),
        [],
        lambda: np.arange(1, 10, 3, dtype="int32"),
    ),
    Case(
        "arange_down",
        lambda: relay.arange(9, -2, -4, "int64"),
        [],
        lambda: np.arange(9, -2, -4, dtype="int64"),
    ),
    Case(
        "arange_parts",
        lambda: relay.arange(0.5, 2.0, 0.25),
        [],
        lambda: np.arange(0.5, 2.0, 0.25, dtype="float32"),
    ),
    Case("arange_empty", lambda: relay.arange(3, 1, 1, "int32"), [], lambda: np.zeros(0, "int32")),
    Case(
        "arange_computed",
        lambda start, stop, step: relay.arange(start, stop, step, "int32"),
        [Input(values=value, dtype="int32") for value in (2, 11, 3)],
        lambda start, stop, step: np.array([2, 5, 8], "int32"),
    ),
    Case(
        "arange_computed_down",
        lambda start, stop, step: relay.arange(start, stop, step, "int64"),
        [Input(values=value, dtype="int64") for value in (4, -1, -2)],
        lambda start, stop, step: np.array([4, 2, 0], "int64"),
    ),
    Case(
        "arange_computed_parts",
        lambda stop: relay.arange(relay.const(0.0), stop, relay.const(0.5)),
        [Input(values=2.25)],
        lambda stop: np.array([0, 0.5, 1, 1.5, 2], "float32"),
    ),
    Case(
        "one_hot",
        lambda i: relay.one_hot(i, relay.const(1.0), relay.const(0.0), 4, -1, "float32"),
        [Input((2, 3), "int32", 0, 4)],
        lambda i: np.eye(4, dtype="float32")[i],
    ),
    Case(
        "one_hot_axis",
        lambda i, on, off: relay.one_hot(i, on, off, 5, 1, str(on.type_annotation.dtype)),
        [Input((2, 3), "int64", 0, 5), Input(()), Input(())],
        lambda i, on, off: np.moveaxis(np.where(np.eye(5, dtype="bool")[i], on, off), -1, 1),
        gradient=True,
    ),
    Case(
        "one_hot_out_of_range",
        lambda i: relay.one_hot(i, relay.const(3), relay.const(2), 2, 0, "int32"),
        [Input(values=[-1, 0, 1, 2], dtype="int32")],
        lambda i: np.array([[2, 3, 2, 2], [2, 2, 3, 2]], "int32"),
    ),
]
