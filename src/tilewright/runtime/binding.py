"""Slots of generated code, bound to the functions that the code calls by name.

Generated code calls another function through a slot, one for each name and library (``tilewright_bind_function``).
Modules bind the slots of their code to the functions of what they import. A library that is loaded twice has one set of
slots for both modules, so a slot has a list of functions: the first one is called until whoever bound it is gone.
"""

from __future__ import annotations

import threading

from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY, QUICK
from tilewright.runtime.packed_func import PackedFunc

SLOT_PREFIX = "__tilewright_packed_"

_lock = threading.RLock()  # a module freed while a slot is bound may unbind others
_bound: dict[int, list[PackedFunc]] = {}


class Bindings:
    """The slots that one module has bound, unbound when it ends. Until then it keeps the code that they are in."""

    def __init__(self, code: object) -> None:
        self._code = code
        self._slots: list[tuple[int, PackedFunc]] = []

    def bind(self, slot: int, function: PackedFunc) -> None:
        """Makes the code call a function through the slot at an address, unless the slot is already bound."""
        with _lock:
            self._slots.append((slot, function))
            functions = _bound.setdefault(slot, [])
            functions.append(function)
            _bound[slot] = functions  # modules that are freed, at any time, remove empty lists
            if functions[0] is function:
                check(LIBRARY.tilewright_bind_function(slot, function.handle))

    def __del__(self) -> None:
        if QUICK is None or not getattr(self, "_slots", None):
            return
        with _lock:
            for slot, function in self._slots:
                functions = _bound[slot]
                was_called = functions[0] is function
                functions.remove(function)
                if was_called:
                    LIBRARY.tilewright_bind_function(slot, functions[0].handle if functions else None)
                if not functions:
                    del _bound[slot]
