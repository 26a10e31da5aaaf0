"""Target hooks: a target kind that says how functions for it become loops, and loops a runtime module.

``relay_to_tir(module)`` gets the module with the external function, and replaces it by a ``PrimFunc`` of the same name;
it is a pass, or any function from module to module. ``tir_to_runtime(module, target)`` compiles such loops. A kind
with the first hook only has its loops compiled for the host.
"""

from __future__ import annotations

from tilewright.compile import compile_unit, link, lower_module
from tilewright.ir.module import IRModule
from tilewright.relay.function import Function
from tilewright.runtime.module import Module
from tilewright.support.errors import TilewrightError
from tilewright.target import Target
from tilewright.target.kind import KINDS
from tilewright.tir.function import PrimFunc


def has_hooks(compiler: str) -> bool:
    """True if a kind of target of this name lowers functions itself."""
    return compiler in KINDS and KINDS[compiler].relay_to_tir is not None


def lower_by_hooks(name: str, function: Function, compiler: str) -> IRModule:
    """The loops of one function by the hook of its target kind, under the same name."""
    kind = KINDS[compiler]
    assert kind.relay_to_tir is not None
    lowered = kind.relay_to_tir(IRModule({name: function}))
    if not isinstance(lowered, IRModule) or name not in lowered:
        raise TilewrightError(f"relay_to_tir of {compiler!r} did not return a module with {name}")
    loops = lowered[name]
    if not isinstance(loops, PrimFunc):
        raise TilewrightError(f"relay_to_tir of {compiler!r} left {name} a {type(loops).__name__}")
    if "global_symbol" not in loops.attrs:
        lowered[name] = loops.with_attr("global_symbol", name)
    return lowered


def compile_by_hooks(name: str, function: Function, compiler: str, host: Target) -> Module:
    """The code of one function by the hooks of its target kind."""
    kind = KINDS[compiler]
    lowered = lower_by_hooks(name, function, compiler)
    if kind.tir_to_runtime is not None:
        return kind.tir_to_runtime(lowered, Target(compiler))  # type: ignore[no-any-return]
    return link([compile_unit(lower_module(lowered), host)], host)
