"""From kernels to a module of PTX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.codegen.cuda.kernel import generate_cuda
from tilewright.codegen.generator import Code, CodeGenerator
from tilewright.codegen.kernels import describe_kernels
from tilewright.codegen.llvm.build import defect
from tilewright.codegen.llvm.emitter import ModuleContext
from tilewright.codegen.llvm.machine import load_llvm, parse
from tilewright.codegen.llvm.math.library import MathLibrary
from tilewright.codegen.llvm.writer import ModuleText
from tilewright.codegen.nvptx.code import PTXCode, merged
from tilewright.codegen.nvptx.kernel import emit_kernel
from tilewright.codegen.nvptx.machine import GPUMachine, machine_for
from tilewright.codegen.nvptx.math import FUNCTIONS
from tilewright.codegen.nvptx.nvrtc import compile_source
from tilewright.codegen.program import LoopProgram
from tilewright.codegen.tensor_maps import describe_tensor_maps
from tilewright.ir.module import IRModule
from tilewright.runtime.device_module import DeviceModule, Kernel
from tilewright.support.errors import CodegenError, TargetError
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target, TargetLike
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.split_host_device import OVERLAPS


class PTXGenerator(CodeGenerator):
    """PTX for NVIDIA GPUs, which the driver compiles when the module is first used on a device."""

    kinds = ("cuda",)
    gives = "PTX"

    def compile(self, program: LoopProgram, target: Target) -> PTXCode:
        """Write LLVM IR, optimise it and emit PTX."""
        return compile_ptx(program, target)

    def link(self, codes: Sequence[Code], target: Target) -> DeviceModule:
        """One module of all kernels."""
        return PTXModule([code for code in codes if isinstance(code, PTXCode)])

    def load(self, block: bytes) -> PTXCode:
        """Code that was stored."""
        return PTXCode.from_bytes(block)

    def cache_key(self, target: Target) -> str:
        """LLVM's version, and the machine that the target means."""
        machine = machine_for(target)
        return f"LLVM {load_llvm().llvm_version_info} {machine.cpu} {machine.attributes}"


class PTXModule(DeviceModule):
    """Kernels as PTX. Beside ``ptx`` it shows ``ll``, and ``cuda``: the same loops as CUDA C++, for people to read.
    That is what it shows where no format is asked for."""

    def __init__(self, codes: Sequence[PTXCode]) -> None:
        text = merged([code.ptx for code in codes])
        kernels = [kernel for code in codes for kernel in code.kernels]
        super().__init__(2, text.encode() + b"\0", kernels, type_key="cuda", sources={"ptx": text})
        self._codes = tuple(codes)

    def get_source(self, fmt: str = "") -> str:
        if fmt == "ll":
            return "\n".join([code.llvm_ir for code in self._codes])
        if fmt in ("cuda", "cu", ""):
            functions = IRModule()
            for code in self._codes:
                for variable, function in code.program.module.functions.items():
                    functions[variable.name_hint] = function
            try:
                return generate_cuda(functions)
            except CodegenError:
                if fmt:
                    raise
        return super().get_source(fmt)


def compile_ptx(program: LoopProgram, target: TargetLike) -> PTXCode:
    """Make, optimise and emit the code of every kernel of a program."""
    machine = machine_for(Target(target))
    module = program.module
    kernels = tuple(
        [
            replace(
                one,
                tensor_maps=describe_tensor_maps(function),
                overlaps=bool(function.attrs.get(OVERLAPS, False)),
            )
            for one, function in _described(module)
        ]
    )
    if _by_nvrtc(machine.target):
        source = generate_cuda(module)
        return PTXCode(kernels, compile_source(source, machine.cpu), "", source, program)
    with recursion_room():
        text = module_text(module, machine)
    context = load_llvm().create_context()
    names = ", ".join(kernel.name for kernel in kernels)
    try:
        made = parse(text, names, context)
        machine.optimize(made)
        llvm_ir = str(made)
        ptx = str(machine.llvm_target_machine.emit_assembly(made))
    except (CodegenError, RuntimeError) as problem:
        raise defect(str(problem), text, module) from None
    return PTXCode(kernels, ptx, llvm_ir, text, program)


def _described(module: IRModule) -> list[tuple[Kernel, PrimFunc]]:
    """Each kernel with its function."""
    functions = [one for one in module.functions.values() if isinstance(one, PrimFunc)]
    return list(zip(describe_kernels(module), functions, strict=True))


def _by_nvrtc(target: Target) -> bool:
    """True if CUDA C++ and NVRTC make the code; an error for a generator that there is not."""
    chosen = str(target.attrs.get("codegen", "llvm"))
    if chosen not in ("llvm", "nvrtc"):
        raise TargetError(f"-codegen={chosen}: code of kernels is made by llvm or by nvrtc")
    return chosen == "nvrtc"


def module_text(module: IRModule, machine: GPUMachine) -> str:
    """The LLVM IR of kernels."""
    text = ModuleText(machine.triple, machine.data_layout)
    attributes = text.attributes(machine.function_attributes())
    library = MathLibrary(True, attributes, machine.features, FUNCTIONS)
    context = ModuleContext(machine, text, library)
    for variable, function in module.functions.items():
        assert isinstance(function, PrimFunc)
        emit_kernel(context, function, variable.name_hint)
    return text.text()
