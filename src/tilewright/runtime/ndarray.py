"""``NDArray``: a tensor on a device, shared with other libraries through DLPack.

New storage is aligned to 64 bytes. ``array`` and ``numpy`` copy; ``from_dlpack``, ``numpy.from_dlpack`` and passing an
array to a compiled function do not. NumPy has no bfloat16 of its own: such arrays are ``ml_dtypes.bfloat16`` where
that package is installed, else as their uint16 bits. Integers of fewer than eight bits, and booleans, take a byte each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.runtime.device import (
    DEFAULT_STREAM,
    Device,
    ForeignDevice,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from tilewright.runtime.device_table import asynchronous, host_readable, shares_streams
from tilewright.runtime.dlpack import (
    consume_capsule,
    export_capsule,
    is_capsule,
    is_read_only,
    request_capsule,
)
from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY, OBJECT_HEADER_BYTES, QUICK, DLDataType, DLTensor
from tilewright.runtime.strided_copy import copy_strided
from tilewright.support.arena import ALIGNMENT
from tilewright.support.dtype import BFLOAT, DataType
from tilewright.support.node import Object
from tilewright.support.options import guard_pages

__all__ = [
    "NDArray",
    "array",
    "empty",
    "from_dlpack",
    "numpyasarray",
    "device",
    "cpu",
    "cuda",
    "gpu",
    "opencl",
    "vulkan",
    "metal",
    "vpi",
    "rocm",
    "ext_dev",
    "hexagon",
    "webgpu",
]

HOST = cpu()
"""The device of NumPy's arrays."""

_KINDS = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}
_DLPACK_BOOL = 6


@cache
def _bfloat16() -> np.dtype[Any]:
    """The NumPy type of bfloat16."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("uint16")
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


@cache
def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The NumPy type of one lane; an error for types that NumPy lacks."""
    if dtype.is_bool:
        return np.dtype("bool")
    if dtype.type_code == BFLOAT:
        return _bfloat16()
    if dtype.is_handle:
        return np.dtype("uint64")
    bytes_of_lane = 1 << max(0, (dtype.bits - 1).bit_length() - 3)
    try:
        return np.dtype(f"{_KINDS[dtype.type_code]}{8 * bytes_of_lane}")
    except (KeyError, TypeError):
        raise failure("TypeError", f"NumPy has no type for {dtype}") from None


@cache
def dtype_of_numpy(dtype: np.dtype[Any]) -> DataType:
    """The data type of a NumPy array's elements; an error for types a tensor cannot have."""
    if dtype == _bfloat16() and dtype.kind != "u":
        return DataType("bfloat16")
    if dtype.kind == "b":
        return DataType("bool")
    if dtype.kind in "iuf" and dtype.isnative and dtype.itemsize <= 8:
        return DataType(dtype.name)
    raise failure(
        "TypeError",
        f"a tensor cannot hold NumPy's {dtype}; convert the array first, for example with astype('float32')",
    )


@cache
def dl_data_type(dtype: DataType) -> DLDataType:
    """DLPack's description of a data type."""
    return DLDataType(dtype.type_code, dtype.bits, dtype.lanes)


def data_type_of(code: int, bits: int, lanes: int) -> DataType:
    """The data type that DLPack's numbers describe; DLPack's own boolean is the one-bit unsigned integer."""
    if code == _DLPACK_BOOL and bits == 8:
        code, bits = 1, 1
    kind = _KINDS.get(code)
    if kind is None:
        raise failure("TypeError", f"data type code {code} of {bits} bits is not supported by Tilewright")
    return DataType(f"{kind}{bits}" if lanes == 1 else f"{kind}{bits}x{lanes}")


def numpyasarray(np_data: npt.NDArray[Any]) -> DLTensor:
    """A DLTensor that describes a NumPy array's memory; the caller keeps the array alive."""
    dtype = dtype_of_numpy(np_data.dtype)
    extents = (c_int64 * (2 * np_data.ndim))()
    for i in range(np_data.ndim):
        extents[i] = np_data.shape[i]
        extents[np_data.ndim + i] = np_data.strides[i] // np_data.itemsize
    shape = ctypes.cast(extents, ctypes.POINTER(c_int64))
    strides = ctypes.cast(ctypes.byref(extents, 8 * np_data.ndim), ctypes.POINTER(c_int64))
    described = DLTensor(
        np_data.ctypes.data, HOST.described, np_data.ndim, dl_data_type(dtype), shape, strides, 0
    )
    described._extents = extents  # keeps the memory of both pointers alive
    return described


TENSOR = 70
"""The type index of a tensor object; see tilewright.h."""

READ_ONLY_FLAG = 1 << 32
"""What is added to the type index of a tensor whose memory must not be written."""

READ_ONLY_TENSOR = TENSOR | READ_ONLY_FLAG


class NDArray(Object):
    """A tensor. Holds one reference to a tensor object of the C runtime."""

    __slots__ = ("__weakref__", "_address", "_handle", "_shape", "_tag", "_type", "borrowed")
    is_foreign = False
    """True for an array whose memory is in another process: it does its own copies."""

    def __init__(self, handle: int, read_only: bool = False) -> None:
        """Takes over a reference to a tensor object, whose memory may be read-only."""
        self._handle = handle
        self._tag = READ_ONLY_TENSOR if read_only else TENSOR  # the first word of the array as an argument
        self._address = handle + OBJECT_HEADER_BYTES
        self._shape: tuple[int, ...] | None = None
        self._type: DataType | None = None
        self.borrowed = False  # True: the caller's memory, valid during a call

    def __del__(self) -> None:
        release = QUICK.tilewright_object_release if QUICK is not None else None
        if release is not None and getattr(self, "_handle", None):
            release(self._handle)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        where = HOST if self.is_foreign else self.device
        return _with_elements, (self.numpy(), str(self.dtype), where)

    @property
    def _dltensor(self) -> DLTensor:
        return DLTensor.from_address(self._address)

    @property
    def handle(self) -> int:
        """The address of the DLTensor."""
        return self._address

    # The name under which extension types give the address that they are passed by; see ``register_extension``.
    _tvm_handle = handle

    @property
    def is_view(self) -> bool:
        """True for the caller's memory, which is valid during a call only."""
        return self.borrowed

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        if self._shape is None:
            described = self._dltensor
            self._shape = tuple(described.shape[: described.ndim])
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, for each dimension."""
        described = self._dltensor
        return tuple(described.strides[: described.ndim])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def dtype(self) -> DataType:
        """The data type, which compares equal to its name."""
        if self._type is None:
            dtype = self._dltensor.dtype
            self._type = data_type_of(dtype.code, dtype.bits, dtype.lanes)
        return self._type

    @property
    def device(self) -> Device:
        """Where the elements are."""
        device = self._dltensor.device
        return Device(device.device_type, device.device_id)

    @property
    def ctx(self) -> Device:
        """An older name of ``device``."""
        return self.device

    @property
    def read_only(self) -> bool:
        """True if the memory is read-only."""
        return self._tag == READ_ONLY_TENSOR

    def _require_writeable(self) -> None:
        if self._tag == READ_ONLY_TENSOR:
            raise failure(
                "ValueError",
                "the array's memory is read-only and cannot be written; copy it first with nd.array",
            )

    def same_as(self, other: object) -> bool:
        """True if both are the same tensor object, not merely equal ones."""
        return isinstance(other, NDArray) and not other.is_foreign and self._handle == other._handle

    def numpy(self) -> npt.NDArray[Any]:
        """A NumPy array with a copy of the elements; a vector type's lanes are one more dimension."""
        element = self.dtype
        lanes = (element.lanes,) if element.lanes > 1 else ()
        made: npt.NDArray[Any] = np.empty(self.shape + lanes, numpy_dtype(element))
        check(LIBRARY.tilewright_tensor_read(self._address, made.ctypes.data))
        return made

    def asnumpy(self) -> npt.NDArray[Any]:
        """An older name of ``numpy``."""
        return self.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise failure(
                "ValueError", "numpy.asarray of an NDArray copies; numpy.from_dlpack(array) does not"
            )
        made = self.numpy()
        return made if dtype is None else made.astype(dtype)

    def _memory(self) -> npt.NDArray[Any] | None:
        """The elements of a compact array that the host can read, not copied, as one row; None for any other array."""
        tensor = self._dltensor
        shape, count = self.shape, 1
        for extent, step in zip(reversed(shape), reversed(self.strides), strict=True):
            if step != count and extent > 1:
                return None
            count *= extent
        if count == 0 or not host_readable(tensor.device.device_type):
            return None
        element = self.dtype
        kind = numpy_dtype(element)
        count *= element.lanes
        if kind.itemsize * element.lanes != (element.bits * element.lanes + 7) // 8:
            return None  # packed more tightly than NumPy has them, as int24 or int4x8 are
        held = (ctypes.c_char * (count * kind.itemsize)).from_address(tensor.data + tensor.byte_offset)
        made: npt.NDArray[Any] = np.frombuffer(memoryview(held), kind)
        return made

    def memory_range(self) -> range:
        """The addresses of a compact array's elements."""
        tensor, element = self._dltensor, self.dtype
        start = (tensor.data or 0) + tensor.byte_offset
        return range(start, start + self.size * element.lanes * ((element.bits + 7) // 8))

    def aligned(self) -> NDArray:
        """This array if kernels can use it in place (compact, aligned), otherwise a copy."""
        if not host_readable(self._dltensor.device.device_type):
            return self
        compact = self.size == 0 or self._memory() is not None
        # What ends at a guard page is aligned as its elements are, which is all that kernels rely on.
        aligned = guard_pages() == "end" or self.memory_range().start % ALIGNMENT == 0
        in_place = compact and aligned
        return self if in_place else self.copyto(self.device)

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copies elements in, from an NDArray or anything NumPy can make an array of; the shape must be the same."""
        self._require_writeable()
        if isinstance(source_array, NDArray):
            if source_array.is_foreign:
                return source_array.copyto(self)
            check(LIBRARY.tilewright_tensor_copy(source_array._address, self._address))
            return self
        element = self.dtype
        shape = self.shape + ((element.lanes,) if element.lanes > 1 else ())
        source = np.asarray(source_array)
        if source.shape != shape:
            raise failure(
                "ValueError", f"cannot copy an array of shape {source.shape} into one of shape {shape}"
            )
        target = self._memory() if not source.flags.c_contiguous else None
        if target is not None:
            copy_strided(target.reshape(shape), source)
            return self
        values = np.asarray(source, dtype=numpy_dtype(element), order="C")
        check(LIBRARY.tilewright_tensor_write(self._address, values.ctypes.data))
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copies elements out, into an array of the same shape and type or into a new one on a device."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target, mem_scope)
        elif not isinstance(target, NDArray):
            raise failure("TypeError", f"copyto needs an NDArray or a Device, not {type(target).__name__}")
        target._require_writeable()
        if target.is_foreign:
            return target.copyfrom(self)
        check(LIBRARY.tilewright_tensor_copy(self._address, target._address))
        return target

    def _require_whole(self, index: object) -> None:
        whole = slice(None)
        if index not in (whole, Ellipsis) and not (
            isinstance(index, tuple) and all(part == whole for part in index)
        ):
            raise failure("ValueError", "an NDArray takes [:] only; use .numpy() for parts of it")

    def __getitem__(self, index: object) -> NDArray:
        self._require_whole(index)
        return self

    def __setitem__(self, index: object, value: Any) -> None:
        self._require_whole(index)
        self._require_writeable()
        if isinstance(value, NDArray):
            if not value.same_as(self):
                value.copyto(self)
        elif np.isscalar(value):
            lanes = (self.dtype.lanes,) if self.dtype.lanes > 1 else ()
            self.copyfrom(np.full(self.shape + lanes, value, numpy_dtype(self.dtype)))
        else:
            self.copyfrom(value)

    def __len__(self) -> int:
        if not self.shape:
            raise failure("TypeError", "an NDArray without dimensions has no length")
        return self.shape[0]

    def to_dlpack(self) -> object:
        """An unversioned DLPack capsule that shares the memory."""
        self._settle()
        return export_capsule(self._handle, versioned=False, read_only=self.read_only)

    def _settle(self, stream: int | None = None) -> None:
        """Synchronizes with the consumer of the memory.

        The consumer's stream, by DLPack's number, waits for ours; without one the host waits. -1 means that the
        consumer synchronizes itself.
        """
        device_type = self._dltensor.device.device_type
        if stream == -1 or not asynchronous(device_type):
            return
        if stream is None or not shares_streams(device_type):
            self.device.sync()
        elif stream != self.device.raw_stream:
            self.device.order_streams(None, stream)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on {self.device}, not on device {tuple(dl_device)}")
        shared = self.copyto(self.device) if copy else self
        shared._settle(self._stream_number(stream))
        versioned = max_version is not None and max_version[0] >= 1
        return export_capsule(shared._handle, versioned, shared.read_only)

    def _stream_number(self, stream: int | None) -> int | None:
        """The stream of ``__dlpack__``, where None is the default stream."""
        if not shares_streams(self._dltensor.device.device_type):
            return None
        if stream is None:
            return DEFAULT_STREAM
        if stream == 0 or stream < -1:
            raise failure(
                "ValueError", f"DLPack has no stream {stream}: 1 is the default one, -1 means not to wait"
            )
        return stream

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._dltensor.device
        return (device.device_type, device.device_id)

    def __repr__(self) -> str:
        if not self.device.exist:
            return f"<tilewright.nd.NDArray shape={self.shape}, dtype={self.dtype}, {self.device}>"
        return f"<tilewright.nd.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"


def empty(
    shape: int | Sequence[Any],
    dtype: str | np.dtype[Any] | type = "float32",
    device: Device | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """An uninitialized array."""
    extents = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    numbers = [int(extent) for extent in extents]
    element = DataType(dtype) if isinstance(dtype, str) else dtype_of_numpy(np.dtype(dtype))
    if mem_scope not in (None, "", "global"):
        raise failure("ValueError", f"the memory scope {mem_scope!r} is not supported for arrays")
    where = device if device is not None else HOST
    if isinstance(where, ForeignDevice):
        return where.new_array(numbers, element)
    handle = c_void_p()
    check(
        LIBRARY.tilewright_tensor_create(
            (c_int64 * max(1, len(numbers)))(*numbers),
            len(numbers),
            dl_data_type(element),
            where.described,
            ctypes.byref(handle),
        )
    )
    return NDArray(handle.value or 0)


def array(arr: Any, device: Device | None = None, mem_scope: str | None = None) -> NDArray:
    """A new array with a copy of the elements of ``arr``: any array or tensor, or what NumPy can make an array of."""
    where = device if device is not None else HOST
    if isinstance(arr, NDArray):
        return arr.copyto(where, mem_scope)
    if hasattr(arr, "__dlpack__") and not isinstance(
        arr, np.ndarray
    ):  # types that NumPy does not have come this way
        return from_dlpack(arr).copyto(where, mem_scope)
    values = np.asarray(arr)
    return empty(values.shape, dtype_of_numpy(values.dtype), where, mem_scope).copyfrom(values)


def _with_elements(values: npt.NDArray[Any], dtype: str, device: Device) -> NDArray:
    """A copy that ``copy`` or ``pickle`` makes; on the host if this process does not have the device."""
    shape = values.shape[:-1] if DataType(dtype).lanes > 1 else values.shape
    return empty(shape, dtype, device if device.exist else HOST).copyfrom(values)


def from_dlpack(dltensor: Any) -> NDArray:
    """An array that shares the memory of a DLPack capsule or of an object with ``__dlpack__``."""
    if hasattr(dltensor, "__dlpack__"):
        dltensor = request_capsule(dltensor)
    elif not is_capsule(dltensor):
        raise failure(
            "ValueError", f"a {type(dltensor).__name__} is neither a fresh DLPack capsule nor has __dlpack__"
        )
    read_only = is_read_only(dltensor)
    return NDArray(consume_capsule(dltensor), read_only)
