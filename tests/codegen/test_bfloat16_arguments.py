"""Arguments of bfloat16, which NumPy does not have."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te


def test_bits_as_uint16_are_accepted() -> None:
    """An array of uint16 holds the bits, and so does the result; another type of 16 bits is refused."""
    a = te.placeholder((8,), "bfloat16", name="a")
    b = te.compute((8,), lambda i: a[i] + a[i], name="b")
    double = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    values = np.arange(8, dtype="float32")
    bits = tvm.nd.array((values.view("uint32") >> 16).astype("uint16"))
    out = tvm.nd.empty((8,), "uint16")
    double(bits, out)
    found = (out.numpy().astype("uint32") << 16).view("float32")
    np.testing.assert_array_equal(found, values * 2)
    with pytest.raises(TypeError, match="float16, expected bfloat16"):
        double(tvm.nd.empty((8,), "float16"), out)
