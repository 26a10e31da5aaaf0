"""Instructions of ``tir.ptx`` in CUDA source, as inline assembly. Bulk copies and ``wgmma`` are in PTX only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.codegen.c.device import DevicePrinter
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm
from tilewright.support.errors import CodegenError
from tilewright.tir.ptx_shapes import PTX_NAMES, mma_k, registers

_WAIT: Final = (
    "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
    "@done bra over; bra again; over: }"
)
# Instructions without operands, by the name of the call.
_PLAIN: Final = {
    "ptx_cp_async_commit": "cp.async.commit_group;",
    "ptx_fence_proxy_async": "fence.proxy.async.shared::cta;",
    "ptx_fence_mbarrier_init": "fence.mbarrier_init.release.cluster;",
    "ptx_cluster_arrive": "barrier.cluster.arrive.release.aligned;",
    "ptx_cluster_wait": "barrier.cluster.wait.acquire.aligned;",
    "ptx_grid_wait": "griddepcontrol.wait;",
    "ptx_grid_launch": "griddepcontrol.launch_dependents;",
}
# Instructions on a barrier in shared memory, and numbers behind it.
_ON_BARRIER: Final = {
    "ptx_mbarrier_init": "mbarrier.init.shared::cta.b64 [%0], %1;",
    "ptx_mbarrier_inval": "mbarrier.inval.shared::cta.b64 [%0];",
    "ptx_mbarrier_arrive": "mbarrier.arrive.shared::cta.b64 _, [%0];",
    "ptx_mbarrier_arrive_expect_tx": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
    "ptx_mbarrier_wait": _WAIT,
    "ptx_cp_async_mbarrier_arrive": "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];",
}


class AssemblyPrinter(DevicePrinter):
    """Prints the instructions that have no function in CUDA."""

    def assembly(self, text: str, inputs: Sequence[str], outputs: Sequence[str] = ()) -> None:
        """A line of assembly; ``%0`` and so on are the outputs, then the inputs."""
        written, read = ", ".join(outputs), ", ".join(inputs)
        self.line(f'asm volatile("{text}" : {written} : {read} : "memory");')

    def do_assembly(self, call: Call) -> bool:
        """Print a call that is one instruction, if it is."""
        name = call.op.name.removeprefix("tir.")
        if name in _PLAIN:
            self.assembly(_PLAIN[name], [])
        elif name in _ON_BARRIER:
            self.assembly(
                _ON_BARRIER[name], [self._shared(call.args[0]), *(self._word(one) for one in call.args[1:])]
            )
        elif name in ("ptx_barrier_sync", "ptx_barrier_arrive"):
            how = name.rpartition("_")[2]
            self.assembly(f"bar.{how} %0, %1;", [self._word(one) for one in call.args])
        else:
            return False
        return True

    def _shared(self, pointer: PrimExpr) -> str:
        return f'"r"((unsigned int)__cvta_generic_to_shared({self.scalar(pointer)}))'

    def _word(self, value: PrimExpr) -> str:
        return f'"r"({self.scalar(value)})'

    def _registers(self, pointer: PrimExpr, count: int, constraint: str) -> list[str]:
        kind = "float" if constraint.endswith("f") else "unsigned int"
        text = self.scalar(pointer)
        return [f'"{constraint}"((({kind}*){text})[{place}])' for place in range(count)]

    def do_ptx_cp_async(self, call: Call) -> None:
        target, source, size, valid = call.args
        how = "cg" if _number(size) == 16 else "ca"
        inputs = [self._shared(target), f'"l"({self.scalar(source)})', self._word(valid)]
        self.assembly(f"cp.async.{how}.shared.global [%0], [%1], {_number(size)}, %2;", inputs)

    def do_ptx_cp_async_wait(self, call: Call) -> None:
        self.assembly(f"cp.async.wait_group {_number(call.args[0])};", [])

    def do_ptx_ldmatrix(self, call: Call) -> None:
        count, suffix = _number(call.args[0]), ".trans" if _number(call.args[1]) else ""
        names = ", ".join(f"%{place}" for place in range(count))
        text = f"ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {{{names}}}, [%{count}];"
        self.assembly(text, [self._shared(call.args[3])], self._registers(call.args[2], count, "=r"))

    def do_ptx_stmatrix(self, call: Call) -> None:
        count, suffix = _number(call.args[0]), ".trans" if _number(call.args[1]) else ""
        names = ", ".join(f"%{place + 1}" for place in range(count))
        text = f"stmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 [%0], {{{names}}};"
        self.assembly(text, [self._shared(call.args[2]), *self._registers(call.args[3], count, "r")])

    def do_ptx_mma(self, call: Call) -> None:
        words = [part.value for part in call.args[:4] if isinstance(part, StringImm)]
        shape, a_type, b_type, c_type = words
        counts = (
            registers(16, 8, c_type),
            registers(16, mma_k(shape), a_type),
            registers(8, mma_k(shape), b_type),
        )
        lists, first = [], 0
        for count in counts:
            lists.append("{" + ", ".join(f"%{first + place}" for place in range(count)) + "}")
            first += count
        types = ".".join(PTX_NAMES[kind] for kind in (c_type, a_type, b_type, c_type))
        text = f"mma.sync.aligned.{shape}.row.col.{types} {lists[0]}, {lists[1]}, {lists[2]}, {lists[0]};"
        inputs = self._registers(call.args[4], counts[1], "r") + self._registers(call.args[5], counts[2], "r")
        self.assembly(
            text, inputs, self._registers(call.args[6], counts[0], "+f" if c_type == "float32" else "+r")
        )


def _number(expr: PrimExpr) -> int:
    if not isinstance(expr, IntImm):
        raise CodegenError(f"an instruction takes a constant here, not {expr}")
    return expr.value
