"""How the operations of a graph read one another, which decides what a search tries on them.

Terms: an access is *simple* if every index is an axis of the reader, perhaps shifted by a constant, or a constant. An
operation is *strictly inlineable* if inlining it always pays: its reads are simple and in order, and it computes
nothing expensive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tilewright.auto_scheduler.state_nodes import ComputeAtKind, StateObject
from tilewright.ir.expr import (
    Add,
    Call,
    IntImm,
    PrimExpr,
    ProducerLoad,
    Reduce,
    Select,
    Sub,
    Var,
)
from tilewright.ir.functor import post_order
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    Accesses = list[tuple[PrimExpr, ...]]

_CHEAP_CALLS: Final = frozenset(
    {"if_then_else", "likely", "shift_left", "shift_right", "bitwise_and", "bitwise_or"}
)
NOT_TILED: Final = "auto_scheduler_simplify_const_tensor_indices"
"""The attribute of an operation that reads constant tensors whose indices are simplified away by unrolling."""


@dataclass(frozen=True, slots=True)
class SimpleAccess:
    """What a simple access leaves out or does twice."""

    axis_missing: bool
    axis_duplicated: bool
    same_order: bool


def shifted_by_constant(variable: Var, index: PrimExpr) -> bool:
    """True if an index is a variable, perhaps plus or minus a constant."""
    if index is variable:
        return True
    if isinstance(index, Add):
        return (index.a is variable and isinstance(index.b, IntImm)) or (
            index.b is variable and isinstance(index.a, IntImm)
        )
    return isinstance(index, Sub) and index.a is variable and isinstance(index.b, IntImm)


def simple_access(operation: Operation, indices: Sequence[PrimExpr]) -> SimpleAccess | None:
    """What a read of an operation does with its axes; None if it is not simple."""
    if not isinstance(operation, ComputeOp):
        return None
    used: list[int] = []
    for index in indices:
        if isinstance(index, IntImm):
            continue
        found = [number for number, axis in enumerate(operation.axes) if shifted_by_constant(axis.var, index)]
        if not found:
            return None
        used.append(found[0])
    long = {
        number
        for number, axis in enumerate(operation.axes)
        if axis.dom is None or not _is_one(axis.dom.extent)
    }
    return SimpleAccess(
        axis_missing=not long <= set(used),  # of an axis of one element, the index may be a constant
        axis_duplicated=len(set(used)) < len(used),
        same_order=used == sorted(used),
    )


class AccessAnalyzer:
    """The reads among the operations of a graph, and what follows from them."""

    def __init__(self, ops: Sequence[Operation], tensors: Sequence[Tensor]) -> None:
        self.ops = list(ops)
        self.read_from: dict[Operation, dict[Operation, Accesses]] = {}
        self.read_by: dict[Operation, dict[Operation, Accesses]] = {operation: {} for operation in ops}
        self._has_branch: dict[Operation, bool] = {}
        self._has_expensive: dict[Operation, bool] = {}
        self._given = {tensor.op for tensor in tensors if isinstance(tensor.op, ComputeOp)}
        for operation in ops:
            self._note_reads(operation)

    def _note_reads(self, operation: Operation) -> None:
        reads = self.read_from[operation] = {}
        if not isinstance(operation, ComputeOp):
            return
        branch = expensive = False
        for value in operation.body[:1] if operation.reduce_axis else operation.body:
            parts = [*value.source, value.condition] if isinstance(value, Reduce) else [value]
            for root in parts:
                for part in post_order(root):
                    if isinstance(part, ProducerLoad) and isinstance(part.producer, Tensor):
                        reads.setdefault(part.producer.op, []).append(part.indices)
                        self.read_by[part.producer.op].setdefault(operation, []).append(part.indices)
                    elif isinstance(part, Select):
                        branch = True
                    elif isinstance(part, Call):
                        name = part.op.name.rpartition(".")[2]
                        branch = branch or name == "if_then_else"
                        expensive = expensive or name not in _CHEAP_CALLS
        self._has_branch[operation] = branch
        self._has_expensive[operation] = expensive

    # -- one operation --------------------------------------------------------------------------------------------

    def is_output(self, operation: Operation) -> bool:
        """True if nothing reads an operation, or its tensor was named when the graph was made."""
        return not self.read_by[operation] or operation in self._given

    def is_simple_access(self, operation: Operation) -> bool:
        """True if all reads of an operation are simple."""
        return isinstance(operation, ComputeOp) and all(
            simple_access(operation, indices) is not None
            for accesses in self.read_from[operation].values()
            for indices in accesses
        )

    def is_injective(self, operation: Operation) -> bool:
        """True if an operation does not reduce, and all its reads are simple."""
        return not operation.reduce_axis and self.is_simple_access(operation)

    def is_strictly_inlineable(self, operation: Operation) -> bool:
        """True if inlining an operation always pays."""
        if not isinstance(operation, ComputeOp):
            return False
        if not self.read_from[operation]:
            return not operation.reduce_axis
        if operation.reduce_axis or self._has_expensive[operation] or self._has_branch[operation]:
            return False
        found = [
            simple_access(operation, indices)
            for accesses in self.read_from[operation].values()
            for indices in accesses
        ]
        # A transposition is better done once.
        return all(one is not None and one.same_order and not one.axis_duplicated for one in found)

    def needs_multi_level_tiling(self, operation: Operation) -> bool:
        """True if an operation reads the same elements again and again: two of its inputs lack an axis of it, or
        one does and it is a reduction."""
        if not isinstance(operation, ComputeOp) or NOT_TILED in operation.attrs:
            return False
        lacking = 0
        long_axes = [
            axis.var for axis in operation.axes if not _is_one(axis.dom.extent if axis.dom else None)
        ]
        for accesses in self.read_from[operation].values():
            used = {
                part
                for indices in accesses
                for index in indices
                for part in post_order(index)
                if isinstance(part, Var)
            }
            lacking += any(variable not in used for variable in long_axes)
        return lacking >= 2 or (lacking >= 1 and bool(operation.reduce_axis))

    # -- several operations ---------------------------------------------------------------------------------------

    def get_direct_producers(self, operation: Operation) -> list[Operation]:
        """The operations whose results an operation reads."""
        return list(self.read_from[operation])

    def get_producers(self, state: StateObject, operation: Operation) -> list[Operation]:
        """The operations that are read once inlined ones are put in."""
        return self._through_inlined(state, operation, self.read_from)

    def get_consumers(self, state: StateObject, operation: Operation) -> list[Operation]:
        """The operations that read an operation once inlined ones are put in."""
        return self._through_inlined(state, operation, self.read_by)

    def _through_inlined(
        self, state: StateObject, operation: Operation, edges: dict[Operation, dict[Operation, Accesses]]
    ) -> list[Operation]:
        inlined = {stage.op for stage in state.stages if stage.compute_at == ComputeAtKind.INLINED}
        found: dict[Operation, None] = {}
        pending = list(edges[operation])
        seen: set[Operation] = set()
        while pending:
            one = pending.pop(0)
            if one in seen:
                continue
            seen.add(one)
            if one in inlined:
                pending.extend(edges[one])
            else:
                found[one] = None
        return list(found)

    def get_num_common_outer_iterator(self, operation: Operation, target: Operation) -> int:
        """How many outermost axes an operation and one that depends on it share, so that it can be computed inside
        them."""
        best: int | None = None
        pending: list[tuple[Operation, int | None]] = [(operation, None)]
        while pending:
            one, common = pending.pop()
            if one is target:
                best = common if best is None else min(best, common or 0)
                continue
            for reader, accesses in self.read_by[one].items():
                here = _common_outer(one, reader, accesses)
                pending.append((reader, here if common is None else min(common, here)))
        return best or 0

    def element_wise_match(self, operation: Operation, target: Operation) -> bool:
        """True if the target is computed from an operation element by element, through a chain of single readers."""
        current = operation
        while current is not target:
            readers = self.read_by[current]
            if len(readers) != 1:
                return False
            following, accesses = next(iter(readers.items()))
            if not _same_shape(current, following):
                return False
            for indices in accesses:
                found = simple_access(following, indices)
                if found is None or found.axis_missing or found.axis_duplicated or not found.same_order:
                    return False
            current = following
        return True


def _is_one(extent: PrimExpr | None) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _same_extent(one: PrimExpr, other: PrimExpr) -> bool:
    return one is other or (
        isinstance(one, IntImm) and isinstance(other, IntImm) and one.value == other.value
    )


def _same_shape(one: Operation, other: Operation) -> bool:
    mine, others = one.output(0).shape, other.output(0).shape
    return len(mine) == len(others) and all(map(_same_extent, mine, others))


def _common_outer(producer: Operation, reader: Operation, accesses: Accesses) -> int:
    """How many outermost axes of a producer are those of its reader in every read."""
    count = 0
    for extent, axis in zip(producer.output(0).shape, reader.axis, strict=False):
        if axis.dom is None or not _same_extent(extent, axis.dom.extent):
            break
        if not all(shifted_by_constant(axis.var, indices[count]) for indices in accesses):
            break
        count += 1
    return count
