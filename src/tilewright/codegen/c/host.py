"""C source of host functions: for the target ``c``, in C99.

The text is self-contained: it declares the structures of the calling convention and the runtime functions that it
calls. A packed function ``add`` is ``__tvm_ffi_add``; a function without packed arguments keeps its name, and needs no
runtime unless it allocates or calls. Parallel loops run serially.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tilewright.codegen.c import intrin_rules
from tilewright.codegen.c.names import identifier
from tilewright.codegen.c.statements import StatementPrinter, split_message, string_literal
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.type import PrimType
from tilewright.runtime.binding import SLOT_PREFIX
from tilewright.runtime.module import SourceModule
from tilewright.support.cbuild import find_compiler
from tilewright.support.errors import CodegenError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import StructField
from tilewright.tir.stmt import LetStmt

_HEAD = """\
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""

_STRUCTURES = """\
typedef struct {
  void* data;
  struct { int32_t device_type, device_id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} tw_tensor;

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union { int64_t v_int64; double v_float64; void* v_ptr; };
} tw_any;
"""

_PROTOTYPES = """\
void tilewright_set_error(const char* kind, const char* message);
void tilewright_set_error_format(const char* kind, const char* format, const int64_t* values, int32_t num_values);
void* tilewright_workspace_alloc(int32_t device_type, int32_t device_id, uint64_t size);
int32_t tilewright_workspace_free(int32_t device_type, int32_t device_id, void* pointer);
int32_t tilewright_call_packed(const char* name, void** cache, const tw_any* args, int32_t num_args, tw_any* result);
void tilewright_any_release(tw_any* value);
"""

# One slot for each packed function and library, which a loader can bind; weak, because other code may call it too.
_SLOT = """\
#if defined(__ELF__)
#define TILEWRIGHT_SLOT __attribute__((weak, visibility("protected")))
#elif defined(__GNUC__)
#define TILEWRIGHT_SLOT __attribute__((weak))
#else
#define TILEWRIGHT_SLOT static
#endif"""

_RUNTIME = {line.partition("(")[0].split()[-1]: line for line in _PROTOTYPES.splitlines()}

_TENSOR_FIELDS = {
    StructField.DATA: "data",
    StructField.SHAPE: "shape",
    StructField.STRIDES: "strides",
    StructField.NDIM: "ndim",
    StructField.TYPE_CODE: "dtype.code",
    StructField.TYPE_BITS: "dtype.bits",
    StructField.TYPE_LANES: "dtype.lanes",
    StructField.BYTE_OFFSET: "byte_offset",
    StructField.DEVICE_ID: "device.device_id",
    StructField.DEVICE_TYPE: "device.device_type",
}

_STACK_TYPES = {"shape": "int64_t", "array": "tw_tensor", "arg_value": "tw_any"}


class HostPrinter(StatementPrinter):
    """Prints host functions."""

    def __init__(self, packed: bool, runtime: dict[str, str], helpers: dict[str, str]) -> None:
        super().__init__()
        self.packed = packed
        self.runtime = runtime
        self.helpers = helpers

    def _use(self, name: str) -> str:
        self.runtime[name] = _RUNTIME[name]
        return name

    def failure(self, message: PrimExpr) -> None:
        if self.packed:
            kind, text, values = split_message(message)
            if values:
                numbers = ", ".join(self.scalar(value) for value in values)
                self.line(f"const int64_t values[] = {{{numbers}}};")
                function = self._use("tilewright_set_error_format")
                self.line(
                    f"{function}({string_literal(kind)}, {string_literal(text)}, values, {len(values)});"
                )
            else:
                function = self._use("tilewright_set_error")
                self.line(f"{function}({string_literal(kind)}, {string_literal(text)});")
        super().failure(message)

    def visit_let_stmt(self, node: LetStmt) -> None:
        value = node.value
        if not (isinstance(value, Call) and value.op.name == "tir.tvm_stack_alloca"):
            super().visit_let_stmt(node)
            return
        kind, count = value.args
        if not isinstance(kind, StringImm) or not isinstance(count, IntImm):
            raise CodegenError(f"the size of {node.var.name} on the stack must be a constant")
        self.line(f"{_STACK_TYPES[kind.value]} {self.names.define(node.var)}[{count.value}];")
        self.statement(node.body)

    def call_call_extern(self, node: Call) -> str:
        name = node.args[0]
        if isinstance(name, StringImm) and name.value in _RUNTIME:
            self._use(name.value)
        return super().call_call_extern(node)

    call_call_pure_extern = call_call_extern

    def _field(self, node: Call) -> str:
        handle, index, kind = (self.scalar(argument) for argument in node.args[:3])
        field = StructField(int(kind))
        if field is StructField.ANY_TYPE_INDEX:
            return f"((tw_any*){handle})[{index}].type_index"
        if field is StructField.ANY_FLAGS:
            return f"((tw_any*){handle})[{index}].zero_padding"
        if field is StructField.ANY_VALUE:
            dtype = node.dtype if node.op.name == "tir.tvm_struct_get" else node.args[3].dtype
            part = "v_float64" if dtype.is_float else "v_ptr" if dtype.is_handle else "v_int64"
            return f"((tw_any*){handle})[{index}].{part}"
        return f"((tw_tensor*){handle})[{index}].{_TENSOR_FIELDS[field]}"

    def call_tvm_struct_get(self, node: Call) -> str:
        if isinstance(node.args[2], IntImm) and node.args[2].value == StructField.ADDRESS:
            return f"(&((tw_tensor*){self.scalar(node.args[0])})[{self.scalar(node.args[1])}])"
        return self._field(node)

    def do_tvm_struct_set(self, call: Call) -> None:
        value = self.scalar(call.args[3])
        cast = "(void*)" if call.args[3].dtype.is_handle else ""
        self.line(f"{self._field(call)} = {cast}{value};")
        if isinstance(call.args[2], IntImm) and call.args[2].value == StructField.ANY_TYPE_INDEX:
            handle, index = self.scalar(call.args[0]), self.scalar(call.args[1])
            self.line(f"((tw_any*){handle})[{index}].zero_padding = 0;")

    def do_tvm_call_packed_lowered(self, call: Call) -> None:
        name, stack, begin, end = (self.scalar(argument) for argument in call.args)
        function = self._use("tilewright_call_packed")
        callee = call.args[0]
        assert isinstance(callee, StringImm)
        if callee.value.isidentifier() and callee.value.isascii():
            slot = SLOT_PREFIX + callee.value
            self.runtime["TILEWRIGHT_SLOT"] = _SLOT
            self.runtime[slot] = f"TILEWRIGHT_SLOT void* {slot};"
        else:
            slot = self.names.fresh("slot")
            self.line(f"static void* {slot};")
        count = int(end) - int(begin)
        self.line(
            f"if ({function}({name}, &{slot}, {stack} + {begin}, {count}, {stack} + {end}) != 0) return -1;"
        )

    def call_tvm_stack_alloca(self, node: Call) -> str:
        raise CodegenError("tvm_stack_alloca may only be the value of a let statement")


def _signature(printer: HostPrinter, function: PrimFunc, name: str) -> str:
    if printer.packed:
        self_handle, args, num_args, result = (printer.names.define(param) for param in function.params[:4])
        return (
            f"int32_t __tvm_ffi_{name}(void* {self_handle}, const tw_any* {args}, int32_t {num_args}, "
            f"tw_any* {result})"
        )
    restrict = bool(function.attrs.get("tir.noalias", False))
    declarations = [
        printer.declare_pointer(param, restrict)
        if param.dtype.is_handle
        else f"{printer.type_name(param.dtype)} {printer.names.define(param)}"
        for param in function.params
    ]
    result_type = function.ret_type
    result_text = printer.type_name(result_type.dtype) if isinstance(result_type, PrimType) else "void"
    # A function without a public name serves the others of its module.
    linkage = "" if "global_symbol" in function.attrs else "static "
    return f"{linkage}{result_text} {name}({', '.join(declarations) or 'void'})"


def generate_c(module: IRModule) -> str:
    """The C source of a module's functions, which must be in the form that the build passes give."""
    helpers: dict[str, str] = {}
    runtime: dict[str, str] = {}
    signatures: list[str] = []
    bodies: list[str] = []
    packed_any = False
    with recursion_room():
        for variable, function in module.functions.items():
            if not isinstance(function, PrimFunc):
                raise CodegenError(f"{variable.name_hint} is not a loop-level function")
            name = identifier(str(function.attrs.get("global_symbol", variable.name_hint)))
            packed = function.attrs.get("calling_conv", CallingConv.DEFAULT) == CallingConv.C_PACKED_FUNC
            packed_any = packed_any or packed
            printer = HostPrinter(packed, runtime, helpers)
            signature = _signature(printer, function, name)
            signatures.append(f"{signature};")
            printer.block(signature, function.body)
            bodies.append("\n".join(printer.lines))
    parts = [_HEAD]
    if packed_any or runtime:
        parts.append(_STRUCTURES)
    for group in (list(runtime.values()), signatures, list(helpers.values())):
        if group:
            parts.append("\n".join(group) + "\n")
    return "\n".join([*parts, *(body + "\n" for body in bodies)])


class CModule(SourceModule):
    """C source of host functions. A C compiler is needed to export it, and only then."""

    def object_code(self) -> bytes:
        names = string_literal(",".join(self.function_names))
        # Weak: a library has one such list of all its functions.
        mark = "__attribute__((weak)) const char __tilewright_functions[]"
        source = f"{self.get_source()}\n{mark} = {names};\n"
        with tempfile.TemporaryDirectory() as folder:
            text, code = Path(folder) / "code.c", Path(folder) / "code.o"
            text.write_text(source)
            find_compiler().run(["-std=c11", "-O2", "-fPIC", "-c", text, "-o", code])
            return code.read_bytes()


def host_function_names(module: IRModule) -> list[str]:
    """The symbols of a module's functions."""
    return [
        str(function.attrs.get("global_symbol", variable.name_hint))
        for variable, function in module.functions.items()
    ]


__all__ = ["CModule", "HostPrinter", "generate_c", "host_function_names", "intrin_rules"]
