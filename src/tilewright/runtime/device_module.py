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

from tilewright.runtime.device import Device
from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY, QUICK, DLDataType, KernelDescription
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.packed_func import PackedFunc
from tilewright.support.dtype import DataType

STORAGE_KEY = "device_module"


@dataclass(frozen=True)
class Kernel:
    """How a kernel is called: the types of its arguments ("handle" for a pointer), and the thread axes in the order of
    the extents that follow them ("blockIdx.x" to "threadIdx.z")."""

    name: str
    arguments: tuple[str, ...]
    axes: tuple[str, ...] = ()
    has_shared_bytes: bool = False


class _Handle:
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
    """A kernel as C has it; ``kept`` is what must stay alive until it was read."""
    dtypes = [DataType(text) for text in kernel.arguments]
    types = (DLDataType * max(1, len(dtypes)))(
        *[DLDataType(one.type_code, one.bits, one.lanes) for one in dtypes]
    )
    axes = (ctypes.c_char_p * max(1, len(kernel.axes)))(*[axis.encode() for axis in kernel.axes])
    kept += (types, axes)
    return KernelDescription(
        kernel.name.encode(), types, len(dtypes), len(kernel.axes), axes, int(kernel.has_shared_bytes)
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

    def get_source(self, fmt: str = "") -> str:
        found = self.sources.get(fmt or self.format)
        if found is None:
            has = f"; it has {', '.join(self.sources)}" if self.sources else ""
            raise failure(
                "ValueError", f"the {self._type_key} module has no source in the format {fmt!r}{has}"
            )
        return found

    def save_to_bytes(self) -> bytes:
        """What the module was made of."""
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
            kernels = [
                Kernel(
                    str(one["name"]),
                    tuple([str(argument) for argument in one["arguments"]]),
                    tuple([str(axis) for axis in one["axes"]]),
                    bool(one["has_shared_bytes"]),
                )
                for one in head["kernels"]
            ]
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
