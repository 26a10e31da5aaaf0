"""Random numbers that the runtime draws inside compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import random
from tilewright.support.errors import ExpressionError


def drawn(tensor: te.Tensor) -> np.ndarray:
    """What the compiled code of one tensor gives."""
    function = tvm.build(te.create_schedule(tensor.op), [tensor], "llvm")
    out = tvm.nd.empty(tuple(int(extent) for extent in tensor.shape), tensor.dtype)
    function(out)
    return out.numpy()


def test_integers_fill_their_range() -> None:
    """``high`` is excluded, ``low`` is not, and negative numbers are as likely."""
    values = drawn(random.randint(-5, 6, size=(200, 100), dtype="int8"))
    assert values.min() == -5 and values.max() == 5
    assert np.bincount(values.ravel() + 5).min() > 1500


def test_uniform_and_normal_numbers() -> None:
    """The first two moments, and the fourth, which a bad normal generator misses."""
    uniform = drawn(random.uniform(2.0, 4.0, size=(300, 300)))
    assert 2 <= uniform.min() < 2.01 and 3.99 < uniform.max() <= 4 and abs(uniform.mean() - 3) < 0.02
    normal = (drawn(random.normal(3, 4, size=(300, 300))) - 3) / 4
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert abs((normal**4).mean() - 3) < 0.15


def test_a_seed_repeats_the_numbers() -> None:
    """Of the calling thread, which is the one that runs a compiled function's packed calls."""
    function = tvm.build(te.create_schedule((one := random.uniform(0, 1, size=(50,))).op), [one], "llvm")
    runs = []
    for seed in (7, 7, 8):
        tvm.get_global_func("tvm.contrib.random.seed")(seed)
        function(out := tvm.nd.empty((50,)))
        runs.append(out.numpy())
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_fill_for_measurements(dtype: str) -> None:
    """No value is zero, and products do not overflow."""
    tvm.get_global_func("tvm.contrib.random.random_fill")(value := tvm.nd.empty((64, 64), dtype))
    assert np.count_nonzero(value.numpy()) == 64 * 64
    assert np.isfinite(value.numpy().astype("float64") ** 2).all()


def test_bad_arguments() -> None:
    """Errors that name the function."""
    with pytest.raises(ExpressionError, match="draws integers, not float32"):
        random.randint(0, 4, (2,), "float32")
    with pytest.raises(tvm.TVMError, match=r"randint: low \(4\) must be below high \(4\)"):
        drawn(random.randint(4, 4, (2,)))
    with pytest.raises(tvm.TVMError, match=r"random\.uniform is an integer, not a tensor"):
        tvm.get_global_func("tvm.contrib.random.uniform")(0, 1, 2)
