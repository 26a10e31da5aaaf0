"""Building loops from the leaf axes of a stage.

A nest is a list with one entry per leaf, outermost first; an entry is a list of wrappers, each of which puts a
statement around another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, Range, StringImm, Var, is_const
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.relations import Ranges, Values
from tilewright.te.schedule.stage import AxisAttributes, Stage
from tilewright.tir.stmt import AttrStmt, For, ForKind, IfThenElse, LetStmt, Stmt
from tilewright.tir.storage_rank import thread_attribute

Wrapper = Callable[[Stmt], Stmt]
Nest = list[list[Wrapper]]

_KINDS = {
    IterVar.Unrolled: ForKind.UNROLLED,
    IterVar.Vectorized: ForKind.VECTORIZED,
    IterVar.Parallelized: ForKind.PARALLEL,
}
_PRAGMA_KINDS = {"unroll": ForKind.UNROLLED, "vectorize": ForKind.VECTORIZED}


def wrap(nest: Iterable[Iterable[Wrapper]], body: Stmt) -> Stmt:
    """The body inside all wrappers of a nest."""
    wrappers = [wrapper for entry in nest for wrapper in entry]
    for wrapper in reversed(wrappers):
        body = wrapper(body)
    return body


def guard(predicates: Sequence[PrimExpr], body: Stmt) -> Stmt:
    """The body under conditions that nearly always hold."""
    for predicate in reversed(predicates):
        body = IfThenElse(likely(predicate), body)
    return body


def likely(condition: PrimExpr) -> PrimExpr:
    """A condition with the hint that it nearly always holds."""
    return condition if is_const(condition, 1) else operators.call("likely", condition.dtype, [condition])


def make_loop_nest(
    stage: Stage,
    ranges: Ranges,
    values: Values,
    *,
    begin: int = 0,
    fresh_vars: bool = False,
    skip: frozenset[IterVar] = frozenset(),
    keep_trivial: bool = False,
    attach: Callable[[IterVar], list[Wrapper]] | None = None,
) -> Nest:
    """A nest for the leaves from ``begin`` on; the values of the leaves are added to ``values``.

    ``fresh_vars`` makes loops with new variables, for a second nest over the same axes (the initialisation of a
    reduction); such a nest has no other stages attached. ``attach`` gives what else goes inside a loop.
    """
    nest: Nest = []
    for position, axis in enumerate(stage.leaf_iter_vars):
        attributes = stage.attributes(axis)
        thread = stage.thread_of(axis)
        if position < begin or axis in skip or axis.iter_type == IterVar.Opaque:
            values[axis] = thread.var
            nest.append([])
            continue
        launched = ranges.get(thread, ranges[axis]).extent
        made = _LoopBuilder(stage, axis, attributes, ranges[axis], launched, fresh_vars, keep_trivial).build()
        values[axis] = made.value
        nest.append(made.wrappers + (attach(axis) if attach is not None else []))
    return nest


class _LoopBuilder:
    """The loop, thread or binding for one leaf."""

    def __init__(
        self,
        stage: Stage,
        axis: IterVar,
        attributes: AxisAttributes,
        domain: Range,
        launched: PrimExpr,
        fresh: bool,
        keep_trivial: bool,
    ) -> None:
        self.stage = stage
        self.axis = axis
        self.attributes = attributes
        self.domain = domain
        self.launched = launched
        self.fresh = fresh
        self.keep_trivial = keep_trivial
        self.wrappers: list[Wrapper] = []
        self.value: PrimExpr = axis.var

    def build(self) -> _LoopBuilder:
        thread = self.stage.thread_of(self.axis)
        if thread.thread_tag in ("", "pipeline"):
            self.loop()
        else:
            self.thread(thread)
        return self

    def loop(self) -> None:
        """A loop; an axis with one iteration is bound to its value instead."""
        kind = _KINDS.get(self.attributes.iter_type, ForKind.SERIAL)
        for key, value in self.attributes.pragmas:
            if key in _PRAGMA_KINDS:
                kind = _PRAGMA_KINDS[key]
            else:
                self.pragma(key, value)
        extent, start = self.domain.extent, self.domain.min
        if is_const(extent, 1) and not self.keep_trivial:
            self.value = start
            if not self.fresh:
                self.wrappers.append(lambda body: LetStmt(self.axis.var, start, body))
            return
        plain = is_const(start, 0)
        variable = self.axis.var
        if self.fresh:
            variable = Var(f"{variable.name}.init", variable.dtype)
        elif not plain:
            variable = Var(f"{variable.name}.idx", variable.dtype)
        zero = operators.const(0, variable.dtype)
        self.wrappers.append(lambda body: For(variable, zero, extent, kind, body))
        self.value = variable if plain else operators.add(variable, start)
        if not plain and not self.fresh:
            offset = self.value
            self.wrappers.append(lambda body: LetStmt(self.axis.var, offset, body))
            self.value = self.axis.var
        for tensor, distance in self.attributes.prefetches:
            self.wrappers.append(
                lambda body, tensor=tensor, distance=distance: AttrStmt(
                    tensor, "prefetch_scope", distance, body
                )  # type: ignore[misc]
            )

    def pragma(self, key: str, value: object) -> None:
        """A hint, as an attribute around the loop."""
        given = StringImm("") if value is None else value
        self.wrappers.append(lambda body: AttrStmt(self.axis, f"pragma_{key}", given, body))

    def thread(self, thread: IterVar) -> None:
        """A thread index instead of a loop."""
        if self.fresh and self.axis.iter_type == IterVar.CommReduce:
            raise ScheduleError(
                f"bind on stage {self.stage.label}, axis {self.axis.var.name}: "
                "a reduction on a thread cannot be initialised in a loop"
            )
        if not is_const(self.domain.min, 0):
            raise ScheduleError(
                f"bind on stage {self.stage.label}, axis {self.axis.var.name}: "
                f"the range starts at {self.domain.min}, not at zero"
            )
        key = thread_attribute(thread.thread_tag)
        self.wrappers.append(lambda body: AttrStmt(thread, key, self.launched, body))
        self.value = self.domain.min if is_const(self.domain.extent, 1) else thread.var
