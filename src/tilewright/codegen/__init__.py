"""Code generators: from loop programs to machine code or source.

A generator is registered under the target kind that it generates code for. ``build`` takes a module of functions in
flat form and returns a runtime module.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.c import build_c
from tilewright.codegen.cuda import build_cuda
from tilewright.codegen.llvm import build_llvm
from tilewright.codegen.metal import build_metal
from tilewright.codegen.opencl import build_opencl
from tilewright.codegen.webgpu import build_webgpu
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.support.errors import TargetError
from tilewright.target.target import Target, TargetLike

Generator = Callable[[IRModule, Target], Module]

_GENERATORS: dict[str, Generator] = {}


def register(kind: str, generator: Generator) -> None:
    """Make code for targets of this kind with ``generator``."""
    _GENERATORS[kind] = generator


def build(mod: IRModule, target: TargetLike) -> Module:
    """The runtime module with code for ``target``."""
    made = Target(target)
    generator = _GENERATORS.get(made.kind.name)
    if generator is None:
        raise TargetError(
            f"no code generator makes code for targets of kind {made.kind.name!r}; known are {', '.join(_GENERATORS)}"
        )
    return generator(mod, made)


register("llvm", build_llvm)
register("c", build_c)
register("cuda", build_cuda)
register("opencl", build_opencl)
register("metal", build_metal)
register("webgpu", build_webgpu)
