"""Code generators: from loop programs to machine code or source, chosen by the kind of the target."""

from tilewright.codegen import c, cuda, llvm, metal, nvptx, opencl, webgpu
from tilewright.codegen.generator import (
    Code,
    CodeGenerator,
    generator_for,
    known_kinds,
    makes_host_code,
    register,
    what_is_made,
)
from tilewright.codegen.program import LoopProgram
from tilewright.codegen.source import SourceCode, SourceGenerator
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.target.target import Target, TargetLike


def build(mod: IRModule, target: TargetLike) -> Module:
    """The runtime module of functions that are in flat form already, after the passes of ``tir.build_pipeline``."""
    made = Target(target)
    generator = generator_for(made)
    return generator.link([generator.compile(LoopProgram(mod), made)], made)
