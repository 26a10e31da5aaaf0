"""Kernels for a kind of device: an image that its driver loads, and how each kernel is called.

Host code launches a kernel as a packed function: its arguments, the extents of its thread axes, and the bytes of
its dynamic shared memory if it has any. The image is loaded on a device when a kernel is first launched there.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Mapping, Sequence
from ctypes import c_void_p
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tilewright.runtime.device import Device
from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import (
    LIBRARY,
    QUICK,
    DLDataType,
    KernelDescription,
    KernelNeeds,
    Size,
    TensorDescription,
    TensorMapDescription,
)
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.reference import HoldsReference
from tilewright.support.dtype import DataType

STORAGE_KEY = "device_module"


Extent: TypeAlias = int | tuple[int, ...]
"""A number, or what it is when a kernel is launched: a factor, then the positions of up to four integer arguments (in
``Kernel.arguments``) that it is multiplied with. ``(2, 5)`` is twice the argument 5."""

_OVERLAPS = 1
_MOST_DIMENSIONS, _MOST_FACTORS = 5, 4


@dataclass(frozen=True)
class TensorMap:
    """A tensor map (NVIDIA's ``CUtensorMap``) among the parameters of a kernel, from which the copy engine of sm_90 and
    later reads and writes boxes of a tensor.

    No caller passes it: the runtime makes it at each launch from the arguments, and keeps it for the next launch on the
    same addresses and extents. In PTX it is ``.param .align 64 .b8 name[128]``. All lists begin with the innermost
    dimension, which is contiguous.
    """

    position: int
    """Where it is among the kernel's parameters, which are the arguments and the tensor maps together: in a kernel
    ``(A, map, n)`` with the arguments ``A`` and ``n`` it is 1."""
    base: int
    """The position in ``Kernel.arguments`` of the handle that points to the tensor; aligned to 16 bytes."""
    dtype: str
    """The type of an element, such as "float16". Types of eight bits are all alike."""
    dims: tuple[Extent, ...]
    """The extents of one to five dimensions, in elements."""
    strides: tuple[Extent, ...]
    """Bytes from one index to the next, of every dimension but the innermost (so one fewer than ``dims``); multiples
    of 16."""
    box: tuple[int, ...]
    """How many elements one copy moves in each dimension, 256 at most; with a swizzle, the innermost has no more bytes
    than that."""
    element_strides: tuple[int, ...] = ()
    """The element stride of a copy in each dimension, 1 to 8; all 1 when it is empty."""
    offset: int = 0
    """Bytes from the handle's address to the first element."""
    swizzle: int = 0
    """Bytes of the pattern in which a box lies in shared memory: 0 (in order), 32, 64 or 128."""
    interleave: int = 0
    """Bytes of the channel groups of an interleaved layout: 0 (none), 16 or 32."""
    l2_promotion: int = 256
    """The minimum bytes that L2 fetches: 0 (as usual), 64, 128 or 256."""
    fill_nan: bool = False
    """What a copy reads outside the tensor: zeros or, if set, NaN."""

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.dims))
        rank = len(self.dims)
        lengths = (len(self.strides) + 1, len(self.box), len(self.element_strides))
        if not 1 <= rank <= _MOST_DIMENSIONS or lengths != (rank, rank, rank):
            raise failure(
                "ValueError",
                f"a tensor map has 1 to {_MOST_DIMENSIONS} dimensions, and as many strides less one, box extents and "
                f"element strides; not {rank}, {lengths[0] - 1}, {lengths[1]} and {lengths[2]}",
            )

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> TensorMap:
        """The reverse of ``dataclasses.asdict`` after JSON has made lists of tuples."""
        values: dict[str, Any] = {
            name: tuple([tuple(part) if isinstance(part, list) else part for part in value])
            if isinstance(value, list)
            else value
            for name, value in fields.items()
        }
        return TensorMap(**values)


@dataclass(frozen=True)
class Kernel:
    """How a kernel is called: the types of its arguments ("handle" for a pointer), and the thread axes in the order of
    the extents that follow them ("blockIdx.x" to "threadIdx.z", and "clusterCtaIdx.x" to ".z" for the blocks of a
    cluster). ``tensor_maps`` are further parameters, by rising position, which the runtime makes. A kernel that
    ``overlaps`` may begin before the one before it in the stream has ended; it waits with ``griddepcontrol``."""

    name: str
    arguments: tuple[str, ...]
    axes: tuple[str, ...] = ()
    has_shared_bytes: bool = False
    tensor_maps: tuple[TensorMap, ...] = ()
    overlaps: bool = False

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Kernel:
        """The reverse of ``dataclasses.asdict`` after JSON has made lists of tuples."""
        return Kernel(
            str(fields["name"]),
            tuple([str(argument) for argument in fields["arguments"]]),
            tuple([str(axis) for axis in fields["axes"]]),
            bool(fields["has_shared_bytes"]),
            tuple([TensorMap.from_json(one) for one in fields.get("tensor_maps", ())]),
            bool(fields.get("overlaps", False)),
        )


class _Handle(HoldsReference):
    """Owns one reference to a module of the C runtime."""

    def __init__(self, device_type: int, image: bytes, kernels: Sequence[Kernel]) -> None:
        self.address = 0
        made = c_void_p()
        kept: list[object] = []
        described = (KernelDescription * max(1, len(kernels)))(*[_describe(one, kept) for one in kernels])
        check(
            LIBRARY.tilewright_device_module_create(
                device_type, image, len(image), described, len(kernels), ctypes.byref(made)
            )
        )
        self.address = made.value or 0

    def function(self, name: str) -> PackedFunc:
        """A kernel as a function, which keeps what it needs alive."""
        made = c_void_p()
        check(LIBRARY.tilewright_device_module_function(self.address, name.encode(), ctypes.byref(made)))
        return PackedFunc.from_handle(made.value or 0, name)

    def __del__(self) -> None:
        if QUICK is not None and self.address:
            LIBRARY.tilewright_device_module_release(self.address)


def _describe(kernel: Kernel, kept: list[object]) -> KernelDescription:
    """A kernel as a C structure; ``kept`` must stay alive until it has been read."""
    dtypes = [DataType(text) for text in kernel.arguments]
    types = (DLDataType * max(1, len(dtypes)))(
        *[DLDataType(one.type_code, one.bits, one.lanes) for one in dtypes]
    )
    axes = (ctypes.c_char_p * max(1, len(kernel.axes)))(*[axis.encode() for axis in kernel.axes])
    maps = (TensorMapDescription * max(1, len(kernel.tensor_maps)))(
        *[_describe_map(one) for one in kernel.tensor_maps]
    )
    kept += (types, axes, maps)
    return KernelDescription(
        kernel.name.encode(),
        types,
        len(dtypes),
        len(kernel.axes),
        axes,
        int(kernel.has_shared_bytes),
        _OVERLAPS if kernel.overlaps else 0,
        len(kernel.tensor_maps),
        maps,
    )


def _describe_map(given: TensorMap) -> TensorMapDescription:
    """A tensor map as a C structure."""
    dtype = DataType(given.dtype)
    tensor = TensorDescription(
        dtype=DLDataType(dtype.type_code, dtype.bits, dtype.lanes),
        rank=len(given.dims),
        interleave=given.interleave,
        swizzle=given.swizzle,
        promotion=given.l2_promotion,
        fills_nan=int(given.fill_nan),
    )
    tensor.box[: len(given.box)] = given.box
    tensor.element_strides[: len(given.element_strides)] = given.element_strides
    described = TensorMapDescription(given.position, given.base, given.offset, tensor=tensor)
    for sizes, extents in ((described.dims, given.dims), (described.strides, given.strides)):
        for index, extent in enumerate(extents):
            sizes[index] = _describe_extent(extent)
    return described


def _describe_extent(extent: Extent) -> Size:
    factor, *arguments = (extent,) if isinstance(extent, int) else extent
    if len(arguments) > _MOST_FACTORS:
        raise failure("ValueError", f"an extent is a product of up to {_MOST_FACTORS} arguments: {extent}")
    return Size(
        factor, (ctypes.c_int32 * _MOST_FACTORS)(*arguments, *[-1] * (_MOST_FACTORS - len(arguments)))
    )


class DeviceModule(Module):
    """Kernels for a kind of device. ``sources`` are its readable forms by format, the first of which is shown."""

    storage_key = STORAGE_KEY

    def __init__(
        self,
        device_type: int,
        image: bytes,
        kernels: Sequence[Kernel],
        *,
        type_key: str = "",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """``type_key`` is the kind of target that the kernels were compiled for, by default the kind of device."""
        super().__init__(type_key or Device(device_type).kind, [kernel.name for kernel in kernels])
        if not image:
            raise failure("ValueError", "a module of kernels needs an image")
        self.device_type = device_type
        self.image = bytes(image)
        self.kernels = tuple(kernels)
        self.sources = dict(sources or {})
        self._handle = _Handle(device_type, self.image, self.kernels)

    @property
    def format(self) -> str:
        return next(iter(self.sources), "")

    def _find(self, name: str) -> PackedFunc | None:
        if name not in self._function_names:
            return None
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._handle.function(name)
        return found

    def needs(self, name: str, threads: int, shared_bytes: int = 0) -> dict[str, int]:
        """What a kernel needs on the current device: ``registers`` and spilled ``local_bytes`` of a thread, the
        ``shared_bytes`` of a block besides those of the launch, the most threads of a block, and how many blocks of
        ``threads`` threads and ``shared_bytes`` run on a multiprocessor at a time."""
        found = KernelNeeds()
        check(
            LIBRARY.tilewright_device_module_needs(
                self._handle.address, name.encode(), threads, shared_bytes, ctypes.byref(found)
            )
        )
        return {field: int(getattr(found, field)) for field, _ in found._fields_}

    def get_source(self, fmt: str = "") -> str:
        found = self.sources.get(fmt or self.format)
        if found is None:
            has = f"; it has {', '.join(self.sources)}" if self.sources else ""
            raise failure(
                "ValueError", f"the {self._type_key} module has no source in the format {fmt!r}{has}"
            )
        return found

    def save_to_bytes(self) -> bytes:
        """The image and the descriptions of the kernels."""
        head = json.dumps(
            {
                "device_type": self.device_type,
                "kind": self.type_key,
                "kernels": [asdict(kernel) for kernel in self.kernels],
                "sources": self.sources,
            }
        ).encode()
        return struct.pack("<Q", len(head)) + head + self.image

    @staticmethod
    def load_from_bytes(type_key: str, content: bytes) -> DeviceModule:
        """The reverse."""
        try:
            (size,) = struct.unpack_from("<Q", content)
            head = json.loads(content[8 : 8 + size])
            kernels = [Kernel.from_json(one) for one in head["kernels"]]
            sources = {str(name): str(text) for name, text in head["sources"].items()}
            return DeviceModule(
                int(head["device_type"]),
                content[8 + size :],
                kernels,
                type_key=str(head["kind"]),
                sources=sources,
            )
        except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise failure(
                "ValueError", f"the module of kernels in the library is damaged: {error}"
            ) from error


register_module_loader(STORAGE_KEY, DeviceModule.load_from_bytes)
