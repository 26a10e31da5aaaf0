"""Attention on Hopper's tensor cores, without storing scores: ``softmax(scale * q @ k.T + mask) @ v`` for every head.

A group of four warps has 64 queries. Keys and values come by in blocks; the scores of a block stay in registers, where
their running maximum and sum turn them into weights, which multiply the values from registers again. The values of a
block are multiplied while the scores of the next are turned into weights: the matrix units and the other units of a
multiprocessor then work at the same time. Operands are read in place, with tokens before heads or after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, StringImm, Var
from tilewright.schedule.gpu.tensor_core.copies import TileCopies, TileShape
from tilewright.schedule.gpu.tensor_core.factors import Axis, Factor
from tilewright.schedule.gpu.tensor_core.multiply import GROUP_ROWS, GROUP_THREADS, STEP_BYTES
from tilewright.support.dtype import DataType
from tilewright.te.operation import thread_axis
from tilewright.te.tensor import Tensor
from tilewright.tir import ptx
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import exp2
from tilewright.tir.stmt import EXPLICIT_SYNC
from tilewright.topi.nn.attention import AXES, AttentionShape
from tilewright.topi.utils import get_const_tuple

LOWEST: Final = -1e30
"""Stands for the maximum of no scores: finite, so that differences from it are."""
PANEL: Final = 64
"""Channels in a row of 128 bytes."""
STAGES: Final = 2
KEYS: Final = 1
VALUES: Final = 2
ALL_LANES: Final = 0xFFFFFFFF


class AttentionKernel:
    """Builds the statement of one kernel: all threads of a block copy what they are going to multiply."""

    further_threads = 0
    """Threads of a block beside those that multiply."""

    def __init__(
        self,
        operands: Sequence[Tensor],
        shape: AttentionShape,
        scale: float,
        layouts: Sequence[str],
        first_heads: Sequence[int],
    ) -> None:
        self.operands, self.shape, self.layouts = operands, shape, layouts
        self.first_heads = first_heads
        self.kind = DataType(operands[0].dtype)
        # Scores are kept in units of log 2: the exponential of base two is an instruction. Without a mask they are
        # scaled when they are raised, which costs nothing there.
        self.scale = scale * math.log2(math.e)
        self.scales_late = len(operands) == 3 and scale > 0
        self.size = _up(shape.size, PANEL)
        self.value_size = _up(shape.value_size, PANEL)
        self.groups, self.keys = self._block_shape()
        self.queries = self.groups * GROUP_ROWS
        self.blocks = -(-shape.keys // self.keys)

    def _block_shape(self) -> tuple[int, int]:
        """How many groups of queries a block has, and how many keys it takes at a time."""
        # Few registers in use let several blocks share a multiprocessor; a long sequence has fewer, longer steps.
        return 1, 64 if self.shape.keys <= 128 or self.value_size > 64 else 128

    def emit(self, builder: IRBuilder, inputs: Sequence[BufferVar], outputs: Sequence[BufferVar]) -> None:
        """The whole kernel."""
        self.builder = builder
        self.mask = inputs[3] if len(inputs) > 3 else None
        self._launch()
        self._allocate()
        self._clear()
        copy_queries = self._copies(0, inputs[0], self.queries, self.first_query)
        copy_queries.copy(operators.const(0), self.tiles, operators.const(0))
        self.copies = {
            KEYS: self._copies(KEYS, inputs[1], self.keys, None),
            VALUES: self._copies(VALUES, inputs[2], self.keys, None),
        }
        first = operators.const(0)
        self._copy(KEYS, first)
        self._exchange()
        if self.blocks > 1:
            self._copy(KEYS, operators.const(1))
        self._copy(VALUES, first)
        self._multiply_keys(first)
        builder.emit(ptx.wgmma_wait(0))
        self._weigh(first)
        self._keep_weights()
        with builder.for_range(1, self.blocks, name="block") as block:
            self._block(block)
        self._exchange()
        self._multiply_values(operators.const(self.blocks - 1))
        builder.emit(ptx.wgmma_wait(0))
        self._store(outputs[0])

    # ---- what a block of threads has ----

    def _allocate(self) -> None:
        builder = self.builder
        elements = self.queries * self.size + STAGES * self.keys * (self.size + self.value_size)
        shared = builder.allocate("uint8", elements * self.kind.itemsize, "shared", "shared.dyn")
        self.tiles = BufferVar(builder, shared.asobject(), None, self.kind)
        self.weights = builder.allocate(self.kind, self.keys // 2, "weights", "local")
        self.shrink = builder.allocate("float32", 2, "shrink", "local")
        self.sums = builder.allocate("float32", self.value_size // 2, "sums", "local")
        self.largest = builder.allocate("float32", 2, "largest", "local")
        self.total = builder.allocate("float32", 2, "total", "local")

    def _clear(self) -> None:
        """Nothing was summed up yet."""
        for place in range(self.value_size // 2):
            self.sums[place] = operators.const(0.0, "float32")
        for half in range(2):
            self.largest[half] = operators.const(LOWEST, "float32")
            self.total[half] = operators.const(0.0, "float32")

    def _launch(self) -> None:
        shape, builder = self.shape, self.builder
        tile, head, thread = (thread_axis(tag) for tag in ("blockIdx.x", "blockIdx.y", "threadIdx.x"))
        builder.scope_attr(tile, "thread_extent", -(-shape.queries // self.queries))
        builder.scope_attr(head, "thread_extent", shape.batch * shape.heads)
        builder.scope_attr(thread, "thread_extent", self.groups * GROUP_THREADS + self.further_threads)
        builder.scope_attr("kernel", EXPLICIT_SYNC, 1)
        self.thread: Var = thread.var
        self.first_query = builder.let("first_query", tile.var * self.queries)
        self.batch = builder.let("batch", head.var // shape.heads)
        self.head = builder.let("head", head.var % shape.heads)
        self.lane = builder.let("lane", thread.var % 32)
        self.group = builder.let("group", thread.var // GROUP_THREADS)
        # A thread has two rows of its group's scores, eight apart, and of those every fourth pair of columns.
        self.row = builder.let("row", thread.var // 32 * 16 + self.lane // 4)
        self.column = builder.let("column", self.lane % 4 * 2)

    def _copies(self, number: int, source: BufferVar, tokens: int, first: PrimExpr | None) -> TileCopies:
        """Copies of one operand's tokens, a row of shared memory for each 64 channels of a token."""
        tensor, layout = self.operands[number], self.layouts[number]
        channels = self.shape.value_size if number == 2 else self.shape.size
        count = self.shape.queries if number == 0 else self.shape.keys
        token, channel = Axis(Var("token", "int32"), count), Axis(Var("channel", "int32"), channels)
        offset = operators.const(0) if first is None else first
        at = {
            "N": self.batch,
            "T": offset + token.var,
            "H": self.head + self.first_heads[number],
            "C": channel.var,
        }
        factor = Factor(tensor, tuple([at[letter] for letter in layout]), ())
        padded = self.value_size if number == 2 else self.size
        whole = count % tokens == 0
        return TileCopies(
            self.builder,
            factor,
            source,
            TileShape(padded, tokens, self.kind.itemsize, False),
            ([channel], [token]),
            operators.const(0),
            None if whole else count - offset,
            self.thread,
            GROUP_THREADS,
            _run(layout, channels, self.kind),
        )

    def _stage(self, number: int, block: PrimExpr) -> PrimExpr:
        """Where the keys (1) or values (2) of a block are in shared memory."""
        queries = self.queries * self.size
        each = self.keys * (self.size + self.value_size)
        return block % STAGES * each + (queries if number == KEYS else queries + self.keys * self.size)

    def _copy(self, number: int, block: PrimExpr) -> None:
        """Start copying the keys or values of a block."""
        self.copies[number].copy(block, self.tiles, self._stage(number, block))

    def _exchange(self) -> None:
        """Wait for all copies, and until every thread is done with what the next ones overwrite."""
        builder = self.builder
        builder.emit(ptx.cp_async_commit())
        builder.emit(ptx.cp_async_wait(0))
        builder.emit(ptx.fence_proxy_async())
        builder.emit(operators.call("tvm_storage_sync", "int32", [StringImm("shared")]))

    # ---- one block of keys ----

    def _block(self, block: PrimExpr) -> None:
        """The scores of a block, and what the weights of the one before make of its values."""
        builder = self.builder
        self._exchange()
        with builder.if_scope(block + 1 < self.blocks):
            self._copy(KEYS, block + 1)
        self._copy(VALUES, block)
        self._multiply_keys(block)
        self._multiply_values(block - 1)
        builder.emit(ptx.wgmma_wait(1))
        self._weigh(block)
        builder.emit(ptx.wgmma_wait(0))
        self._keep_weights()
        self._shrink_sums()

    def _shrink_sums(self) -> None:
        """Bring the sums so far under the new maximum."""
        for place in range(self.value_size // 2):
            self.sums[place] = self.sums[place] * self.shrink[place // 2 % 2]

    def _multiply_keys(self, block: PrimExpr) -> None:
        """The scores of this group's queries."""
        builder, item = self.builder, self.kind.itemsize
        # Registers of their own for each block: nothing then waits for what the last block left in them.
        self.scores = builder.allocate("float32", self.keys // 2, "scores", "local")
        step = STEP_BYTES // item
        builder.emit(ptx.wgmma_fence())
        for number in range(self.size // step):
            panel, within = divmod(number * step, PANEL)
            queries = self.group * (GROUP_ROWS * PANEL) + (panel * self.queries * PANEL + within)
            keys = self._stage(1, block) + (panel * self.keys * PANEL + within)
            builder.emit(
                ptx.wgmma(
                    self.keys,
                    *(str(self.kind), str(self.kind), "float32"),
                    ptx.wgmma_descriptor(
                        ptx.pointer(self.tiles, queries, "r", GROUP_ROWS * PANEL), 16, 1024, 128
                    ),
                    ptx.wgmma_descriptor(
                        ptx.pointer(self.tiles, keys, "r", self.keys * PANEL), 16, 1024, 128
                    ),
                    ptx.pointer(self.scores, 0, "rw", self.keys // 2),
                    scale_c=int(number > 0),
                )
            )
        builder.emit(ptx.wgmma_commit())

    def _weigh(self, block: PrimExpr) -> None:
        """Turn scores into weights, and note by how much the sums so far shrink under the new maximum."""
        builder, scores = self.builder, self.scores
        places = range(self.keys // 2)
        if not self.scales_late or self.shape.keys % self.keys:
            for place in places:
                scores[place] = self._score(place, block)
        for half in range(2):
            own = [place for place in places if place // 2 % 2 == half]
            before = builder.let("before", self.largest[half])
            found = self._over_row(
                _tree(operators.maximum, [scores[place] for place in own]), operators.maximum
            )
            now = builder.let("now", operators.maximum(before, found))
            self.largest[half] = now
            scale = operators.const(self.scale if self.scales_late else 1.0, "float32")
            limit = builder.let("limit", now * scale)
            shrink = builder.let("shrink", exp2(before * scale - limit))
            for place in own:
                scores[place] = exp2(scores[place] * scale - limit)
            fresh = _tree(operators.add, [scores[place] for place in own])
            self.total[half] = self.total[half] * shrink + fresh
            self.shrink[half] = shrink

    def _keep_weights(self) -> None:
        """Round the weights for the multiplication with the values, which must not be reading the last ones any more;
        in pairs, as registers hold them."""
        for place in range(0, self.keys // 2, 2):
            with self.builder.for_range(0, 2, name="pair", kind="vectorize") as pair:
                self.weights[pair + place] = operators.cast(self.kind, self.scores[pair + place])

    def _score(self, place: int, block: PrimExpr) -> PrimExpr:
        """A score in units of log 2, with the mask; the lowest where there is no key."""
        key = block * self.keys + (place // 4 * 8 + place % 2) + self.column
        score: PrimExpr = self.scores[place]
        if not self.scales_late:
            score = score * operators.const(self.scale, "float32")
        if self.mask is not None:
            query = self.first_query + self.row + place // 2 % 2 * 8
            extents = get_const_tuple(self.operands[3].shape)
            inside = [
                operators.minimum(one, extent - 1)
                for one, extent in zip((key, query), extents[2:], strict=True)
            ]
            at = [
                operators.const(0) if extent == 1 else index
                for extent, index in zip(extents, (self.batch, self.head, *inside), strict=True)
            ]
            added = operators.cast("float32", self.mask[tuple(at)])
            score = score + added * operators.const(math.log2(math.e), "float32")
        if self.shape.keys % self.keys == 0:
            return score
        return operators.call(
            "if_then_else", "float32", [key < self.shape.keys, score, operators.const(LOWEST, "float32")]
        )

    def _over_row(self, value: PrimExpr, combine: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> PrimExpr:
        """Combine what the four threads of a row have."""
        mask = operators.const(ALL_LANES, "uint32")
        for distance in (1, 2):
            value = self.builder.let("part", value)
            other = operators.call("tvm_warp_shuffle", "float32", [mask, value, self.lane ^ distance, 32, 32])
            value = combine(value, other)
        return value

    def _multiply_values(self, block: PrimExpr) -> None:
        """Add what the weights make of the values of a block to the sums."""
        builder, item = self.builder, self.kind.itemsize
        step = STEP_BYTES // item
        builder.emit(ptx.wgmma_fence())
        for number in range(self.keys // step):
            values = self._stage(2, block) + number * step * PANEL
            builder.emit(
                ptx.wgmma(
                    self.value_size,
                    *(str(self.kind), str(self.kind), "float32"),
                    ptx.pointer(self.weights, number * 8, "r", 8),
                    ptx.wgmma_descriptor(
                        ptx.pointer(self.tiles, values, "r", self.keys * self.value_size),
                        self.keys * PANEL * item,
                        1024,
                        128,
                    ),
                    ptx.pointer(self.sums, 0, "rw", self.value_size // 2),
                    b_transposed=True,
                )
            )
        builder.emit(ptx.wgmma_commit())

    # ---- the result ----

    def _store(self, output: BufferVar) -> None:
        builder, shape = self.builder, self.shape
        for half in range(2):
            total = self._over_row(self.total[half], operators.add)
            scale = builder.let("scale", operators.const(1.0, "float32") / total)
            query = builder.let("query", self.first_query + self.row + half * 8)
            exists = operators.const_true() if shape.queries % self.queries == 0 else query < shape.queries
            with builder.if_scope(exists):
                for tile in range(self.value_size // 8):
                    if tile * 8 >= shape.value_size:
                        break
                    with builder.for_range(0, 2, name="pair", kind="vectorize") as pair:
                        at = dict(
                            zip(
                                AXES,
                                (self.batch, query, self.head, self.column + (tile * 8) + pair),
                                strict=True,
                            )
                        )
                        value = self.sums[pair + (tile * 4 + half * 2)] * scale
                        output[tuple([at[letter] for letter in self.layouts[3]])] = operators.cast(
                            self.kind, value
                        )


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _run(layout: str, channels: int, kind: DataType) -> int:
    """How many channels are adjacent and aligned."""
    if layout[-1] != "C":
        return 1
    run = 16 // kind.itemsize
    while channels % run:
        run //= 2
    return run


def _tree(combine: Callable[[PrimExpr, PrimExpr], PrimExpr], values: Sequence[PrimExpr]) -> PrimExpr:
    """All values combined pairwise: neighbours first, so that few operations wait for each other."""
    while len(values) > 1:
        pairs = [combine(*values[place : place + 2]) for place in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[2 * len(pairs) :]]
    return values[0]
