"""oneDNN's C library, as the wheel ``onednn`` brings it, loaded when it is first needed."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cache
from pathlib import Path

from tilewright.runtime.external.shared_library import find_library, load_library
from tilewright.runtime.failure import failure

_NAMES = ("libdnnl.so.3", "libdnnl.3.dylib", "dnnl.dll")

INFERENCE = 0x60
PLAIN_TAGS = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7}
"""The format tag of a tensor in row-major order, by its number of dimensions."""
ANY_TAG = 1
FLOAT32 = 3
SOURCE, SECOND_SOURCE, WEIGHTS, BIAS, RESULT, SCALE, SHIFT = 1, 2, 33, 41, 17, 51, 52
POST_OPERATION = 0x8000
"""The argument of the post-operation ``n`` is ``(n + 1)`` times this, and that of its second source has both."""
QUERY_SOURCE, QUERY_WEIGHTS, QUERY_RESULT, QUERY_ARGUMENT = 129, 131, 133, 255

_STATUS = (
    "success",
    "out of memory",
    "invalid arguments",
    "not implemented",
    "last implementation reached",
    "runtime error",
    "not required",
    "invalid graph",
)

_HANDLE = POINTER(c_void_p)
_DIMS = POINTER(c_int64)

_SIGNATURES: dict[str, list[object]] = {
    "engine_create": [_HANDLE, c_int, c_size_t],
    "stream_create": [_HANDLE, c_void_p, c_uint],
    "stream_wait": [c_void_p],
    "memory_desc_create_with_tag": [_HANDLE, c_int, _DIMS, c_int, c_int],
    "memory_desc_create_with_strides": [_HANDLE, c_int, _DIMS, c_int, _DIMS],
    "memory_desc_clone": [_HANDLE, c_void_p],
    "memory_desc_reshape": [_HANDLE, c_void_p, c_int, _DIMS],
    "memory_create": [_HANDLE, c_void_p, c_void_p, c_void_p],
    "memory_set_data_handle": [c_void_p, c_void_p],
    "primitive_create": [_HANDLE, c_void_p],
    "primitive_execute": [c_void_p, c_void_p, c_int, c_void_p],
    "primitive_attr_create": [_HANDLE],
    "primitive_attr_set_post_ops": [c_void_p, c_void_p],
    "post_ops_create": [_HANDLE],
    "post_ops_append_eltwise": [c_void_p, c_int, c_float, c_float],
    "post_ops_append_binary": [c_void_p, c_int, c_void_p],
    "reorder_primitive_desc_create": [_HANDLE, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "convolution_forward_primitive_desc_create": [
        *(_HANDLE, c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p),
        *(_DIMS, _DIMS, _DIMS, _DIMS, c_void_p),
    ],
    "matmul_primitive_desc_create": [_HANDLE, *[c_void_p] * 6],
    "pooling_forward_primitive_desc_create": [
        *(_HANDLE, c_void_p, c_int, c_int, c_void_p, c_void_p, *[_DIMS] * 5, c_void_p),
    ],
    "softmax_forward_primitive_desc_create": [
        *(_HANDLE, c_void_p, c_int, c_int, c_void_p, c_void_p, c_int, c_void_p),
    ],
    "eltwise_forward_primitive_desc_create": [
        *(_HANDLE, c_void_p, c_int, c_int, c_void_p, c_void_p, c_float, c_float, c_void_p),
    ],
    "binary_primitive_desc_create": [_HANDLE, c_void_p, c_int, *[c_void_p] * 4],
    "layer_normalization_forward_primitive_desc_create": [
        *(_HANDLE, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_float, c_uint, c_void_p),
    ],
}

_DESTROYED = ("memory_desc", "memory", "primitive", "primitive_desc", "primitive_attr", "post_ops")


class _Version(ctypes.Structure):
    _fields_ = [
        *(("major", c_int), ("minor", c_int), ("patch", c_int)),
        *(("hash", ctypes.c_char_p), ("cpu_runtime", c_uint), ("gpu_runtime", c_uint)),
    ]


class OneDNN:
    """The library with one engine, that of the CPU. Its functions are called by their names without ``dnnl_``."""

    def __init__(self, path: Path) -> None:
        # This build runs on the CPU through OpenCL, whose driver it would look for in the system's folders only.
        driver = find_library(["libintelocl.so"], [path.parent])
        if driver is not None:
            os.environ.setdefault("OCL_ICD_FILENAMES", str(driver))
        self._library = load_library(path)
        self._library.dnnl_version.restype = POINTER(_Version)
        found = self._library.dnnl_version().contents
        self.version = (found.major, found.minor, found.patch)
        if found.major != 3:
            raise failure("OSError", f"{path} is oneDNN {found.major}.{found.minor}, and version 3 is needed")
        for name, arguments in _SIGNATURES.items():
            getattr(self._library, f"dnnl_{name}").argtypes = arguments
        for name in _DESTROYED:
            getattr(self._library, f"dnnl_{name}_destroy").argtypes = [c_void_p]
        self._library.dnnl_memory_desc_equal.argtypes = [c_void_p, c_void_p]
        self._library.dnnl_memory_desc_get_size.argtypes = [c_void_p]
        self._library.dnnl_memory_desc_get_size.restype = c_size_t
        self._library.dnnl_primitive_desc_query_md.argtypes = [c_void_p, c_int, c_int]
        self._library.dnnl_primitive_desc_query_md.restype = c_void_p
        if not self._library.dnnl_engine_get_count(1):
            raise failure(
                "RuntimeError",
                f"oneDNN at {path} finds no CPU device: this build needs Intel's OpenCL driver for the CPU "
                "(the wheel intel-opencl-rt), or OCL_ICD_FILENAMES is set to another driver",
            )
        self.engine = self.make("engine_create", 1, 0)
        self.execute = self._library.dnnl_primitive_execute

    def call(self, name: str, *arguments: object) -> None:
        """Call a function; a status other than success is an error."""
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status:
            said = _STATUS[status] if 0 < status < len(_STATUS) else f"status {status}"
            raise failure("RuntimeError", f"oneDNN's {name} failed: {said}")

    def make(self, name: str, *arguments: object) -> c_void_p:
        """The handle that a function gives through its first argument."""
        made = c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def destroy(self, kind: str, handle: c_void_p) -> None:
        """Free an object of a kind such as ``memory``."""
        getattr(self._library, f"dnnl_{kind}_destroy")(handle)

    def same_layout(self, first: c_void_p, second: c_void_p) -> bool:
        """True if two descriptions of memory are equal."""
        return bool(self._library.dnnl_memory_desc_equal(first, second))

    def byte_size(self, layout: c_void_p) -> int:
        """The bytes that a described memory has."""
        return int(self._library.dnnl_memory_desc_get_size(layout))

    def query(self, primitive: c_void_p, what: int, index: int = 0) -> c_void_p:
        """A description of memory that a primitive chose, as an own copy."""
        borrowed = self._library.dnnl_primitive_desc_query_md(primitive, what, index)
        return self.make("memory_desc_clone", c_void_p(borrowed))


@cache
def library() -> OneDNN:
    """The library; an error that says what to install where there is none."""
    path = find_library(_NAMES)
    if path is None:
        raise failure(
            "OSError",
            f"oneDNN's library ({_NAMES[0]}) was not found: pip install 'tilewright[onednn]' installs it",
        )
    return OneDNN(path)


def is_available() -> bool:
    """True if the wheel is installed."""
    return find_library(_NAMES) is not None
