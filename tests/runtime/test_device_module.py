"""Modules of kernels: what they say of themselves, and how they travel. Launching is tested with the guarded device."""

from __future__ import annotations

import gc

import pytest

from tilewright.runtime.device import Device
from tilewright.runtime.device_module import DeviceModule, Kernel

KERNELS = [
    Kernel("first", ("handle", "float32"), ("blockIdx.x", "threadIdx.x")),
    Kernel("second", (), ("threadIdx.y",), has_shared_bytes=True),
]


def made() -> DeviceModule:
    """A module for CUDA, whose image nobody loads."""
    return DeviceModule(2, b"\0image", KERNELS, sources={"ptx": ".version 8.0", "cu": "__global__"})


def test_what_it_says_of_itself() -> None:
    """Its kind is that of the device unless another is given; sources have formats, the first of which is shown."""
    module = made()
    assert (module.type_key, module.storage_key, module.format) == ("cuda", "device_module", "ptx")
    assert module.function_names == ("first", "second")
    assert module.get_source() == ".version 8.0" and module.get_source("cu") == "__global__"
    with pytest.raises(ValueError, match="the cuda module has no source in the format 'll'; it has ptx, cu"):
        module.get_source("ll")
    assert DeviceModule(2, b"x", KERNELS, type_key="nvptx").type_key == "nvptx"
    with pytest.raises(AttributeError, match="has no function 'third'; it has first, second"):
        module.get_function("third")


def test_launching_needs_a_driver() -> None:
    """Arguments are checked first, and a function outlives its module."""
    function = made()["second"]
    gc.collect()
    with pytest.raises(
        TypeError, match="takes 0 arguments, then 1 extents of thread axes and the bytes of its shared"
    ):
        function(1)
    if not Device(2).exist:
        with pytest.raises(RuntimeError, match=r"cuda\(0\) cannot be used: "):
            function(1, 64)


def test_wrong_descriptions() -> None:
    """What no kernel can be given, or launched with, is an error when the module is made."""
    with pytest.raises(ValueError, match="argument 0 of k is float16, which kernels cannot be given"):
        DeviceModule(2, b"x", [Kernel("k", ("float16",))])
    with pytest.raises(ValueError, match="k has a thread axis vthread"):
        DeviceModule(2, b"x", [Kernel("k", (), ("vthread",))])
    with pytest.raises(ValueError, match="there are two kernels called k"):
        DeviceModule(2, b"x", [Kernel("k", ()), Kernel("k", ())])
    with pytest.raises(ValueError, match="a module of kernels needs an image"):
        DeviceModule(2, b"", [])


def test_bytes() -> None:
    """A module is the same again; bytes that are none are an error, not a crash."""
    whole = made().save_to_bytes()
    again = DeviceModule.load_from_bytes("device_module", whole)
    assert again.kernels == tuple(KERNELS) and again.image == b"\0image" and again.save_to_bytes() == whole
    damaged = [whole[:size] for size in range(len(whole) - 6)]
    damaged += [whole.replace(b"float32", b"float99"), whole.replace(b"threadIdx.y", b"threadIdx.q")]
    for content in damaged:
        with pytest.raises(ValueError, match="the module of kernels in the library is damaged"):
            DeviceModule.load_from_bytes("device_module", content)
