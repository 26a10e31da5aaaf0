"""DLPack: memory is shared in both directions, and lives exactly as long as somebody uses it."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from tilewright.runtime import convert_to_tvm_func
from tilewright.runtime import ndarray as nd
from tilewright.support.errors import TilewrightError

torch = pytest.importorskip("torch")


class Unversioned:
    """A producer from before DLPack 1.0, whose method takes no version."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, stream: object = None) -> object:
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Owner(np.ndarray):
    """A NumPy array whose end can be watched."""


def test_numpy_is_shared_both_ways() -> None:
    """A write on either side is seen on the other."""
    values = np.arange(6, dtype="float32").reshape(2, 3)
    array = nd.from_dlpack(values)
    values[0, 0] = 42
    assert array.numpy()[0, 0] == 42
    out = np.from_dlpack(array)
    array[:] = 7
    assert out[1, 2] == values[1, 2] == 7
    assert out.ctypes.data == values.ctypes.data


def test_torch_is_shared_both_ways() -> None:
    """PyTorch tensors go in and out without a copy, through capsules of both kinds."""
    tensor = torch.arange(12, dtype=torch.int64).reshape(3, 4)
    array = nd.from_dlpack(tensor)
    assert array.dtype == "int64" and array.shape == (3, 4)
    tensor[2, 3] = -1
    assert array.numpy()[2, 3] == -1
    assert torch.from_dlpack(array).data_ptr() == tensor.data_ptr()
    assert torch.utils.dlpack.from_dlpack(array.to_dlpack()).data_ptr() == tensor.data_ptr()
    assert nd.from_dlpack(torch.utils.dlpack.to_dlpack(tensor))._dltensor.data == tensor.data_ptr()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "uint8", "int16", "float64"])
def test_torch_types(dtype: str) -> None:
    """Element types keep their meaning on the way through."""
    tensor = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    array = nd.from_dlpack(tensor)
    assert array.dtype == dtype
    back = torch.from_dlpack(array)
    assert back.dtype == tensor.dtype and torch.equal(back, tensor)


def test_copy_of_a_tensor() -> None:
    """``array`` copies a tensor of any library, types that NumPy lacks included."""
    tensor = torch.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=torch.bfloat16).T
    array = nd.array(tensor)
    tensor[0, 0] = 9
    assert array.dtype == "bfloat16" and array.strides == (2, 1)
    assert torch.from_dlpack(array).tolist() == [[1.5, 3.0], [2.0, 4.0]]


def test_unversioned_producer() -> None:
    """A producer that knows no versions is asked again without one."""
    values = np.arange(3.0)
    assert nd.from_dlpack(Unversioned(values))._dltensor.data == values.ctypes.data


def test_refusals_of_a_producer() -> None:
    """A producer's refusal is an error that has its words."""
    with pytest.raises(BufferError, match=r"a Tensor cannot be used without a copy: .*gradient") as caught:
        nd.from_dlpack(torch.ones(2, requires_grad=True))
    assert isinstance(caught.value, TilewrightError)
    with pytest.raises(TilewrightError, match="a ndarray cannot be used without a copy"):
        convert_to_tvm_func(print)(np.zeros(2, ">f4"))


def test_read_only_memory_can_be_lent() -> None:
    """A read-only NumPy array is lent through a versioned capsule."""
    values = np.arange(4.0)
    values.flags.writeable = False
    assert nd.from_dlpack(values).numpy().sum() == 6


def test_strided_memory() -> None:
    """Strides and offsets are kept, and copying out follows them."""
    values = np.arange(24, dtype="int32").reshape(4, 6)
    view = values[1:, ::2]
    array = nd.from_dlpack(view)
    assert array.strides == (6, 2)
    np.testing.assert_array_equal(array.numpy(), view)
    np.testing.assert_array_equal(np.from_dlpack(array), view)


def test_producer_lives_as_long_as_the_array() -> None:
    """The NumPy array that lent its memory is kept until the last user is gone."""
    values = np.arange(4.0).view(Owner)
    watch = weakref.ref(values)
    array = nd.from_dlpack(values)
    out = np.from_dlpack(array)
    del values, array
    gc.collect()
    assert watch() is not None
    assert out.sum() == 6
    del out
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize("versioned", [False, True])
def test_capsule_nobody_consumed(versioned: bool) -> None:
    """A capsule that is dropped unread gives its reference back."""
    values = np.arange(4.0).view(Owner)
    watch = weakref.ref(values)
    array = nd.from_dlpack(values)
    capsule = array.__dlpack__(max_version=(1, 0) if versioned else None)
    del values, array
    gc.collect()
    assert watch() is not None
    del capsule
    gc.collect()
    assert watch() is None


def test_capsule_is_consumed_once() -> None:
    """A second consumer of one capsule gets an error."""
    capsule = nd.empty((2,)).to_dlpack()
    nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="fresh DLPack capsule"):
        nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="a int is neither"):
        nd.from_dlpack(3)


def test_copy_on_request() -> None:
    """A consumer that asks for a copy gets memory of its own; one that asks for another device gets an error."""
    array = nd.array(np.arange(3.0))
    copied = nd.from_dlpack(array.__dlpack__(copy=True))
    array[:] = 0
    assert copied.numpy().sum() == 3
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="not on device"):
        array.__dlpack__(dl_device=(2, 0))
