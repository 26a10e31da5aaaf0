"""Rejects programs that read outside of a buffer at an index that the program itself determines.

Runs where lowering ends and loops, guards and masks are the final ones, if ``TILEWRIGHT_CHECK=1`` asks for
verification.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.options import CHECK
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.verify.reads import verify_affine_reads


@dataclass(frozen=True)
class VerifyReads(PrimFuncPass):
    """Raise an error with an example where a read is outside of its buffer; programs without one stay as they are."""

    name = "tir.VerifyReads"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if CHECK:
            verify_affine_reads(function)
        return function
