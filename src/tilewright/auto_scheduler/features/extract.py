"""The features of every statement that stores: its arithmetic, its accesses, its memory, and the loops around it.

The numbers are those of TVM 0.8, computed on the statement of a schedule before tensors become buffers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.auto_scheduler.features.accesses import (
    Access,
    AccessFeatures,
    Loop,
    access_features,
    accesses_of,
)
from tilewright.auto_scheduler.features.index_span import Index, index_of
from tilewright.auto_scheduler.features.operations import count_operations
from tilewright.ir.expr import IntImm, IterVar, Var
from tilewright.support.recursion import with_recursion_room
from tilewright.tir.stmt import (
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
)

CURVE_POINTS = 10
"""How many points of the curve of arithmetic intensity are taken."""

_THREADS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")


@dataclass
class StoreFeatures:
    """What is known of the stores to one tensor. Where several statements store to it, as the start and the update of
    a reduction do, the last one is described."""

    name: str
    counts: list[int] = field(default_factory=list)
    annotated: dict[str, list[int]] = field(default_factory=dict)
    """The extents of the vectorized, unrolled and parallel loops, outermost first."""
    is_gpu: bool = False
    threads: dict[str, int] = field(default_factory=dict)
    virtual_threads: int = 1
    accesses: list[AccessFeatures] = field(default_factory=list)
    curve: list[float] = field(default_factory=lambda: [0.0] * CURVE_POINTS)
    """Operations a byte, in logarithms, over ever more of the loops."""
    alloc_size: float = 0.0
    alloc_prod: float = 0.0
    alloc_outer_prod: float = 0.0
    alloc_inner_prod: float = 0.0
    outer_prod: float = 0.0
    num_loops: int = 0
    auto_unroll_max_step: int = 0


class _Walk:
    """A walk over a program, with the loops around the current place."""

    def __init__(self, cache_line_bytes: int) -> None:
        self.cache_line_bytes = cache_line_bytes
        self.found: dict[Any, StoreFeatures] = {}
        self.loops: list[Loop] = []
        self.annotated: dict[str, list[int]] = {"vec": [], "unroll": [], "parallel": []}
        self.product = 1
        self.known: dict[Var, Index] = {}
        self.running: set[IterVar] = set()
        self.threads: dict[str, int] = dict.fromkeys(_THREADS, 1)
        self.virtual_threads = 1
        self.is_gpu = False
        self.unroll_step = 0

    def features_of(self, tensor: Any) -> StoreFeatures:
        found = self.found.get(tensor)
        if found is None:
            found = self.found[tensor] = StoreFeatures(tensor.name)
        return found

    @contextmanager
    def loop(self, variable: Var, extent: int) -> Iterator[None]:
        self.loops.append(Loop(variable, extent))
        self.product *= extent
        yield
        self.product //= extent
        self.loops.pop()

    def visit(self, statement: Stmt) -> None:
        if isinstance(statement, For):
            self.visit_for(statement)
        elif isinstance(statement, ProducerStore):
            self.visit_store(statement)
        elif isinstance(statement, SeqStmt):
            for part in statement.seq:
                self.visit(part)
        elif isinstance(statement, AttrStmt):
            self.visit_attribute(statement)
        elif isinstance(statement, LetStmt):
            self.known[statement.var] = index_of(statement.value, self.known)
            self.visit(statement.body)
        elif isinstance(statement, IfThenElse):
            self.visit(statement.then_case)
            if statement.else_case is not None:
                self.visit(statement.else_case)
        elif isinstance(statement, ProducerRealize):
            self.visit(statement.body)
            self.note_allocation(statement)
        else:
            for child in statement.children():
                if isinstance(child, Stmt):
                    self.visit(child)

    def visit_for(self, statement: For) -> None:
        extent = _constant(statement.extent)
        kind = _ANNOTATIONS.get(statement.kind)
        if kind is not None:
            self.annotated[kind].append(extent)
        with self.loop(statement.loop_var, extent):
            self.visit(statement.body)
        if kind is not None:
            self.annotated[kind].pop()

    def visit_attribute(self, statement: AttrStmt) -> None:
        key = statement.attr_key
        if key in ("thread_extent", "virtual_thread") and statement.node not in self.running:
            self.visit_thread(statement)
        elif key == "pragma_auto_unroll_max_step":
            before, self.unroll_step = self.unroll_step, _constant(statement.value)
            self.visit(statement.body)
            self.unroll_step = before
        else:
            self.visit(statement.body)

    def visit_thread(self, statement: AttrStmt) -> None:
        thread: IterVar = statement.node
        extent = _constant(statement.value)
        before = dict(self.threads), self.virtual_threads, self.is_gpu
        if statement.attr_key == "thread_extent":
            self.threads[thread.thread_tag] = extent
        else:
            self.virtual_threads *= extent
        self.is_gpu = True
        self.running.add(thread)
        with self.loop(thread.var, extent):
            self.visit(statement.body)
        self.running.discard(thread)
        self.threads, self.virtual_threads, _ = before

    def note_allocation(self, statement: ProducerRealize) -> None:
        features = self.features_of(statement.producer)
        elements = math.prod(_constant(bound.extent) for bound in statement.bounds)
        features.alloc_size = float(elements * _bytes(statement.producer.dtype))
        features.alloc_prod = float(elements * self.product)
        features.alloc_outer_prod = float(self.product)
        features.alloc_inner_prod = features.outer_prod / self.product

    def visit_store(self, statement: ProducerStore) -> None:
        features = self.features_of(statement.producer)
        counts = count_operations(statement.value)
        features.counts = [self.product * count for count in counts]
        features.annotated = {kind: list(extents) for kind, extents in self.annotated.items()}
        features.is_gpu = self.is_gpu
        features.threads = dict(self.threads)
        features.virtual_threads = self.virtual_threads
        found = accesses_of(statement, self.known)
        touched = self.touch(found)
        features.accesses = [
            access_features(access, self.loops, self.product, self.cache_line_bytes) for access in found
        ]
        features.curve = self.curve(sum(counts), touched)
        features.outer_prod = float(self.product)
        features.num_loops = len(self.loops)
        features.auto_unroll_max_step = self.unroll_step

    def touch(self, found: list[Access]) -> list[int]:
        """Note in every loop how much of each tensor it touches, from the innermost loop outwards; the bytes of all."""
        touched = []
        for loop in reversed(self.loops):
            total = 0
            for access in found:
                elements = access.run(loop)
                loop.touched.setdefault(access.tensor, []).append((elements, access.element_bytes))
                total += elements * access.element_bytes
            touched.append(total)
        return touched

    def curve(self, operations: int, touched: list[int]) -> list[float]:
        """The ratio of operations to bytes, both in logarithms, at equal steps of the operations."""
        if operations <= 0 or not touched:
            return [0.0] * CURVE_POINTS
        done, ratios, steps = float(operations), [], []
        for loop, size in zip(reversed(self.loops), touched, strict=True):
            done *= loop.extent
            steps.append(math.log2(done))
            ratios.append(steps[-1] / math.log2(size) if size > 1 else 0.0)
        points, place = [], 0
        for number in range(CURVE_POINTS):
            wanted = steps[-1] * (number + 1) / CURVE_POINTS
            while steps[place] < wanted - 1e-4:
                place += 1
            if place == 0:
                points.append(ratios[0])
                continue
            slope = (ratios[place] - ratios[place - 1]) / (steps[place] - steps[place - 1])
            points.append(ratios[place - 1] + slope * (wanted - steps[place - 1]))
        return points


_ANNOTATIONS = {ForKind.VECTORIZED: "vec", ForKind.UNROLLED: "unroll", ForKind.PARALLEL: "parallel"}


def _constant(value: Any) -> int:
    """An extent; one that is not known counts as one."""
    return value.value if isinstance(value, IntImm) else 1


def _bytes(dtype: Any) -> int:
    return max(1, int(dtype.bits * dtype.lanes) // 8)


@with_recursion_room
def extract_features(statement: Stmt, cache_line_bytes: int = 64) -> list[StoreFeatures]:
    """The features of each tensor that a program stores to, in the order of the stores."""
    walk = _Walk(cache_line_bytes)
    walk.visit(statement)
    return [features for features in walk.found.values() if features.counts]
