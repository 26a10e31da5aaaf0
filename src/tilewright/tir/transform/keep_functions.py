"""Keeps the functions of one side of a module: the host's, or the device's kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


def is_device_function(function: PrimFunc) -> bool:
    """True for a kernel."""
    return bool(function.attrs.get("calling_conv", CallingConv.DEFAULT) == CallingConv.DEVICE_KERNEL_LAUNCH)


@dataclass(frozen=True)
class KeepFunctions(PrimFuncPass):
    """Keeps the functions of ``side``, "host" or "device", after SplitHostDevice has separated them."""

    side: str

    name = "tir.KeepFunctions"

    def __post_init__(self) -> None:
        if self.side not in ("host", "device"):
            raise LoweringError(f"KeepFunctions keeps the side 'host' or 'device', not {self.side!r}")

    def transform_function(
        self, function: PrimFunc, module: IRModule, context: PassContext
    ) -> PrimFunc | None:
        return function if is_device_function(function) == (self.side == "device") else None
