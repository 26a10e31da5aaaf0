"""The target machine as LLVM sees it: triple, features, optimisation and emission.

llvmlite is loaded on the first use of this module's functions, never at import.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, ClassVar

from tilewright.codegen.llvm.types import Types
from tilewright.support.errors import CodegenError, TargetError
from tilewright.support.triple import Triple
from tilewright.target.cpu import describe_cpu, llvm_abi, llvm_machine_options
from tilewright.target.target import Target

_lock = threading.RLock()

_RELAXATIONS = ("nnan", "ninf", "nsz", "arcp", "contract", "reassoc")


@cache
def load_llvm() -> Any:
    """``llvmlite.binding`` with every target initialised."""
    try:
        import llvmlite.binding as llvm
    except ImportError as missing:
        raise TargetError("the target 'llvm' needs the llvmlite package: pip install llvmlite") from missing
    with _lock:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.initialize_native_asmparser()
    return llvm


class LoopsLeft(Enum):
    """What a program's schedule has left to LLVM's passes over loops."""

    ANY = "any"
    """Loops without vectors: LLVM looks for vectors itself."""
    SMALL = "small"
    """Loops over vectors with short bodies, which LLVM unrolls."""
    NONE = "none"


@dataclass
class Machine:
    """A target resolved for LLVM. ``float_flags`` are on every floating-point instruction."""

    target: Target
    family: str
    triple: str
    cpu: str
    attributes: str
    features: frozenset[str]
    vector_bits: int
    has_fma: bool
    float_flags: str
    opt_level: int
    is_host: bool
    llvm_target_machine: Any = field(repr=False)
    vectorizes_loops: ClassVar[bool] = True
    types: Types = field(init=False)
    data_layout: str = field(init=False)

    @property
    def export(self) -> str:
        """The word of LLVM IR for what a library gives out. On Windows that must be said; elsewhere everything is."""
        return "dllexport" if Triple.parse(self.triple).system == "windows" else ""

    def __post_init__(self) -> None:
        self.data_layout = str(self.llvm_target_machine.target_data)
        pointer_bits = 32 if "p:32:32" in self.data_layout.split("-") else 64
        self.types = Types(pointer_bits, native_half=bool(self.features & _NATIVE_HALF))

    def function_attributes(self) -> str:
        """The attributes that every function carries."""
        parts = ["nounwind", f'"target-cpu"="{self.cpu}"']
        if self.attributes:
            parts.append(f'"target-features"="{self.attributes}"')
        if self.family == "x86" and self.vector_bits >= 128:
            parts.append(f'"prefer-vector-width"="{self.vector_bits}"')
        return " ".join(parts)

    def optimize(self, module: Any, loops: LoopsLeft = LoopsLeft.ANY) -> None:
        """Run LLVM's pipeline over a parsed module, in place.

        Where a schedule has given every loop its form, that is the part that simplifies each function, with what is
        called inlined: looking for loops and statements to vectorize takes as long again, and finds nothing.
        """
        llvm = load_llvm()
        vectorizes = self.opt_level > 1 and loops == LoopsLeft.ANY
        options = llvm.create_pipeline_tuning_options(
            self.opt_level if vectorizes else min(self.opt_level, 2)
        )
        options.loop_vectorization = vectorizes and self.vectorizes_loops
        options.slp_vectorization = vectorizes
        options.loop_interleaving = vectorizes
        options.loop_unrolling = self.opt_level > 1
        builder = llvm.create_pass_builder(self.llvm_target_machine, options)
        if vectorizes or self.opt_level <= 1:
            _run(builder.getModulePassManager(), module, builder)
            return
        inline = llvm.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.add_global_dead_code_eliminate_pass()
        _run(inline, module, builder)
        _run(builder.getFunctionPassManager(), module, builder)
        if loops == LoopsLeft.SMALL:
            unroll = llvm.create_new_module_pass_manager()
            unroll.add_loop_unroll_pass()
            unroll.add_instruction_combine_pass()
            unroll.add_simplify_cfg_pass()
            _run(unroll, module, builder)


def _run(manager: Any, module: Any, builder: Any) -> None:
    """Run a manager of passes over a module, or over each of its functions, and give it back."""
    llvm = load_llvm()
    try:
        if isinstance(manager, llvm.ModulePassManager):
            manager.run(module, builder)
        else:
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, builder)
    finally:
        # llvmlite's own classes of pass managers inherit an empty way of giving one back: 0.1 MB for each module.
        llvm.newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()


_NATIVE_HALF = frozenset({"f16c", "avx512fp16", "fullfp16", "zfh", "zfhmin", "fp-armv8", "fp16", "fp64_half"})


def machine_for(target: Target) -> Machine:
    """The machine that ``target`` names."""
    with _lock:
        return _machine_for(target)


@cache
def _machine_for(target: Target) -> Machine:
    llvm = load_llvm()
    triple, cpu, attributes = llvm_machine_options(target)
    description = describe_cpu(target)
    opt_level = int(target.attrs.get("opt-level", 3))
    if not 0 <= opt_level <= 3:
        raise TargetError(f"-opt-level={opt_level}: LLVM has the levels 0 to 3")
    try:
        found = llvm.Target.from_triple(triple)
    except RuntimeError as problem:
        raise TargetError(f"LLVM has no code generator for {triple}: {problem}") from None
    wasm = description.family == "wasm"
    machine = found.create_target_machine(
        cpu=cpu,
        features=attributes,
        opt=opt_level,
        reloc="static" if wasm else "pic",
        codemodel="default",
        abiname=llvm_abi(target),
    )
    machine.set_asm_verbosity(False)
    host_triple = llvm.get_process_triple()
    return Machine(
        target=target,
        family=description.family,
        triple=triple,
        cpu=cpu,
        attributes=attributes,
        features=description.features,
        vector_bits=description.vector_bits,
        has_fma=description.has_fma,
        float_flags=float_flags(target),
        opt_level=opt_level,
        is_host=_architecture(triple) == _architecture(host_triple),
        llvm_target_machine=machine,
    )


def float_flags(target: Target) -> str:
    """``contract``, so that a product and a sum become one FMA, and what the target's options allow beyond."""
    if target.attrs.get("fast-math"):
        return "fast "
    chosen = [name for name in _RELAXATIONS if target.attrs.get(f"fast-math-{name}", name == "contract")]
    return "".join(f"{name} " for name in chosen)


def _architecture(triple: str) -> tuple[str, str]:
    """The parts of a triple that must agree for code to run in this process: the instruction set and the system."""
    parts = triple.split("-")
    system = next(
        (name for name in ("linux", "darwin", "macos", "windows") if any(p.startswith(name) for p in parts)),
        "",
    )
    return parts[0].replace("amd64", "x86_64").replace("arm64", "aarch64"), system.replace("macos", "darwin")


def parse(text: str, name: str, context: Any = None) -> Any:
    """A verified LLVM module made from text; what LLVM refuses raises ``CodegenError`` with its words.

    Types and constants are in a context, which goes with its last module. LLVM's global one would keep those of every
    module, and no two threads may use it. Modules that are linked share one.
    """
    llvm = load_llvm()
    try:
        module = llvm.parse_assembly(text, context or llvm.create_context())
        module.name = name
        module.verify()
    except RuntimeError as problem:
        raise CodegenError(f"LLVM refuses the code of {name}: {str(problem).strip()}") from None
    return module


def parse_bitcode(bitcode: bytes, context: Any = None) -> Any:
    """The LLVM module in its binary form, in a context of its own or in the one that is given."""
    llvm = load_llvm()
    return llvm.parse_bitcode(bitcode, context or llvm.create_context())
