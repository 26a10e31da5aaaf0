"""From a device function to an LLVM kernel: its parameters, and what a launch promises."""

from __future__ import annotations

from tilewright.codegen.c.device import kernel_name, thread_extents
from tilewright.codegen.llvm.aliases import AliasScopes
from tilewright.codegen.llvm.emitter import FunctionContext, ModuleContext
from tilewright.codegen.llvm.externs import parameter_type
from tilewright.codegen.llvm.writer import FunctionText
from tilewright.codegen.nvptx.emitter import KernelEmitter
from tilewright.codegen.tensor_maps import describe_tensor_maps
from tilewright.support.errors import CodegenError
from tilewright.tir.function import PrimFunc
from tilewright.tir.ptx import CLUSTER
from tilewright.tir.transform.split_host_device import MAX_REGISTERS, MIN_BLOCKS


def emit_kernel(module: ModuleContext, function: PrimFunc, name: str) -> None:
    """Append the definition of a kernel to the module."""
    symbol = kernel_name(function, name)
    text = FunctionText(
        symbol, "void", [], "ptx_kernel", module.text.attributes(_attributes(module, function))
    )
    context = FunctionContext(symbol, AliasScopes(module.text, function))
    emitter = KernelEmitter(module, context, text)
    known = tuple(function.attrs.get("tir.param_alignments", ())) or (0,) * len(function.params)
    for number, (parameter, align) in enumerate(zip(function.params, known, strict=True)):
        if parameter.dtype.is_handle:
            promise = " noalias" if function.attrs.get("tir.noalias", False) else ""
            kind = emitter.pointer_type(parameter) + promise
            if align:
                context.alignments[parameter] = int(align)
                kind += f" align {int(align)}"
        else:
            kind = parameter_type(emitter, parameter.dtype)
        text.parameters.append((kind, f"%p{number}"))
        emitter.define(parameter, f"%p{number}")
    for described in describe_tensor_maps(function):
        name = f"%p{described.position}"
        text.parameters.append(('ptr byval([128 x i8]) align 64 "nvvm.grid_constant"', name))
        emitter.tensor_maps[function.params[described.base]] = name
    emitter.statement(function.body)
    text.effect("ret void")
    module.text.functions.append(text.text())
    module.text.defined.add(symbol)


def _attributes(module: ModuleContext, function: PrimFunc) -> str:
    """The machine, and the bounds of a launch that ptxas assigns registers by."""
    parts = [module.machine.function_attributes()]
    extents = thread_extents(function)
    sizes = [extents.get(f"threadIdx.{letter}", 1) for letter in "xyz"]
    if None not in sizes:
        threads = 1
        for size in sizes:
            threads *= size or 1
        if threads > module.machine.target.max_num_threads:
            raise CodegenError(
                f"{kernel_name(function, 'a kernel')} has blocks of {threads} threads "
                f"({' x '.join(str(size) for size in sizes)}); the target allows "
                f"{module.machine.target.max_num_threads}"
            )
        parts.append(f'"nvvm.maxntid"="{sizes[0]},{sizes[1]},{sizes[2]}"')
    for key, attribute in ((MIN_BLOCKS, "nvvm.minctasm"), (MAX_REGISTERS, "nvvm.maxnreg")):
        value = function.attrs.get(key)
        if value is not None:
            parts.append(f'"{attribute}"="{int(value)}"')
    cluster = function.attrs.get(CLUSTER)
    if cluster is not None:
        parts.append(f'"nvvm.cluster_dim"="{",".join(str(int(size)) for size in cluster)}"')
    return " ".join(parts)
