"""Attention whose keys and values the copy engine fetches, for long sequences.

Several groups of four warps, each with its own queries, read the same keys and values from shared memory. One thread of
a further group asks the engine for them as their places become free: a barrier in memory for each place says that it
was filled, a second one that all have read it. The groups hand the matrix units to each other, so that one multiplies
while another raises its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, StringImm, Var
from tilewright.schedule.gpu.tensor_core.attention_kernel import KEYS, PANEL, STAGES, VALUES, AttentionKernel
from tilewright.schedule.gpu.tensor_core.copies import ROW_BYTES
from tilewright.schedule.gpu.tensor_core.multiply import GROUP_ROWS, GROUP_THREADS
from tilewright.tir import ptx
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.nn.attention import AttentionShape
from tilewright.topi.utils import get_const_tuple

WARP: Final = 32
BOX: Final = GROUP_ROWS
"""Tokens that the engine fetches at a time, in one panel of channels: the same for all operands, since several may be
parts of one tensor, which has one description."""
QUERIES: Final = 0


FEWEST_KEYS: Final = 512
"""Shorter sequences end before the first copies have paid."""


@dataclass(frozen=True)
class Plan:
    """How a block is made up. A thread that multiplies has ``registers``, the others leave them theirs."""

    groups: int
    keys: int
    registers: int
    registers_left: int
    gain: float
    """How many times faster it is than a kernel whose threads copy, where every multiprocessor has a block."""


WIDE_HEADS: Final = Plan(2, 128, 240, 24, 1.2)
NARROW_HEADS: Final = Plan(3, 128, 160, 32, 1.1)


def _plan(shape: AttentionShape) -> Plan:
    return WIDE_HEADS if max(shape.size, shape.value_size) > PANEL else NARROW_HEADS


def bulk_attention_pays(
    shape: AttentionShape, layouts: Sequence[str], is_masked: bool, multiprocessors: int
) -> bool:
    """Whether the engine can fetch the operands, and the kernel is the faster one. A multiprocessor has one block at a
    time: where the last blocks leave many without work, smaller blocks are faster."""
    plan = _plan(shape)
    if is_masked or shape.keys < FEWEST_KEYS or any(layout[-1] != "C" for layout in layouts[:3]):
        return False
    heads, block_queries = shape.batch * shape.heads, plan.groups * GROUP_ROWS
    blocks = -(-shape.queries // block_queries) * heads
    rounds = -(-blocks // multiprocessors)
    used = shape.queries * heads / (rounds * multiprocessors * block_queries)
    return plan.gain * used > 1


class BulkAttentionKernel(AttentionKernel):
    """Builds the statement of one kernel."""

    further_threads = GROUP_THREADS

    def _block_shape(self) -> tuple[int, int]:
        self.plan = _plan(self.shape)
        return self.plan.groups, self.plan.keys

    def emit(self, builder: IRBuilder, inputs: Sequence[BufferVar], outputs: Sequence[BufferVar]) -> None:
        """The whole kernel."""
        self.builder = builder
        self.mask = inputs[3] if len(inputs) > 3 else None
        self.memory = inputs[:3]
        self._launch()
        for memory, number in self._tensors().items():
            builder.scope_attr(memory, ptx.TENSOR_MAP, self._tensor_map(number))
        self._allocate()
        self.full = builder.allocate("uint64", 1 + 2 * STAGES, "full", "shared")
        self.free = builder.allocate("uint64", 1 + 2 * STAGES, "free", "shared")
        multiplying = self.groups * GROUP_THREADS
        with builder.if_scope(self.thread.equal(multiplying)):
            self._begin()
        builder.emit(operators.call("tvm_storage_sync", "int32", [StringImm("shared")]))
        with builder.if_scope(self.thread < multiplying):
            builder.emit(ptx.set_max_registers(self.plan.registers, True))
            self._clear()
            self._attend()
            self._store(outputs[0])
        with builder.else_scope():
            builder.emit(ptx.set_max_registers(self.plan.registers_left, False))
            with builder.if_scope(self.thread.equal(multiplying)):
                self._fetch_later()

    # ---- what the copy engine does ----

    def _tensors(self) -> dict[Var, int]:
        """The tensors that are read, each with the first operand that is in it."""
        return {one.asobject(): number for number, one in reversed(list(enumerate(self.memory)))}

    def _tensor_map(self, number: int) -> PrimExpr:
        """An operand as the engine sees it: rows of 128 bytes, of one head."""
        layout = self.layouts[number]
        extents = get_const_tuple(self.operands[number].shape)
        strides = [1]
        for extent in reversed(extents[1:]):
            strides.insert(0, strides[0] * extent)
        box = [{"T": BOX, "C": PANEL}.get(letter, 1) for letter in layout]
        return ptx.tensor_map(str(self.kind), extents, strides, box, ROW_BYTES)

    def _begin(self) -> None:
        """Prepare the barriers, and fetch what there is place for."""
        builder = self.builder
        for memory in self._tensors():
            builder.emit(ptx.prefetch_tensor_map(memory))
        for barrier in range(1 + 2 * STAGES):
            builder.emit(ptx.mbarrier_init(ptx.pointer(self.full, barrier, "w"), 1))
            # Each warp that multiplies says that it has read a place.
            warps = self.groups * GROUP_THREADS // WARP
            builder.emit(ptx.mbarrier_init(ptx.pointer(self.free, barrier, "w"), warps))
        builder.emit(ptx.fence_mbarrier_init())
        self._fetch(QUERIES, operators.const(0))
        for block in range(min(STAGES, self.blocks)):
            for number in (KEYS, VALUES):
                self._fetch(number, operators.const(block))

    def _fetch_later(self) -> None:
        """Fetch the other blocks, each once the one whose place it takes was read."""
        if self.blocks <= STAGES:
            return
        with self.builder.for_range(STAGES, self.blocks, name="block") as block:
            for number in (KEYS, VALUES):
                free = ptx.pointer(self.free, self._barrier(number, block), "r")
                self.builder.emit(ptx.mbarrier_wait(free, (block // STAGES + 1) % 2))
                self._fetch(number, block)

    def _fetch(self, number: int, block: PrimExpr) -> None:
        """Ask for the queries of all groups, or the keys or values of a block."""
        builder = self.builder
        tokens = self.queries if number == QUERIES else self.keys
        channels = self.value_size if number == VALUES else self.size
        first = self.first_query if number == QUERIES else block * self.keys
        start = operators.const(0) if number == QUERIES else self._stage(number, block)
        full = ptx.pointer(self.full, self._barrier(number, block))
        builder.emit(ptx.mbarrier_arrive_expect_tx(full, tokens * channels * self.kind.itemsize))
        for panel in range(channels // PANEL):
            for part in range(tokens // BOX):
                at = {
                    "N": self.batch,
                    "T": first + part * BOX,
                    "H": self.head + self.first_heads[number],
                    "C": operators.const(panel * PANEL),
                }
                place = start + (panel * tokens + part * BOX) * PANEL
                builder.emit(
                    ptx.bulk_tensor_load(
                        ptx.pointer(self.tiles, place, "w", BOX * PANEL),
                        self.memory[number].asobject(),
                        full,
                        [at[letter] for letter in self.layouts[number]],
                    )
                )

    def _barrier(self, number: int, block: PrimExpr) -> PrimExpr:
        """Which barrier belongs to the place of the queries, or of the keys or values of a block."""
        return block % STAGES * 2 + number if number != QUERIES else operators.const(0)

    # ---- what a group does ----

    def _attend(self) -> None:
        first = operators.const(0)
        self._await(QUERIES, first)
        self._await(KEYS, first)
        self._multiply_keys(first)
        self.builder.emit(ptx.wgmma_wait(0))
        self._release(KEYS, first)
        self._weigh(first)
        self._keep_weights()
        with self.builder.for_range(1, self.blocks, name="block") as block:
            self._step(block)
        last = operators.const(self.blocks - 1)
        self._await(VALUES, last)
        self._multiply_values(last)
        self.builder.emit(ptx.wgmma_wait(0))

    def _step(self, block: PrimExpr) -> None:
        """The scores of a block, and what the weights of the one before make of its values."""
        builder = self.builder
        self._await(KEYS, block)
        # The first group begins; the last hands over to it, unless it is done.
        following = (self.group + 1) % self.groups
        with builder.if_scope(operators.logical_or(self.group > 0, block > 1)):
            builder.emit(ptx.barrier_sync(self.group + 1, 2 * GROUP_THREADS))
        self._multiply_keys(block)
        self._await(VALUES, block - 1)
        self._multiply_values(block - 1)
        with builder.if_scope(operators.logical_or(following > 0, block + 1 < self.blocks)):
            builder.emit(ptx.barrier_arrive(following + 1, 2 * GROUP_THREADS))
        builder.emit(ptx.wgmma_wait(1))
        self._release(KEYS, block)
        self._weigh(block)
        builder.emit(ptx.wgmma_wait(0))
        self._release(VALUES, block - 1)
        self._keep_weights()
        self._shrink_sums()

    def _await(self, number: int, block: PrimExpr) -> None:
        """Wait until something is in its place."""
        full = ptx.pointer(self.full, self._barrier(number, block), "r")
        self.builder.emit(ptx.mbarrier_wait(full, block // STAGES % 2))

    def _release(self, number: int, block: PrimExpr) -> None:
        """Say that this warp has read the keys or values of a block."""
        with self.builder.if_scope(self.lane.equal(0)):
            self.builder.emit(ptx.mbarrier_arrive(ptx.pointer(self.free, self._barrier(number, block))))
