"""Synchronisation with a coprocessor.

No target of Tilewright has a coprocessor with its own queues, so a ``coproc_scope`` is an error that says so; a
function without one is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class CoProcSync(PrimFuncPass):
    """Refuses coprocessor scopes."""

    name = "tir.CoProcSync"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if any(
            isinstance(found, AttrStmt) and found.attr_key == "coproc_scope"
            for found in post_order(function.body)
        ):
            raise LoweringError(
                "the function runs code on a coprocessor (coproc_scope), and no supported target has one"
            )
        return function
