"""What Swin transformers do between their attention: windows of an image that is rolled, padded and cut again.

Exporters write "to the end" as the largest number of 64 bits, and shapes as numbers of 64 bits; loops count in 32.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tilewright import topi
from tilewright.relay.frontend.onnx import backend
from tilewright.te import placeholder

ROLLED = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[{batch}, 6, 4, 2] x) => (float[{batch}, 6, 4, 2] y) {{
    axis = Constant<value_ints = [1]>()
    zero = Constant<value_ints = [0]>()
    two = Constant<value_ints = [2]>()
    back = Constant<value_ints = [-2]>()
    end = Constant<value_ints = [9223372036854775807]>()
    later = Slice(x, two, end, axis)
    sooner = Slice(x, zero, two, axis)
    rolled = Concat<axis = 1>(later, sooner)
    apart = Constant<value_ints = [-1, 3, 2, 2, 2, 2]>()
    parts = Reshape(rolled, apart)
    windows = Transpose<perm = [0, 1, 3, 2, 4, 5]>(parts)
    flat = Constant<value_ints = [-1, 4, 2]>()
    rows = Reshape(windows, flat)
    weights = Softmax<axis = 1>(rows)
    scaled = Mul(weights, rows)
    again = Constant<value_ints = [-1, 3, 2, 2, 2, 2]>()
    shaped = Reshape(scaled, again)
    turned = Transpose<perm = [0, 1, 3, 2, 4, 5]>(shaped)
    whole = Constant<value_ints = [-1, 6, 4, 2]>()
    image = Reshape(turned, whole)
    last = Slice(image, back, end, axis)
    first = Slice(image, zero, back, axis)
    y = Concat<axis = 1>(last, first)
}}
"""


def reference(x: np.ndarray) -> np.ndarray:
    """The same with NumPy."""
    rolled = np.roll(x, -2, 1).reshape(-1, 3, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5)
    rows = rolled.reshape(-1, 4, 2)
    weights = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    image = (weights * rows).reshape(-1, 3, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5)
    return np.roll(image.reshape(x.shape), 2, 1)


@pytest.mark.parametrize(("batch", "executor"), [("2", "graph"), ("n", "vm")])
def test_rolled_windows(batch: str, executor: str) -> None:
    """With a batch that is known, and one that is not."""
    prepared = backend.prepare(onnx.parser.parse_model(ROLLED.format(batch=batch)))
    x = np.random.default_rng(0).standard_normal((2, 6, 4, 2)).astype("float32")
    np.testing.assert_allclose(prepared.run([x])[0], reference(x), rtol=1e-5, atol=1e-6)
    assert prepared.chosen == executor


@pytest.mark.parametrize("end", [2**63 - 1, 2**31, 10**10])
@pytest.mark.parametrize("begin", [0, -(2**63), -2])
def test_slices_to_the_end_keep_the_type_of_the_dimension(begin: int, end: int) -> None:
    """Which is that of the loops."""
    made = topi.strided_slice(placeholder((6, 4)), [begin], [end])
    assert all(extent.dtype == "int32" for extent in made.shape)
    assert int(made.shape[0]) == (2 if begin == -2 else 6)
