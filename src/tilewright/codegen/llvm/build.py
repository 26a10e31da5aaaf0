"""From a module of loop programs to a runtime module: LLVM IR, optimised, compiled, and linked into this process."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.codegen.generator import Code, CodeGenerator
from tilewright.codegen.llvm.code import LLVMCode
from tilewright.codegen.llvm.emitter import ModuleContext
from tilewright.codegen.llvm.function import emit_function, is_packed, public_name, symbol_of
from tilewright.codegen.llvm.machine import LoopsLeft, Machine, load_llvm, machine_for, parse, parse_bitcode
from tilewright.codegen.llvm.math.library import MathLibrary
from tilewright.codegen.llvm.system_library import register_at_start
from tilewright.codegen.llvm.writer import ModuleText, c_bytes
from tilewright.codegen.program import LoopProgram
from tilewright.ir.module import IRModule
from tilewright.runtime.binding import SLOT_PREFIX
from tilewright.runtime.features import has_feature
from tilewright.runtime.library import runtime_symbols
from tilewright.runtime.module import JITModule
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import CodegenError, InternalError, TilewrightError
from tilewright.support.options import cache_dir
from tilewright.support.recursion import recursion_room
from tilewright.target.cpu import llvm_machine_options
from tilewright.target.target import Target, TargetLike
from tilewright.tir.function import PrimFunc

_linker_lock = threading.Lock()


class LLVMGenerator(CodeGenerator):
    """Machine code for CPUs. Code for this machine is linked into the process when its first function is asked for;
    code for another can be saved and exported."""

    kinds = ("llvm",)
    makes_host_code = True

    def compile(self, program: LoopProgram, target: Target) -> LLVMCode:
        """Write LLVM IR, optimise it and emit an object."""
        return compile_llvm(program, target)

    def link(self, codes: Sequence[Code], target: Target) -> JITModule:
        """A runtime module with the functions of all codes."""
        return link_llvm([code for code in codes if isinstance(code, LLVMCode)], target)

    def load(self, block: bytes) -> LLVMCode:
        """Code that was stored."""
        return LLVMCode.from_bytes(block)

    def cache_key(self, target: Target) -> str:
        """LLVM's version, and the machine that the target names."""
        llvm = load_llvm()
        return f"LLVM {llvm.llvm_version_info} {' '.join(llvm_machine_options(target))}"


def link_llvm(codes: Sequence[LLVMCode], target: TargetLike) -> JITModule:
    """A runtime module with the functions of all codes."""
    code = _LinkedCode(list(codes), machine_for(Target(target)))
    machine = code.machine
    runnable = machine.is_host and not any(has_feature(name) is False for name in code.features)
    module = LLVMModule(
        code.address_of,
        function_names=code.function_names,
        keep_alive=code,
        type_key="llvm",
        sources={
            "ll": code.llvm_ir,
            "asm": code.assembly,
            "tir": code.loop_program,
            "unoptimized": code.unoptimized,
        },
        object_code=code.object_code,
        target_triple="" if runnable else machine.triple,
        features=code.features,
        runnable=runnable,
    )
    module.target = str(machine.target)
    return module


class LLVMModule(JITModule):
    """Compiled code that can also be saved as LLVM bitcode (``.bc``), beside ``.ll``, ``.s`` and ``.o``."""

    def object_codes(self) -> list[bytes]:
        """One object for each unit."""
        assert isinstance(self._keep_alive, _LinkedCode)
        return self._keep_alive.object_codes()

    def get_function_source(self, name: str, fmt: str) -> str:
        """The code of one function as ``ll``, ``asm`` or ``tir``, with what was compiled together with it; empty for
        a function that the module does not have."""
        assert isinstance(self._keep_alive, _LinkedCode)
        return self._keep_alive.function_source(name, fmt)

    def save(self, file_name: str, fmt: str = "") -> None:
        """Write the module's own code in the form that ``fmt``, or the file's suffix, says."""
        if (fmt or Path(file_name).suffix.lstrip(".")) != "bc":
            super().save(file_name, fmt)
            return
        assert isinstance(self._keep_alive, _LinkedCode)
        write_bytes(Path(file_name), self._keep_alive.bitcode())


def compile_llvm(program: LoopProgram, target: TargetLike) -> LLVMCode:
    """Make, optimise and emit the code of every function of a program."""
    machine = machine_for(Target(target))
    mod = program.module
    functions = [
        (variable.name_hint, function)
        for variable, function in mod.functions.items()
        if isinstance(function, PrimFunc)
    ]
    names = [public_name(function, name) for name, function in functions if is_packed(function)]
    features = tuple(sorted(machine.features))
    with recursion_room():
        text, imported, loops = module_text(functions, machine, names, features)
    context = load_llvm().create_context()
    try:
        module = parse(text, ", ".join(names) or "the module", context)
    except CodegenError as problem:
        if "intrinsic" in problem.message:
            raise
        raise defect(problem.message, text, mod) from None
    for source in imported:
        _link_in(module, source, context)
    try:
        machine.optimize(module, loops)
        # Emitting code changes the module, so what is shown later is read from here.
        bitcode = bytes(module.as_bitcode())
        declared = tuple(one.name for one in module.functions if one.is_declaration)
        slots = tuple(
            one.name
            for one in module.global_variables
            if one.name.startswith(SLOT_PREFIX) and not one.is_declaration
        )
        object_code = machine.llvm_target_machine.emit_object(module)
    except RuntimeError as problem:
        raise defect(str(problem), text, mod) from None
    return LLVMCode(tuple(names), features, declared, slots, object_code, bitcode, text, program)


def defect(problem: str, text: str, mod: IRModule) -> InternalError:
    """An error that says where the program that LLVM refused was written."""
    folder = cache_dir() / "failures"
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    kept = []
    for suffix in ("ll", "py"):
        path = folder / f"{name}.{suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text if suffix == "ll" else mod.script(), encoding="utf-8")
            kept.append(str(path))
        except (OSError, TilewrightError) as unwritten:
            kept.append(f"{path.name} (not written: {unwritten})")
    return InternalError(f"{problem}\nThe program was written to {' and '.join(kept)}.")


_SOURCES = {"ll": "llvm_ir", "asm": "assembly", "tir": "loop_program"}


class _LinkedCode:
    """Units as one library; what is only sometimes asked for is made then."""

    def __init__(self, units: list[LLVMCode], machine: Machine) -> None:
        self.units = units
        self.machine = machine
        self.function_names = [name for unit in units for name in unit.function_names]
        self.features = tuple(sorted({feature for unit in units for feature in unit.features}))
        self._library: Any = None
        self._object = b""
        self._lock = threading.RLock()

    def _optimized(self) -> Any:
        """The units' optimised LLVM IR as one module."""
        context = load_llvm().create_context()
        # Each unit describes itself, weakly; this describes the whole.
        described = ModuleText(self.machine.triple, self.machine.data_layout)
        kind = f"{self.machine.export} constant"
        described.add_global(f"@__tilewright_features = {kind} {c_bytes(','.join(self.features))}, align 1")
        described.add_global(
            f"@__tilewright_functions = {kind} {c_bytes(','.join(self.function_names))}, align 1"
        )
        module = parse(described.text(), "the module", context)
        for unit in self.units:
            module.link_in(parse_bitcode(unit.bitcode, context))
        return module

    def llvm_ir(self) -> str:
        """The optimised LLVM IR."""
        return "\n".join(unit.llvm_ir() for unit in self.units)

    def unoptimized(self) -> str:
        """The LLVM IR as it was written."""
        return "\n".join(unit.text for unit in self.units)

    def bitcode(self) -> bytes:
        """The optimised LLVM IR in binary form."""
        if len(self.units) == 1:
            return self.units[0].bitcode
        return bytes(self._optimized().as_bitcode())

    def assembly(self) -> str:
        """The machine code as text."""
        return "\n".join(unit.assembly(self.machine) for unit in self.units)

    def loop_program(self) -> str:
        """The loop program that the code was made from."""
        return "\n".join(unit.program.script() for unit in self.units)

    def function_source(self, name: str, fmt: str) -> str:
        """The source of the unit that has this function."""
        for unit in self.units:
            if name in unit.function_names:
                return str(getattr(_LinkedCode([unit], self.machine), _SOURCES[fmt])())
        return ""

    def object_code(self) -> bytes:
        """The machine code as one linkable object."""
        with self._lock:
            if not self._object:
                self._object = self._one_object()
            return self._object

    def object_codes(self) -> list[bytes]:
        """The machine code as linkable objects, as many as there are units."""
        return [unit.object_code for unit in self.units]

    def _one_object(self) -> bytes:
        if len(self.units) == 1:
            return self.units[0].object_code
        return bytes(self.machine.llvm_target_machine.emit_object(self._optimized()))

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
        # Only once there is a linker does LLVM find the symbols of this process.
        linker = _new_linker()
        builder = llvm.JITLibraryBuilder()
        # Functions that register themselves do so in a constructor, of which a library has one.
        registers = len(self.units) > 1 and self.machine.target.attrs.get("system-lib")
        for code in [self._one_object()] if registers else self.object_codes():
            builder.add_object_img(code)
        builder.add_current_process()
        missing = []
        own = {f"__tvm_ffi_{name}" for name in self.function_names}
        for name in sorted({name for unit in self.units for name in unit.declared} - own):
            if name.startswith("llvm."):
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
        slots = {slot for unit in self.units for slot in unit.slots}
        for name in ("__tilewright_features", "__tilewright_functions", *sorted(slots)):
            builder.export_symbol(name)
        try:
            return builder.link(linker, "tilewright")
        except RuntimeError as problem:
            raise CodegenError(f"the compiled code cannot be linked into this process: {problem}") from None


def _new_linker() -> Any:
    """A JIT linker for one library, which keeps the linker alive. It only links: the code is compiled before.

    A linker remembers every library that it ever linked, also those that were unloaded, so each library has its own.

    LLVM's newer linker puts all sections of an object into one piece of memory. The older one requests each section by
    itself; in a process with gigabytes of libraries they may come to be further apart than their relative addresses
    reach, which ends the process. On Windows the newer one is not complete.
    """
    with _linker_lock:
        return load_llvm().create_lljit_compiler(suppress_errors=True, use_jit_link=sys.platform != "win32")


def module_text(
    functions: list[tuple[str, PrimFunc]], machine: Machine, names: list[str], features: tuple[str, ...]
) -> tuple[str, list[str], LoopsLeft]:
    """The LLVM IR of functions with their names, what they ask to be linked in, and which loops LLVM has to look at."""
    text = ModuleText(machine.triple, machine.data_layout)
    library = MathLibrary(machine.has_fma, text.attributes(machine.function_attributes()), machine.features)
    context = ModuleContext(machine, text, library)
    for name, function in functions:
        symbol = symbol_of(function, name)
        context.symbols[name] = context.symbols[public_name(function, name)] = symbol
        text.defined.add(symbol)
    for name, function in functions:
        emit_function(context, function, name)
    kind = f"weak {machine.export} constant"
    text.add_global(f"@__tilewright_features = {kind} {c_bytes(','.join(features))}, align 1")
    text.add_global(f"@__tilewright_functions = {kind} {c_bytes(','.join(names))}, align 1")
    if machine.target.attrs.get("system-lib") and names:
        register_at_start(text, names)
    loops = LoopsLeft.SMALL if text.has_small_loops else LoopsLeft.NONE
    if text.has_scalar_loops or context.imported:
        loops = LoopsLeft.ANY
    return text.text(), context.imported, loops


def _link_in(module: Any, source: str, context: Any) -> None:
    """Link LLVM IR, given as text or as the path of a file, into a module of a context."""
    content = source
    if "\n" not in source and "define" not in source:
        try:
            content = Path(source).read_text(encoding="utf-8")
        except OSError as problem:
            raise CodegenError(f"pragma import_llvm: {source} cannot be read: {problem}") from None
    other = parse(content, "the code that pragma import_llvm names", context)
    try:
        module.link_in(other)
    except RuntimeError as problem:
        raise CodegenError(f"pragma import_llvm: LLVM cannot link the code in: {problem}") from None
