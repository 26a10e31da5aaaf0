"""How external functions are recognised and named."""

from __future__ import annotations

from tilewright.ir.module import IRModule
from tilewright.relay.function import Function
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


def external_functions(module: IRModule) -> dict[str, Function]:
    """The functions of a partitioned module that other code generators compile, by their symbols."""
    return {
        external_symbol(function): function
        for function in module.functions.values()
        if isinstance(function, Function) and function.attrs.get("Compiler")
    }
