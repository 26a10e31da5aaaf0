"""From a PrimFunc to an LLVM function."""

from __future__ import annotations

from tilewright.codegen.llvm.aliases import AliasScopes
from tilewright.codegen.llvm.emitter import FunctionContext, ModuleContext
from tilewright.codegen.llvm.externs import parameter_type
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.codegen.llvm.writer import FunctionText
from tilewright.ir.type import PointerType, PrimType, TupleType
from tilewright.support.errors import CodegenError
from tilewright.tir.function import PrimFunc

PACKED_CONVENTION = 1
SYMBOL_PREFIX = "__tvm_ffi_"


def is_packed(function: PrimFunc) -> bool:
    """True for a function that MakePackedAPI gave its exported form."""
    convention = function.attrs.get("calling_conv", 0)
    return int(convention) == PACKED_CONVENTION


def public_name(function: PrimFunc, fallback: str) -> str:
    """The name that users call the function by."""
    return str(function.attrs.get("global_symbol", fallback))


def symbol_of(function: PrimFunc, fallback: str) -> str:
    """The function's symbol: prefixed for a packed function, plain for one with C parameters."""
    name = public_name(function, fallback)
    return SYMBOL_PREFIX + name if is_packed(function) else name


def emit_function(module: ModuleContext, function: PrimFunc, name: str) -> None:
    """Append the definition of a function to the module."""
    if function.buffer_map:
        raise CodegenError(
            f"{name} still has a buffer map; run MakePackedAPI (or MakeUnpackedAPI) before code is made"
        )
    symbol = symbol_of(function, name)
    exported = is_packed(function) or "global_symbol" in function.attrs
    attributes = module.text.attributes(module.machine.function_attributes())
    linkage = module.machine.export if exported else "internal"
    text = FunctionText(symbol, _return_type(module, function), [], linkage, attributes)
    context = FunctionContext(public_name(function, name), AliasScopes(module.text, function))
    emitter = StatementEmitter(module, context, text)
    for number, parameter in enumerate(function.params):
        kind = parameter_type(emitter, parameter.dtype)
        text.parameters.append((kind, f"%p{number}"))
        emitter.define(parameter, f"%p{number}")
    emitter.statement(function.body)
    text.effect(_final_return(text.return_type))
    module.text.functions.append(text.text())
    module.text.defined.add(symbol)


def _return_type(module: ModuleContext, function: PrimFunc) -> str:
    kind = function.ret_type
    if is_packed(function):
        return "i32"
    if isinstance(kind, PrimType):
        return module.machine.types.register(kind.dtype)
    if isinstance(kind, PointerType):
        return "ptr"
    if isinstance(kind, TupleType) and not kind.fields:
        return "void"
    raise CodegenError(f"a function cannot return {kind}")


def _final_return(kind: str) -> str:
    """The return at the end of a function."""
    return "ret void" if kind == "void" else f"ret {kind} zeroinitializer"
