"""Devices and arrays of a session, as this process sees them.

They stand wherever their local kind may stand: ``nd.array(x, session.cpu())`` makes an array there, a function of the
session takes it, and ``numpy`` brings it back. The server keeps an array as long as this process has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.rpc import values
from tilewright.rpc.frames import Kind
from tilewright.rpc.owner import Owner
from tilewright.rpc.values import DEVICE_LAYOUT, U64
from tilewright.runtime.device import RPC_OFFSET, Device, ForeignDevice
from tilewright.runtime.device_table import Attribute
from tilewright.runtime.failure import failure
from tilewright.runtime.library import DLTensor
from tilewright.runtime.ndarray import NDArray, empty, numpy_dtype
from tilewright.support.dtype import DataType


class RemoteDevice(ForeignDevice):
    """A device of a session. Its type is that of the device there and the number of the session, as in TVM."""

    __slots__ = ("peer", "remote_type")

    def __init__(self, peer: Owner, device_type: int, device_id: int = 0) -> None:
        super().__init__(device_type + RPC_OFFSET * (peer.index + 1), device_id)
        self.peer = peer
        self.remote_type = device_type

    def _place(self) -> bytes:
        return DEVICE_LAYOUT.pack(self.remote_type, self.device_id)

    @property
    def kind(self) -> str:
        """The name of the kind of device."""
        return Device(self.remote_type, 0).kind

    @property
    def exist(self) -> bool:
        """True if the server has the device."""
        return self._known(Attribute.EXISTS) == 1

    @property
    def has_driver(self) -> bool:
        """True if the server can use the device."""
        return self.exist

    @property
    def host_readable(self) -> bool:
        """False: it is in another process."""
        return False

    def _known(self, attribute: Attribute) -> int | str | None:
        found = self.peer.ask(Kind.DEVICE_ATTRIBUTE, self._place() + values.I32.pack(attribute))
        return found if isinstance(found, (int, str)) else None

    def sync(self, stream: Any = None) -> None:
        """Waits until the device has finished all its work."""
        if stream is not None:
            raise failure("ValueError", f"streams of {self} cannot be named from another machine")
        self.peer.request(Kind.DEVICE_SYNC, self._place())

    def new_array(self, shape: Sequence[int], dtype: DataType) -> NDArray:
        """An uninitialized array there."""
        form = values.array_description(tuple(shape), dtype, self.remote_type, self.device_id)
        made: NDArray = self.peer.ask(Kind.ARRAY_NEW, form)
        return made


class RemoteArray(NDArray):
    """An array on a remote device. Reading and writing its elements copies them over the connection."""

    __slots__ = ("_device", "peer", "remote_handle")
    is_foreign = True

    def __init__(
        self, peer: Owner, handle: int, shape: tuple[int, ...], dtype: DataType, device: RemoteDevice
    ) -> None:
        self.peer = peer
        self.remote_handle = handle
        self._shape = tuple(shape)
        self._type = dtype
        self._device = device
        self.borrowed = False

    def __del__(self) -> None:
        peer = getattr(self, "peer", None)
        if peer is not None:
            peer.free(self.remote_handle)

    def _not_here(self) -> Exception:
        return failure(
            "TypeError",
            f"the array is on {self._device}: pass it to functions of its session, or copy it here with numpy()",
        )

    @property
    def _tag(self) -> int:  # type: ignore[override]
        raise self._not_here()

    @property
    def _handle(self) -> int:  # type: ignore[override]
        raise self._not_here()

    @property
    def _dltensor(self) -> DLTensor:
        raise self._not_here()

    @property
    def handle(self) -> int:
        raise self._not_here()

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of a compact array."""
        steps = [1]
        for extent in reversed(self.shape[1:]):
            steps.append(steps[-1] * extent)
        return tuple(reversed(steps))[-self.ndim :] if self.ndim else ()

    @property
    def device(self) -> Device:
        """The device of the session."""
        return self._device

    @property
    def read_only(self) -> bool:
        """False as far as this side knows; the server refuses to write what must not be written."""
        return False

    def _require_writeable(self) -> None:
        pass

    def same_as(self, other: object) -> bool:
        """True if both are the same handle."""
        return (
            isinstance(other, RemoteArray)
            and self.peer is other.peer
            and self.remote_handle == other.remote_handle
        )

    def _empty(self) -> npt.NDArray[Any]:
        dtype = self.dtype
        return np.empty(self.shape + ((dtype.lanes,) if dtype.lanes > 1 else ()), numpy_dtype(dtype))

    def numpy(self) -> npt.NDArray[Any]:
        """A NumPy array with a copy of the elements."""
        made = self._empty()
        place = U64.pack(self.remote_handle) + U64.pack(0) + U64.pack(made.nbytes)
        into = made.reshape(-1).view(np.uint8).data if made.size else memoryview(bytearray())
        self.peer.request(Kind.ARRAY_READ, place, into=into)
        return made

    def _memory(self) -> npt.NDArray[Any] | None:
        return None

    def aligned(self) -> NDArray:
        """The array itself: the server's kernels use it where it is."""
        return self

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copies elements in, from any array."""
        if isinstance(source_array, RemoteArray) and source_array.peer is self.peer:
            handles = U64.pack(source_array.remote_handle) + U64.pack(self.remote_handle)
            self.peer.request(Kind.ARRAY_COPY, handles)
            return self
        wanted = self._empty()
        source = source_array.numpy() if isinstance(source_array, NDArray) else np.asarray(source_array)
        if source.shape != wanted.shape:
            raise failure(
                "ValueError",
                f"cannot copy an array of shape {source.shape} into one of shape {wanted.shape}",
            )
        content = np.ascontiguousarray(source, wanted.dtype).reshape(-1).view(np.uint8)
        place = U64.pack(self.remote_handle) + U64.pack(0)
        self.peer.request(Kind.ARRAY_WRITE, place, [content.data] if content.size else [])
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copies elements out, into an array or to a new one on a device."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target, mem_scope)
        elif not isinstance(target, NDArray):
            raise failure("TypeError", f"copyto needs an NDArray or a Device, not {type(target).__name__}")
        source = self if isinstance(target, RemoteArray) and target.peer is self.peer else self.numpy()
        return target.copyfrom(source)

    def __setitem__(self, index: object, value: Any) -> None:
        self._require_whole(index)
        self.copyfrom(np.full_like(self._empty(), value) if np.isscalar(value) else value)

    def to_dlpack(self) -> object:
        """An error: the memory is elsewhere."""
        raise self._not_here()

    def __dlpack__(self, **options: Any) -> object:
        raise BufferError(str(self._not_here()))

    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError(str(self._not_here()))

    def __repr__(self) -> str:
        return f"<tilewright.nd.NDArray shape={self.shape}, dtype={self.dtype}, {self.device}>"
