"""A candidate whose weights have another layout, and the constructed schedule, as two programs that take the same
arguments: only such programs can be measured in turns and have their results compared.

Each takes the weights in both layouts, and reads them in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.auto_scheduler.builders import LocalBuilder, constructed_schedule, lower_for
from tilewright.auto_scheduler.layout_rewrite import LayoutChange, LayoutRewriteOption
from tilewright.auto_scheduler.measure_types import MeasureInput
from tilewright.auto_scheduler.runners import untuned_arguments
from tilewright.ir.module import IRModule
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.search.measure import Built
from tilewright.search.options import Argument
from tilewright.te.tensor import Tensor


@dataclass(frozen=True)
class RewrittenPair:
    """The code of both, and what they are called with."""

    candidate: Built
    untuned: Built
    arguments: tuple[Argument, ...]


def build_pair(builder: LocalBuilder, measured: MeasureInput) -> RewrittenPair | None:
    """Both programs; None where the weights of the candidate have the layouts of the task's graph."""
    task = measured.task
    dag = task.compute_dag
    changes = dag.layout_changes_from_state(measured.state)
    if task.layout_rewrite_option != LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED or not changes:
        return None
    places = [dag.tensors.index(change.placeholder) for change in changes]
    schedule, tensors = dag.apply_steps_from_state(measured.state, task.layout_rewrite_option)
    weights = [tensors[place] for place in places]
    given = [dag.tensors[place] if place in places else tensor for place, tensor in enumerate(tensors)]

    def candidate() -> IRModule:
        return lower_for(task, schedule, [*weights, *given])

    def untuned() -> IRModule:
        return lower_for(task, constructed_schedule(task), [*weights, *dag.tensors])

    first, second = builder.build_loops(task, [candidate, untuned])
    return RewrittenPair(first, second, _arguments(untuned_arguments(task), places, changes, weights))


def _arguments(
    plain: Sequence[Argument],
    places: Sequence[int],
    changes: Sequence[LayoutChange],
    weights: Sequence[Tensor],
) -> tuple[Argument, ...]:
    """The rewritten weights, and then the arguments of the constructed schedule: the values of both are the same."""
    generator = np.random.default_rng(0)
    found = list(plain)
    rewritten: list[Argument] = []
    for place, change, weight in zip(places, changes, weights, strict=True):
        values = found[place].values
        if values is None:
            shape, dtype = found[place].shape, numpy_dtype(weight.dtype)
            values = (
                generator.integers(0, 5, shape) if dtype.kind in "iu" else generator.standard_normal(shape)
            )
            values = values.astype(dtype)
        elif not isinstance(values, np.ndarray):
            values = values.numpy()
        found[place] = replace(found[place], values=values)
        rewritten.append(Argument(change.shape, str(weight.dtype), change.layout.rewrite(values)))
    return (*rewritten, *found)
