"""Stable sorting inside of a program, by the digits of keys.

Every number is encoded as an unsigned integer of its size whose order is that of the numbers, so that one sort serves
all types: some bits at a time from the lowest, which keeps equal keys in order and takes the same time for every
input. Digits that all keys share are skipped. NaN is greater than every number, as NumPy sorts; both zeros are equal
where positions are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Select
from tilewright.support.dtype import DataType
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.tir.op import isnan, reinterpret
from tilewright.topi.kernel import fill, scalar

_FEW = 24
"""Up to this many keys are sorted by insertion."""
_MANY = 1 << 14
"""From this many keys on, fewer passes over them pay for longer tables of counts."""
_PARTS = 8
"""How many parts of a single long row are counted and moved in parallel."""
_SELECT_BITS = 8
"""The width of a digit when one key is looked for."""


def key_type(dtype: DataType) -> DataType:
    """The type of the keys of numbers."""
    return DataType("uint8" if dtype.is_bool else f"uint{dtype.bits}")


def _sign_bit(dtype: DataType) -> PrimExpr:
    return operators.const(1 << (dtype.bits - 1), key_type(dtype))


def encode(value: PrimExpr, ascending: bool, zeros_equal: bool) -> PrimExpr:
    """The key of a number; keys for a descending order are inverted."""
    dtype = value.dtype
    kind = key_type(dtype)
    if dtype.is_float:
        if zeros_equal:
            zero = operators.const(0, dtype)
            value = Select(operators.equal(value, zero), zero, value)
        bits = reinterpret(kind, value)
        negative = operators.not_equal(
            operators.bitwise_and(bits, _sign_bit(dtype)), operators.const(0, kind)
        )
        key: PrimExpr = Select(
            negative, operators.bitwise_not(bits), operators.bitwise_or(bits, _sign_bit(dtype))
        )
        key = Select(isnan(value), operators.max_value(kind), key)
    elif dtype.is_int:
        key = operators.bitwise_xor(reinterpret(kind, value), _sign_bit(dtype))
    else:
        key = operators.cast(kind, value)
    return key if ascending else operators.bitwise_not(key)


def decode(key: PrimExpr, dtype: DataType, ascending: bool) -> PrimExpr:
    """The number of a key; every NaN becomes the same one."""
    plain = key if ascending else operators.bitwise_not(key)
    if dtype.is_float:
        positive = operators.not_equal(
            operators.bitwise_and(plain, _sign_bit(dtype)), operators.const(0, plain.dtype)
        )
        bits = Select(positive, operators.bitwise_xor(plain, _sign_bit(dtype)), operators.bitwise_not(plain))
        return reinterpret(dtype, bits)
    if dtype.is_int:
        return reinterpret(dtype, operators.bitwise_xor(plain, _sign_bit(dtype)))
    return operators.cast(dtype, plain)


def digit_of(key: PrimExpr, shift: PrimExpr, bits: int) -> PrimExpr:
    """Some bits of a key, as an index."""
    mask = operators.const((1 << bits) - 1, key.dtype)
    moved = operators.bitwise_and(operators.right_shift(key, operators.cast(key.dtype, shift)), mask)
    return operators.cast("int32", moved)


class Workspace:
    """Room for the keys of a row, and for their positions where these are requested.

    Each buffer holds two halves of ``capacity`` elements: a pass reads one and writes the other. ``source`` says where
    the half with the current order begins. ``parallel`` is for a row that has the machine to itself.
    """

    def __init__(
        self,
        builder: IRBuilder,
        kind: DataType,
        capacity: PrimExpr,
        with_positions: bool,
        parallel: bool = False,
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.capacity = capacity
        many = isinstance(capacity, IntImm) and capacity.value >= _MANY
        self.digit_bits = 11 if many and kind.bits > 16 else 8
        self.parts = _PARTS if many and parallel else 1
        room = capacity * 2
        self.keys: BufferVar = builder.allocate(kind, room, name="keys", scope="global")
        self.positions: BufferVar | None = (
            builder.allocate("int32", room, name="positions", scope="global") if with_positions else None
        )
        self.source: BufferVar = scalar(builder, "int32", "source", 0)

    def put(self, place: PrimExpr, key: PrimExpr, position: PrimExpr) -> None:
        """Write a key and its position."""
        self.keys[place] = key
        if self.positions is not None:
            self.positions[place] = operators.cast("int32", position)

    def position(self, place: PrimExpr) -> PrimExpr:
        """The position that goes with the key at a place."""
        return operators.const(0) if self.positions is None else self.positions[place]

    def sort(self, length: PrimExpr) -> None:
        """Sort the first ``length`` keys, which are in the first half."""
        if isinstance(length, IntImm):
            if length.value > _FEW:
                self._radix_sort(length)
            elif length.value > 1:
                self._insertion_sort(length)
            return
        with self.builder.if_scope(length <= _FEW):
            self._insertion_sort(length)
        with self.builder.else_scope():
            self._radix_sort(length)

    def _insertion_sort(self, length: PrimExpr) -> None:
        builder = self.builder
        hole = scalar(builder, "int32", "hole", 0)
        with builder.for_range(1, length, name="next") as following:
            key = builder.let("key", self.keys[following])
            position = builder.let("position", self.position(following))
            hole[0] = following
            going = scalar(builder, "bool", "going", True)
            with builder.while_loop(all_of(going[0], hole[0] > 0)):
                before = builder.let("before", self.keys[hole[0] - 1])
                with builder.if_scope(before > key):
                    self.put(hole[0], before, self.position(hole[0] - 1))
                    hole[0] = hole[0] - 1
                with builder.else_scope():
                    going[0] = False
            self.put(hole[0], key, position)

    def _radix_sort(self, length: PrimExpr) -> None:
        builder = self.builder
        buckets = 1 << self.digit_bits
        counts = builder.allocate("int32", self.parts * buckets, name="counts", scope="global")
        with builder.for_range(0, -(-self.kind.bits // self.digit_bits), name="number") as number:
            shift = builder.let("shift", number * self.digit_bits)
            source = builder.let("from_half", self.source[0])
            self._count(counts, source, shift, length)
            with builder.if_scope(operators.logical_not(self._all_in_one(counts, source, shift, length))):
                self._start_places(counts)
                target = operators.subtract(operators.cast("int32", self.capacity), source)
                self._move(counts, source, builder.let("to_half", target), shift, length)

    def _each_part(self, length: PrimExpr, emit: Callable[[PrimExpr, PrimExpr, PrimExpr], None]) -> None:
        """Emit a loop over the parts: ``emit(table, first, last)`` with the part's counts and keys."""
        builder = self.builder
        size = operators.floordiv(length + (self.parts - 1), self.parts)
        kind = "parallel" if self.parts > 1 else "serial"
        with builder.for_range(0, self.parts, name="part", kind=kind) as part:
            first = builder.let("first", operators.minimum(part * size, length))
            last = builder.let("last", operators.minimum((part + 1) * size, length))
            emit(builder.let("table", part * (1 << self.digit_bits)), first, last)

    def _count(self, counts: BufferVar, source: PrimExpr, shift: PrimExpr, length: PrimExpr) -> None:
        """Count how often each value of a digit occurs in each part."""
        builder = self.builder

        def emit(table: PrimExpr, first: PrimExpr, last: PrimExpr) -> None:
            with builder.for_range(0, 1 << self.digit_bits, name="bucket") as bucket:
                counts[table + bucket] = 0
            with builder.for_range(first, last, name="i") as i:
                digit = digit_of(self.keys[source + i], shift, self.digit_bits)
                place = builder.let("place", table + digit)
                counts[place] = counts[place] + 1

        self._each_part(length, emit)

    def _all_in_one(self, counts: BufferVar, source: PrimExpr, shift: PrimExpr, length: PrimExpr) -> PrimExpr:
        """True if all keys share a digit: then they stay where they are."""
        digit = self.builder.let("digit", digit_of(self.keys[source], shift, self.digit_bits))
        total: PrimExpr = operators.const(0)
        for part in range(self.parts):
            total = total + counts[digit + part * (1 << self.digit_bits)]
        return operators.equal(total, length)

    def _start_places(self, counts: BufferVar) -> None:
        """Turn the counts of a digit into the place where its first key of each part goes."""
        builder = self.builder
        buckets = 1 << self.digit_bits
        running = scalar(builder, "int32", "running", 0)
        with (
            builder.for_range(0, buckets, name="bucket") as bucket,
            builder.for_range(0, self.parts, name="part") as part,
        ):
            count = builder.let("count", counts[part * buckets + bucket])
            counts[part * buckets + bucket] = running[0]
            running[0] = running[0] + count

    def _move(
        self, counts: BufferVar, source: PrimExpr, target: PrimExpr, shift: PrimExpr, length: PrimExpr
    ) -> None:
        """Write every key to its place in the other half."""
        builder = self.builder

        def emit(table: PrimExpr, first: PrimExpr, last: PrimExpr) -> None:
            with builder.for_range(first, last, name="i") as i:
                key = builder.let("key", self.keys[source + i])
                bucket = builder.let("bucket", table + digit_of(key, shift, self.digit_bits))
                place = builder.let("place", counts[bucket])
                counts[bucket] = place + 1
                self.put(target + place, key, self.position(source + i))

        self._each_part(length, emit)
        self.source[0] = target


def nth_key(
    builder: IRBuilder, keys: BufferVar, kind: DataType, length: PrimExpr, wanted: Any
) -> tuple[Any, Any]:
    """The key that is number ``wanted`` (counted from 1) in ascending order, and how many equal to it are among those.

    Found digit by digit from the highest: each pass counts the keys that agree so far. Both are given as variables of
    the program.
    """
    buckets = 1 << _SELECT_BITS
    counts = builder.allocate("int32", buckets, name="counts", scope="local")
    found = scalar(builder, kind, "found", operators.const(0, kind))
    agree = scalar(builder, kind, "agree", operators.const(0, kind))
    need = scalar(builder, "int32", "need", wanted)
    bucket = scalar(builder, "int32", "bucket", 0)
    for number in range(kind.bits // _SELECT_BITS - 1, -1, -1):
        shift = operators.const(number * _SELECT_BITS)
        fill(builder, counts, buckets, 0)
        with builder.for_range(0, length, name="i") as i:
            key = builder.let("key", keys[i])
            with builder.if_scope(operators.equal(operators.bitwise_and(key, agree[0]), found[0])):
                digit = builder.let("digit", digit_of(key, shift, _SELECT_BITS))
                counts[digit] = counts[digit] + 1
        bucket[0] = 0
        with builder.while_loop(all_of(bucket[0] < buckets - 1, counts[bucket[0]] < need[0])):
            need[0] = need[0] - counts[bucket[0]]
            bucket[0] = bucket[0] + 1
        chosen = operators.left_shift(operators.cast(kind, bucket[0]), operators.cast(kind, shift))
        found[0] = operators.bitwise_or(found[0], chosen)
        agree[0] = operators.bitwise_or(
            agree[0], operators.const((buckets - 1) << (number * _SELECT_BITS), kind)
        )
    return found, need
