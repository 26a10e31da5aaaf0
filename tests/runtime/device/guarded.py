"""The guarded device for tests: its library built and loaded, its devices, what it counts, and code for it."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_int32, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tilewright.runtime import Device, NDArray, ext_dev
from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY
from tilewright.support.cbuild import SOURCES, find_compiler, runtime_library, write_beside
from tilewright.support.options import cache_dir

SOURCE = Path(__file__).with_name("guarded_device.c")


@cache
def library_path() -> Path:
    """The shared library that registers the device, built when its source or the runtime has changed."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("the guarded device needs Linux and a C compiler")
    runtime = runtime_library()
    key = hashlib.sha256(SOURCE.read_bytes() + str(runtime).encode()).hexdigest()[:20]
    output = cache_dir() / "guarded" / key / "libguarded.so"
    if not output.exists():
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I", SOURCES]
        write_beside(
            output,
            lambda path: find_compiler().run([*flags, SOURCE, runtime, "-o", path, "-pthread", "-ldl"]),
        )
    return output


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(library_path()))
    library.guarded_count.restype = c_int64
    library.guarded_count.argtypes = (c_int32, c_int32)
    library.guarded_set_memory.restype = None
    library.guarded_set_memory.argtypes = (c_int32, c_uint64)
    return library


def guarded(index: int = 0) -> Device:
    """One of the two guarded devices; the first call registers them."""
    _library()
    device = ext_dev(index)
    assert device.exist
    return device


@dataclass(frozen=True)
class Counts:
    """What a device has in use, and what it has done so far."""

    allocations: int
    num_bytes: int
    streams: int
    events: int
    modules: int
    copies: int
    launches: int
    waits: int

    @property
    def in_use(self) -> tuple[int, int, int, int, int]:
        """What has to be given back."""
        return (self.allocations, self.num_bytes, self.streams, self.events, self.modules)


def counts(device: Device) -> Counts:
    """The counts of a guarded device now."""
    return Counts(*[_library().guarded_count(device.device_id, what) for what in range(8)])


@contextmanager
def balanced() -> Iterator[Device]:
    """The first guarded device; whatever is taken of it and of the second within the block must be given back."""
    first, second = guarded(0), guarded(1)
    gc.collect()
    before = [counts(first).in_use, counts(second).in_use]
    yield first
    gc.collect()
    assert [counts(first).in_use, counts(second).in_use] == before


def set_memory(device: Device, num_bytes: int) -> None:
    """Limits the memory that may be in use; 0 for all there is."""
    _library().guarded_set_memory(device.device_id, num_bytes)


def build_image(source: str) -> bytes:
    """Kernels in C, of the form that ``guarded_device.c`` describes, as an image for ``module_load``."""
    with tempfile.TemporaryDirectory() as folder:
        text, image = Path(folder) / "kernels.c", Path(folder) / "kernels.so"
        text.write_text(f"#include <stdint.h>\n{source}")
        find_compiler().run(["-std=c11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared", text, "-o", image])
        return image.read_bytes()


class Code:
    """An image loaded on a device."""

    def __init__(self, image: bytes, device: Device) -> None:
        self.device = device
        self._module = c_void_p()
        check(LIBRARY.tilewright_module_load(device.described, image, len(image), ctypes.byref(self._module)))

    def close(self) -> None:
        """Unloads it."""
        check(LIBRARY.tilewright_module_unload(self.device.described, self._module))

    def launch(
        self,
        name: str,
        *args: NDArray | int,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (1, 1, 1),
        shared_bytes: int = 0,
        stream: c_void_p | None = None,
    ) -> None:
        """Launches a kernel: arrays are passed as addresses of the device's memory, numbers as int64."""
        function = c_void_p()
        check(
            LIBRARY.tilewright_module_function(
                self.device.described, self._module, name.encode(), ctypes.byref(function)
            )
        )
        values = [c_int64(arg if isinstance(arg, int) else arg.memory_range().start) for arg in args]
        pointers = (c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        check(
            LIBRARY.tilewright_launch(
                self.device.described,
                function,
                pointers,
                len(values),
                (c_int32 * 3)(*grid),
                (c_int32 * 3)(*block),
                shared_bytes,
                stream,
            )
        )
