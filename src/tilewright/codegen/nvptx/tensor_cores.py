"""Matrices of one warp: ``ldmatrix``, ``stmatrix`` and ``mma.sync``."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import (
    SHARED,
    as_kernel,
    assembly,
    load_registers,
    number,
    places,
    require,
    shared_address,
    store_registers,
    word,
)
from tilewright.ir.expr import Call
from tilewright.tir.ptx_shapes import PTX_NAMES, mma_k, registers


def ldmatrix(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 75)
    count, transposed = number(node, 0), number(node, 1)
    pointer = as_kernel(emitter).pointer_as(node.args[3], SHARED)
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.b16.p3"
    kind = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    made = emitter.call_llvm(name, kind, [(SHARED, pointer)])
    values = [made]
    if count > 1:
        values = [emitter.function.value(f"extractvalue {kind} {made}, {place}") for place in range(count)]
    store_registers(emitter, node.args[2], "i32", values)
    return "0"


def stmatrix(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    count, transposed = number(node, 0), number(node, 1)
    address = shared_address(emitter, node.args[2])
    values = load_registers(emitter, node.args[3], "i32", count)
    text = f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16 [$0], {places(1, count)};"
    assembly(emitter, text, [("i32", address), *(("i32", value) for value in values)])
    return "0"


def mma(emitter: Emitter, node: Call) -> str:
    shape, a_type, b_type, c_type = (word(node, place) for place in range(4))
    k = mma_k(shape)
    require(emitter, node, _first_arch(a_type, k))
    c_kind = "float" if c_type == "float32" else "i32"
    counts = (registers(16, k, a_type), registers(8, k, b_type), registers(16, 8, c_type))
    a, b = (load_registers(emitter, node.args[4 + place], "i32", counts[place]) for place in (0, 1))
    c = load_registers(emitter, node.args[6], c_kind, counts[2])
    first = counts[2]
    d_names, a_names, b_names = (
        places(0, first),
        places(first, counts[0]),
        places(first + counts[0], counts[1]),
    )
    types = ".".join(PTX_NAMES[kind] for kind in (c_type, a_type, b_type, c_type))
    text = f"mma.sync.aligned.{shape}.row.col.{types} {d_names}, {a_names}, {b_names}, {d_names};"
    operands = [("i32", value) for value in (*a, *b)]
    made = assembly(emitter, text, operands, [c_kind] * first, tied=c, touches_memory=False)
    store_registers(emitter, node.args[6], c_kind, made)
    return "0"


def _first_arch(a_type: str, k: int) -> int:
    if a_type in ("e4m3", "e5m2"):
        return 89
    return 75 if a_type == "float16" and k == 8 else 80


TENSOR_CORE_CALLS: Final[dict[str, Handler]] = {
    "tir.ptx_ldmatrix": ldmatrix,
    "tir.ptx_stmatrix": stmatrix,
    "tir.ptx_mma": mma,
}
