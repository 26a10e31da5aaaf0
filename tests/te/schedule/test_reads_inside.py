"""Programs that certainly read outside their inputs are refused; those that may not are let through."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import LoweringError


def lower(output: te.Tensor, *inputs: te.Tensor) -> object:
    """Lower with the default schedule."""
    return tvm.lower(te.create_schedule(output.op), [*inputs, output])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda i: i, "from 0 to 7"),
        (lambda i: i - 1, "from -1 to 6"),
        (lambda i: 3 - i, "from -4 to 3"),
        (lambda i: i * 2, "from 0 to 14"),
    ],
)
def test_reads_outside_are_refused(index: object, message: str) -> None:
    """The error says what is read, the indices, and the line that wrote it."""
    x = te.placeholder((4,), name="X")
    y = te.compute((8,), lambda i: x[index(i)] + 1.0, name="Y")  # type: ignore[operator]
    with pytest.raises(
        LoweringError, match=f"Y reads X .*{message}.*has 4 elements.*(?s:.*)test_reads_inside"
    ):
        lower(y, x)


def test_reductions_are_looked_into() -> None:
    """A window that runs past the end."""
    x = te.placeholder((10,), name="X")
    k = te.reduce_axis((0, 3), name="k")
    with pytest.raises(LoweringError, match="from 0 to 11"):
        lower(te.compute((10,), lambda i: te.sum(x[i + k], axis=k), name="Y"), x)
    lower(te.compute((8,), lambda i: te.sum(x[i + k], axis=k), name="Y"), x)


def test_conditions_are_trusted() -> None:
    """A guarded read, a condition of a reduction, a symbolic size and an index that is not affine are let through."""
    x = te.placeholder((4,), name="X")
    n = te.var("n")
    k = te.reduce_axis((0, 9), name="k")
    lower(te.compute((8,), lambda i: te.if_then_else(i < 4, x[i], 0.0)), x)
    lower(te.compute((8,), lambda i: tir.Select(i < 4, x[i], tir.const(0.0, "float32"))), x)
    lower(te.compute((1,), lambda _: te.sum(x[k], axis=k, where=k.var < 4)), x)
    lower(te.compute((n,), lambda i: x[i]), x)
    lower(te.compute((8,), lambda i: x[i // 2] + x[i % 4] + x[tir.min(i, 3)]), x)


def test_the_bound_checker_takes_over() -> None:
    """With bound checks asked for, the program is built and fails at the access."""
    x = te.placeholder((4,), name="X")
    y = te.compute((8,), lambda i: x[i], name="Y")
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        function = tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    with pytest.raises(IndexError, match="buffer X has 4 elements, index 4"):
        function(np.zeros(4, "float32"), np.zeros(8, "float32"))
