"""Products of a group of four warps (``wgmma``), which read shared memory through descriptors."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import (
    assembly,
    int32,
    load_registers,
    number,
    places,
    require,
    shared_address,
    store_registers,
    word,
)
from tilewright.ir.expr import Call
from tilewright.tir.ptx_shapes import BITS, PTX_NAMES, SWIZZLES, registers, wgmma_k

_GROUP: Final = 128
_FROM_REGISTERS, _A_TRANSPOSED, _B_TRANSPOSED = 1, 2, 4


def descriptor(emitter: Emitter, node: Call) -> str:
    """Addresses and distances count 16 bytes: bits 0 to 13 the address, 16 to 29 leading, 32 to 45 stride, 62 and 63
    the swizzle. Shared memory has fewer than 2**18 bytes, so no bit of the address is lost."""
    require(emitter, node, 90, specific=True)
    function = emitter.function
    leading, stride, swizzle = (number(node, place) for place in (1, 2, 3))
    address = function.value(f"lshr i32 {shared_address(emitter, node.args[0])}, 4")
    low = function.value(f"or i32 {address}, {leading >> 4 << 16}")
    high = (stride >> 4) | SWIZZLES[swizzle] << 30
    wide = function.value(f"zext i32 {low} to i64")
    return function.value(f"or i64 {wide}, {high << 32}")


def wgmma(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90, specific=True)
    n, flags = number(node, 0), number(node, 4)
    a_type, b_type, c_type = (word(node, place) for place in (1, 2, 3))
    k = wgmma_k(a_type)
    c_kind = "float" if c_type == "float32" else "i32"
    count = registers(64, n, c_type, _GROUP)
    operands: list[tuple[str, str]] = []
    if flags & _FROM_REGISTERS:
        size = registers(64, k, a_type, _GROUP)
        operands += [("i32", value) for value in load_registers(emitter, node.args[5], "i32", size)]
        a_names = places(count, size)
    else:
        operands.append(("i64", emitter.visit(node.args[5])))
        a_names = f"${count}"
    b_name = f"${count + len(operands)}"
    operands.append(("i64", emitter.visit(node.args[6])))
    scale = f"${count + len(operands)}"
    operands.append(int32(emitter, node.args[8]))
    modifiers = "" if c_type == "int32" else ", 1, 1"
    if BITS[a_type] == 16:
        transposes = (
            [flags & _B_TRANSPOSED]
            if flags & _FROM_REGISTERS
            else [
                flags & _A_TRANSPOSED,
                flags & _B_TRANSPOSED,
            ]
        )
        modifiers += "".join(f", {int(bool(one))}" for one in transposes)
    types = ".".join(PTX_NAMES[kind] for kind in (c_type, a_type, b_type))
    text = (
        f"{{ .reg .pred keep; setp.ne.b32 keep, {scale}, 0; "
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} "
        f"{places(0, count)}, {a_names}, {b_name}, keep{modifiers}; }}"
    )
    c = load_registers(emitter, node.args[7], c_kind, count)
    made = assembly(emitter, text, operands, [c_kind] * count, tied=c)
    store_registers(emitter, node.args[7], c_kind, made)
    return "0"


def _plain(text: str) -> Handler:
    def emit(emitter: Emitter, node: Call) -> str:
        require(emitter, node, 90, specific=True)
        assembly(emitter, text)
        return "0"

    return emit


def wgmma_wait(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90, specific=True)
    assembly(emitter, f"wgmma.wait_group.sync.aligned {number(node, 0)};")
    return "0"


def set_max_registers(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90, specific=True)
    how = "inc" if number(node, 1) else "dec"
    assembly(emitter, f"setmaxnreg.{how}.sync.aligned.u32 {number(node, 0)};")
    return "0"


WARP_GROUP_CALLS: Final[dict[str, Handler]] = {
    "tir.ptx_wgmma_descriptor": descriptor,
    "tir.ptx_wgmma": wgmma,
    "tir.ptx_wgmma_fence": _plain("wgmma.fence.sync.aligned;"),
    "tir.ptx_wgmma_commit": _plain("wgmma.commit_group.sync.aligned;"),
    "tir.ptx_wgmma_wait": wgmma_wait,
    "tir.ptx_set_max_registers": set_max_registers,
}
