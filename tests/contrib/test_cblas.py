"""Products by OpenBLAS in tensor expressions."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import cblas

GENERATOR = np.random.default_rng(3)
NEEDS_LIBRARY = pytest.mark.skipif(
    importlib.util.find_spec("scipy_openblas32") is None, reason="OpenBLAS is not installed"
)


def test_expressions() -> None:
    """An external operation of the shape of the products, whose other arguments are those of ``te.extern``; a single
    matrix goes with every one of the other side."""
    left, right = te.placeholder((3, 4, 5), name="left"), te.placeholder((3, 5, 6), name="right")
    made = cblas.batch_matmul(left, right)
    assert [int(extent) for extent in made.shape] == [3, 4, 6] and made.op.name == "C"
    assert "tvm.contrib.cblas.batch_matmul" in str(made.op.body)
    named = cblas.batch_matmul(left, right, iterative=True, name="products", tag="external")
    assert named.op.name == "products" and named.op.tag == "external"
    assert "tvm.contrib.cblas.batch_matmul_iterative" in str(named.op.body)
    turned = cblas.batch_matmul(
        te.placeholder((1, 5, 4)), te.placeholder((3, 6, 5)), transa=True, transb=True
    )
    assert [int(extent) for extent in turned.shape] == [3, 4, 6]


@NEEDS_LIBRARY
@pytest.mark.parametrize("iterative", [False, True])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("counts", "dtype"), [((3, 3), "float32"), ((1, 3), "float32"), ((3, 1), "float64")])
def test_products(counts: tuple[int, int], dtype: str, flags: tuple[bool, bool], iterative: bool) -> None:
    """What NumPy computes, with either side transposed."""
    left = GENERATOR.normal(size=(counts[0], *((5, 4) if flags[0] else (4, 5)))).astype(dtype)
    right = GENERATOR.normal(size=(counts[1], *((6, 5) if flags[1] else (5, 6)))).astype(dtype)
    tensors = [te.placeholder(one.shape, dtype) for one in (left, right)]
    made: Any = cblas.batch_matmul(*tensors, *flags, iterative, dtype=dtype)
    function = tvm.build(te.create_schedule(made.op), [*tensors, made], "llvm")
    out = tvm.nd.empty((3, 4, 6), dtype)
    function(tvm.nd.array(left), tvm.nd.array(right), out)
    first = left.swapaxes(1, 2) if flags[0] else left
    second = right.swapaxes(1, 2) if flags[1] else right
    np.testing.assert_allclose(out.numpy(), first @ second, rtol=1e-4, atol=1e-5)
