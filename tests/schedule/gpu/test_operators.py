"""Every operator has a GPU kernel: the cases of the operators' own tests, in the interpreter's threads.

Each fused function of a case is scheduled for a GPU and run on the values that the reference executor gives its
arguments; its results are the reference's. Bounds are checked on every access, and barriers that some threads miss are
errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.op.cases import Case
from tests.relay.op.test_operators import (
    TABLES,
    arrays,
    body,
    cases,
    flat,
    is_static,
    parameters,
    plain,
    typed,
)

import tilewright as tvm
from tilewright import relay
from tilewright.ir.functor import post_order
from tilewright.ir.transform import Sequential
from tilewright.relay.backend.te_compiler import lower_primitive
from tilewright.support.errors import TilewrightError
from tilewright.support.options import flag
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.bind_target import BindTarget
from tilewright.tir.transform.lower_thread_allreduce import LowerThreadAllreduce
from tilewright.tir.transform.software_pipeline import SoftwarePipeline
from tilewright.tir.transform.thread_sync import ThreadSync
from tilewright.tir.transform.verify_memory import VerifyMemory

TARGET = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=64")
"""Small blocks: the interpreter runs their threads one by one."""

SHARE = 12
"""One case in so many is run by default."""


def fused(case: Case) -> tuple[Any, list[Any]]:
    """The case with its operators fused, and its arguments."""
    values = arrays(case)
    function = typed(relay.Function(*body(case, values, parameters(values))))
    module = Sequential(
        [
            relay.transform.InferType(),
            relay.transform.SimplifyInference(),
            relay.transform.FuseOps(2),
            relay.transform.InferType(),
        ]
    )(tvm.IRModule.from_expr(function))
    return module["main"], [value for position, value in enumerate(values) if position not in case.constants]


def kernel_calls(function: Any) -> list[Any]:
    """The calls of fused functions."""
    return [
        part
        for part in post_order(function)
        if isinstance(part, relay.Call)
        and isinstance(part.op, relay.Function)
        and part.op.attrs.get("Primitive")
    ]


def evaluate(expr: Any, function: Any, values: list[Any]) -> list[Any]:
    """The arrays of an expression inside a function, by the reference executor."""
    whole = typed(relay.Function(function.params, expr))
    return flat(plain(relay.create_executor("debug").evaluate(whole)(*values)))


def run_kernel(primitive: Any, given: list[Any], shapes: list[Any]) -> list[Any]:
    """The results of a fused function in simulated threads."""
    module = lower_primitive(primitive, TARGET, "main")
    passes = [
        BindTarget(TARGET),
        VerifyMemory(),
        SoftwarePipeline(),
        ThreadSync("shared"),
        LowerThreadAllreduce(),
    ]
    results = [np.zeros(one.shape, one.dtype) for one in shapes]
    interpret(Sequential(passes)(module)["main"], *given, *results)
    return results


def agrees(got: Any, right: Any, case: Case) -> bool:
    """True if a result is within the case's tolerance, relative to the largest number."""
    one, other = got.astype("float64"), right.astype("float64")
    size = np.abs(other[np.isfinite(other)]).max(initial=1)
    return np.allclose(
        one, other, rtol=max(case.rtol, 1e-4), atol=max(case.atol, 1e-5) * size, equal_nan=True
    )


@pytest.mark.parametrize("table", TABLES)
def test_kernels_agree_with_the_reference(table: str) -> None:
    """A sample of each table, or all of it where ``TILEWRIGHT_ALL_CASES`` is set."""
    failures: list[str] = []
    for number, case in enumerate(cases(table)):
        if not flag("TILEWRIGHT_ALL_CASES") and number % SHARE:
            continue
        # To the interpreter, a division by zero is an error.
        if case.name.endswith("by_zero"):
            continue
        main, values = fused(case)
        if not is_static(main):
            continue
        for call in kernel_calls(main):
            wanted = evaluate(call, main, values)
            given = [array for argument in call.args for array in evaluate(argument, main, values)]
            try:
                found = run_kernel(call.op, [np.array(one, order="C") for one in given], wanted)
            except TilewrightError as error:
                failures.append(f"{case.name}: {error}")
                continue
            failures += [
                f"{case.name}: {got.ravel()[:6]}, not {right.ravel()[:6]}"
                for got, right in zip(found, wanted, strict=True)
                if not agrees(got, right, case)
            ]
    assert not failures, "\n".join(failures)
