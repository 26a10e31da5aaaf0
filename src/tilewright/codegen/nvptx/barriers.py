"""Barriers in shared memory, named barriers, fences, and the barrier of a cluster."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import assembly, int32, number, require, shared_address
from tilewright.ir.expr import Call

# Waiting is a loop: an attempt gives up after a time that the system sets.
_WAIT: Final = (
    "{ .reg .pred done; "
    "again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
    "@done bra over; bra again; over: }"
)


def _on_barrier(text: str, operands: int = 0, arch: int = 80) -> Handler:
    """An instruction on a barrier in shared memory and some numbers."""

    def emit(emitter: Emitter, node: Call) -> str:
        require(emitter, node, arch)
        barrier = ("i32", shared_address(emitter, node.args[0]))
        assembly(emitter, text, [barrier, *(int32(emitter, one) for one in node.args[1 : 1 + operands])])
        return "0"

    return emit


def _plain(text: str, arch: int, operands: int = 0) -> Handler:
    """An instruction with some numbers."""

    def emit(emitter: Emitter, node: Call) -> str:
        require(emitter, node, arch)
        assembly(emitter, text, [int32(emitter, one) for one in node.args[:operands]])
        return "0"

    return emit


def elect_sync(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    text = "{ .reg .pred chosen; elect.sync _|chosen, 0xffffffff; selp.b32 $0, 1, 0, chosen; }"
    (made,) = assembly(emitter, text, results=["i32"])
    return emitter.function.value(f"icmp ne i32 {made}, 0")


def cluster_rank(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 90)
    return emitter.call_llvm("llvm.nvvm.read.ptx.sreg.cluster.ctarank", "i32", [])


def mbarrier_arrive_cluster(emitter: Emitter, node: Call) -> str:
    """A release to the whole cluster waits for all that the thread has stored, in any memory."""
    require(emitter, node, 90)
    order = ".release.cluster" if number(node, 2) else ""
    text = (
        "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, $0, $1; "
        f"mbarrier.arrive{order}.shared::cluster.b64 _, [remote]; }}"
    )
    assembly(emitter, text, [("i32", shared_address(emitter, node.args[0])), int32(emitter, node.args[1])])
    return "0"


BARRIER_CALLS: Final[dict[str, Handler]] = {
    "tir.ptx_mbarrier_init": _on_barrier("mbarrier.init.shared::cta.b64 [$0], $1;", 1),
    "tir.ptx_mbarrier_inval": _on_barrier("mbarrier.inval.shared::cta.b64 [$0];"),
    "tir.ptx_mbarrier_arrive": _on_barrier("mbarrier.arrive.shared::cta.b64 _, [$0];", arch=90),
    "tir.ptx_mbarrier_arrive_expect_tx": _on_barrier(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", 1, arch=90
    ),
    "tir.ptx_mbarrier_arrive_cluster": mbarrier_arrive_cluster,
    "tir.ptx_mbarrier_wait": _on_barrier(_WAIT, 1, arch=90),
    "tir.ptx_barrier_sync": _plain("bar.sync $0, $1;", 70, 2),
    "tir.ptx_barrier_arrive": _plain("bar.arrive $0, $1;", 70, 2),
    "tir.ptx_fence_proxy_async": _plain("fence.proxy.async.shared::cta;", 90),
    "tir.ptx_fence_mbarrier_init": _plain("fence.mbarrier_init.release.cluster;", 90),
    "tir.ptx_cluster_arrive": _plain("barrier.cluster.arrive.release.aligned;", 90),
    "tir.ptx_cluster_wait": _plain("barrier.cluster.wait.acquire.aligned;", 90),
    "tir.ptx_grid_wait": _plain("griddepcontrol.wait;", 90),
    "tir.ptx_grid_launch": _plain("griddepcontrol.launch_dependents;", 90),
    "tir.ptx_elect_sync": elect_sync,
    "tir.ptx_cluster_rank": cluster_rank,
}
