"""Operators on tensors without elements: every case of every table again, with a dimension of zero in place of another.

A case takes part where the types and the references of its operators admit the empty tensor; what they give is what
the compiled code has to give, with shapes that are known and with shapes that are not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.relay.op.cases import Case
from tests.relay.op.test_operators import (
    BATCH,
    TABLES,
    Program,
    at_level,
    cases,
    failures_of,
    is_static,
    program,
    report,
    run_cache,
)

from tilewright import relay
from tilewright.support.errors import TilewrightError
from tilewright.support.options import flag

assert run_cache  # a fixture that every test uses


def emptied(case: Case, axis: int) -> Case | None:
    """The case with zero in place of the size that its first input has there, in all inputs; None where that changes
    nothing."""
    shape = case.inputs[0].shape if case.inputs else ()
    if len(shape) <= axis or not shape[axis] or any(one.values is not None for one in case.inputs):
        return None
    size = shape[axis]
    inputs = [
        dataclasses.replace(
            one,
            shape=tuple(
                0 if place == axis and extent == size and len(one.shape) == len(shape) else extent
                for place, extent in enumerate(one.shape)
            ),
        )
        for one in case.inputs
    ]
    return dataclasses.replace(case, name=f"{case.name}, axis {axis} empty", inputs=inputs)


UNFIT = {
    "sparse_dense_of_scipy": "the columns that the sparse weight names are not there",
    "conv2d_transpose_nhwc": "no rows spread apart are fewer than none, which lowering refuses",
}
"""Cases whose attributes or other inputs do not fit an empty one, which the types do not say."""


def admitted(table: str, axes: Sequence[int]) -> list[Program]:
    """The cases that types and references admit: a sample, or all where ``TILEWRIGHT_ALL_CASES`` is set."""
    found = []
    chosen = cases(table)
    if not flag("TILEWRIGHT_ALL_CASES"):
        chosen = chosen[:: max(len(chosen) // 8, 1)]
    for case in chosen:
        for axis in axes:
            one = emptied(case, axis)
            if one is None or case.name in UNFIT:
                continue
            try:
                found.append(program(one))
            except (TilewrightError, ValueError, IndexError, ZeroDivisionError):
                continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("table", TABLES)
def test_compiled_code_agrees_with_the_reference(table: str, level: int) -> None:
    """On the graph executor."""
    static = [made for made in admitted(table, (0, 1)) if is_static(made.function)]
    failures = {}
    for start in range(0, len(static), 2 * BATCH):
        failures |= failures_of(static[start : start + 2 * BATCH], at_level("graph", level))
    report(failures)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_shapes_that_are_known_at_run_time(table: str) -> None:
    """On the virtual machine, with every dimension unknown."""
    dynamic = [made for made in admitted(table, (0,)) if made.case.dynamic]
    failures = {}
    for start in range(0, len(dynamic), 2 * BATCH):
        failures |= failures_of(dynamic[start : start + 2 * BATCH], at_level("vm", 3), unknown=True)
    report(failures)


@pytest.mark.parametrize("level", [0, 3])
def test_a_convolution_of_no_images(level: int) -> None:
    """With a constant weight, which the processor's cost models look at."""
    image = relay.var("x", shape=(0, 16, 28, 28))
    weight = relay.const(np.ones((16, 16, 3, 3), "float32"))
    function = relay.Function([image], relay.nn.relu(relay.nn.conv2d(image, weight, padding=1)))
    found = at_level("graph", level)(function, [np.zeros((0, 16, 28, 28), "float32")])
    assert found.shape == (0, 16, 28, 28)


@pytest.mark.parametrize("build", [relay.argsort, relay.sort, lambda x: relay.cumprod(x, axis=0)])
def test_rows_without_elements(build: Callable[[Any], Any]) -> None:
    """Whose number no loop may be divided by."""
    x = relay.var("x", shape=(3, 0))
    found = at_level("graph", 3)(relay.Function([x], build(x)), [np.zeros((3, 0), "float32")])
    assert found.shape == (3, 0)
