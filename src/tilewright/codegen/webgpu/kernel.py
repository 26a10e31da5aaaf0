"""Kernels as WGSL text.

WGSL has no implicit conversions, no pointer casts, and no conditional operator: ``select`` evaluates both sides, which
is safe because out-of-bounds reads return some value of the buffer. Buffers are bindings of group 0 in the order of the
parameters, and scalars follow in one uniform structure.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.codegen.c.device import DevicePrinter, device_functions, read_only_pointers, thread_extents
from tilewright.codegen.c.expressions import bare
from tilewright.codegen.c.names import C_KEYWORDS, Names
from tilewright.codegen.webgpu import intrin_rules
from tilewright.ir.expr import Call, Cast, Div, FloatImm, IntImm, Let, Load, Mod, Select, Var
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, For, Store

_TYPES = {"bool": "bool", "int32": "i32", "uint32": "u32", "float16": "f16", "float32": "f32"}
_INDICES = {f"{kind}.{letter}": f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "xyz"}
_WORDS = """
alias array atomic bitcast bool break case const const_assert continue continuing default diagnostic discard else enable
f16 f32 false fn for i32 if let loop mat2x2 override ptr read read_write requires return sampler storage struct switch
texture true u32 uniform var vec2 vec3 vec4 while workgroup write values blockIdx threadIdx select
"""


class WebGPUPrinter(DevicePrinter):
    """Prints one kernel."""

    language = "WGSL"
    types = _TYPES
    thread_indices = _INDICES
    barriers = {"shared": "workgroupBarrier();"}

    def __init__(self, enabled: set[str]) -> None:
        super().__init__()
        self.names = Names(C_KEYWORDS | set(_WORDS.split()))
        self.enabled = enabled
        self.module_memory: list[str] = []

    # ---- types and constants ----

    def type_name(self, dtype: DataType) -> str:
        if dtype.is_float16:
            self.enabled.add("f16")
        return super().type_name(dtype)

    def storage_type(self, dtype: DataType) -> str:
        # A bool has no size in memory that the host shares.
        return "i32" if dtype.is_bool else self.type_name(dtype)

    def cast_text(self, text: str, dtype: DataType) -> str:
        return f"{self.type_name(dtype)}({bare(text)})"

    def visit_int_imm(self, node: IntImm) -> str:
        if node.dtype.is_bool:
            return "true" if node.value else "false"
        if node.dtype.bits != 32:
            raise CodegenError(f"WGSL has no type for {node.dtype}")
        if node.value == -(1 << 31) and node.dtype.is_int:
            return "i32(-2147483647 - 1)"
        text = f"{node.value}{'u' if node.dtype.is_uint else 'i'}"
        return text if node.value >= 0 else f"({text})"

    def visit_float_imm(self, node: FloatImm) -> str:
        if not math.isfinite(node.value):
            # A constant expression that is not finite is an error in WGSL, so the bits come from a variable.
            bits = (
                "0x7fc00000u"
                if math.isnan(node.value)
                else "0x7f800000u"
                if node.value > 0
                else "0xff800000u"
            )
            name = self.names.fresh("bits")
            self.line(f"var {name} : u32 = {bits};")
            return self.cast_text(f"bitcast<f32>({name})", node.dtype)
        text = str(np.float32(node.value)) if node.dtype.bits == 32 else repr(float(np.float16(node.value)))
        suffix = "f" if node.dtype.bits == 32 else "h"
        self.type_name(node.dtype)
        return f"{text}{suffix}" if math.copysign(1.0, node.value) > 0 else f"({text}{suffix})"

    # ---- expressions ----

    def _choice(self, node: Any, name: str, symbol: str) -> str:
        a, b = bare(self.visit(node.a)), bare(self.visit(node.b))
        if not node.dtype.is_float:
            return f"{name}({a}, {b})"
        # WGSL's own functions may drop a NaN.
        first, second = self._named(node.dtype, a), self._named(node.dtype, b)
        return f"select({second}, {first}, ({first} {symbol} {second}) || ({first} != {first}))"

    def _named(self, dtype: DataType, text: str) -> str:
        """A name, or a short text, for a value that is written several times."""
        if text.isalnum():
            return text
        name = self.names.fresh("value")
        self.line(self.binding(dtype.element, name, text))
        return name

    def visit_div(self, node: Div) -> str:
        # By zero, WGSL divides integers as if by one.
        return self._binary(node, "/")

    def visit_mod(self, node: Mod) -> str:
        return self._binary(node, "%")

    def visit_cast(self, node: Cast) -> str:
        source, element = node.value.dtype.element, node.dtype.element
        if not source.is_float or not element.is_integral or element.is_bool:
            return super().visit_cast(node)
        # The conversion itself ends where the type does; a NaN becomes zero.
        value = self._named(source, bare(self.visit(node.value)))
        converted, zero = self.cast_text(value, element), self.visit(IntImm(element, 0))
        return f"select({converted}, {zero}, {value} != {value})"

    def visit_select(self, node: Select) -> str:
        parts = (node.false_value, node.true_value, node.condition)
        return f"select({', '.join(bare(self.visit(part)) for part in parts)})"

    def call_if_then_else(self, node: Call) -> str:
        condition, chosen, other = (bare(self.visit(argument)) for argument in node.args)
        return f"select({other}, {chosen}, {condition})"

    def visit_let(self, node: Let) -> str:
        # ``select`` evaluates both sides, so there is nothing to guard.
        outer, self.guarded = self.guarded, 0
        text = super().visit_let(node)
        self.guarded = outer
        return text

    def binding(self, dtype: DataType, name: str, value: str) -> str:
        return f"let {name} : {self.type_name(dtype)} = {bare(value)};"

    def visit_call(self, node: Call) -> str:
        name = node.op.name if isinstance(node.op, Op) else ""
        if name in ("tir.shift_left", "tir.shift_right"):
            symbol = "<<" if name.endswith("left") else ">>"
            value, count = self.visit(node.args[0]), f"u32({bare(self.visit(node.args[1]))})"
            if isinstance(node.args[1], IntImm) and 0 <= node.args[1].value < node.dtype.bits:
                return f"({value} {symbol} {count})"
            if name == "tir.shift_right" and node.dtype.is_int:
                return f"({value} {symbol} min({count}, 31u))"
            count = self._named(DataType("uint32"), count)
            zero = self.visit(IntImm(node.dtype.element, 0))
            return f"select({zero}, {value} {symbol} ({count} & 31u), {count} < 32u)"
        if name == "tir.reinterpret":
            return f"bitcast<{self.type_name(node.dtype.element)}>({bare(self.visit(node.args[0]))})"
        return super().visit_call(node)

    def element(self, pointer: Var, dtype: DataType, index: str) -> str:
        declared = self.element_types.get(pointer)
        if declared is None or self.storage_type(declared) != self.storage_type(dtype):
            raise CodegenError(f"WGSL cannot read {pointer.name} as {dtype}: its elements are {declared}")
        return f"{self.names.of(pointer)}[{bare(index)}]"

    def load_text(self, node: Load) -> str:
        text = super().load_text(node)
        return text.replace("!= 0)", "!= 0i)") if node.dtype.is_bool else text

    # ---- statements ----

    def visit_for(self, node: For) -> None:
        low, end = bare(self.scalar(node.min)), self._loop_end(node)
        kind, name = self.type_name(node.loop_var.dtype), self.names.define(node.loop_var)
        one = f"1{'u' if node.loop_var.dtype.is_uint else 'i'}"
        self.block(f"for (var {name} : {kind} = {low}; {name} < {end}; {name} = {name} + {one})", node.body)

    def visit_allocate(self, node: Allocate) -> None:
        size = node.constant_size()
        scope = node.buffer_var.storage_scope
        if size is None or scope not in ("shared", "local", "global"):
            raise CodegenError(
                f"WGSL needs a constant size for {node.buffer_var.name}, and has no scope {scope!r}"
            )
        element = node.dtype.element
        self.element_types[node.buffer_var] = element
        name = self.names.define(node.buffer_var)
        array = f"array<{self.storage_type(element)}, {max(size * node.dtype.lanes, 1)}>"
        if scope == "shared":
            self.module_memory.append(f"var<workgroup> {name} : {array};")
        else:
            self.line(f"var {name} : {array};")
        self.statement(node.body)

    def visit_store(self, node: Store) -> None:
        lanes, dtype = node.value.dtype.lanes, node.value.dtype.element
        convert = (lambda text: f"select(0i, 1i, {text})") if dtype.is_bool else (lambda text: text)
        if lanes == 1:
            target = self.element(node.buffer_var, dtype, self.scalar(node.index))
            self._guarded_line(node.predicate, None, f"{target} = {convert(bare(self.scalar(node.value)))};")
            return
        names = [self.names.fresh("lane") for _ in range(lanes)]
        for lane, name in enumerate(names):
            self.line(f"let {name} = {convert(bare(self.of_lane(node.value, lane)))};")
        for lane, name in enumerate(names):
            self._store_lane(node, lane, name)


def _kernel(function: PrimFunc, name: str, enabled: set[str]) -> str:
    printer = WebGPUPrinter(enabled)
    constant = read_only_pointers(function)
    head: list[str] = []
    numbers = [param for param in function.params if not param.dtype.is_handle]
    pointers = [param for param in function.params if param.dtype.is_handle]
    for place, param in enumerate(pointers):
        element = param.element_type
        if element is None:
            raise CodegenError(f"WGSL needs to know what {param.name} points to")
        printer.element_types[param] = element
        access = "read" if param in constant else "read_write"
        kind = printer.storage_type(element.element)
        variable = printer.names.define(param)
        head.append(f"@group(0) @binding({place}) var<storage, {access}> {variable} : array<{kind}>;")
    if numbers:
        fields = "".join(
            f"  {printer.names.define(param)} : {printer.type_name(param.dtype)},\n" for param in numbers
        )
        head.append(f"struct Values {{\n{fields}}}")
        head.append(f"@group(0) @binding({len(pointers)}) var<uniform> values : Values;")
        for param in numbers:
            printer.names.alias(param, f"values.{printer.names.of(param)}")
    extents = thread_extents(function)
    sizes = [extents.get(f"threadIdx.{letter}", 1) for letter in "xyz"]
    if not all(sizes):
        raise CodegenError(f"WGSL needs constant extents of threadIdx in {name}")
    printer.block(
        f"@compute @workgroup_size({', '.join(map(str, sizes))})\n"
        f"fn {name}(@builtin(workgroup_id) blockIdx : vec3<u32>, @builtin(local_invocation_id) threadIdx : vec3<u32>)",
        function.body,
    )
    return "\n".join([*head, *printer.module_memory, "", *printer.lines]) + "\n"


def sources(module: IRModule) -> dict[str, str]:
    """The WGSL source of each kernel: a separate shader module, because bindings are global to one."""
    made: dict[str, str] = {}
    with recursion_room():
        for name, function in device_functions(module):
            enabled: set[str] = set()
            text = _kernel(function, name, enabled)
            made[name] = "".join(f"enable {extension};\n" for extension in sorted(enabled)) + text
    return made


def generate_webgpu(module: IRModule) -> str:
    """The WGSL sources of a module's kernels, one after the other, each under a line with its name."""
    return "\n".join(f"// {name}\n{text}" for name, text in sources(module).items())


__all__ = ["WebGPUPrinter", "generate_webgpu", "intrin_rules", "sources"]
