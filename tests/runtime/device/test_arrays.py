"""Arrays on a device whose memory nobody else may read: made, copied in every direction, exchanged."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runtime.device.guarded import Code, counts, guarded

from tilewright.runtime import Device, cpu, save_param_dict
from tilewright.runtime import ndarray as nd
from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY, DLTensor
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.params import load_param_dict
from tilewright.support.errors import TilewrightError


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 3, 4, 5)])
def test_to_the_device_and_back(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    """What is put into an array on a device is what comes out."""
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 % 2).astype(dtype)
    array = nd.array(values, device)
    assert (array.device, array.shape, array.dtype) == (device, shape, dtype)
    assert array.__dlpack_device__() == (12, 0)
    np.testing.assert_array_equal(array.numpy(), values)
    array.copyfrom(1 - values if dtype != "bool" else ~values)
    np.testing.assert_array_equal(array.numpy(), 1 - values if dtype != "bool" else ~values)


def test_vector_types_and_bfloat16(device: Device) -> None:
    """Types that NumPy has not travel as well."""
    lanes = nd.empty((3,), "float32x4", device)
    values = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(lanes.copyfrom(values).numpy(), values)
    short = nd.empty((4,), "bfloat16", device).copyfrom(np.array([1, -2, 3.5, 0], "float32"))
    np.testing.assert_array_equal(short.numpy().astype("float32"), [1, -2, 3.5, 0])


def test_between_arrays(device: Device) -> None:
    """Arrays are copied within a device, between two devices through the host, and to and from the host."""
    values = np.arange(1000, dtype="int32")
    first = nd.array(values, device)
    before = counts(device).copies, counts(guarded(1)).copies
    within = first.copyto(device)
    across = within.copyto(guarded(1))
    assert counts(device).copies - before[0] == 2  # one within, one to the host
    assert counts(guarded(1)).copies - before[1] == 1
    assert across.device == guarded(1) and not across.same_as(within)
    home = across.copyto(cpu())
    np.testing.assert_array_equal(home.numpy(), values)
    home.copyfrom(values * 2)
    across.copyfrom(home)
    home[:] = 0
    np.testing.assert_array_equal(across.numpy(), values * 2)
    first[:] = 7
    np.testing.assert_array_equal(first.numpy(), np.full(1000, 7))
    assert "7, 7" in repr(first) and "guarded(0)" in repr(first)


def test_large_copies_between_devices(device: Device) -> None:
    """A copy through the host goes piece by piece, and every piece arrives."""
    values = np.arange(10_000_001, dtype="int32")  # more than two pieces of 16 MiB, and a bit
    other = nd.array(values, device).copyto(guarded(1))
    np.testing.assert_array_equal(other.numpy(), values)


def _strided(memory: NDArray, shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> NDArray:
    """A view of part of an array's memory, which the caller keeps."""
    extents = (c_int64 * (2 * len(shape) + 1))(*shape, *strides)
    tensor = DLTensor.from_buffer_copy(memory._dltensor)
    tensor.ndim = len(shape)
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(c_int64))
    tensor.strides = ctypes.cast(ctypes.byref(extents, 8 * len(shape)), ctypes.POINTER(c_int64))
    tensor.byte_offset = 4 * start
    handle = c_void_p()
    check(LIBRARY.tilewright_tensor_wrap(ctypes.byref(tensor), None, None, ctypes.byref(handle)))
    return NDArray(handle.value or 0)


def _selected(
    values: npt.NDArray[np.int32], shape: tuple[int, ...], strides: tuple[int, ...], start: int
) -> npt.NDArray[np.int32]:
    return np.lib.stride_tricks.as_strided(values[start:], shape, tuple(4 * step for step in strides))


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], int]:
    """A shape, and for a source and a target where its elements are: gaps, other orders, backwards, repeated."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))

    def strides(repeats: bool) -> tuple[tuple[int, ...], int]:
        order = draw(st.permutations(range(len(shape))))
        made, span, start = [0] * len(shape), 1, 0
        for axis in order:
            step = span * draw(st.integers(1, 2))
            span = step * shape[axis]
            if draw(st.booleans()):
                start += step * (shape[axis] - 1)
                step = -step
            made[axis] = 0 if repeats and step > 0 and draw(st.booleans()) else step
        return tuple(made), start

    return (shape, *strides(True), *strides(False))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layouts(), st.sampled_from(["host", "same", "other"]), st.sampled_from(["host", "same", "other"]))
def test_strides(
    device: Device,
    layout: tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], int],
    source_place: str,
    target_place: str,
) -> None:
    """Whatever the strides and the devices, each element arrives at its place and nothing else is written."""
    shape, from_strides, from_start, to_strides, to_start = layout
    places = {"host": cpu(), "same": device, "other": guarded(1)}
    source_values = np.arange(600, dtype="int32")
    target_values = -source_values - 1
    source = nd.array(source_values, places[source_place])
    target = nd.array(target_values, places[target_place])
    _strided(source, shape, from_strides, from_start).copyto(_strided(target, shape, to_strides, to_start))
    expected = target_values.copy()
    _selected(expected, shape, to_strides, to_start)[...] = _selected(
        source_values, shape, from_strides, from_start
    )
    np.testing.assert_array_equal(target.numpy(), expected)
    np.testing.assert_array_equal(source.numpy(), source_values)


def test_numpy_arrays_with_gaps(device: Device) -> None:
    """An array of NumPy may have any strides."""
    values = np.arange(60, dtype="float32").reshape(6, 10)
    for part in (values.T, values[::2, ::-3], values[:, 1:2], np.broadcast_to(values[0], (4, 10))):
        np.testing.assert_array_equal(nd.array(part, device).numpy(), part)


def test_exchange(device: Device, code: Code) -> None:
    """A capsule shares the memory, after the device has done what it was given; NumPy cannot read it and says so."""
    array = nd.array(np.zeros(4, "int32"), device)
    code.launch("fill", array, 40, block=(4, 1, 1))
    waits = counts(device).waits
    shared = nd.from_dlpack(array)
    assert counts(device).waits == waits + 1
    assert shared.device == device and shared.memory_range() == array.memory_range()
    del array
    np.testing.assert_array_equal(shared.numpy(), [40, 41, 42, 43])
    with pytest.raises(BufferError, match=r"is on guarded\(0\)"):
        shared.__dlpack__(dl_device=(1, 0))
    with pytest.raises((BufferError, RuntimeError), match="[Uu]nsupported device"):
        np.from_dlpack(shared)


def test_parameters_are_saved_from_a_device(device: Device) -> None:
    """What is saved has left the device."""
    values = np.arange(6, dtype="float32").reshape(2, 3)
    loaded = load_param_dict(save_param_dict({"w": nd.array(values, device)}))["w"]
    assert loaded.device == cpu()
    np.testing.assert_array_equal(loaded.numpy(), values)


def test_mismatches(device: Device) -> None:
    """Shapes, types and devices that do not fit are errors, and nothing is lost."""
    array = nd.array(np.zeros((2, 3), "float32"), device)
    with pytest.raises(ValueError, match="different shapes"):
        array.copyto(nd.empty((3, 2), "float32", device))
    with pytest.raises(TypeError, match="cannot copy a tensor of float32 into one of int32"):
        array.copyto(nd.empty((2, 3), "int32", device))
    with pytest.raises(ValueError, match=r"there is no guarded\(9\): this process has 2"):
        nd.empty((2,), "float32", Device(12, 9))
    with pytest.raises(TilewrightError, match=r"metal\(0\) cannot be used: this runtime has no driver"):
        array.copyto(Device(8, 0))
