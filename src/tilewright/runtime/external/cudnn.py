"""cuDNN, loaded where it can be: softmax of arrays on an NVIDIA GPU as packed functions."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_float, c_int, c_void_p
from functools import cache

from tilewright.runtime.external.cublas import load_nvidia_library
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func

_NAMES = tuple(f"libcudnn.so.{version}" for version in (9, 8))
_TYPES = {"float32": 0, "float64": 1, "float16": 2}
_ACCURATE, _LOGARITHM, _OVER_CHANNELS, _NCHW = 1, 2, 1, 0


def check(status: int, doing: str) -> None:
    """An error unless cuDNN reported success."""
    if status:
        raise failure("RuntimeError", f"cuDNN failed with status {status} while {doing}")


@cache
def loaded() -> tuple[ctypes.CDLL, c_void_p]:
    """The library, and a handle."""
    made = load_nvidia_library(_NAMES, "cuDNN", "nvidia-cudnn-cu13")
    handle = c_void_p()
    check(made.cudnnCreate(ctypes.byref(handle)), "starting: is there an NVIDIA GPU?")
    return made, handle


def version() -> int:
    """The version as a number such as 91002."""
    library, _ = loaded()
    library.cudnnGetVersion.restype = ctypes.c_size_t
    return int(library.cudnnGetVersion())


def _softmax(source: NDArray, result: NDArray, axis: int, algorithm: int) -> None:
    dtype = str(source.dtype)
    if dtype not in _TYPES or source.device.device_type != 2:
        raise failure("TypeError", f"cuDNN has no softmax of {dtype} on {source.device}")
    axis %= len(source.shape)
    outer, inner = 1, 1
    for extent in source.shape[:axis]:
        outer *= extent
    for extent in source.shape[axis + 1 :]:
        inner *= extent
    library, handle = loaded()
    layout = c_void_p()
    check(library.cudnnCreateTensorDescriptor(ctypes.byref(layout)), "describing a tensor")
    try:
        sizes = (c_int(outer), c_int(source.shape[axis]), c_int(inner), c_int(1))
        check(
            library.cudnnSetTensor4dDescriptor(layout, c_int(_NCHW), c_int(_TYPES[dtype]), *sizes),
            "describing a tensor",
        )
        scalar = c_double if dtype == "float64" else c_float
        check(
            library.cudnnSoftmaxForward(
                *(handle, c_int(algorithm), c_int(_OVER_CHANNELS), ctypes.byref(scalar(1)), layout),
                *(c_void_p(source.memory_range().start), ctypes.byref(scalar(0)), layout),
                c_void_p(result.memory_range().start),
            ),
            "computing softmax",
        )
    finally:
        library.cudnnDestroyTensorDescriptor(layout)


@register_func("tvm.contrib.cudnn.softmax.forward")
def softmax(source: NDArray, result: NDArray, axis: int = -1) -> None:
    """Softmax along an axis."""
    _softmax(source, result, axis, _ACCURATE)


@register_func("tvm.contrib.cudnn.log_softmax.forward")
def log_softmax(source: NDArray, result: NDArray, axis: int = -1) -> None:
    """The logarithm of softmax along an axis."""
    _softmax(source, result, axis, _LOGARITHM)
