"""AnnotateSpans: sets every expression's span to its position in the program's text form, for messages about programs
that were not parsed from text."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.parser import parse_module


@dataclass
class AnnotateSpans(Pass):
    """Print the module and read it again."""

    name = "AnnotateSpans"
    opt_level = 0

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The same program with spans into its text."""
        read = parse_module(mod.astext(), "GeneratedSource")
        return IRModule(read.functions, read.type_definitions, mod.attrs)
