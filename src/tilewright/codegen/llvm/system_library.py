"""Functions that register themselves: code that is linked into a program and found there by name (``-system-lib``)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm.writer import FunctionText, ModuleText, quote

_CONSTRUCTOR = "__tilewright_register_functions"


def register_at_start(text: ModuleText, names: Sequence[str]) -> None:
    """Add a constructor that gives the runtime every packed function of the module when the program starts."""
    register = text.declare("tilewright_register_system_symbol", "i32", ["ptr", "ptr"])
    constructor = FunctionText(_CONSTRUCTOR, "void", [], header="internal")
    for name in names:
        symbol = f"__tvm_ffi_{name}"
        constructor.effect(f"call i32 {register}(ptr {text.string(symbol)}, ptr @{quote(symbol)})")
    constructor.effect("ret void")
    text.functions.append(constructor.text())
    entry = f"{{ i32, ptr, ptr }} {{ i32 65535, ptr @{_CONSTRUCTOR}, ptr null }}"
    text.add_global(f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{entry}]")
