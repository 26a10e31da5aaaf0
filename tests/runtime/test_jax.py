"""JAX arrays go in and out without a copy."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te

jax = pytest.importorskip("jax")


def test_arrays_are_arguments():
    """A compiled function reads a JAX array where it is."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] * 2.0, name="B")
    result = tvm.nd.empty((8,), "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(jax.numpy.arange(8, dtype="float32"), result)
    np.testing.assert_array_equal(result.numpy(), np.arange(8) * 2)


@pytest.mark.unguarded  # what ends at a guard page is aligned as its elements are, and JAX copies it
def test_both_ways_share_memory():
    """What JAX makes of our array, and we of theirs, is the same memory."""
    ours = tvm.nd.array(np.arange(8, dtype="float32"))
    theirs = jax.dlpack.from_dlpack(ours)
    assert theirs.unsafe_buffer_pointer() == np.from_dlpack(ours).ctypes.data
    back = tvm.nd.from_dlpack(jax.numpy.arange(8, dtype="float32"))
    np.testing.assert_array_equal(back.numpy(), np.arange(8))
    given = jax.numpy.arange(64, dtype="float32")
    assert np.from_dlpack(tvm.nd.from_dlpack(given)).ctypes.data == given.unsafe_buffer_pointer()
