"""Dense layers with a packed weight of few bits and data in floating point: bound by memory with few rows.

Vectors run along units, the weight is read once, in order, and its integers are unpacked in registers. How they meet
the data depends on the CPU:

- With dot-product instructions the data of a span of features become fixed-point numbers of 32 bits: the largest
  magnitude of the span has all of them. Four products of bytes give exact sums of integers, which are combined and
  scaled once a span. A number keeps the 24 bits that float32 has unless it is far below the largest of its span, and
  is off by at most 2**-32 of that.
- Without, integers are converted where they are in their word, without a shift: that only multiplies them by a power
  of two, by which the data were divided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr, Select
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.target.cpu import CPUDescription
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import nearbyint
from tilewright.tir.packed_lanes import dot_word, pack_word
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.nn.weight_only import BYTES, WORD_BITS, WeightOnly
from tilewright.topi.utils import get_const_tuple

VECTORS: Final = (4, 2, 1)
"""How many vectors of units a block may have."""
ROWS: Final = 3
"""Rows of a tile from which unpacking the weight is a small part of the work."""
DIGITS: Final = 4
"""Bytes of a fixed-point number."""
LARGEST: Final = 126.5 * 2.0**24
"""The largest magnitude of a fixed-point number: its digits, from -128 to 127, fit."""
AHEAD: Final = 8192
"""How far ahead of its use, in bytes, the weight is prefetched: two pages, so that the next one is known in time."""
SPAN: Final = 256
"""The most features that share a largest magnitude."""
STEEPEST: Final = 1e37
"""The most that data are multiplied with to become fixed-point: beyond, its reciprocal would be subnormal."""


def has_dot_products(cpu: CPUDescription) -> bool:
    """True if the CPU has an instruction for dot products of unsigned and signed bytes."""
    return bool({"avx512vnni", "avxvnni"} & cpu.features) or (
        cpu.family == "aarch64" and "i8mm" in cpu.features
    )


def weight_only_block(rows: int) -> int:
    """How many units a block has on the current target, for this many rows: as many as registers can sum."""
    cpu = current_cpu()
    each = DIGITS * min(rows, ROWS) if has_dot_products(cpu) else 1
    vectors = next((count for count in VECTORS if count * each <= _room(cpu)), 1)
    return vectors * lanes_of(cpu, "float32")


def _room(cpu: CPUDescription) -> int:
    """The registers for sums: a few are needed for the factors."""
    return cpu.vector_registers - 4


def dense_weight_only(
    data: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None, extents: WeightOnly
) -> Tensor:
    """``topi.nn.dense_weight_only`` as an explicit loop nest for the current target."""
    (rows,) = get_const_tuple([data.shape[0]])
    cpu = current_cpu()
    kernel = (_Digits if has_dot_products(cpu) else _Floats)(extents, rows, cpu)
    given = [data, weight, scales] if zeros is None else [data, weight, scales, zeros]
    return loop_kernel("dense_weight_only", given, [((rows, extents.units), str(data.dtype))], kernel.emit)[0]


def _rows_at_a_time(rows: int, accumulators: int) -> int:
    """Rows of a register tile: as many as accumulators allow, in tiles of nearly the same size."""
    most = max(1, min(rows, accumulators))
    tiles = -(-rows // most)
    return -(-rows // tiles)


class _Kernel(ABC):
    """Generates the loop nest. A task is a block of units."""

    span_words: int
    rows: int

    def __init__(self, extents: WeightOnly, rows: int, cpu: CPUDescription) -> None:
        self.extents, self.all_rows = extents, rows
        self.lanes = lanes_of(cpu, "float32")
        self.vectors = max(1, extents.block // self.lanes)
        if extents.block % self.lanes:
            self.lanes, self.vectors = extents.block, 1
        self.depth = extents.words * extents.fields
        self.prefetches, self.line = cpu.has_prefetch, cpu.cache_line_bytes
        self.parallel_work = cpu.parallel_work

    @property
    def spans(self) -> int:
        """How many spans of features a row has."""
        return self.extents.words // self.span_words

    @property
    def span(self) -> int:
        """How many features a span has."""
        return self.span_words * self.extents.fields

    def emit(self, builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        """Write the loops."""
        extents = self.extents
        self.builder, self.out = builder, outs[0]
        self.weight, self.scales = ins[1], ins[2]
        self.zeros = ins[3] if len(ins) > 3 else None
        self._prepare(ins[0])
        work = self.all_rows * extents.units * self.depth
        kind = "parallel" if work >= self.parallel_work and extents.blocks > 1 else "serial"
        with builder.for_range(0, extents.blocks, name="block", kind=kind) as block:
            whole, rest = divmod(self.all_rows, self.rows)
            if whole > 1:
                with builder.for_range(0, whole, name="tile") as tile:
                    self._tile(block, tile * self.rows, self.rows)
            elif whole:
                self._tile(block, operators.const(0, "int32"), self.rows)
            if rest:
                self._tile(block, operators.const(whole * self.rows, "int32"), rest)

    # Data

    def _prepare(self, data: BufferVar) -> None:
        """Bring the data to the form in which the products read them."""
        builder = self.builder
        self._allocate()
        work = self.all_rows * self.depth
        kind = "parallel" if self.all_rows > 1 and work >= self.parallel_work else "serial"
        with builder.for_range(0, self.all_rows, name="row", kind=kind) as row:
            numbers = builder.allocate("float32", (self.depth,), name="numbers", scope="global")
            start = row * self.extents.depth
            lanes = self.lanes
            whole = self.extents.depth // lanes
            with builder.for_range(0, whole, name="part") as part, self._lane(lanes) as lane:
                numbers[part * lanes + lane] = data[start + part * lanes + lane].astype("float32")
            with builder.for_range(whole * lanes, self.extents.depth, name="feature") as feature:
                numbers[feature] = data[start + feature].astype("float32")
            with builder.for_range(self.extents.depth, self.depth, name="feature") as feature:
                numbers[feature] = operators.const(0.0, "float32")
            with builder.for_range(0, self.spans, name="span") as span:
                self._prepare_span(row, span, numbers)

    @abstractmethod
    def _allocate(self) -> None:
        """Make room for what ``_prepare_span`` writes."""

    @abstractmethod
    def _prepare_span(self, row: PrimExpr, span: PrimExpr, numbers: BufferVar) -> None:
        """Prepare the numbers of one span of a row."""

    # Products

    def _tile(self, block: PrimExpr, first: PrimExpr, rows: int) -> None:
        """The results of ``rows`` rows from ``first`` for a block of units."""
        builder, extents = self.builder, self.extents
        with builder.new_scope():
            total = builder.allocate("float32", (rows * extents.block,), name="total", scope="local")
            self._fill(total, rows * extents.block)
            with builder.for_range(0, self.spans, name="span") as span:
                self._span(block, first, rows, span, total)
            left = extents.units % extents.block
            if not left:
                self._store(total, block, first, rows, extents.block)
                return
            with builder.if_scope(block < extents.blocks - 1):
                self._store(total, block, first, rows, extents.block)
            with builder.else_scope():
                self._store(total, block, first, rows, left)

    @abstractmethod
    def _span(self, block: PrimExpr, first: PrimExpr, rows: int, span: PrimExpr, total: BufferVar) -> None:
        """Add the products of a span of features to the results of a tile."""

    def _fill(self, target: BufferVar, count: int) -> None:
        for start in range(0, count, self.lanes):
            with self._lane(self.lanes) as lane:
                target[lane + start] = operators.const(0, target.dtype)

    def _lane(self, lanes: int) -> Any:
        return self.builder.for_range(0, lanes, name="lane", kind="vectorize")

    def _store(self, total: BufferVar, block: PrimExpr, first: PrimExpr, rows: int, units: int) -> None:
        extents = self.extents
        for row in range(rows):
            place = (first + row) * extents.units + block * extents.block
            for start in range(0, units, self.lanes):
                with self._lane(min(self.lanes, units - start)) as lane:
                    made = total[lane + (row * extents.block + start)].astype(str(self.out.dtype))
                    self.out[place + start + lane] = made

    def _word(self, block: PrimExpr, word: PrimExpr, vector: int, lane: PrimExpr) -> PrimExpr:
        extents = self.extents
        return self.weight[(block * extents.words + word) * extents.block + vector * self.lanes + lane]

    def _prefetch(self, block: PrimExpr, word: PrimExpr) -> None:
        """Ask for the words that are read a little later: hardware prefetchers stop at the end of each page."""
        if not self.prefetches:
            return
        extents = self.extents
        line = self.line // BYTES
        for start in range(0, extents.block, line):
            place = (block * extents.words + word) * extents.block + start + AHEAD // BYTES
            address = operators.call("address_of", "handle", [self.weight[place]])
            self.builder.emit(operators.call("prefetch", "int32", [address, 0, 3, 1]))

    def _of_group(
        self, values: BufferVar, block: PrimExpr, span: PrimExpr, vector: int, lane: PrimExpr, kind: str
    ) -> PrimExpr:
        """The scale or the zero point of a span's group."""
        extents = self.extents
        each = extents.words // extents.groups // self.span_words
        group = operators.floordiv(span, each) if each > 1 else span
        place = (block * extents.groups + group) * extents.block + vector * self.lanes
        return values[place + lane].astype(kind)


class _Digits(_Kernel):
    """With dot-product instructions."""

    def __init__(self, extents: WeightOnly, rows: int, cpu: CPUDescription) -> None:
        super().__init__(extents, rows, cpu)
        words = extents.words // extents.groups
        self.span_words = max(
            count for count in range(1, words + 1) if words % count == 0 and count * extents.fields <= SPAN
        )
        self.rows = _rows_at_a_time(rows, _room(cpu) // (DIGITS * self.vectors))

    def _allocate(self) -> None:
        builder, spans = self.builder, self.all_rows * self.spans
        # Digits of one place in the number are contiguous.
        self.digits = builder.allocate("int8", (DIGITS * self.all_rows * self.depth,), name="digits")
        self.starts = builder.allocate("int32", (DIGITS * spans,), name="starts")
        self.steps = builder.allocate("float32", (spans,), name="steps")

    def _prepare_span(self, row: PrimExpr, span: PrimExpr, numbers: BufferVar) -> None:
        builder = self.builder
        lanes = next(lanes for lanes in (self.lanes, 8, 4) if self.span % lanes == 0 and lanes <= self.lanes)
        factor = self._factor(numbers, span, lanes, row)
        sums = builder.allocate("int32", (DIGITS * lanes,), name="sums", scope="local")
        for place in range(DIGITS):
            with self._lane(lanes) as lane:
                sums[lane + place * lanes] = operators.const(0, "int32")
        with builder.for_range(0, self.span // lanes, name="part") as part:
            left = builder.allocate("int32", (lanes,), name="left", scope="local")
            with self._lane(lanes) as lane:
                scaled = nearbyint(numbers[span * self.span + part * lanes + lane] * factor[0])
                # What is not a number is one again through the step.
                known = Select(operators.equal(scaled, scaled), scaled, operators.const(0.0, "float32"))
                left[lane] = known.astype("int32")
            for place in range(DIGITS):
                at = (place * self.all_rows + row) * self.depth + span * self.span + part * lanes
                with self._lane(lanes) as lane:
                    digit = ((left[lane] & 255) ^ 128) - 128
                    self.digits[at + lane] = digit.astype("int8")
                    sums[lane + place * lanes] = sums[lane + place * lanes] + digit
                    left[lane] = (left[lane] - digit) >> 8
        zero = self.extents.zero if self.zeros is None else 1
        for place in range(DIGITS):
            total = operators.const(0, "int32")
            for lane in range(lanes):
                total = total + sums[place * lanes + lane]
            self.starts[(row * self.spans + span) * DIGITS + place] = total * -zero

    def _factor(self, numbers: BufferVar, span: PrimExpr, lanes: int, row: PrimExpr) -> BufferVar:
        """What the numbers of a span are multiplied with; its reciprocal is the step of the fixed-point numbers."""
        builder = self.builder
        largest = builder.allocate("float32", (lanes,), name="largest", scope="local")
        # Infinities and what is not a number make all of the span that.
        strange = builder.allocate("float32", (lanes,), name="strange", scope="local")
        for target in (largest, strange):
            with self._lane(lanes) as lane:
                target[lane] = operators.const(0.0, "float32")
        zero = operators.const(0.0, "float32")
        with builder.for_range(0, self.span // lanes, name="part") as part, self._lane(lanes) as lane:
            number = numbers[span * self.span + part * lanes + lane]
            size = Select(number < zero, zero - number, number)
            largest[lane] = Select(size > largest[lane], size, largest[lane])
            strange[lane] = strange[lane] + (number - number)
        factor = builder.allocate("float32", (1,), name="factor", scope="local")
        bound = builder.allocate("float32", (2,), name="bound", scope="local")
        bound[0], bound[1] = zero, zero
        for place in range(lanes):
            bound[0] = Select(largest[place] > bound[0], largest[place], bound[0])
            bound[1] = bound[1] + strange[place]
        steepest = operators.const(STEEPEST, "float32")
        wanted = operators.const(LARGEST, "float32") / bound[0]
        factor[0] = Select(wanted < steepest, wanted, steepest)
        self.steps[row * self.spans + span] = operators.const(1.0, "float32") / factor[0] + bound[1]
        return factor

    def _span(self, block: PrimExpr, first: PrimExpr, rows: int, span: PrimExpr, total: BufferVar) -> None:
        builder, extents = self.builder, self.extents
        tile = rows * extents.block
        with builder.new_scope():
            sums = builder.allocate("int32", (DIGITS * tile,), name="sums", scope="local")
            for row, place, vector in self._places(rows):
                start = self.starts[((first + row) * self.spans + span) * DIGITS + place]
                with self._lane(self.lanes) as lane:
                    at = lane + (place * tile + row * extents.block + vector * self.lanes)
                    if self.zeros is None:
                        sums[at] = start
                    else:
                        sums[at] = start * self._of_group(self.zeros, block, span, vector, lane, "int32")
            with builder.for_range(0, self.span_words, name="word") as word:
                self._prefetch(block, span * self.span_words + word)
                self._multiply(sums, block, first, rows, span * self.span_words + word)
            for row in range(rows):
                step = self.steps[(first + row) * self.spans + span]
                for vector in range(self.vectors):
                    with self._lane(self.lanes) as lane:
                        at = lane + (row * extents.block + vector * self.lanes)
                        made = sums[at + (DIGITS - 1) * tile].astype("float32")
                        for place in reversed(range(DIGITS - 1)):
                            digit = sums[at + place * tile].astype("float32")
                            made = made * operators.const(256.0, "float32") + digit
                        scale = self._of_group(self.scales, block, span, vector, lane, "float32")
                        total[at] = total[at] + made * (scale * step)

    def _places(self, rows: int) -> list[tuple[int, int, int]]:
        """Row, digit and vector of each accumulator."""
        return [
            (row, place, vector)
            for row in range(rows)
            for place in range(DIGITS)
            for vector in range(self.vectors)
        ]

    def _multiply(self, sums: BufferVar, block: PrimExpr, first: PrimExpr, rows: int, word: PrimExpr) -> None:
        """Add the products of the features of one word."""
        builder, extents, lanes = self.builder, self.extents, self.lanes
        parts = extents.fields // BYTES
        tile = rows * extents.block
        mask = sum(((1 << extents.bits) - 1) << 8 * byte for byte in range(BYTES))
        fields = builder.allocate("int32", (extents.block,), name="fields", scope="local")
        for part in range(parts):
            for vector in range(self.vectors):
                with self._lane(lanes) as lane:
                    loaded = self._word(block, word, vector, lane)
                    if parts > 1:
                        shifted = loaded >> (part * extents.bits) if part else loaded
                        loaded = shifted & mask
                    fields[lane + vector * lanes] = loaded
            for row, place, vector in self._places(rows):
                digit = (place * self.all_rows + first + row) * self.depth + (word * parts + part) * BYTES
                factor = pack_word(*[self.digits[digit + byte] for byte in range(BYTES)])
                with self._lane(lanes) as lane:
                    at = lane + (place * tile + row * extents.block + vector * lanes)
                    unsigned = fields[lane + vector * lanes]
                    sums[at] = sums[at] + dot_word(unsigned, factor, "uint8", "int8")


class _Floats(_Kernel):
    """Without dot-product instructions."""

    def __init__(self, extents: WeightOnly, rows: int, cpu: CPUDescription) -> None:
        super().__init__(extents, rows, cpu)
        self.span_words = extents.words // extents.groups
        room = _room(cpu)
        self.rows = _rows_at_a_time(rows, room // self.vectors)
        # Independent sums, where there is one row, hide the latency of an addition.
        self.chains = 2 if 2 * self.rows * self.vectors <= room else 1

    def _is_last(self, place: int) -> bool:
        """True for the field in the highest bits: in its place it would be negative."""
        return int(self.extents.shift(place)) + self.extents.bits == WORD_BITS

    def _allocate(self) -> None:
        builder = self.builder
        self.factors = builder.allocate("float32", (self.all_rows * self.depth,), name="factors")
        self.starts = builder.allocate("float32", (self.all_rows * self.spans,), name="starts")

    def _prepare_span(self, row: PrimExpr, span: PrimExpr, numbers: BufferVar) -> None:
        builder, fields = self.builder, self.extents.fields
        powers = builder.allocate("float32", (fields,), name="powers", scope="local")
        sums = builder.allocate("float32", (fields,), name="sums", scope="local")
        for place in range(fields):
            shift = 0 if self._is_last(place) else int(self.extents.shift(place))
            powers[place] = operators.const(2.0**-shift, "float32")
        with self._lane(fields) as lane:
            sums[lane] = operators.const(0.0, "float32")
        with builder.for_range(0, self.span_words, name="word") as word, self._lane(fields) as lane:
            at = span * self.span + word * fields + lane
            self.factors[row * self.depth + at] = numbers[at] * powers[lane]
            sums[lane] = sums[lane] + numbers[at]
        total = operators.const(0.0, "float32")
        for place in range(fields):
            total = total + sums[place]
        zero = float(self.extents.zero if self.zeros is None else 1)
        self.starts[row * self.spans + span] = total * operators.const(-zero, "float32")

    def _span(self, block: PrimExpr, first: PrimExpr, rows: int, span: PrimExpr, total: BufferVar) -> None:
        builder, extents, lanes = self.builder, self.extents, self.lanes
        tile = rows * extents.block
        with builder.new_scope():
            sums = builder.allocate("float32", (self.chains * tile,), name="sums", scope="local")
            self._fill(sums, self.chains * tile)
            for row in range(rows):
                start = self.starts[(first + row) * self.spans + span]
                for vector in range(self.vectors):
                    with self._lane(lanes) as lane:
                        at = lane + (row * extents.block + vector * lanes)
                        if self.zeros is None:
                            sums[at] = start
                        else:
                            zero = self._of_group(self.zeros, block, span, vector, lane, "float32")
                            sums[at] = start * zero
            with builder.for_range(0, self.span_words, name="word") as word:
                self._prefetch(block, span * self.span_words + word)
                self._multiply(sums, block, first, rows, span * self.span_words + word)
            for row in range(rows):
                for vector in range(self.vectors):
                    with self._lane(lanes) as lane:
                        at = lane + (row * extents.block + vector * lanes)
                        made: PrimExpr = sums[at]
                        if self.chains > 1:
                            made = made + sums[at + tile]
                        scale = self._of_group(self.scales, block, span, vector, lane, "float32")
                        total[at] = total[at] + made * scale

    def _multiply(self, sums: BufferVar, block: PrimExpr, first: PrimExpr, rows: int, word: PrimExpr) -> None:
        """Add the products of the features of one word."""
        builder, extents, lanes = self.builder, self.extents, self.lanes
        tile = rows * extents.block
        mask = (1 << extents.bits) - 1
        numbers = builder.allocate("float32", (extents.block,), name="numbers", scope="local")
        for place in range(extents.fields):
            shift = int(extents.shift(place))
            for vector in range(self.vectors):
                with self._lane(lanes) as lane:
                    loaded = self._word(block, word, vector, lane)
                    if self._is_last(place):
                        integer = (loaded >> shift) & mask
                    else:
                        integer = loaded & (mask << shift)
                    numbers[lane + vector * lanes] = integer.astype("float32")
            for row in range(rows):
                factor = self.factors[(first + row) * self.depth + word * extents.fields + place]
                for vector in range(self.vectors):
                    with self._lane(lanes) as lane:
                        chain = place % self.chains
                        at = lane + (chain * tile + row * extents.block + vector * lanes)
                        sums[at] = sums[at] + factor * numbers[lane + vector * lanes]
