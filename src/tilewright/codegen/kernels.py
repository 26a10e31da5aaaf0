"""How the kernels of a module are called, for whoever launches them."""

from __future__ import annotations

from tilewright.ir.module import IRModule
from tilewright.runtime.device_module import Kernel
from tilewright.support.errors import CodegenError
from tilewright.tir.function import PrimFunc


def describe_kernels(module: IRModule) -> tuple[Kernel, ...]:
    """The kernels of a module as ``SplitHostDevice`` made them, in the order of the module."""
    return tuple([describe_kernel(variable.name_hint, one) for variable, one in module.functions.items()])


def describe_kernel(name: str, function: object) -> Kernel:
    """One kernel: pointers are "handle", whatever they point to."""
    if not isinstance(function, PrimFunc) or "tir.device_thread_axis" not in function.attrs:
        raise CodegenError(f"{name} is not a kernel; run SplitHostDevice before code for a device is made")
    return Kernel(
        str(function.attrs.get("global_symbol", name)),
        tuple(["handle" if one.dtype.is_handle else str(one.dtype) for one in function.params]),
        tuple([axis.thread_tag for axis in function.attrs["tir.device_thread_axis"]]),
        bool(function.attrs.get("tir.device_use_dyn_shared_memory", False)),
    )
