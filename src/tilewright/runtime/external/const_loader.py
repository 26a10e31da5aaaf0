"""``ConstLoader``: gives external code the constants that its updater declared, before it first runs.

A module whose code generator has ``relay.ext.<name>.constant_updater`` may have a function ``__init_<symbol>``: it is
called once, with the constants in the order of the updater's dictionary. The constants travel with the module.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Mapping

from tilewright.runtime.failure import failure
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.params import load_param_dict, save_param_dict

TYPE_KEY = "const_loader"


class ConstLoader(Module):
    """The constants of one external function, whose code is what this module imports."""

    def __init__(self, symbol: str, constants: Mapping[str, NDArray]) -> None:
        super().__init__(TYPE_KEY, (symbol,))
        self.symbol = symbol
        self.constants = dict(constants)
        self._lock = threading.Lock()
        self._is_ready = False

    def _find(self, name: str) -> PackedFunc | None:
        if name not in (self.symbol, self.entry_name):
            return None
        with self._lock:
            if not self._is_ready:
                self._initialise()
                self._is_ready = True
        for module in self._imports:
            if module.implements_function(self.symbol, query_imports=True):
                return module.get_function(self.symbol, query_imports=True)
        raise failure("RuntimeError", f"there are constants for {self.symbol}, and no code")

    def _initialise(self) -> None:
        for module in self._imports:
            self._give(module)

    def _give(self, module: Module) -> None:
        name = f"__init_{self.symbol}"
        if module.implements_function(name, query_imports=True):
            module.get_function(name, query_imports=True)(*self.constants.values())

    def imported_by(self, module: Module) -> None:
        """In a file, code that has a linkable form is part of the library itself, which gets the constants at once."""
        if module._why_not_runnable() is None and module.implements_function(self.symbol):
            self._give(module)

    def save_to_bytes(self) -> bytes:
        """The symbol and the constants."""
        head = json.dumps([self.symbol, list(self.constants)]).encode()
        return struct.pack("<Q", len(head)) + head + save_param_dict(self.constants)

    @classmethod
    def load_from_bytes(cls, type_key: str, content: bytes | memoryview) -> ConstLoader:
        """The reverse."""
        try:
            (size,) = struct.unpack_from("<Q", content)
            symbol, order = json.loads(bytes(content[8 : 8 + size]))
            values = load_param_dict(content[8 + size :])
            return cls(str(symbol), {str(name): values[name] for name in order})
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise failure("ValueError", f"the constants in the file are damaged: {error}") from error


register_module_loader(TYPE_KEY, ConstLoader.load_from_bytes, in_place=True)
