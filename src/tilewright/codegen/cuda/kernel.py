"""Kernels as CUDA C++ text, for nvcc and NVRTC alike.

The text includes headers only where it uses half precision, tensor cores or assertions.
"""

from __future__ import annotations

import math

from tilewright.arith import Analyzer
from tilewright.codegen.c.device import (
    kernel_bodies,
    parameter_list,
    source_text,
    thread_extents,
)
from tilewright.codegen.c.expressions import bare
from tilewright.codegen.c.names import C_KEYWORDS, Names
from tilewright.codegen.cuda import intrin_rules
from tilewright.codegen.cuda.assembly import AssemblyPrinter
from tilewright.codegen.cuda.vectors import Packet, packet_for
from tilewright.codegen.cuda.wmma import Fragments
from tilewright.ir.expr import Call, FloatImm, Load, PrimExpr, Ramp, Var, is_const
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AssertStmt, AttrStmt, Evaluate, For, ForKind, Store
from tilewright.tir.transform.lower_intrin import lower_intrinsics

_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "half",
    "bfloat16": "nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "handle": "void*",
}

_INDICES = {f"{kind}.{letter}": f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "xyz"}

_RESERVED = C_KEYWORDS | {"blockIdx", "threadIdx", "blockDim", "gridDim", "warpSize", "nvcuda"}


class CudaPrinter(AssemblyPrinter):
    """Prints one kernel."""

    language = "CUDA"
    types = _TYPES
    helper_prefix = "static __device__ __forceinline__ "
    restrict_word = "__restrict__"
    thread_indices = _INDICES
    barriers = {"shared": "__syncthreads();", "shared.dyn": "__syncthreads();", "warp": "__syncwarp();"}

    def __init__(self, helpers: dict[str, str], headers: set[str]) -> None:
        super().__init__()
        self.names = Names(_RESERVED)
        self.helpers = helpers
        self.headers = headers
        self.analyzer = Analyzer()
        self.fragments = Fragments(self)
        self._packets: dict[str, str] = {}

    def start_statement(self) -> None:
        super().start_statement()
        self._packets.clear()

    # ---- types and constants ----

    def type_name(self, dtype: DataType) -> str:
        if dtype.is_float16:
            self.headers.add("cuda_fp16.h")
        elif dtype.is_bfloat16:
            self.headers.add("cuda_bf16.h")
        return super().type_name(dtype)

    def visit_float_imm(self, node: FloatImm) -> str:
        if math.isfinite(node.value):
            return super().visit_float_imm(node)
        sign = "-" if node.value < 0 else ""
        if node.dtype.bits == 64:
            bits = "0x7ff8000000000000LL" if math.isnan(node.value) else "0x7ff0000000000000LL"
            return f"({sign}__longlong_as_double({bits}))"
        text = f"({sign}__int_as_float({'0x7fc00000' if math.isnan(node.value) else '0x7f800000'}))"
        return text if node.dtype.bits == 32 else self.cast_text(text, node.dtype)

    def bits_helper(self, source: DataType, target: DataType) -> str:
        function = f"tw_bits_{source}_{target}"
        to, come = self.type_name(target), self.type_name(source)
        self.helpers[function] = (
            f"{self.helper_prefix}{to} {function}({come} value) {{ return *({to}*)&value; }}"
        )
        return function

    # ---- vectors ----

    def packet(self, buffer: Var, dtype: DataType, index: PrimExpr) -> tuple[Packet, PrimExpr] | None:
        """How an access of several lanes is made at once, and where it begins; None if it cannot be."""
        if not isinstance(index, Ramp) or not is_const(index.stride, 1) or buffer in self.volatile:
            return None
        found = packet_for(dtype)
        if found is None:
            return None
        known = self.analyzer.modular_set(index.base)
        aligned = known.coeff % found.lanes == 0 and known.base % found.lanes == 0
        return (found, index.base) if aligned else None

    def _pieces(self, packet: Packet, buffer: Var, dtype: DataType, base: PrimExpr) -> list[str]:
        """The places in memory of the pieces of a vector."""
        starts = range(0, dtype.lanes, packet.lanes)
        elements = [self.element(buffer, dtype.element, self.scalar(base + start)) for start in starts]
        return [f"*({packet.kind}*)(&{element})" for element in elements]

    def load_text(self, node: Load) -> str:
        if node.dtype.lanes == 1 or self.guarded or not is_const(node.predicate, 1):
            return super().load_text(node)
        found = self.packet(node.buffer_var, node.dtype, node.index)
        if found is None:
            return super().load_text(node)
        packet, base = found
        lane = self._current_lane(node)
        place = self._pieces(packet, node.buffer_var, node.dtype, base)[lane // packet.lanes]
        name = self._packets.get(place)
        if name is None:
            name = self._packets[place] = self.names.fresh("vector")
            self.line(f"{packet.kind} {name} = {place};")
        return packet.lane(name, lane % packet.lanes, self.storage_type(node.dtype.element))

    def visit_store(self, node: Store) -> None:
        dtype = node.value.dtype
        found = self.packet(node.buffer_var, dtype, node.index) if dtype.lanes > 1 else None
        if found is None or not is_const(node.predicate, 1):
            super().visit_store(node)
            return
        packet, base = found
        if self._copy(node, packet, base):
            return
        kind = self.storage_type(dtype.element)
        names = [self.names.fresh("vector") for _ in range(dtype.lanes // packet.lanes)]
        texts = [bare(self.of_lane(node.value, lane)) for lane in range(dtype.lanes)]
        for piece, name in enumerate(names):
            self.line(f"{packet.kind} {name};")
            for position in range(packet.lanes):
                text = texts[piece * packet.lanes + position]
                self.line(f"{packet.lane(name, position, kind)} = {text};")
        for name, place in zip(names, self._pieces(packet, node.buffer_var, dtype, base), strict=True):
            self.line(f"{place} = {name};")

    def _copy(self, node: Store, packet: Packet, base: PrimExpr) -> bool:
        """Write a plain copy of memory as one, if this is one."""
        source = node.value
        if not isinstance(source, Load) or not is_const(source.predicate, 1):
            return False
        found = self.packet(source.buffer_var, source.dtype, source.index)
        if found is None or len(targets := self._pieces(packet, node.buffer_var, source.dtype, base)) > 1:
            return False
        self.line(f"{targets[0]} = {self._pieces(packet, source.buffer_var, source.dtype, found[1])[0]};")
        return True

    def whole(self, expr: PrimExpr) -> str:
        """A vector as one value: four bytes as an ``int``, others as the built-in type."""
        dtype, element = expr.dtype, expr.dtype.element
        packet = packet_for(dtype)
        if packet is None or packet.lanes != dtype.lanes:
            raise CodegenError(f"CUDA has no type for a value of type {dtype}")
        in_int = element.bits == 8 and dtype.lanes == 4
        if isinstance(expr, Load):
            found = self.packet(expr.buffer_var, dtype, expr.index)
            if found is not None:
                place = self._pieces(packet, expr.buffer_var, dtype, found[1])[0]
                return place.replace(f"({packet.kind}*)", "(int*)", 1) if in_int else place
        lanes = ", ".join(self.of_lane(expr, lane) for lane in range(dtype.lanes))
        if not packet.built_in:
            raise CodegenError(f"CUDA has no type for a value of type {dtype}")
        text = f"make_{packet.kind}({lanes})"
        return f"{self._bytes_in_int(packet)}({text})" if in_int else text

    def _bytes_in_int(self, packet: Packet) -> str:
        function = f"tw_int_of_{packet.kind}"
        self.helpers[function] = (
            f"{self.helper_prefix}int {function}({packet.kind} value) {{ return *(int*)&value; }}"
        )
        return function

    def function_call(self, name: str, node: Call, skipped: int = 1) -> str:
        if node.dtype.lanes > 1 and self.lane is not None:
            return super().function_call(name, node, skipped)
        arguments = [
            bare(self.scalar(argument)) if argument.dtype.lanes == 1 else self.whole(argument)
            for argument in node.args[skipped:]
        ]
        return f"{name}({', '.join(arguments)})"

    # ---- memory ----

    def allocation(self, node: Allocate, name: str, kind: str, size: int) -> str:
        scope = node.buffer_var.storage_scope
        if scope.startswith("wmma."):
            return self.fragments.declaration(node, name)
        if scope == "shared":
            return f"__shared__ __align__(16) {kind} {name}[{size}];"
        if scope in ("local", "global") or scope.startswith("local"):
            return f"__align__(16) {kind} {name}[{size}];"
        raise CodegenError(f"CUDA has no memory of scope {scope!r} ({node.buffer_var.name})")

    def visit_allocate(self, node: Allocate) -> None:
        if node.buffer_var.storage_scope != "shared.dyn":
            super().visit_allocate(node)
            return
        element = node.dtype.element
        self.element_types[node.buffer_var] = element
        name = self.names.define(node.buffer_var)
        self.line(f"extern __shared__ __align__(16) {self.storage_type(element)} {name}[];")
        self.statement(node.body)

    # ---- statements ----

    def loop_hint(self, node: For) -> None:
        if node.kind == ForKind.UNROLLED:
            self.line("#pragma unroll")

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        self.fragments.note(node)
        super().visit_attr_stmt(node)

    def visit_evaluate(self, node: Evaluate) -> None:
        call = node.value
        if not (isinstance(call, Call) and isinstance(call.op, Op) and self.do_assembly(call)):
            super().visit_evaluate(node)

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        self.headers.add("assert.h")
        self.line(f"assert({self.scalar(node.condition)});")
        self.statement(node.body)

    # ---- calls ----

    def call_atomic_add(self, node: Call) -> str:
        return f"atomicAdd({', '.join(self.scalar(argument) for argument in node.args)})"

    def call_tvm_warp_activemask(self, node: Call) -> str:
        return "__activemask()"

    def _shuffle(self, node: Call, function: str) -> str:
        mask, value, lane, width = (self.scalar(argument) for argument in node.args[:4])
        return f"{function}({mask}, {value}, {lane}, {width})"

    def call_tvm_warp_shuffle(self, node: Call) -> str:
        return self._shuffle(node, "__shfl_sync")

    def call_tvm_warp_shuffle_up(self, node: Call) -> str:
        return self._shuffle(node, "__shfl_up_sync")

    def call_tvm_warp_shuffle_down(self, node: Call) -> str:
        return self._shuffle(node, "__shfl_down_sync")

    def do_tvm_fill_fragment(self, call: Call) -> None:
        self.fragments.fill(call)

    def do_tvm_load_matrix_sync(self, call: Call) -> None:
        self.fragments.load(call)

    def do_tvm_store_matrix_sync(self, call: Call) -> None:
        self.fragments.store(call)

    def do_tvm_mma_sync(self, call: Call) -> None:
        self.fragments.multiply(call)


def _signature(printer: CudaPrinter, function: PrimFunc, name: str) -> str:
    threads = 1
    for tag, extent in thread_extents(function).items():
        if tag.startswith("threadIdx"):
            threads = 0 if extent is None else threads * extent
    bounds = f"__launch_bounds__({threads}) " if threads else ""
    return f'extern "C" __global__ void {bounds}{name}({parameter_list(printer, function)})'


def generate_cuda(module: IRModule) -> str:
    """The CUDA source of a module's kernels, which must be in the form that the build passes give."""
    helpers: dict[str, str] = {}
    headers: set[str] = set()
    lowered = module.map_functions(
        lambda variable, function: (
            lower_intrinsics(function, intrin_rules.RULES) if isinstance(function, PrimFunc) else function
        )
    )
    bodies = kernel_bodies(lowered, lambda: CudaPrinter(helpers, headers), _signature)
    includes = "".join(f"#include <{header}>\n" for header in sorted(headers))
    return source_text(includes, helpers, bodies)


__all__ = ["CudaPrinter", "generate_cuda", "intrin_rules"]
