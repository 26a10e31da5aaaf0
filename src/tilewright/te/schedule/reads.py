"""What an operation reads from its inputs, and how the domains of its outputs map to its axes.

Two tables with one function per class of operation: ``note_reads`` adds to the domains of the tensors that an operation
reads, given the sets of values of its axes; ``output_domain`` gives the set that each root axis must cover, given the
domains of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer, IntervalSet, eval_int_set
from tilewright.ir import operators
from tilewright.ir.expr import FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Var
from tilewright.ir.functor import post_order, substitute_expr
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation, Tensor

TensorDomains = dict[Tensor, list[list[IntervalSet]]]
"""For each tensor and dimension, the sets of indices that are needed."""

OutputDomain = dict[IterVar, "list[IntervalSet] | None"]

Reads = Callable[[Any, Analyzer, Mapping[Var, IntervalSet], TensorDomains], None]
READS: dict[type[Operation], Reads] = {}
OUTPUTS: dict[type[Operation], Callable[[Any, TensorDomains], OutputDomain]] = {}


@dataclass(frozen=True)
class Loops:
    """The axes of a reader in terms of its loops, and the sets of values that those take.

    The set of an axis that was split is an interval; its quotients and remainders by the factors are loops again, with
    sets that are often smaller: a single value, if the loop is a thread.
    """

    axes: Mapping[Var, PrimExpr]
    sets: Mapping[Var, IntervalSet]

    def index_set(self, index: PrimExpr, analyzer: Analyzer) -> IntervalSet | None:
        """The set of values of an index with quotients or remainders of axes; None unless it has a known size when it
        is written in loops."""
        if not _has_quotients(index):
            return None
        written = analyzer.simplify(substitute_expr(index, self.axes))
        found = eval_int_set(written, self.sets, analyzer)
        if not found.has_lower_bound or not found.has_upper_bound:
            return None
        size = analyzer.simplify(operators.subtract(found.max_value, found.min_value))
        return found if isinstance(size, IntImm) else None


def _has_quotients(index: PrimExpr) -> bool:
    return any(isinstance(part, (FloorDiv, FloorMod)) for part in post_order(index))


def note_reads(
    operation: Operation,
    analyzer: Analyzer,
    sets: Mapping[Var, IntervalSet],
    domains: TensorDomains,
    loops: Loops | None = None,
) -> None:
    """Add what the operation reads when its axes take these values."""
    if loops is not None and isinstance(operation, ComputeOp):
        _compute_reads(operation, analyzer, sets, domains, loops)
    else:
        READS[type(operation)](operation, analyzer, sets, domains)


def output_domain(operation: Operation, domains: TensorDomains) -> OutputDomain:
    """The sets that each root axis must cover; None for the whole domain."""
    return OUTPUTS[type(operation)](operation, domains)


def _compute_reads(
    operation: ComputeOp,
    analyzer: Analyzer,
    sets: Mapping[Var, IntervalSet],
    domains: TensorDomains,
    loops: Loops | None = None,
) -> None:
    first = operation.body[0]
    exprs = operation.body[:1] if isinstance(first, Reduce) else operation.body
    for expr in exprs:
        for part in post_order(expr):
            if (
                isinstance(part, ProducerLoad)
                and isinstance(part.producer, Tensor)
                and part.producer in domains
            ):
                note_load(part, analyzer, sets, domains, loops)


def note_load(
    load: ProducerLoad,
    analyzer: Analyzer,
    sets: Mapping[Var, IntervalSet],
    domains: TensorDomains,
    loops: Loops | None = None,
) -> None:
    """Add the indices of one read."""
    tensor = load.producer
    assert isinstance(tensor, Tensor)
    for dimension, index in enumerate(load.indices):
        exact = None if loops is None else loops.index_set(index, analyzer)
        if exact is None:
            note_indices(tensor, dimension, (index, index), analyzer, sets, domains)
        else:
            _note_interval(tensor, dimension, (exact, exact), analyzer, domains)


def note_indices(
    tensor: Tensor,
    dimension: int,
    indices: tuple[PrimExpr, PrimExpr],
    analyzer: Analyzer,
    sets: Mapping[Var, IntervalSet],
    domains: TensorDomains,
) -> None:
    """Add the indices from the first to the second in one dimension."""
    least = eval_int_set(indices[0], sets, analyzer)
    most = least if indices[1] is indices[0] else eval_int_set(indices[1], sets, analyzer)
    _note_interval(tensor, dimension, (least, most), analyzer, domains)


def _note_interval(
    tensor: Tensor,
    dimension: int,
    ends: tuple[IntervalSet, IntervalSet],
    analyzer: Analyzer,
    domains: TensorDomains,
) -> None:
    """Add the indices from the first set to the second. Indices outside the tensor are never used, so the shape bounds
    them; but not where that could leave an interval that ends before it begins. Of a tensor without elements nothing is
    read."""
    least, most = ends
    low, high = least.min_value, most.max_value
    extent = tensor.shape[dimension]
    first, last = operators.const(0, extent.dtype), operators.subtract(extent, 1)

    if isinstance(extent, IntImm) and extent.value == 0:
        domains[tensor][dimension].append(IntervalSet(first, last))
        return

    def holds(smaller: PrimExpr, larger: PrimExpr) -> bool:
        return analyzer.can_prove(operators.less_equal(smaller, larger))

    with analyzer.constraint_scope(operators.greater_equal(extent, 1)):
        if not least.has_lower_bound:
            low, high = first, high if most.has_upper_bound and holds(first, high) else last
        elif not most.has_upper_bound:
            low, high = low if holds(low, last) else first, last
        # A read that is outside altogether never happens: any element will do for it.
        if holds(high, operators.subtract(first, 1)):
            low = high = first
        elif holds(extent, low):
            low = high = last
        if holds(low, first) and holds(first, high):
            low = first
        if holds(last, high) and holds(low, last):
            high = last
    domains[tensor][dimension].append(IntervalSet(low, high))


def _compute_outputs(operation: ComputeOp, domains: TensorDomains) -> OutputDomain:
    covered: OutputDomain = {axis: None for axis in operation.reduce_axis}
    for dimension, axis in enumerate(operation.axes):
        covered[axis] = [found for tensor in operation.outputs for found in domains[tensor][dimension]]
    return covered


READS[ComputeOp] = _compute_reads
OUTPUTS[ComputeOp] = _compute_outputs
