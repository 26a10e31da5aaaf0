"""Buffers in texture memory.

No target of Tilewright has texture memory, so a buffer in the scope ``global.texture`` is an error that says so; a
function without one is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import BufferRealize
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class TextureFlatten(PrimFuncPass):
    """Refuses buffers in texture memory."""

    name = "tir.TextureFlatten"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        realized = [found.buffer for found in post_order(function.body) if isinstance(found, BufferRealize)]
        for buffer in (*realized, *function.buffer_map.values()):
            if "texture" in buffer.scope():
                raise LoweringError(
                    f"buffer {buffer.name} is in {buffer.scope()}, and texture memory is not supported: "
                    "use global or shared"
                )
        return function
