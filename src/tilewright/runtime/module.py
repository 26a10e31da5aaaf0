"""Modules: collections of compiled functions.

``Module`` is what they have in common: functions by name, imported modules, source, saving and export. A kind of module
says where a function's machine code is (``_address_of``); one that has none says why (``_why_not_runnable``).

* ``JITModule``: machine code made in this process by a code generator.
* ``SourceModule``: source text for a device that this process has no driver for.
* What comes from files is in ``loading``.
"""

from __future__ import annotations

import copy
import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime.benchmark import BenchmarkResult, evaluator_in_groups, require_counts, time_evaluator
from tilewright.runtime.binding import SLOT_PREFIX, Bindings
from tilewright.runtime.device import Device
from tilewright.runtime.export import export_library
from tilewright.runtime.failure import failure
from tilewright.runtime.features import require_features
from tilewright.runtime.ndarray import HOST
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.session import Executor, Session
from tilewright.support import html
from tilewright.support.cbuild import write_bytes

SYMBOL_PREFIX = "__tvm_ffi_"
ENTRY_NAME = "__tvm_main__"


class Module:
    """A collection of functions; see the concrete kinds below."""

    entry_name = ENTRY_NAME

    def __init__(self, type_key: str, function_names: Sequence[str] = ()) -> None:
        self._type_key = type_key
        self._function_names = tuple(function_names)
        self._imports: list[Module] = []
        self._functions: dict[str, PackedFunc] = {}
        self._unbound: list[Module] = []
        self._bindings: list[Bindings] = []
        self._binding = threading.RLock()
        self.features: tuple[str, ...] = ()
        self.target = ""
        """The target that the machine code was made for, as text; empty where that is not known."""

    # ---- what each kind of module defines ----

    @property
    def storage_key(self) -> str:
        """The key by which ``loading`` restores a module that a file carries as data."""
        return self._type_key

    def _address_of(self, symbol: str) -> int:
        """The address of a symbol of this module's machine code; 0 when it has none."""
        return 0

    def _owner(self) -> object:
        """What must live as long as a function of this module does."""
        return None

    def _why_not_runnable(self) -> str | None:
        """The reason why no function of this module can be called here, or None."""
        return None

    def object_code(self) -> bytes | None:
        """The module's code as a linkable object, or None where it has none."""
        return None

    def object_codes(self) -> list[bytes]:
        """The machine code as linkable objects; none where there is no machine code."""
        code = self.object_code()
        return [] if code is None else [code]

    def save_to_bytes(self) -> bytes | None:
        """The module as data, to travel inside another module's file, or None where its object code is all of it."""
        return None

    @property
    def target_triple(self) -> str:
        """What the object code is for; empty for this machine."""
        return ""

    def describe(self, what: str) -> None:
        """Reads the functions of loaded code, and the CPU features that it needs.

        Raises an error, in which the module is called ``what``, if this machine lacks one of the features.
        """
        self.features = _names(self._text_of("__tilewright_features"))
        require_features(self.features, what)
        self._function_names = _names(self._text_of("__tilewright_functions"))
        self.target = self._text_of("__tilewright_target")

    def _text_of(self, symbol: str) -> str:
        """The zero-terminated text that the code has under a symbol; empty when it has none."""
        address = self._address_of(symbol)
        return ctypes.string_at(address).decode(errors="replace") if address else ""

    # ---- the public interface ----

    @property
    def type_key(self) -> str:
        """The kind of module."""
        return self._type_key

    @property
    def format(self) -> str:
        """The form in which ``save`` writes it by default."""
        return "o" if self.object_code() is not None else ""

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names of this module's own functions, where it knows them."""
        return self._function_names

    @property
    def imported_modules(self) -> list[Module]:
        """The modules whose functions this one's functions may need."""
        return list(self._imports)

    def import_module(self, module: Module) -> None:
        """Attaches another module; ``get_function`` may search it, and ``export_library`` takes it along.

        Where the code of this module calls a function by a name that the other has (or that one of its own imports
        has), it calls that one, whatever is registered globally. Of several, it is the one that was imported first.
        """
        pending = [module]
        while pending:
            at = pending.pop()
            if at is self:
                raise failure("ValueError", "a module cannot import itself, directly or through others")
            pending += at._imports
        self._imports.append(module)
        with self._binding:
            self._unbound.append(module)
        if self._functions:  # the code may be running already
            self._bind_imports()
        module.imported_by(self)

    def _bind_imports(self) -> None:
        """Binds the calls of this module's code to the functions of its imports.

        Done when the first function is looked up: code that is only exported is never linked into this process.
        """
        with self._binding:
            while self._unbound:
                pending = [self._unbound.pop(0)]
                while pending:
                    module = pending.pop(0)
                    pending += module._imports
                    for name in module._function_names if module._why_not_runnable() is None else ():
                        slot = self._address_of(SLOT_PREFIX + name)
                        function = module._find(name) if slot else None
                        if function is None:
                            continue
                        if not self._bindings:
                            self._bindings.append(Bindings(self._owner()))
                        self._bindings[0].bind(slot, function)

    def with_imports(self, modules: Sequence[Module]) -> Module:
        """Another module with the same code, which imports these in the place of its own imports."""
        made = copy.copy(self)
        made._imports, made._functions = list(modules), {}
        for module in modules:
            module.imported_by(made)
        return made

    def imported_by(self, module: Module) -> None:
        """Called when another module has imported this one; a kind that needs its importer overrides this."""

    @property
    def entry_func(self) -> PackedFunc:
        """The function that calling the module runs."""
        return self.get_function(self.entry_name)

    def _entry(self) -> str | None:
        if not self._function_names:
            return None
        return "main" if "main" in self._function_names else self._function_names[0]

    def _find(self, name: str) -> PackedFunc | None:
        found = self._functions.get(name)
        if found is not None:
            return found
        plain = name
        if name == ENTRY_NAME:
            entry = self._entry()
            if entry is None:
                return None
            plain = entry
        reason = self._why_not_runnable()
        if reason is not None:
            if plain in self._function_names:
                raise failure("RuntimeError", f"cannot run {plain!r}: {reason}")
            return None
        address = self._address_of(SYMBOL_PREFIX + plain)
        if not address:
            return None
        self._bind_imports()
        # The list, not its present content: a module may be imported after the function was looked up. What the code
        # calls is bound; the imported modules may refer back to this one, and would never be freed.
        function = PackedFunc(address, name=plain, keep_alive=(self._owner(), self._bindings))
        self._functions[name] = function
        return function

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """A function by name; the imported modules are searched too, if asked."""
        pending = [self]
        while pending:
            module = pending.pop(0)
            found = module._find(name)
            if found is not None:
                return found
            if query_imports:
                pending += module._imports
        known = ", ".join(self._function_names)
        has = f"; it has {known}" if known else ""
        raise failure("AttributeError", f"the {self._type_key} module has no function {name!r}{has}")

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """True if ``get_function`` would find it."""
        if name in self._function_names or (
            self._why_not_runnable() is None and self._find(name) is not None
        ):
            return True
        return query_imports and any(module.implements_function(name, True) for module in self._imports)

    def __getitem__(self, name: str) -> PackedFunc:
        if not isinstance(name, str):
            raise failure(
                "ValueError", f"a function is looked up by its name, not by a {type(name).__name__}"
            )
        return self.get_function(name, query_imports=True)

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    def get_source(self, fmt: str = "") -> str:
        """The module's source in a format such as ``ll``, ``asm`` or ``cu``; by default, the first it has."""
        raise failure("ValueError", f"the {self._type_key} module has no source in the format {fmt!r}")

    def save(self, file_name: str, fmt: str = "") -> None:
        """Writes the module's own code, without what it imports.

        An object (``.o``) or source, as the format says, or without one the file's suffix.
        """
        path = Path(file_name)
        wanted = fmt or path.suffix.lstrip(".")
        if wanted in ("o", "obj"):
            code = self.object_code()
            if code is None:
                raise failure("ValueError", f"the {self._type_key} module has no object code to save")
            write_bytes(path, code)
        else:
            write_bytes(path, self.get_source(wanted).encode())

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        f_preproc: str = "",
        *,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures ``func_name`` on the arguments it is given; see ``time_evaluator`` and ``in_groups``
        of ``runtime.benchmark``."""
        if not dev.exist:
            raise failure("RuntimeError", f"cannot measure on {dev}: there is no such device here")
        function = self.get_function(func_name, query_imports=True)
        require_counts(number, repeat, min_repeat_ms)

        return evaluator_in_groups(
            lambda repeats: time_evaluator(
                function, number, repeats, min_repeat_ms, f_preproc, dev, cache_flush_bytes
            ),
            repeat,
            cooldown_interval_ms,
            repeats_to_cooldown,
            limit_zero_time_iterations,
        )

    def session(
        self,
        device: Device | None = None,
        name: str | None = None,
        output_names: Sequence[str] | None = None,
    ) -> Session:
        """The model of this name, or the first one, to be called with named inputs from any number of threads; on the
        host by default."""
        where = device if device is not None else HOST
        pending = [self]
        while pending:
            module = pending.pop(0)
            make = module._executor_maker(name)
            if make is not None:
                return Session(lambda: make(where), output_names)
            pending += module._imports
        what = "model" if name is None else f"model {name!r}"
        raise failure("ValueError", f"the {self._type_key} module has no {what} to run")

    def _executor_maker(self, name: str | None) -> Callable[[Device], Executor] | None:
        """What makes executors of the model of a name, or of any, if this module is that model."""
        return None

    def export_library(
        self,
        file_name: str,
        fcompile: Callable[..., Any] | None = None,
        addons: Sequence[str] | None = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Writes the module and all it imports into one file, whole or not at all.

        A shared library (``.so``, ``.dll``, ``.dylib``) carries the runtime inside and is linked with the machine's
        ``cc``, else with ``ziglang``; with neither, on x86-64 Linux, it is linked without a runtime, which whoever
        loads it must have. A ``.tar`` or ``.o`` needs no linker. ``fcompile(output, objects, **kwargs)`` links in
        another way; ``addons`` are further object files, ``options`` further arguments of the linker.
        """
        export_library(self, file_name, fcompile, addons, workspace_dir, **kwargs)

    def __repr__(self) -> str:
        names = ", ".join(self._function_names)
        return f"Module({self._type_key}{': ' + names if names else ''})"

    def _repr_html_(self) -> str:
        """Its functions and what it imports for a notebook."""
        names = sorted(self._function_names)
        functions = html.folded(
            f"{len(names)} functions", html.table(["function"], [[name] for name in names])
        )
        imported = ", ".join(one.type_key for one in self.imported_modules)
        parts = [html.facts([("imports", imported)]), functions if names else ""]
        return html.fragment(type(self).__name__, *parts, subtitle=self._type_key)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


class JITModule(Module):
    """Machine code in this process, made by a code generator that also knows its source and its object form."""

    def __init__(
        self,
        address_of: Callable[[str], int],
        *,
        function_names: Sequence[str],
        keep_alive: object,
        type_key: str = "llvm",
        sources: Mapping[str, Callable[[], str]] | None = None,
        object_code: Callable[[], bytes] | None = None,
        target_triple: str = "",
        entry_name: str | None = None,
        features: Sequence[str] = (),
        runnable: bool = True,
    ) -> None:
        """``address_of`` maps a symbol, such as ``__tvm_ffi_add``, to its address or 0.

        ``sources`` returns each format's text on request; the first is what ``get_source()`` returns. ``features`` are
        the CPU features, by LLVM's names, that the code needs. A module that is not ``runnable`` was compiled for
        another machine.
        """
        super().__init__(type_key, function_names)
        self._lookup = address_of
        self._keep_alive = keep_alive
        self._sources = dict(sources or {})
        self._object_code = object_code
        self._target_triple = target_triple
        self._entry_name = entry_name
        self._runnable = runnable
        self.features = tuple(features)
        if runnable:
            require_features(self.features, "the compiled module")

    def _address_of(self, symbol: str) -> int:
        return self._lookup(symbol)

    def _owner(self) -> object:
        return self._keep_alive

    def _entry(self) -> str | None:
        return self._entry_name if self._entry_name is not None else super()._entry()

    def _why_not_runnable(self) -> str | None:
        if self._runnable:
            return None
        return f"it was compiled for {self._target_triple or 'another machine'}; export_library writes it for use there"

    @property
    def target_triple(self) -> str:
        return self._target_triple

    def object_code(self) -> bytes | None:
        return self._object_code() if self._object_code is not None else None

    @property
    def format(self) -> str:
        return "o" if self._object_code is not None else ""

    def get_source(self, fmt: str = "") -> str:
        wanted = {"s": "asm"}.get(fmt, fmt)
        if not wanted and self._sources:
            wanted = next(iter(self._sources))
        make = self._sources.get(wanted)
        if make is None:
            raise failure(
                "ValueError",
                f"the {self._type_key} module has no source in the format {fmt!r}; it has {', '.join(self._sources)}",
            )
        return make()


class SourceModule(Module):
    """Source text for a device. It can be read, saved and exported; running it needs the device's driver."""

    def __init__(
        self, source: str, *, format: str = "cu", type_key: str = "cuda", function_names: Sequence[str] = ()
    ) -> None:
        super().__init__(type_key, function_names)
        self._source = source
        self._format = format

    @property
    def format(self) -> str:
        return self._format

    def _why_not_runnable(self) -> str | None:
        return f"this is {self._type_key} source, and this process has no driver to compile and run it"

    def get_source(self, fmt: str = "") -> str:
        if fmt not in ("", self._format, self._type_key):
            raise failure(
                "ValueError",
                f"the {self._type_key} module has no source in the format {fmt!r}; it has {self._format}",
            )
        return self._source

    def save_to_bytes(self) -> bytes:
        head = "\n".join([self._format, ",".join(self._function_names)])
        return f"{head}\n{self._source}".encode()

    @classmethod
    def load_from_bytes(cls, type_key: str, content: bytes) -> SourceModule:
        """The module that ``save_to_bytes`` wrote."""
        parts = content.decode().split("\n", 2)
        if len(parts) != 3:
            raise failure(
                "ValueError", f"the {type_key} module in the file is damaged: its header is incomplete"
            )
        format, names, source = parts
        return cls(
            source,
            format=format,
            type_key=type_key,
            function_names=_names(names),
        )
