"""Products by MKL and by oneDNN in tensor expressions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import mkl, mkldnn
from tilewright.runtime.external import mkl as binding
from tilewright.runtime.external import onednn

GENERATOR = np.random.default_rng(2)
HAS_MKL = binding.library_path() is not None
LIBRARIES = [
    pytest.param(mkl, marks=pytest.mark.skipif(not HAS_MKL, reason="MKL is not installed")),
    pytest.param(
        mkldnn, marks=pytest.mark.skipif(not onednn.is_available(), reason="oneDNN is not installed")
    ),
]


def operands(
    flags: tuple[int, int], count: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices, or rows of them, and their product."""
    left = GENERATOR.normal(size=(*count, 4, 3) if flags[0] else (*count, 3, 4)).astype("float32")
    right = GENERATOR.normal(size=(*count, 5, 4) if flags[1] else (*count, 4, 5)).astype("float32")
    first = left.swapaxes(-1, -2) if flags[0] else left
    return left, right, first @ (right.swapaxes(-1, -2) if flags[1] else right)


def result_of(made: te.Tensor, tensors: list[te.Tensor], values: list[Any]) -> np.ndarray:
    """What compiled code gives."""
    function = tvm.build(te.create_schedule(made.op), [*tensors, made], "llvm")
    out = tvm.nd.array(np.zeros([int(extent) for extent in made.shape], str(made.dtype)))
    function(*(tvm.nd.array(one) for one in values), out)
    return out.numpy()


@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_products(library: Any, flags: tuple[int, int]) -> None:
    """Either side transposed."""
    left, right, expected = operands(flags)
    tensors = [te.placeholder(one.shape) for one in (left, right)]
    found = result_of(library.matmul(*tensors, *flags), tensors, [left, right])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not HAS_MKL, reason="MKL is not installed")
@pytest.mark.parametrize("flags", [(0, 0), (1, 1)])
def test_rows_of_matrices_and_integers(flags: tuple[int, int]) -> None:
    """What only MKL has."""
    left, right, expected = operands(flags, (2,))
    tensors = [te.placeholder(one.shape) for one in (left, right)]
    for iterative in (False, True):
        found = result_of(mkl.batch_matmul(*tensors, *flags, iterative), tensors, [left, right])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    left = GENERATOR.integers(0, 256, left.shape[1:]).astype("uint8")
    right = GENERATOR.integers(-128, 128, right.shape[1:]).astype("int8")
    tensors = [te.placeholder(one.shape, dtype=str(one.dtype)) for one in (left, right)]
    found = result_of(mkl.matmul_u8s8s32(*tensors, *flags), tensors, [left, right])
    first, second = left.astype("int32"), right.astype("int32")
    np.testing.assert_array_equal(
        found, (first.T if flags[0] else first) @ (second.T if flags[1] else second)
    )


def test_other_types_are_refused() -> None:
    """oneDNN's function has float32 alone."""
    whole = tvm.nd.array(np.zeros((2, 2), "float64"))
    with pytest.raises(TypeError, match="oneDNN's product is of float32, not float64"):
        tvm.get_global_func("tvm.contrib.mkldnn.matmul")(whole, whole, whole)


def test_without_mkl() -> None:
    """The functions are registered only where the library is, and the error of a call says what to install."""
    code = (
        "import tilewright as tvm, numpy as np\n"
        "from tilewright.runtime.external import mkl\n"
        "mkl.library_path = lambda: None\n"
        "x = tvm.nd.array(np.zeros((2, 2), 'float32'))\n"
        "try:\n    mkl.matmul(x, x, x)\n"
        "except OSError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "MKL was not found: pip install mkl installs it" in ran.stdout
    registered = tvm.get_global_func("tvm.contrib.mkl.matmul", allow_missing=True)
    assert (registered is not None) == HAS_MKL
