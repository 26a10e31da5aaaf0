"""Loops as code: C source that is compiled with the machine's compiler, or machine code by LLVM."""

from __future__ import annotations

from tilewright.codegen.c.brought_source import brought_sources
from tilewright.codegen.c.source_module import CSourceModule
from tilewright.compile import build
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.support.errors import CodegenError


def compiled(module: IRModule, form: str, head: str = "") -> Module:
    """The module's code as ``c``, with a text before it and the C that its functions bring, or as ``llvm``."""
    if form == "llvm":
        if brought_sources(module.functions.values()):
            raise CodegenError("functions that bring C source are compiled as c, not llvm")
        return build(module, target="llvm")
    made = build(module, target="c")
    text = "\n".join([*([head] if head else []), made.get_source("c")])
    return CSourceModule(text, made.function_names)
