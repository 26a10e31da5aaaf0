"""Functions that other code generators compile.

A function with the attribute "Compiler" is compiled by the global function ``relay.ext.<compiler>``. That function
compiles it to a runtime module, in which it has the name of its attribute "global_symbol" and takes inputs, then
outputs, all tensors.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.relay.function import Function
from tilewright.runtime.module import Module
from tilewright.runtime.registry import get_global_func
from tilewright.support.errors import TilewrightError


def external_symbol(function: Function) -> str:
    """The name under which another code generator's code is called."""
    name = function.attrs.get("global_symbol")
    if not name:
        raise TilewrightError(
            f"a function for the code generator {function.attrs['Compiler']!r} has no attribute global_symbol",
            span=function.span,
        )
    return str(name)


def compile_external(functions: Mapping[str, Function]) -> list[Module]:
    """The code of each function, by the code generator that it names."""
    made = []
    for name, function in functions.items():
        compiler = function.attrs["Compiler"]
        generate = get_global_func(f"relay.ext.{compiler}", allow_missing=True)
        if generate is None:
            raise TilewrightError(
                f"{name} is for the code generator {compiler!r}, which is not registered: "
                f"tvm.register_func('relay.ext.{compiler}', function from a Relay function to a runtime module)",
                span=function.span,
            )
        module = generate(function)
        if not isinstance(module, Module):
            raise TilewrightError(
                f"the code generator {compiler!r} returned {type(module).__name__} for {name}, not a runtime module"
            )
        if not module.implements_function(name, query_imports=True):
            raise TilewrightError(f"the code that {compiler!r} generated has no function {name!r}")
        made.append(module)
    return made
