"""Code for the guarded device: the worked example of docs/new-target.md. One file makes a kind of target.

Threads become loops, the loops machine code of this processor, and all kernels of a library one shared object, which is
what the driver (``tests/runtime/device/guarded_device.c``) loads.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tilewright.codegen import Code, CodeGenerator, LoopProgram, generator_for, register
from tilewright.codegen.kernels import describe_kernels
from tilewright.codegen.llvm.build import compile_llvm
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.runtime.device_module import DeviceModule, Kernel
from tilewright.support.cbuild import find_compiler
from tilewright.support.errors import CodegenError
from tilewright.target import Target
from tilewright.target.kind import KINDS, TargetKind, register_kind
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt
from tilewright.tir.transform.threads_to_loops import ThreadsToLoops

KIND = "guarded"
DEVICE_TYPE = 12  # kDLExtDev
HOST = Target("llvm")

_C_TYPES = {"handle": "void*", "float32": "float", "float64": "double", "bool": "_Bool"}


@dataclass(frozen=True)
class GuardedCode:
    """Machine code of kernels, each under its name with ``_threads`` behind it."""

    kernels: tuple[Kernel, ...]
    object_code: bytes
    llvm_ir: str

    @property
    def function_names(self) -> tuple[str, ...]:
        """The kernels."""
        return tuple([kernel.name for kernel in self.kernels])

    def to_bytes(self) -> bytes:
        """As JSON."""
        kernels = [asdict(kernel) for kernel in self.kernels]
        return json.dumps([kernels, self.object_code.hex(), self.llvm_ir]).encode()

    def stages(self, target: Target) -> dict[str, str]:
        """What people can read."""
        return {"ll": self.llvm_ir, "entries.c": "".join([_entry(kernel) for kernel in self.kernels])}


class GuardedGenerator(CodeGenerator):
    """Makes modules of kernels for the guarded device."""

    kinds = (KIND,)
    gives = "machine code of kernels"
    version = "1"

    def compile(self, program: LoopProgram, target: Target) -> GuardedCode:
        """Threads as loops, and LLVM's code of these."""
        loops = ThreadsToLoops()(program.module)
        made = IRModule()
        for variable, function in loops.functions.items():
            assert isinstance(function, PrimFunc)
            _require_loops(variable.name_hint, function)
            made[variable.name_hint] = function.with_attr("global_symbol", f"{variable.name_hint}_threads")
        code = compile_llvm(LoopProgram(made), HOST)
        return GuardedCode(describe_kernels(program.module), code.object_code, code.llvm_ir())

    def link(self, codes: Sequence[Code], target: Target) -> DeviceModule:
        """One image of all."""
        units = [code for code in codes if isinstance(code, GuardedCode)]
        kernels = [kernel for unit in units for kernel in unit.kernels]
        entries = "#include <stdint.h>\n" + "".join([_entry(kernel) for kernel in kernels])
        with tempfile.TemporaryDirectory() as folder:
            parts = [Path(folder) / f"unit{number}.o" for number in range(len(units))]
            for path, unit in zip(parts, units, strict=True):
                path.write_bytes(unit.object_code)
            source, image = Path(folder) / "entries.c", Path(folder) / "image.so"
            source.write_text(entries)
            options = ["-std=c11", "-O1", "-fPIC", "-shared", "-Wl,-Bsymbolic"]
            find_compiler().run([*options, source, *parts, "-o", image, "-lm"])
            sources = {"c": entries, "ll": "\n".join([unit.llvm_ir for unit in units])}
            return DeviceModule(DEVICE_TYPE, image.read_bytes(), kernels, type_key=KIND, sources=sources)

    def load(self, block: bytes) -> GuardedCode:
        """From JSON."""
        described, code, llvm_ir = json.loads(block)
        kernels = [
            Kernel(one["name"], tuple(one["arguments"]), tuple(one["axes"]), one["has_shared_bytes"])
            for one in described
        ]
        return GuardedCode(tuple(kernels), bytes.fromhex(code), llvm_ir)

    def cache_key(self, target: Target) -> str:
        """That of the machine code."""
        return f"{self.version} {generator_for(HOST).cache_key(HOST)}"


def _require_loops(name: str, function: PrimFunc) -> None:
    """An error unless every thread index has become a loop."""
    for part in post_order(function.body):
        if isinstance(part, AttrStmt) and part.attr_key == "thread_extent":
            raise CodegenError(
                f"{name} cannot run on {KIND}: its threads share memory or wait for one another, and this device runs "
                "them one after another"
            )


def _entry(kernel: Kernel) -> str:
    """The C function that the driver calls: it takes the arguments apart."""
    types = [_C_TYPES.get(one) or f"{one}_t" for one in kernel.arguments]
    values = ", ".join([f"*({one}*)args[{place}]" for place, one in enumerate(types)])
    return (
        f"void {kernel.name}_threads({', '.join(types) or 'void'});\n"
        f"void {kernel.name}(void** args, const int32_t* grid, const int32_t* block, void* shared) "
        f"{{ {kernel.name}_threads({values}); }}\n"
    )


def guarded_target() -> Target:
    """The target; the first call makes its kind known."""
    if KIND not in KINDS:
        options = {"max_num_threads": "Integer", "thread_warp_size": "Integer"}
        defaults = {"max_num_threads": 256, "thread_warp_size": 1}
        register_kind(
            TargetKind(KIND, DEVICE_TYPE, (KIND, "plain_gpu"), options, defaults, own_memory=True),
        )
        register(GuardedGenerator())
    return Target(KIND)
