"""Attention of few queries to many keys, as in decoding one token at a time: bound by the memory of keys and values.

Vectors run along channels, and the rows of keys and values are read once, in place and in their type, for all queries
of all heads that share them. Keys are processed in blocks with a running softmax: what was summed before is scaled when
a larger score appears. Where there are fewer heads than cores, the keys are split as well, and the parts combined at
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Select
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import exp
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.nn.attention import AXES, AttentionShape
from tilewright.topi.utils import get_const_tuple

MOST_ROWS: Final = 8
"""Queries, of all heads that share keys, up to which keys and values are read in place."""
BLOCK: Final = 64
"""Keys between which the largest score is updated."""
FEWEST_KEYS: Final = 128
"""Keys from which a part of them is worth a task."""
AHEAD: Final = 8192
"""How far ahead of their use, in bytes, keys and values are prefetched."""
LOWEST: Final = -87.0
"""A score this far below the maximum of its row counts as zero: its exponential would be a subnormal number, and
arithmetic on those is a hundred times slower."""

Place = Callable[[PrimExpr, PrimExpr, PrimExpr, PrimExpr], PrimExpr]
"""(batch, token, head, channel) to the index of an element."""


def reads_few_queries(shape: AttentionShape, layouts: Sequence[str]) -> bool:
    """True if attention has so few queries that vectors should run along channels, which are contiguous."""
    contiguous = all(layout.endswith("C") for layout in layouts)
    return contiguous and shape.queries * shape.shared <= MOST_ROWS


def element_place(layout: str, shape: Sequence[int], first_head: int = 0) -> Place:
    """The flat index of an element of a tensor with this layout and shape."""
    strides: dict[str, int] = {}
    step = 1
    for letter, extent in zip(reversed(layout), reversed(shape), strict=True):
        strides[letter] = step
        step *= extent
    offset = first_head * strides["H"]

    def place(batch: PrimExpr, token: PrimExpr, head: PrimExpr, channel: PrimExpr) -> PrimExpr:
        at = zip(AXES, (batch, token, head, channel), strict=True)
        return sum((index * strides[letter] for letter, index in at), operators.as_expr(offset))

    return place


def attention_of_few_queries(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    shape: AttentionShape,
    scale: float,
    layouts: Sequence[str],
    first_heads: Sequence[int],
) -> Tensor:
    """``topi.nn.attention`` as an explicit loop nest for the current target."""
    given = [query, key, value] if mask is None else [query, key, value, mask]
    shapes = [tuple(int(extent) for extent in get_const_tuple(one.shape)) for one in given]
    kernel = _FewQueries(shape, scale, layouts, first_heads, shapes)
    return loop_kernel("attention", given, [(shape.result(layouts[3]), str(query.dtype))], kernel.emit)[0]


class _FewQueries:
    """Generates the loop nest. A task is a part of the keys of one head; its rows are the queries that read them."""

    def __init__(
        self,
        shape: AttentionShape,
        scale: float,
        layouts: Sequence[str],
        first_heads: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self.shape, self.scale = shape, scale
        self.places = [
            element_place(*each) for each in zip(layouts[:3], shapes[:3], first_heads, strict=True)
        ]
        self.result_place = element_place(layouts[3], shape.result(layouts[3]))
        self.mask_shape = shapes[3] if len(shapes) > 3 else None
        self.rows = shape.shared * shape.queries
        self.heads = shape.batch * (shape.heads // shape.shared)
        cpu = current_cpu()
        self.cpu = cpu
        blocks = -(-shape.keys // BLOCK)
        most = max(1, min(-(-cpu.cores // self.heads), shape.keys // FEWEST_KEYS))
        if self.heads % cpu.cores and self.heads < 4 * cpu.cores:
            most = max(1, min(cpu.cores, shape.keys // FEWEST_KEYS))
        self.blocks_each = -(-blocks // most)
        self.parts = -(-blocks // self.blocks_each)

    def emit(self, builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        """Write the loops."""
        shape = self.shape
        self.builder, self.out = builder, outs[0]
        self.query, self.key, self.value = ins[:3]
        self.mask = ins[3] if len(ins) > 3 else None
        self.dtype = "float64" if str(ins[0].dtype) == "float64" else "float32"
        self.lanes = lanes_of(self.cpu, self.dtype)
        self.padded = -(-shape.value_size // self.lanes) * self.lanes
        tasks = self.heads * self.parts
        count = tasks * self.rows
        self.partial = builder.allocate(self.dtype, (count * self.padded,), name="partial")
        self.largest = builder.allocate(self.dtype, (count,), name="largest")
        self.sums = builder.allocate(self.dtype, (count,), name="sums")
        work = self.heads * self.rows * shape.keys * (shape.size + shape.value_size)
        kind = "parallel" if work >= self.cpu.parallel_work and tasks > 1 else "serial"
        with builder.for_range(0, tasks, name="task", kind=kind) as task:
            self.task = task
            number = builder.let("number", operators.floordiv(task, self.parts))
            key_heads = shape.heads // shape.shared
            self.batch = builder.let("batch", operators.floordiv(number, key_heads))
            self.head = builder.let("head", operators.floormod(number, key_heads))
            self._task(builder.let("part", operators.floormod(task, self.parts)))
        with builder.for_range(0, self.heads, name="number") as number:
            self._combine(number)

    def _lane(self, lanes: int) -> Any:
        return self.builder.for_range(0, lanes, name="lane", kind="vectorize")

    def _vectors(self, count: int) -> list[tuple[int, int]]:
        return [(start, min(self.lanes, count - start)) for start in range(0, count, self.lanes)]

    def _const(self, value: float) -> PrimExpr:
        return operators.const(value, self.dtype)

    def _query_of(self, row: int) -> tuple[int, int]:
        """The head, among those that share keys, and the query of a row."""
        return divmod(row, self.shape.queries)

    def _task(self, part: PrimExpr) -> None:
        builder, shape, rows = self.builder, self.shape, self.rows
        queries = builder.allocate(self.dtype, (rows * shape.size,), name="queries", scope="global")
        for row in range(rows):
            head, query = self._query_of(row)
            for start, lanes in self._vectors(shape.size):
                with self._lane(lanes) as lane:
                    at = self.places[0](
                        self.batch, operators.const(query), self.head * shape.shared + head, lane + start
                    )
                    scaled = self.query[at].astype(self.dtype) * self._const(self.scale)
                    queries[lane + (row * shape.size + start)] = scaled
            self.largest[self.task * rows + row] = self._const(float("-inf"))
            self.sums[self.task * rows + row] = self._const(0.0)
            for start in range(0, self.padded, self.lanes):
                with self._lane(self.lanes) as lane:
                    self.partial[self._partial_at(row) + start + lane] = self._const(0.0)
        scores = builder.allocate(self.dtype, (rows * BLOCK,), name="scores", scope="global")
        first = part * self.blocks_each
        whole, rest = divmod(shape.keys, BLOCK)
        last = operators.minimum(first + self.blocks_each, whole)
        with builder.for_range(first, last, name="block") as block:
            self._block(queries, scores, block * BLOCK, BLOCK)
        if rest:
            with builder.if_scope(operators.equal(part, self.parts - 1)):
                self._block(queries, scores, operators.const(whole * BLOCK, "int32"), rest)

    def _partial_at(self, row: int) -> PrimExpr:
        place: PrimExpr = (self.task * self.rows + row) * self.padded
        return place

    def _block(self, queries: BufferVar, scores: BufferVar, first: PrimExpr, count: int) -> None:
        """Adds the values of ``count`` keys from ``first``."""
        builder = self.builder
        with builder.for_range(0, count, name="token") as token:
            self._prefetch(self.key, self.places[1], first + token, self.shape.size)
            self._score(queries, scores, first, token)
        for row in range(self.rows):
            self._weigh(scores, row, count)
        self._add_values(scores, first, count)

    def _prefetch(self, source: BufferVar, place: Place, token: PrimExpr, channels: int) -> None:
        if not self.cpu.has_prefetch:
            return
        size = source.dtype.bits // 8
        ahead = max(1, AHEAD // (channels * size))
        for start in range(0, channels, max(1, self.cpu.cache_line_bytes // size)):
            at = place(self.batch, token + ahead, self.head, operators.const(start))
            address = operators.call("address_of", "handle", [source[at]])
            self.builder.emit(operators.call("prefetch", "int32", [address, 0, 3, 1]))

    def _score(self, queries: BufferVar, scores: BufferVar, first: PrimExpr, token: PrimExpr) -> None:
        """The scores of one key."""
        builder, shape, rows, lanes = self.builder, self.shape, self.rows, self.lanes
        with builder.new_scope():
            total = builder.allocate(self.dtype, (rows * lanes,), name="total", scope="local")
            for row in range(rows):
                with self._lane(lanes) as lane:
                    total[lane + row * lanes] = self._const(0.0)
            for start, count in self._vectors(shape.size):
                for row in range(rows):
                    with self._lane(count) as lane:
                        at = self.places[1](self.batch, first + token, self.head, lane + start)
                        number = self.key[at].astype(self.dtype)
                        factor = queries[lane + (row * shape.size + start)]
                        total[lane + row * lanes] = total[lane + row * lanes] + number * factor
            width = lanes // 2
            while width:
                for row in range(rows):
                    with self._lane(width) as lane:
                        at = lane + row * lanes
                        total[at] = total[at] + total[at + width]
                width //= 2
            for row in range(rows):
                scores[token + row * BLOCK] = self._masked(total[row * lanes], row, first + token)

    def _masked(self, score: PrimExpr, row: int, key: PrimExpr) -> PrimExpr:
        head, query = self._query_of(row)
        shape = self.shape
        if self.mask is not None and self.mask_shape is not None:
            batch, heads, keys, queries = self.mask_shape
            line = (self.batch if batch > 1 else 0) * heads
            line = line + (self.head * shape.shared + head if heads > 1 else 0)
            at = (line * keys + key) * queries + (query if queries > 1 else 0)
            score = score + self.mask[at].astype(self.dtype)
        if shape.diagonal is not None:
            score = Select(key <= query + shape.diagonal, score, self._const(float("-inf")))
        return score

    def _weigh(self, scores: BufferVar, row: int, count: int) -> None:
        """Replaces the scores of a row by their exponentials, and scales what was summed before."""
        builder, lanes = self.builder, self.lanes
        at = self.task * self.rows + row
        with builder.new_scope():
            state = builder.allocate(self.dtype, (3,), name="state", scope="local")
            before = state[0]
            state[0] = self.largest[at]
            state[1] = state[0]
            self._reduce(
                scores,
                row,
                count,
                state,
                1,
                float("-inf"),
                lambda one, other: Select(one > other, one, other),
            )
            # While no key is seen, nothing was summed.
            none = operators.equal(state[1], self._const(float("-inf")))
            shift = builder.let("shift", Select(none, self._const(0.0), state[1]))
            old = before - shift
            zero = self._const(0.0)
            factor = builder.let("factor", Select(old < self._const(LOWEST), zero, exp(old)))
            for start, width in self._vectors(count):
                with self._lane(width) as lane:
                    place = lane + (row * BLOCK + start)
                    below = scores[place] - shift
                    scores[place] = Select(below < self._const(LOWEST), zero, exp(below))
            state[2] = self._const(0.0)
            self._reduce(scores, row, count, state, 2, 0.0, lambda one, other: one + other)
            self.sums[at] = self.sums[at] * factor + state[2]
            self.largest[at] = state[1]
            for start in range(0, self.padded, lanes):
                with self._lane(lanes) as lane:
                    place = self._partial_at(row) + start + lane
                    self.partial[place] = self.partial[place] * factor

    def _reduce(
        self,
        scores: BufferVar,
        row: int,
        count: int,
        state: BufferVar,
        place: int,
        start: float,
        combine: Callable[[PrimExpr, PrimExpr], PrimExpr],
    ) -> None:
        """Combines the scores of a row, and what ``state`` has, there."""
        lanes = self.lanes
        line = self.builder.allocate(self.dtype, (lanes,), name="line", scope="local")
        with self._lane(lanes) as lane:
            line[lane] = self._const(start)
        for first, width in self._vectors(count):
            with self._lane(width) as lane:
                line[lane] = combine(line[lane], scores[lane + (row * BLOCK + first)])
        width = lanes // 2
        while width:
            with self._lane(width) as lane:
                line[lane] = combine(line[lane], line[lane + width])
            width //= 2
        state[place] = combine(state[place], line[0])

    def _add_values(self, scores: BufferVar, first: PrimExpr, count: int) -> None:
        builder, lanes, size = self.builder, self.lanes, self.shape.value_size
        room = max(1, (self.cpu.vector_registers - 4) // self.rows)
        step = room * lanes
        for column in range(0, size, step):
            across = min(step, size - column)
            vectors = self._vectors(across)
            with builder.new_scope():
                total = builder.allocate(
                    self.dtype, (self.rows * len(vectors) * lanes,), name="total", scope="local"
                )

                def place(row: int, start: int, width: int = len(vectors) * lanes) -> int:
                    return row * width + start

                for row in range(self.rows):
                    for start, _ in vectors:
                        with self._lane(lanes) as lane:
                            loaded = self.partial[self._partial_at(row) + (column + start) + lane]
                            total[lane + place(row, start)] = loaded
                with builder.for_range(0, count, name="token") as token:
                    if column == 0:
                        self._prefetch(self.value, self.places[2], first + token, size)
                    for start, width in vectors:
                        for row in range(self.rows):
                            with self._lane(width) as lane:
                                at = self.places[2](
                                    self.batch, first + token, self.head, lane + (column + start)
                                )
                                number = self.value[at].astype(self.dtype)
                                target = lane + place(row, start)
                                total[target] = total[target] + scores[token + row * BLOCK] * number
                for row in range(self.rows):
                    for start, _ in vectors:
                        with self._lane(lanes) as lane:
                            made = total[lane + place(row, start)]
                            self.partial[self._partial_at(row) + (column + start) + lane] = made

    def _combine(self, number: PrimExpr) -> None:
        """Stores the results of one head of keys."""
        builder, shape, rows = self.builder, self.shape, self.rows
        key_heads = shape.heads // shape.shared
        batch = builder.let("batch", operators.floordiv(number, key_heads))
        shared_head = builder.let("head", operators.floormod(number, key_heads))
        for row in range(rows):
            head, query = self._query_of(row)
            with builder.new_scope():
                state = builder.allocate(self.dtype, (2,), name="state", scope="local")
                state[0], state[1] = self._const(float("-inf")), self._const(0.0)
                with builder.for_range(0, self.parts, name="part") as part:
                    found = self.largest[(number * self.parts + part) * rows + row]
                    state[0] = Select(found > state[0], found, state[0])
                factors = builder.allocate(self.dtype, (self.parts,), name="factors", scope="global")
                with builder.for_range(0, self.parts, name="part") as part:
                    at = (number * self.parts + part) * rows + row
                    below = self.largest[at] - state[0]
                    factors[part] = Select(below < self._const(LOWEST), self._const(0.0), exp(below))
                    state[1] = state[1] + self.sums[at] * factors[part]
                inverse = builder.let("inverse", self._const(1.0) / state[1])
                for start, lanes in self._vectors(shape.value_size):
                    total = builder.allocate(self.dtype, (lanes,), name="total", scope="local")
                    with self._lane(lanes) as lane:
                        total[lane] = self._const(0.0)
                    with builder.for_range(0, self.parts, name="part") as part, self._lane(lanes) as lane:
                        at = ((number * self.parts + part) * rows + row) * self.padded + start
                        total[lane] = total[lane] + self.partial[at + lane] * factors[part]
                    with self._lane(lanes) as lane:
                        at = self.result_place(
                            batch, operators.const(query), shared_head * shape.shared + head, lane + start
                        )
                        self.out[at] = (total[lane] * inverse).astype(str(self.out.dtype))
