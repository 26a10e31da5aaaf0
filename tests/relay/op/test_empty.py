"""Operators on tensors without elements: every case of every table again, with a dimension of zero in place of another.

A case takes part where the types and the references of its operators admit the empty tensor; what they give is what
the compiled code has to give, with shapes that are known and with shapes that are not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.relay.op.cases import Case
from tests.relay.op.test_operators import (
    BATCH,
    TABLES,
    Program,
    arrays,
    at_level,
    cases,
    failures_of,
    is_static,
    program,
    report,
    run_cache,
)

from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import TilewrightError

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


def admitted(table: str) -> list[Program]:
    """The cases that types and references admit."""
    found = []
    for case in cases(table):
        for axis in range(2):
            one = emptied(case, axis)
            if one is None:
                continue
            try:
                found.append(program(one))
            except (TilewrightError, ValueError, IndexError, ZeroDivisionError):
                continue
    return found


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("table", TABLES)
def test_compiled_code_agrees_with_the_reference(table: str, level: int) -> None:
    """On the graph executor."""
    static = [made for made in admitted(table) if is_static(made.function)]
    failures = {}
    for start in range(0, len(static), 2 * BATCH):
        failures |= failures_of(static[start : start + 2 * BATCH], at_level("graph", level))
    report(failures)


@pytest.mark.parametrize("table", TABLES)
def test_shapes_that_are_known_at_run_time(table: str) -> None:
    """On the virtual machine, with every dimension unknown."""
    dynamic = [made for made in admitted(table) if made.case.dynamic]
    failures = {}
    for start in range(0, len(dynamic), 2 * BATCH):
        failures |= failures_of(dynamic[start : start + 2 * BATCH], at_level("vm", 3), unknown=True)
    report(failures)
