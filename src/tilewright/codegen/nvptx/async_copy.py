"""Asynchronous copies from global to shared memory, of each thread (``cp.async``) and of whole boxes of a tensor
(``cp.async.bulk.tensor``), and of boxes back."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import (
    as_kernel,
    assembly,
    int32,
    number,
    require,
    shared_address,
)
from tilewright.ir.expr import Call, Var, is_const
from tilewright.support.errors import CodegenError

_GLOBAL: Final = "ptr addrspace(1)"
_MULTICAST, _HINT = 1, 2


def cp_async(emitter: Emitter, node: Call) -> str:
    """Sixteen bytes go past L1, which is not asked for them again."""
    require(emitter, node, 80)
    size = number(node, 2)
    target = shared_address(emitter, node.args[0])
    source = as_kernel(emitter).pointer_as(node.args[1], _GLOBAL)
    address = emitter.function.value(f"ptrtoint {_GLOBAL} {source} to i64")
    operands = [("i32", target), ("i64", address)]
    text = f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global.L2::128B [$0], [$1], {size}"
    if not is_const(node.args[3], size):
        operands.append(int32(emitter, node.args[3]))
        text += ", $2"
    assembly(emitter, text + ";", operands)
    return "0"


def cp_async_commit(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 80)
    assembly(emitter, "cp.async.commit_group;")
    return "0"


def cp_async_wait(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 80)
    assembly(emitter, f"cp.async.wait_group {number(node, 0)};")
    return "0"


def cp_async_mbarrier_arrive(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 80)
    barrier = shared_address(emitter, node.args[0])
    assembly(emitter, "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", [("i32", barrier)])
    return "0"


def _tensor_map(emitter: Emitter, node: Call, place: int) -> tuple[str, str]:
    """The address of a tensor map among the kernel's parameters."""
    var = node.args[place]
    kernel = as_kernel(emitter)
    if not isinstance(var, Var) or var not in kernel.tensor_maps:
        raise CodegenError(
            f"{node.op.name}: {var} is not a tensor map; put the attribute tir.ptx.TENSOR_MAP of the pointer around "
            "the statements of the kernel",
            span=node.span,
        )
    return "i64", emitter.function.value(f"ptrtoint ptr {kernel.tensor_maps[var]} to i64")


def bulk_tensor_load(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    rank, flags = number(node, 0), number(node, 1)
    operands = [("i32", shared_address(emitter, node.args[2])), _tensor_map(emitter, node, 3)]
    operands.append(("i32", shared_address(emitter, node.args[4])))
    # PTX counts dimensions from the innermost.
    operands += [int32(emitter, one) for one in reversed(node.args[5 : 5 + rank])]
    box = ", ".join(f"${3 + place}" for place in range(rank))
    text = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    arguments = f"[$0], [$1, {{{box}}}], [$2]"
    extra = list(node.args[5 + rank :])
    if flags & _MULTICAST:
        mask = emitter.function.value(f"trunc i32 {int32(emitter, extra.pop(0))[1]} to i16")
        text, arguments = f"{text}.multicast::cluster", f"{arguments}, ${len(operands)}"
        operands.append(("i16", mask))
    if flags & _HINT:
        text, arguments = f"{text}.L2::cache_hint", f"{arguments}, ${len(operands)}"
        operands.append(("i64", emitter.index_as(extra.pop(0), "i64")))
    assembly(emitter, f"{text} {arguments};", operands)
    return "0"


def bulk_tensor_store(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    rank = number(node, 0)
    operands = [_tensor_map(emitter, node, 1), ("i32", shared_address(emitter, node.args[2]))]
    operands += [int32(emitter, one) for one in reversed(node.args[3 : 3 + rank])]
    box = ", ".join(f"${2 + place}" for place in range(rank))
    text = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$0, {{{box}}}], [$1];"
    assembly(emitter, text, operands)
    return "0"


def bulk_commit(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    assembly(emitter, "cp.async.bulk.commit_group;")
    return "0"


def bulk_wait(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    read = ".read" if number(node, 1) else ""
    assembly(emitter, f"cp.async.bulk.wait_group{read} {number(node, 0)};")
    return "0"


def prefetch_tensor_map(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    assembly(emitter, "prefetch.tensormap [$0];", [_tensor_map(emitter, node, 0)])
    return "0"


ASYNC_COPY_CALLS: Final[dict[str, Handler]] = {
    "tir.ptx_cp_async": cp_async,
    "tir.ptx_cp_async_commit": cp_async_commit,
    "tir.ptx_cp_async_wait": cp_async_wait,
    "tir.ptx_cp_async_mbarrier_arrive": cp_async_mbarrier_arrive,
    "tir.ptx_bulk_tensor_load": bulk_tensor_load,
    "tir.ptx_bulk_tensor_store": bulk_tensor_store,
    "tir.ptx_bulk_commit": bulk_commit,
    "tir.ptx_bulk_wait": bulk_wait,
    "tir.ptx_prefetch_tensor_map": prefetch_tensor_map,
}
