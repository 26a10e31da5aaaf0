"""The global registry of functions, which compiled code reads when it calls a packed function by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def register_func(func_name: str, f: _Function, override: bool = False) -> _Function: ...
@overload
def register_func(func_name: _Function, f: None = None, override: bool = False) -> _Function: ...
@overload
def register_func(
    func_name: str, f: None = None, override: bool = False
) -> Callable[[_Function], _Function]: ...


def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Registers a callable under a name; without one, makes a decorator.

    A bare ``@register_func`` uses the function's own name. A name that is taken is an error unless ``override`` is set.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if not isinstance(func_name, str):
        raise failure("TypeError", f"a global function's name is a string, not {type(func_name).__name__}")

    def register(function: _Function) -> _Function:
        packed = convert_to_tvm_func(function)
        check(LIBRARY.tilewright_register_function(func_name.encode(), packed.handle, int(override)))
        return function

    return register(f) if f is not None else register


@overload
def get_global_func(name: str, allow_missing: Literal[False] = False) -> PackedFunc: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> PackedFunc | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function registered under a name; None for a missing one, if that is allowed."""
    handle = LIBRARY.tilewright_get_function(name.encode())
    if handle:
        function = PackedFunc.from_handle(handle, name)
        function.is_global = True
        return function
    if allow_missing:
        return None
    raise failure("ValueError", f"there is no global function {name!r}; register_func makes one")


def list_global_func_names() -> list[str]:
    """The names of all registered functions, sorted."""
    address = LIBRARY.tilewright_list_functions()
    if not address:
        raise failure("MemoryError", "no memory to list the global functions")
    try:
        return sorted(ctypes.string_at(address).decode().splitlines())
    finally:
        LIBRARY.tilewright_free_text(address)


def remove_global_func(name: str) -> None:
    """Forgets a registered function."""
    check(LIBRARY.tilewright_remove_function(name.encode()))
