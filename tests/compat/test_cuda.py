"""Sorting by keys and scans under ``topi.cuda``, in the interpreter's threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
from tilewright import te
from tilewright.compat import cuda
from tilewright.contrib import thrust

SMALL = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=16")
GENERATOR = np.random.default_rng(1)


@pytest.mark.parametrize("name", ["sort_by_key", "stable_sort_by_key_thrust"])
def test_values_in_the_order_of_keys(name: str) -> None:
    """The values of equal keys keep their order."""
    keys, values = (te.placeholder((2, 9), dtype="int32", name=name) for name in ("keys", "values"))
    given = GENERATOR.integers(0, 4, (2, 9)).astype("int32")
    with SMALL:
        made = getattr(cuda, name)(keys, values)
        numbers = np.arange(18, dtype="int32").reshape(2, 9)
        found = run([keys, values], list(made), given, numbers, target=SMALL)
    order = np.argsort(given, axis=-1, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(given, order, -1))
    np.testing.assert_array_equal(found[1], np.take_along_axis(numbers, order, -1))


def test_scans() -> None:
    """Without the element itself, with the sum of all; with it, in another type."""
    data = te.placeholder((3, 20), dtype="int32", name="data")
    values = GENERATOR.integers(0, 9, (3, 20)).astype("int32")
    with SMALL:
        scanned, total = run(
            [data], list(cuda.exclusive_scan(data, return_reduction=True)), values, target=SMALL
        )
        (whole,) = run([data], [cuda.scan_thrust(data, "int64", exclusive=False)], values, target=SMALL)
    np.testing.assert_array_equal(scanned, values.cumsum(-1) - values)
    np.testing.assert_array_equal(total, values.sum(-1))
    np.testing.assert_array_equal(whole, values.cumsum(-1))
    assert str(whole.dtype) == "int64"


def test_thrust_is_not_there() -> None:
    """Unless a program registers a function of its name."""
    target = tvm.target.Target("cuda -libs=thrust")
    name = "tvm.contrib.thrust.test_sort"
    assert not thrust.can_use_thrust(target, name)
    with pytest.raises(ValueError, match=f"no function {name} is registered"):
        thrust.maybe_warn(target, name)
    tvm.register_func(name, lambda *arrays: None)
    try:
        assert thrust.can_use_thrust(target, name)
        assert not thrust.can_use_thrust(tvm.target.Target("cuda"), name)
        assert not thrust.can_use_rocthrust(target, name)
    finally:
        tvm.runtime.remove_global_func(name)


def test_a_convolution_of_images_in_hwnc() -> None:
    """Images with the batch third are convolved with HWOI; the result has the batch third, too."""
    data = te.placeholder((4, 4, 2, 3), dtype="int8", name="data")
    kernel = te.placeholder((3, 3, 5, 3), dtype="int8", name="kernel")
    values = GENERATOR.integers(-9, 9, (4, 4, 2, 3)).astype("int8")
    weights = GENERATOR.integers(-9, 9, (3, 3, 5, 3)).astype("int8")
    with SMALL:
        made = cuda.conv2d_hwnc_tensorcore(data, kernel, 1, 1, 1, "int8")
        (found,) = run([data, kernel], [made], values, weights, target=SMALL)
    wide = np.pad(values.astype("int32"), ((1, 1), (1, 1), (0, 0), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(0, 1))
    np.testing.assert_array_equal(found, np.einsum("hwnckl,kloc->hwno", windows, weights.astype("int32")))
