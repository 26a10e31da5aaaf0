"""The accesses of one statement: what they touch, in how many cache lines, and when they touch it again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.auto_scheduler.features.index_span import Index, Interval, index_of
from tilewright.ir.expr import IntImm, ProducerLoad, Var
from tilewright.tir.stmt import ProducerStore

READ, WRITE, READ_WRITE = "kRead", "kWrite", "kReadWrite"
LOOP_REUSE, SERIAL_REUSE, NO_REUSE = "kLoopMultipleRead", "kSerialMultipleReadWrite", "kNoReuse"


@dataclass(eq=False)
class Loop:
    """A loop around a statement, and what the statements inside it touch while it runs once: for each tensor, the
    elements and the bytes of one, for every statement."""

    variable: Var
    extent: int
    touched: dict[Any, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def touched_bytes(self) -> int:
        """All that is touched, in bytes."""
        return sum(elements * size for found in self.touched.values() for elements, size in found)


@dataclass(eq=False)
class Access:
    """All accesses of one statement to one tensor."""

    tensor: Any
    kind: str
    shape: tuple[int, ...]
    element_bytes: int
    indices: list[tuple[Index, ...]]
    running: dict[Var, Interval] = field(default_factory=dict)
    extents: list[int] = field(default_factory=list)
    """How far the access reaches in each dimension while the loops in ``running`` run."""

    def run(self, loop: Loop) -> int:
        """Let one more loop run; the number of elements that are touched."""
        self.running[loop.variable] = (0, loop.extent - 1)
        for dimension in range(len(self.shape)):
            if self.extents[dimension] == 0 or self.uses_in(dimension, loop.variable):
                self.extents[dimension] = self._extent(dimension)
        return math.prod(self.extents)

    def uses_in(self, dimension: int, variable: Var) -> bool:
        """True if an index of this dimension depends on the loop."""
        return any(index[dimension].uses(variable) for index in self.indices)

    def uses(self, variable: Var) -> bool:
        """True if any index depends on the loop."""
        return any(self.uses_in(dimension, variable) for dimension in range(len(self.shape)))

    def _extent(self, dimension: int) -> int:
        found = [index[dimension].interval(self.running) for index in self.indices]
        known = [interval for interval in found if interval is not None]
        if len(known) < len(found):
            return self.shape[dimension]
        return max(high for _, high in known) - min(low for low, _ in known) + 1

    def stride(self, variable: Var) -> int:
        """The distance in elements between two iterations of a loop; zero where the loop does not matter."""
        strides = []
        for index in self.indices:
            distance = 1
            for dimension in reversed(range(len(self.shape))):
                if index[dimension].uses(variable):
                    strides.append(index[dimension].stride(variable) * distance)
                    break
                distance *= self.shape[dimension]
        return min(strides, default=0)


@dataclass(frozen=True)
class AccessFeatures:
    """The features of the accesses to one tensor."""

    name: str
    kind: str
    bytes: float
    unique_bytes: float
    lines: float
    unique_lines: float
    reuse: str
    reuse_dis_iter: float
    reuse_dis_bytes: float
    reuse_ct: float
    stride: int


def accesses_of(statement: ProducerStore, known: Mapping[Var, Index]) -> list[Access]:
    """The accesses of a statement: the store, then what it reads, tensor by tensor."""
    tensor: Any = statement.producer
    found: dict[Any, Access] = {tensor: _access(tensor, WRITE)}
    found[tensor].indices.append(tuple(index_of(index, known) for index in statement.indices))
    waiting: list[Any] = [statement.value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ProducerLoad):
            read: Any = part.producer
            access = found.get(read)
            if access is None:
                access = found[read] = _access(read, READ)
            elif access.kind == WRITE:
                access.kind = READ_WRITE
            access.indices.append(tuple(index_of(index, known) for index in part.indices))
        waiting += part.children()
    return list(found.values())


def _access(tensor: Any, kind: str) -> Access:
    shape = tuple(extent.value if isinstance(extent, IntImm) else 1 for extent in tensor.shape)
    size = max(1, tensor.dtype.bits * tensor.dtype.lanes // 8)
    return Access(tensor, kind, shape, size, [], {}, [0] * len(shape))


def access_features(
    access: Access, loops: Sequence[Loop], iterations: int, cache_line_bytes: int
) -> AccessFeatures:
    """The features of one access inside these loops, which have run."""
    size = access.element_bytes
    total = float(iterations * size)
    if not loops:
        return AccessFeatures(
            access.tensor.name, access.kind, total, float(size), 1.0, 1.0, NO_REUSE, 0, 0, 0, 0
        )
    unique = float(loops[0].touched[access.tensor][0][0] * size)
    stride, repeated, position = 0, 1, len(loops) - 1
    while position >= 0:
        stride = access.stride(loops[position].variable)
        if stride:
            break
        repeated *= loops[-1].extent
        position -= 1
    lines = max(1.0, iterations / repeated * min(1.0, stride * size / cache_line_bytes))
    continuous = float(size)
    for extent, whole in zip(reversed(access.extents), reversed(access.shape), strict=True):
        if extent == whole:
            continuous *= extent
            break
    unique_lines = max(1.0, unique / min(continuous, float(cache_line_bytes)))
    reuse, distance, distance_bytes, count = _reuse(access, loops)
    return AccessFeatures(
        access.tensor.name,
        access.kind,
        total,
        unique,
        lines,
        unique_lines,
        reuse,
        distance,
        distance_bytes,
        count,
        stride if position == len(loops) - 1 else 0,
    )


def _reuse(access: Access, loops: Sequence[Loop]) -> tuple[str, float, float, float]:
    """How an element is used again: the kind, the distance in iterations and in bytes, and how often."""
    distance, distance_bytes = 1.0, -1.0
    for loop in reversed(loops):
        touched = loop.touched[access.tensor]
        if len(touched) > 1:
            nearest = min(elements for elements, _ in touched)
            return SERIAL_REUSE, nearest / loop.extent, loop.touched_bytes / loop.extent, len(touched) - 1.0
        if access.uses(loop.variable):
            distance *= loop.extent
            distance_bytes = float(loop.touched_bytes)
            continue
        if distance_bytes < 0:
            # The innermost loop: between two uses nothing else is touched but one element of each.
            distance_bytes = float(sum(size for found in loop.touched.values() for _, size in found))
        return LOOP_REUSE, distance, distance_bytes, float(loop.extent)
    return NO_REUSE, 0.0, 0.0, 0.0
