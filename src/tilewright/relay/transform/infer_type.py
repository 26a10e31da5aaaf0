"""InferType: infers the type of every expression."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.infer import infer_module


@dataclass
class InferType(Pass):
    """Sets ``checked_type`` everywhere, and fills in the annotations that a program left out."""

    name = "InferType"
    opt_level = 0

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Infer all functions."""
        return infer_module(mod)
