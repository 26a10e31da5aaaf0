"""Double buffers inside loops that do not divide."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.tir.interpreter import interpret


@pytest.mark.parametrize("factor", [3, 7])
def test_a_refilling_loop_with_a_tail_stays_one(factor: int) -> None:
    """The loop that fills the buffer for its next iteration is not split at its tail, and the result is right."""
    a = te.placeholder((6, 10), name="A")
    i, j = te.reduce_axis((0, 6), name="i"), te.reduce_axis((0, 10), name="j")
    total = te.compute((), lambda: te.sum(a[i, j], axis=[i, j]), name="S")
    s = te.create_schedule(total.op)
    fused = s[total].fuse(i, j)
    copy = s.cache_read(a, "global", [total])
    s[copy].split(s[copy].op.axis[0], factor=1)
    outer, _ = s[total].split(fused, factor=factor)
    s[copy].double_buffer()
    s[copy].compute_at(s[total], outer)
    values, result = np.random.default_rng(0).random((6, 10), dtype="float32"), np.zeros((), "float32")
    interpret(tvm.lower(s, [a, total])["main"], values, result)
    np.testing.assert_allclose(result, values.sum(), rtol=1e-5)
