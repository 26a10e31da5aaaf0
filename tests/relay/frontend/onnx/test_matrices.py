"""Products of matrices give what NumPy gives, whether sizes are known or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

from tilewright.support.errors import ModelError

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 5, 3), (3,)),
    ((2, 3), (3, 4)),
    ((2, 5, 3), (3, 4)),
    ((6, 2, 5, 3), (3, 4)),
    ((2, 5, 3), (2, 3, 4)),
    ((6, 2, 5, 3), (6, 2, 3, 4)),
    ((6, 1, 5, 3), (1, 2, 3, 4)),
    ((2, 5, 3), (6, 2, 3, 4)),
    ((5, 3), (6, 2, 3, 4)),
    ((2, 5, 3), (1, 3, 4)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize("weight", [False, True])
def test_matmul(a: tuple[int, ...], b: tuple[int, ...], weight: bool) -> None:
    """Vectors, matrices and batches of them, of which the second may be a weight."""
    inputs = {"a": floats(*a), "b": floats(*b, seed=1)}
    check_like_onnx_runtime("MatMul", inputs, constants=["b"] if weight else [])


def test_integers() -> None:
    """Integers are multiplied exactly."""
    inputs = {"a": np.array([[1 << 20, 3]], "int64"), "b": np.array([[1 << 20], [5]], "int64")}
    np.testing.assert_array_equal(run(node_model("MatMul", inputs), inputs)[0], [[(1 << 40) + 15]])


@pytest.mark.parametrize("c", [None, (), (1,), (4,), (2, 1), (2, 4)], ids=str)
@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm(c: tuple[int, ...] | None, first: int, second: int) -> None:
    """Factors, transposes, and an addend of every shape that broadcasts."""
    inputs: dict[str, Any] = {
        "a": floats(*((3, 2) if first else (2, 3))),
        "b": floats(*((4, 3) if second else (3, 4)), seed=1),
    }
    if c is not None:
        inputs["c"] = floats(*c, seed=2)
    check_like_onnx_runtime("Gemm", inputs, alpha=0.5, beta=-2.0, transA=first, transB=second)


def test_scalars_have_no_product() -> None:
    """A scalar is refused."""
    inputs = {"a": np.array(1.0, "float32"), "b": floats(2, 2)}
    with pytest.raises(ModelError, match="a scalar has no matrix product"):
        run(node_model("MatMul", inputs), inputs)


def test_batches_that_only_the_program_knows() -> None:
    """A single batch of an open size is the same on both sides; of several the program finds out what they are."""
    for first, second in (((2, 3), (2, 3)), ((2, 1), (1, 2)), ((1, 3), (2, 3)), ((3,), (3,))):
        inputs = {"a": floats(*first, 4, 5), "b": floats(*second, 5, 6, seed=1)}
        model = node_model("MatMul", inputs, unknown=True)
        assert_close(run(model, inputs), [inputs["a"] @ inputs["b"]])
