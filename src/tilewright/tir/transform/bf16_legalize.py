"""Lowers bfloat16 for targets that only store it: promote to float32, remove redundant roundings, store as bits."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import DataType
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.bf16_cast_elimination import bf16_cast_elimination
from tilewright.tir.transform.bf16_promote import bf16_promote
from tilewright.tir.transform.bf16_type_lowering import bf16_type_lowering
from tilewright.tir.transform.function_pass import PrimFuncPass


def _uses_bfloat16(function: PrimFunc) -> bool:
    kinds = (getattr(found, "dtype", None) for found in post_order(function.body))
    return any(isinstance(kind, DataType) and kind.is_bfloat16 for kind in kinds)


@dataclass(frozen=True)
class BF16Legalize(PrimFuncPass):
    """Computes in float32 and stores bits, for functions that use bfloat16."""

    name = "tir.BF16Legalize"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not _uses_bfloat16(function):
            return function
        return function.with_body(bf16_type_lowering(bf16_cast_elimination(bf16_promote(function.body))))
