"""From a module of loop programs to a runtime module: LLVM IR, optimised, compiled, and linked into this process."""

from __future__ import annotations

import hashlib
import itertools
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.codegen.llvm.emitter import ModuleContext
from tilewright.codegen.llvm.function import emit_function, is_packed, public_name, symbol_of
from tilewright.codegen.llvm.machine import Machine, load_llvm, machine_for, parse
from tilewright.codegen.llvm.math.library import MathLibrary
from tilewright.codegen.llvm.system_library import register_at_start
from tilewright.codegen.llvm.writer import ModuleText, c_bytes
from tilewright.ir.module import IRModule
from tilewright.runtime.features import has_feature
from tilewright.runtime.library import runtime_symbols
from tilewright.runtime.module import JITModule
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import CodegenError, InternalError, TilewrightError
from tilewright.support.options import cache_dir
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target, TargetLike
from tilewright.tir.function import PrimFunc

_libraries = itertools.count()
_jit_lock = threading.Lock()


def build_llvm(mod: IRModule, target: TargetLike) -> JITModule:
    """A runtime module with machine code for every function of ``mod``, which must be lowered to flat form.

    Code for this machine is linked into the process when its first function is asked for; code for another can be saved
    and exported.
    """
    made = Target(target)
    compiled = _Compiled(mod, machine_for(made))
    compiled.compile()
    machine = compiled.machine
    runnable = machine.is_host and not any(has_feature(name) is False for name in compiled.features)
    return LLVMModule(
        compiled.address_of,
        function_names=compiled.function_names,
        keep_alive=compiled,
        type_key="llvm",
        sources={
            "ll": compiled.llvm_ir,
            "asm": compiled.assembly,
            "tir": compiled.loop_program,
            "unoptimized": compiled.unoptimized,
        },
        object_code=compiled.object_code,
        target_triple="" if runnable else machine.triple,
        features=compiled.features,
        runnable=runnable,
    )


class LLVMModule(JITModule):
    """Compiled code that can also be saved as LLVM bitcode (``.bc``), beside ``.ll``, ``.s`` and ``.o``."""

    def save(self, file_name: str, fmt: str = "") -> None:
        """Write the module's own code in the form that ``fmt``, or the file's suffix, says."""
        if (fmt or Path(file_name).suffix.lstrip(".")) != "bc":
            super().save(file_name, fmt)
            return
        assert isinstance(self._keep_alive, _Compiled)
        write_bytes(Path(file_name), self._keep_alive.bitcode())


@dataclass
class _Compiled:
    """One module on its way through LLVM; what is only sometimes asked for is made then."""

    module: IRModule
    machine: Machine
    function_names: list[str] = field(default_factory=list)
    features: tuple[str, ...] = ()
    _text: str = ""
    _bitcode: bytes = b""
    _object: bytes = b""
    _library: Any = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def compile(self) -> None:
        """Make and optimise the LLVM module; its object code follows at once, so that every error shows here."""
        functions = [
            (variable.name_hint, function)
            for variable, function in self.module.functions.items()
            if isinstance(function, PrimFunc)
        ]
        self.function_names = [
            public_name(function, name) for name, function in functions if is_packed(function)
        ]
        self.features = tuple(sorted(self.machine.features))
        with recursion_room():
            self._text, imported = module_text(functions, self.machine, self.function_names, self.features)
        try:
            module = parse(self._text, ", ".join(self.function_names) or "the module")
        except CodegenError as problem:
            if "intrinsic" in problem.message:
                raise
            raise self._defect(problem.message) from None
        for source in imported:
            _link_in(module, source)
        try:
            self.machine.optimize(module)
            # Emitting code changes the module, so what is shown later is read from here.
            self._bitcode = bytes(module.as_bitcode())
            self._object = self.machine.llvm_target_machine.emit_object(module)
        except RuntimeError as problem:
            raise self._defect(str(problem)) from None

    def _defect(self, problem: str) -> InternalError:
        """An error that says where the program that LLVM refused was written."""
        folder = cache_dir() / "failures"
        name = hashlib.sha256(self._text.encode()).hexdigest()[:16]
        kept = []
        for suffix, make in (("ll", self.unoptimized), ("py", self.loop_program)):
            path = folder / f"{name}.{suffix}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(make(), encoding="utf-8")
                kept.append(str(path))
            except (OSError, TilewrightError) as unwritten:
                kept.append(f"{path.name} (not written: {unwritten})")
        return InternalError(f"{problem}\nThe program was written to {' and '.join(kept)}.")

    def llvm_ir(self) -> str:
        """The optimised LLVM IR."""
        return str(self._optimized())

    def _optimized(self) -> Any:
        return load_llvm().parse_bitcode(self._bitcode)

    def unoptimized(self) -> str:
        """The LLVM IR as it was written."""
        return self._text

    def bitcode(self) -> bytes:
        """The optimised LLVM IR in binary form."""
        return self._bitcode

    def assembly(self) -> str:
        """The machine code as text."""
        return str(self.machine.llvm_target_machine.emit_assembly(self._optimized()))

    def loop_program(self) -> str:
        """The loop program that the code was made from."""
        return self.module.script()

    def object_code(self) -> bytes:
        """The machine code as a linkable object."""
        return self._object

    def address_of(self, symbol: str) -> int:
        """Where a symbol's code or data is in this process; 0 if the module does not define it."""
        with self._lock:
            if self._library is None:
                self._library = self._link()
            try:
                return int(self._library[symbol])
            except KeyError:
                return 0

    def _link(self) -> Any:
        llvm = load_llvm()
        runtime = runtime_symbols()
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(self.object_code())
        builder.add_current_process()
        missing = []
        for function in self._optimized().functions:
            name = function.name
            if not function.is_declaration or name.startswith("llvm."):
                continue
            if name in runtime:
                builder.import_symbol(name, runtime[name])
            elif llvm.address_of_symbol(name) is None:
                missing.append(name)
        if missing:
            raise CodegenError(
                f"the code calls {', '.join(sorted(missing))}, which neither the runtime nor this process has; "
                "load the library that defines it first (ctypes.CDLL(path, ctypes.RTLD_GLOBAL)), or export the module "
                "and link it there"
            )
        for name in self.function_names:
            builder.export_symbol(f"__tvm_ffi_{name}")
        for name in ("__tilewright_features", "__tilewright_functions"):
            builder.export_symbol(name)
        with _jit_lock:
            try:
                return builder.link(_jit(), f"tilewright.{next(_libraries)}")
            except RuntimeError as problem:
                raise CodegenError(
                    f"the compiled code cannot be linked into this process: {problem}"
                ) from None


@cache
def _jit() -> Any:
    """The process' JIT linker. It only links: the code is compiled before."""
    return load_llvm().create_lljit_compiler(suppress_errors=True)


def module_text(
    functions: list[tuple[str, PrimFunc]], machine: Machine, names: list[str], features: tuple[str, ...]
) -> tuple[str, list[str]]:
    """The LLVM IR of functions with their names, and what they ask to be linked in."""
    text = ModuleText(machine.triple, machine.data_layout)
    library = MathLibrary(machine.has_fma, text.attributes(machine.function_attributes()))
    context = ModuleContext(machine, text, library)
    for name, function in functions:
        symbol = symbol_of(function, name)
        context.symbols[name] = context.symbols[public_name(function, name)] = symbol
        text.defined.add(symbol)
    for name, function in functions:
        emit_function(context, function, name)
    text.add_global(f"@__tilewright_features = weak constant {c_bytes(','.join(features))}, align 1")
    text.add_global(f"@__tilewright_functions = weak constant {c_bytes(','.join(names))}, align 1")
    if machine.target.attrs.get("system-lib") and names:
        register_at_start(text, names)
    return text.text(), context.imported


def _link_in(module: Any, source: str) -> None:
    """Link LLVM IR, given as text or as the path of a file, into a module."""
    content = source
    if "\n" not in source and "define" not in source:
        try:
            content = Path(source).read_text(encoding="utf-8")
        except OSError as problem:
            raise CodegenError(f"pragma import_llvm: {source} cannot be read: {problem}") from None
    other = parse(content, "the code that pragma import_llvm names")
    try:
        module.link_in(other)
    except RuntimeError as problem:
        raise CodegenError(f"pragma import_llvm: LLVM cannot link the code in: {problem}") from None
