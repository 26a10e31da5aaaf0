"""Arrays: storage, types, copies in and out."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tilewright.runtime import cpu, metal
from tilewright.runtime import ndarray as nd
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError

TYPES = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
]


@pytest.mark.parametrize("dtype", TYPES)
def test_round_trip(dtype: str) -> None:
    """Every element type of NumPy that has a tensor type comes back as it went in."""
    values = np.arange(-3, 9).reshape(3, 4).astype(dtype)
    array = nd.array(values)
    assert array.dtype == dtype and array.shape == (3, 4)
    assert array.numpy().dtype == values.dtype
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(array.asnumpy(), values)


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
        elements=st.floats(width=32),
    )
)
def test_any_shape(values: Any) -> None:
    """Arrays of any shape, empty and of no dimension included, keep every bit."""
    array = nd.array(values)
    assert array.shape == values.shape and array.size == values.size and array.ndim == values.ndim
    assert array.numpy().tobytes() == values.tobytes()


def test_bfloat16() -> None:
    """bfloat16 goes in and out as the type that ml_dtypes gives NumPy."""
    values = np.array([1.5, -2.25, 3.0]).astype(ml_dtypes.bfloat16)
    array = nd.array(values)
    assert array.dtype == "bfloat16"
    assert array.numpy().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(array.numpy(), values)
    assert nd.empty((2,), "bfloat16").dtype.bits == 16


def test_small_integers_and_vectors() -> None:
    """Integers of few bits take a byte each; a vector type's lanes are one more dimension in NumPy."""
    small = nd.empty((3,), "int4").copyfrom([1, -2, 7])
    assert small.dtype == "int4" and small.numpy().dtype == np.int8
    np.testing.assert_array_equal(small.numpy(), [1, -2, 7])
    vectors = nd.empty((2, 3), "float32x4")
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    vectors.copyfrom(values)
    assert vectors.shape == (2, 3)
    np.testing.assert_array_equal(vectors.numpy(), values)


@pytest.mark.unguarded  # what ends at a guard page is aligned as its elements are
def test_storage_is_aligned() -> None:
    """New storage begins at a multiple of 64 bytes, whatever its size."""
    for size in range(1, 40):
        assert nd.empty((size,), "int8")._dltensor.data % 64 == 0


def test_not_contiguous_input() -> None:
    """Transposed, strided and reversed NumPy arrays are read in their own order."""
    values = np.arange(24, dtype="int32").reshape(4, 6)
    for view in (values.T, values[::2, 1::3], values[::-1], np.broadcast_to(values[0], (3, 6))):
        np.testing.assert_array_equal(nd.array(view).numpy(), view)


def test_python_values() -> None:
    """Lists and numbers become arrays as NumPy makes them."""
    assert nd.array([1.0, 2.0]).dtype == "float64"
    assert nd.array(3).shape == ()
    assert nd.empty(5).shape == (5,)
    assert nd.empty((2,), np.float16).dtype == "float16"


def test_whole_slices() -> None:
    """``a[:] = b`` copies elements in; parts are an error."""
    array = nd.empty((2, 2))
    array[:] = 3
    np.testing.assert_array_equal(array.numpy(), np.full((2, 2), 3, "float32"))
    array[:, :] = np.eye(2)
    np.testing.assert_array_equal(array[:].numpy(), np.eye(2))
    array[...] = nd.array(np.ones((2, 2), "float32"))
    assert array.numpy().sum() == 4
    array[:] = array
    with pytest.raises(ValueError, match=r"takes \[:\] only"):
        array[0] = 1
    with pytest.raises(ValueError, match=r"takes \[:\] only"):
        array[0:1]


def test_copies_between_arrays() -> None:
    """``copyto`` fills another array or makes one; shapes and types must agree."""
    source = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    target = nd.empty((2, 3))
    assert source.copyto(target) is target
    np.testing.assert_array_equal(target.numpy(), source.numpy())
    again = source.copyto(cpu(0))
    assert again.same_as(again) and not again.same_as(source)
    np.testing.assert_array_equal(nd.array(source).numpy(), source.numpy())
    with pytest.raises(ValueError, match="different shapes"):
        source.copyto(nd.empty((3, 2)))
    with pytest.raises(TypeError, match="cannot copy a tensor of float32 into one of int32"):
        source.copyto(nd.empty((2, 3), "int32"))
    with pytest.raises(TypeError, match="NDArray or a Device"):
        source.copyto(np.empty((2, 3)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"shape \(2,\) into one of shape \(2, 3\)"):
        target.copyfrom([1, 2])


def test_bad_arrays() -> None:
    """What cannot be an array is refused with a reason."""
    with pytest.raises(TypeError, match="cannot hold NumPy's complex64"):
        nd.array(np.zeros(3, "complex64"))
    with pytest.raises(TypeError, match="cannot hold"):
        nd.array(["text"])
    with pytest.raises(TypeError, match="cannot hold"):
        nd.array(np.zeros(3, ">f4"))
    with pytest.raises(ValueError, match="dimension 1 of a tensor is negative: -2"):
        nd.empty((3, -2))
    with pytest.raises(MemoryError, match="no memory"):
        nd.empty((1 << 40, 1 << 40))
    with pytest.raises(TilewrightError, match="float7"):
        nd.empty((1,), "float7")
    with pytest.raises(TilewrightError, match=r"metal\(0\) cannot be used: this runtime has no driver"):
        nd.empty((1,), device=metal(0))
    with pytest.raises(ValueError, match="memory scope 'texture'"):
        nd.empty((1,), mem_scope="texture")


def test_properties() -> None:
    """Shape, type, device, strides and length are what they say."""
    array = nd.empty((2, 3, 4), "int16")
    assert array.dtype is DataType("int16")
    assert array.device == array.ctx == cpu(0)
    assert array.strides == (12, 4, 1)
    assert len(array) == 2
    assert "shape=(2, 3, 4)" in repr(array)
    with pytest.raises(TypeError, match="no length"):
        len(nd.empty(()))


def test_numpy_conversion_protocol() -> None:
    """``numpy.asarray`` copies, and says so when a copy is forbidden."""
    array = nd.array(np.arange(3, dtype="float32"))
    np.testing.assert_array_equal(np.asarray(array), [0, 1, 2])
    assert np.asarray(array, dtype="float64").dtype == np.float64
    with pytest.raises(ValueError, match="from_dlpack"):
        np.array(array, copy=False)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
def test_elements_in_another_order(dtype: str) -> None:
    """A transposed array, one with gaps and one without elements are copied as they read."""
    values = (np.arange(24).reshape(2, 3, 4) % 5).astype(dtype)
    for source in (values.T, values[:, ::2], values[:, :, ::-1], values[:0].T):
        np.testing.assert_array_equal(nd.array(source).numpy(), source)


@pytest.mark.unguarded  # what ends at a guard page is aligned as its elements are
def test_what_kernels_can_use_in_place() -> None:
    """An aligned, compact array is itself; one at an odd address or in another order is copied."""
    array = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    assert array.aligned() is array
    assert nd.empty((0, 3)).aligned().shape == (0, 3)
    memory = np.arange(64, dtype="float32")
    start = next(place for place in range(16) if memory[place:].ctypes.data % 64 == 4)
    for odd in (memory[start : start + 8], array.numpy().T):
        copied = nd.from_dlpack(odd).aligned()
        np.testing.assert_array_equal(copied.numpy(), odd)
        assert np.from_dlpack(copied).ctypes.data % 64 == 0
        assert np.from_dlpack(copied).flags.c_contiguous
