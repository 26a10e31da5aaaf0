"""``topi.random.threefry_test_wrapping``: whether a target computes with unsigned integers as Threefry needs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import te
from tilewright.compile import build
from tilewright.ir import operators
from tilewright.runtime import ndarray
from tilewright.target import Target

__all__ = ["threefry_test_wrapping"]


def threefry_test_wrapping(target: Any, device: Any) -> bool:
    """True if the largest unsigned integer and one are zero on a device."""
    one_more = np.array([2**64 - 1], "uint64")
    given = te.placeholder((1,), "uint64", name="given")
    made = te.compute((1,), lambda i: given[i] + operators.const(1, "uint64"), name="made")
    schedule = te.create_schedule(made.op)
    if "gpu" in Target(target).keys:
        schedule[made].bind(made.op.axis[0], te.thread_axis("threadIdx.x"))
    function = build(schedule, [given, made], target=target)
    result = ndarray.array(np.ones(1, "uint64"), device)
    function(ndarray.array(one_more, device), result)
    return bool(result.numpy()[0] == 0)
