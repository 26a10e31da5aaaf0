"""Attention without materializing the score matrix: ``softmax(scale * q @ k.T + mask) @ v`` for every head.

A block of queries is processed at a time, so that its scores against all keys stay in the caches of a core. Vectors run
along queries, so queries are transposed (and scaled) when they are loaded. Scores are stored as (keys, queries): the
softmax reduces along columns without horizontal vector operations, and the scores are the scalars of the second GEMM.
Operands are read in place, with tokens before heads or after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Select
from tilewright.schedule.cpu.few_queries import (
    LOWEST,
    Place,
    attention_of_few_queries,
    element_place,
    reads_few_queries,
)
from tilewright.schedule.cpu.loops import is_balanced
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.tile_model import Tile, TileProblem, choose_tile
from tilewright.target.cpu import CPUDescription
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import exp
from tilewright.topi.arguments import check_tensor
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.nn.attention import AttentionShape
from tilewright.topi.utils import get_const_tuple


def attention(
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
    for tensor in given:
        check_tensor("attention", tensor)
    result = shape.result(layouts[3])
    if reads_few_queries(shape, layouts):
        return attention_of_few_queries(query, key, value, mask, shape, scale, layouts, first_heads)
    kernel = _Kernel(shape, scale, tuple(layouts), tuple(first_heads), [_extents(one) for one in given])
    return loop_kernel("attention", given, [(result, str(query.dtype))], kernel.emit)[0]


def _extents(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(extent) for extent in get_const_tuple(tensor.shape))


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


class _Kernel:
    """Generates the loop nest of one attention. A task is a number of query blocks of one head."""

    def __init__(
        self,
        shape: AttentionShape,
        scale: float,
        layouts: tuple[str, ...],
        first_heads: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self.shape = shape
        self.scale = scale
        self.places = [
            element_place(*each) for each in zip(layouts[:3], shapes[:3], first_heads, strict=True)
        ]
        self.result_place = element_place(layouts[3], shape.result(layouts[3]))
        self.mask_shape = shapes[3] if len(shapes) > 3 else None

    def emit(self, builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        shape = self.shape
        self.builder, self.out = builder, outs[0]
        self.query, self.mask = ins[0], ins[3] if len(ins) > 3 else None
        self.dtype = "float64" if str(ins[0].dtype) == "float64" else "float32"
        cpu = current_cpu()
        self.lanes = lanes_of(cpu, self.dtype)
        width = _up(shape.queries, self.lanes)
        self.tile = choose_tile(
            cpu, TileProblem((shape.keys, 1), width, 4 * self.lanes, 1, self.lanes, shape.size, True, True)
        )
        self.padded = _up(shape.value_size, self.lanes)
        blocks, rest = divmod(shape.queries, self.tile.columns)
        heads = shape.batch * shape.heads
        parts = _parts(heads, max(blocks, 1), cpu)
        each = -(-blocks // parts)
        work = heads * shape.queries * shape.keys * (shape.size + shape.value_size)
        kind = "parallel" if work >= cpu.parallel_work else "serial"
        with builder.for_range(0, heads * parts, name="task", kind=kind) as task:
            number = operators.floordiv(task, parts)
            self.part = builder.let("part", operators.floormod(task, parts))
            self.batch = builder.let("batch", operators.floordiv(number, shape.heads))
            self.head = builder.let("head", operators.floormod(number, shape.heads))
            self.shared_head = self.head
            if shape.shared > 1:
                self.shared_head = builder.let("shared_head", operators.floordiv(self.head, shape.shared))
            self.keys = self._taken_in(ins[1], self.places[1], shape.size, shape.size, "keys")
            self.values = self._taken_in(ins[2], self.places[2], shape.value_size, self.padded, "values")
            if blocks:
                last = operators.minimum((self.part + 1) * each, blocks)
                with builder.for_range(self.part * each, last, name="block") as block:
                    self._block(block * self.tile.columns, self.tile.columns)
            if rest:
                with builder.if_scope(operators.equal(self.part, parts - 1)):
                    self._block(operators.const(blocks * self.tile.columns, "int32"), rest)

    def _vectors(self, count: int) -> list[tuple[int, int]]:
        """The start and the lanes of each vector that covers ``count`` elements; the last one may be shorter."""
        return [(start, min(self.lanes, count - start)) for start in range(0, count, self.lanes)]

    def _taken_in(self, source: BufferVar, place: Place, count: int, padded: int, name: str) -> BufferVar:
        """Copies the keys or values of a head into contiguous rows, padded with zeros."""
        builder, tokens = self.builder, self.shape.keys
        taken = builder.allocate(self.dtype, (tokens * padded,), name=name, scope="global")
        with builder.for_range(0, tokens, name="token") as token:
            for start, lanes in self._vectors(count):
                with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                    element = source[place(self.batch, token, self.shared_head, lane + start)]
                    taken[token * padded + start + lane] = element.astype(self.dtype)
            if padded > count:
                with builder.for_range(0, padded - count, name="lane", kind="vectorize") as lane:
                    taken[token * padded + count + lane] = operators.const(0, self.dtype)
        return taken

    def _block(self, first: PrimExpr, columns: int) -> None:
        """Computes the results of ``columns`` queries starting at ``first``."""
        builder, shape = self.builder, self.shape
        width = _up(columns, self.lanes)
        transposed = self._transposed(first, columns, width)
        scores = builder.allocate(self.dtype, (shape.keys * width,), name="scores", scope="global")
        largest = builder.allocate(self.dtype, (width,), name="largest", scope="local")
        self._fill(largest, width, float("-inf"))
        rows = self.tile.rows[0]
        groups, rest = divmod(shape.keys, rows)
        seen: PrimExpr = operators.const(shape.keys, "int32")
        whole: PrimExpr = operators.const(groups, "int32")
        if shape.diagonal is not None:
            # Keys that no query of the block sees are skipped.
            wanted = operators.maximum(first + (columns + shape.diagonal), 1)
            whole = builder.let(
                "whole", operators.minimum(operators.floordiv(wanted + (rows - 1), rows), groups)
            )
            beyond = wanted > groups * rows
            seen = builder.let("seen", Select(beyond, seen, whole * rows))
        with builder.for_range(0, whole, name="group") as group:
            self._scores(transposed, scores, largest, (first, columns), group * rows, rows)
        if rest:
            with builder.if_scope(seen > groups * rows):
                last = operators.const(groups * rows, "int32")
                self._scores(transposed, scores, largest, (first, columns), last, rest)
        self.seen = seen
        inverse = self._raised(scores, largest, width)
        tile = choose_tile(
            current_cpu(),
            TileProblem((columns, 1), self.padded, 4 * self.lanes, 1, self.lanes, shape.keys, True, True),
        )
        rows = tile.rows[0]
        with builder.for_range(0, columns // rows, name="group") as group:
            self._weighted(scores, inverse, first, width, group * rows, rows, tile)
        if columns % rows:
            whole = operators.const(columns // rows * rows, "int32")
            self._weighted(scores, inverse, first, width, whole, columns % rows, tile)

    def _fill(self, target: BufferVar, count: int, value: float) -> None:
        for start, lanes in self._vectors(count):
            with self.builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                target[lane + start] = operators.const(value, self.dtype)

    def _transposed(self, first: PrimExpr, columns: int, width: int) -> BufferVar:
        """The scaled queries of a block, transposed to (channels, queries) and padded with zeros."""
        builder, size = self.builder, self.shape.size
        transposed = builder.allocate(self.dtype, (size * width,), name="transposed", scope="global")
        scale = operators.const(self.scale, self.dtype)
        with builder.for_range(0, size, name="channel") as channel:
            for start, lanes in self._vectors(columns):
                with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                    token = first + start + lane
                    element = self.query[self.places[0](self.batch, token, self.head, channel)]
                    transposed[channel * width + start + lane] = element.astype(self.dtype) * scale
            if width > columns:
                with builder.for_range(0, width - columns, name="lane", kind="vectorize") as lane:
                    transposed[channel * width + columns + lane] = operators.const(0, self.dtype)
        return transposed

    def _scores(
        self,
        transposed: BufferVar,
        scores: BufferVar,
        largest: BufferVar,
        queries: tuple[PrimExpr, int],
        key: PrimExpr,
        rows: int,
    ) -> None:
        """Computes the masked scores of ``rows`` keys starting at ``key``, and updates the running maximum."""
        builder, lanes = self.builder, self.lanes
        width = _up(queries[1], lanes)
        size = self.shape.size
        total = self._product(
            rows,
            width,
            size,
            lambda row, k: self.keys[(key + row) * size + k],
            lambda k, place: transposed[k * width + place],
        )
        for row in range(rows):
            token = builder.let("token", key + row)
            for start in range(0, width, lanes):
                self._mask(total, row * width + start, token, queries[0] + start, queries[1] - start)
                self._hide(total, row * width + start, token, queries[0] + start)
                with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                    score = total[row * width + start + lane]
                    scores[token * width + start + lane] = score
                    # A NaN reaches the result by way of the sum.
                    before = largest[start + lane]
                    largest[start + lane] = Select(score > before, score, before)

    def _mask(self, total: BufferVar, at: int, key: PrimExpr, query: PrimExpr, left: int) -> None:
        """Adds the mask to a vector of scores; only the first ``left`` queries are not padding."""
        if self.mask is None or self.mask_shape is None:
            return
        batch, heads, keys, queries = self.mask_shape
        line = (self.batch if batch > 1 else 0) * heads + (self.head if heads > 1 else 0)
        line = (line * keys + key) * queries
        with self.builder.for_range(0, min(left, self.lanes), name="lane", kind="vectorize") as lane:
            added = self.mask[line + query + lane] if queries > 1 else self.mask[line]
            total[lane + at] = total[lane + at] + added.astype(self.dtype)

    def _hide(self, total: BufferVar, at: int, key: PrimExpr, query: PrimExpr) -> None:
        """Hides a key from the queries that come before it."""
        if self.shape.diagonal is None:
            return
        hidden = operators.const(float("-inf"), self.dtype)
        with self.builder.for_range(0, self.lanes, name="lane", kind="vectorize") as lane:
            seen = query + lane >= key - self.shape.diagonal
            total[lane + at] = Select(seen, total[lane + at], hidden)

    def _product(
        self,
        rows: int,
        width: int,
        depth: PrimExpr | int,
        scalar: Callable[[int, PrimExpr], PrimExpr],
        vector: Callable[[PrimExpr, PrimExpr], PrimExpr],
    ) -> BufferVar:
        """A (rows, width) register tile of sums over ``depth`` of scalars times vectors."""
        builder, lanes = self.builder, self.lanes
        total = builder.allocate(self.dtype, (rows * width,), name="total", scope="local")
        self._fill(total, rows * width, 0)
        with builder.for_range(0, depth, name="k") as k:
            for row in range(rows):
                factor = scalar(row, k)
                for start in range(0, width, lanes):
                    with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                        place = lane + (row * width + start)
                        total[place] = total[place] + factor * vector(k, lane + start)
        return total

    def _raised(self, scores: BufferVar, largest: BufferVar, width: int) -> BufferVar:
        """Replaces scores by their exponentials and returns the reciprocal of each query's sum."""
        builder, keys = self.builder, self.seen
        sums = builder.allocate(self.dtype, (width,), name="sums", scope="local")
        self._fill(sums, width, 0)
        lowest = operators.const(LOWEST, self.dtype)
        with builder.for_range(0, keys, name="token") as token:
            for start, lanes in self._vectors(width):
                with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                    place = token * width + start + lane
                    below = scores[place] - largest[lane + start]
                    raised = Select(below < lowest, operators.const(0, self.dtype), exp(below))
                    scores[place] = raised
                    sums[lane + start] = sums[lane + start] + scores[place]
        inverse = builder.allocate(self.dtype, (width,), name="inverse", scope="global")
        for start, lanes in self._vectors(width):
            with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                inverse[lane + start] = operators.const(1, self.dtype) / sums[lane + start]
        return inverse

    def _weighted(
        self,
        scores: BufferVar,
        inverse: BufferVar,
        first: PrimExpr,
        width: int,
        query: PrimExpr,
        rows: int,
        tile: Tile,
    ) -> None:
        """Stores the results of ``rows`` queries of a block starting at ``query``."""
        builder, padded, size = self.builder, self.padded, self.shape.value_size
        for column in range(0, padded, tile.columns):
            across = min(tile.columns, padded - column)
            with builder.new_scope():
                total = self._product(
                    rows,
                    across,
                    self.seen,
                    lambda row, k: scores[k * width + query + row],
                    lambda k, place, column=column: self.values[k * padded + column + place],  # type: ignore[misc]
                )
                for row in range(rows):
                    factor = builder.let("factor", inverse[query + row])
                    for start, lanes in self._vectors(min(across, size - column)):
                        with builder.for_range(0, lanes, name="lane", kind="vectorize") as lane:
                            channel = lane + (column + start)
                            at = self.result_place(self.batch, first + query + row, self.head, channel)
                            value = total[lane + (row * across + start)] * factor
                            self.out[at] = value.astype(str(self.out.dtype))


def _parts(heads: int, blocks: int, cpu: CPUDescription) -> int:
    """The number of tasks that the queries of a head are split into to balance the cores."""
    for parts in range(1, blocks + 1):
        if is_balanced(cpu, heads * parts):
            return parts
    return blocks
