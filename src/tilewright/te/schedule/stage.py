"""One stage of a schedule: an operation, its axes, and where it is computed.

This file has the data of a stage and its loop primitives. Every primitive checks its arguments, changes the stage, and
appends a step to the schedule's trace; an illegal one raises ``ScheduleError`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, IterVar, PrimExpr, Range, StringImm, Var
from tilewright.support.errors import ExpressionError, ScheduleError
from tilewright.support.node import Object
from tilewright.support.span import user_span
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.relations import Fuse, IterVarRelation, Singleton, Split
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.storage_rank import thread_rank

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule

LOOP_TYPES = (IterVar.DataPar, IterVar.CommReduce, IterVar.Ordered)


class AttachType(IntEnum):
    """Where a stage is computed."""

    GROUP_ROOT = 1
    INLINE = 2
    INLINED_ALREADY = 3
    SCOPE = 4
    SCAN_UPDATE = 5


@dataclass(frozen=True, slots=True)
class AxisAttributes:
    """The attributes of an axis that primitives set."""

    iter_type: int = IterVar.DataPar
    bind_thread: IterVar | None = None
    prefetches: tuple[tuple[Tensor, PrimExpr], ...] = ()
    tensor_intrin: Any = None
    align_factor: int = 0
    align_offset: int = 0
    pragmas: tuple[tuple[str, Any], ...] = ()

    @property
    def pragma_keys(self) -> tuple[StringImm, ...]:
        """The names of the pragmas, in the order they were given."""
        return tuple(StringImm(key) for key, _ in self.pragmas)

    @property
    def pragma_values(self) -> tuple[Any, ...]:
        """The values of the pragmas."""
        return tuple(value for _, value in self.pragmas)

    @property
    def prefetch_data(self) -> tuple[Tensor, ...]:
        """The tensors that are prefetched."""
        return tuple(tensor for tensor, _ in self.prefetches)

    @property
    def prefetch_offset(self) -> tuple[PrimExpr, ...]:
        """How many iterations ahead each is prefetched."""
        return tuple(offset for _, offset in self.prefetches)

    @property
    def dim_align_factor(self) -> int:
        """The factor of ``storage_align``."""
        return self.align_factor

    @property
    def dim_align_offset(self) -> int:
        """The offset of ``storage_align``."""
        return self.align_offset


@dataclass(eq=False)
class Stage(Object):
    """An operation in a schedule."""

    schedule: Schedule
    op: Operation
    origin_op: Operation
    label: str
    all_iter_vars: list[IterVar] = field(default_factory=list)
    leaf_iter_vars: list[IterVar] = field(default_factory=list)
    relations: list[IterVarRelation] = field(default_factory=list)
    axis_attributes: dict[IterVar, AxisAttributes] = field(default_factory=dict)
    attach_type: AttachType = AttachType.GROUP_ROOT
    attach_ivar: IterVar | None = None
    attach_stage: Stage | None = None
    scope: str = ""
    is_output: bool = False
    double_buffered: bool = False
    overcomputed: frozenset[IterVar] = frozenset()
    env_thread_axes: tuple[IterVar, ...] = ()
    store_predicate: PrimExpr | None = None
    group: Stage | None = None
    num_child_stages: int = 0
    is_group: bool = False

    # -- what the primitives need ---------------------------------------------------------------------------------

    def start_from(self, operation: Operation) -> None:
        """Begin anew with the axes of an operation."""
        self.op = operation
        self.all_iter_vars = list(operation.root_iter_vars)
        self.leaf_iter_vars = [axis for axis in self.all_iter_vars if axis.iter_type != IterVar.Opaque]
        self.relations = []
        self.axis_attributes = {}

    def attributes(self, axis: IterVar) -> AxisAttributes:
        """The attributes of an axis."""
        found = self.axis_attributes.get(axis)
        return AxisAttributes(iter_type=axis.iter_type) if found is None else found

    def thread_of(self, axis: IterVar) -> IterVar:
        """The thread axis that an axis is bound to; the axis itself where it is bound to none."""
        bound = self.attributes(axis).bind_thread
        return axis if bound is None else bound

    def update_attributes(self, axis: IterVar, **changes: Any) -> None:
        """Ask something for an axis."""
        self.axis_attributes[axis] = replace(self.attributes(axis), **changes)

    def fail(self, primitive: str, axis: Any, reason: str) -> NoReturn:
        """Refuse a step."""
        place = f", axis {axis_name(axis)}" if axis is not None else ""
        raise ScheduleError(f"{primitive} on stage {self.label}{place}: {reason}", span=user_span())

    def leaf_position(self, primitive: str, axis: Any) -> int:
        """The place of an axis among the leaves; refuses anything else."""
        if not isinstance(axis, IterVar):
            self.fail(primitive, axis, f"{axis!r} is not an axis")
        for position, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return position
        names = ", ".join(leaf.var.name for leaf in self.leaf_iter_vars) or "none"
        known = any(one is axis for one in self.all_iter_vars)
        reason = (
            "was split or fused already; the axes left are"
            if known
            else "is not an axis of this stage; its axes are"
        )
        return self.fail(primitive, axis, f"it {reason} {names}")

    def _loop_axis(self, primitive: str, axis: Any) -> int:
        position = self.leaf_position(primitive, axis)
        if axis.iter_type not in LOOP_TYPES:
            self.fail(primitive, axis, "a thread axis or an opaque axis cannot be transformed")
        if self.attributes(axis).bind_thread is not None:
            self.fail(primitive, axis, "it is bound to a thread")
        return position

    def _record(self, primitive: str, *arguments: Any, results: Sequence[Any] = ()) -> None:
        self.schedule.trace.append(primitive, self, arguments, results)

    # -- loops ----------------------------------------------------------------------------------------------------

    def split(
        self, parent: IterVar, factor: ExprLike | None = None, nparts: ExprLike | None = None
    ) -> tuple[IterVar, IterVar]:
        """Split an axis in two: by the extent of the inner one, or by the number of parts."""
        outer, inner = self._split(parent, factor, nparts, exact=False)
        self._record("split", parent, factor, nparts, results=(outer, inner))
        return outer, inner

    def split_exact(self, parent: IterVar, factor: ExprLike) -> tuple[IterVar, IterVar]:
        """Split an axis by the extent of the inner one, which it has even if the axis is shorter: as many threads as
        another stage has, for example. Iterations past the end do nothing."""
        outer, inner = self._split(parent, factor, None, exact=True)
        self._record("split_exact", parent, factor, results=(outer, inner))
        return outer, inner

    def _split(
        self, parent: IterVar, factor: ExprLike | None, nparts: ExprLike | None, exact: bool
    ) -> tuple[IterVar, IterVar]:
        position = self._loop_axis("split", parent)
        if (factor is None) == (nparts is None):
            self.fail("split", parent, "give either factor or nparts")
        size = self._positive(
            "split", parent, "factor" if nparts is None else "nparts", factor if nparts is None else nparts
        )
        name, dtype = parent.var.name, parent.var.dtype
        outer_range = Range(0, size) if nparts is not None else None
        inner_range = Range(0, size) if factor is not None else None
        outer = IterVar(outer_range, Var(f"{name}.outer", dtype), parent.iter_type)
        inner = IterVar(inner_range, Var(f"{name}.inner", dtype), parent.iter_type)
        self.relations.append(
            Split(
                parent,
                outer,
                inner,
                size if factor is not None else None,
                size if nparts is not None else None,
                exact,
            )
        )
        self.all_iter_vars += [outer, inner]
        self.leaf_iter_vars[position : position + 1] = [outer, inner]
        return outer, inner

    def _positive(self, primitive: str, axis: IterVar, what: str, given: Any) -> PrimExpr:
        """A split size: an integer expression that is not zero or negative."""
        size = self._integer(primitive, axis, what, given)
        if isinstance(size, IntImm) and size.value <= 0:
            self.fail(primitive, axis, f"{what} {size.value} is not positive")
        return operators.cast(axis.var.dtype, size)

    def _integer(self, primitive: str, axis: IterVar, what: str, given: Any) -> PrimExpr:
        try:
            size = operators.as_expr(given)
        except ExpressionError:
            self.fail(primitive, axis, f"{what} {given!r} is not a number")
        if not size.dtype.is_integral or size.dtype.is_bool:
            self.fail(primitive, axis, f"{what} {given!r} is not an integer")
        return size

    def fuse(self, *args: Any) -> IterVar:
        """Fuse consecutive axes, outermost first, into one. Without axes: a new axis of one iteration."""
        axes = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if not axes:
            return self._singleton()
        positions = [self._loop_axis("fuse", axis) for axis in axes]
        for one, other in pairwise(positions):
            if other != one + 1:
                order = ", ".join(leaf.var.name for leaf in self.leaf_iter_vars)
                self.fail(
                    "fuse",
                    axes[0],
                    f"the axes must follow one another, outermost first; the order is {order}",
                )
        kinds = {axis.iter_type for axis in axes} - {IterVar.Ordered}
        if len(kinds) > 1:
            self.fail("fuse", axes[0], "a reduction axis and a data axis cannot become one")
        fused: IterVar = axes[0]
        for inner in axes[1:]:
            fused = self._fuse_two(fused, inner)
        self._record("fuse", *axes, results=(fused,))
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        position = self.leaf_position("fuse", outer)
        dtype = outer.var.dtype if outer.var.dtype.bits >= inner.var.dtype.bits else inner.var.dtype
        # One axis whose iterations keep their order is enough for the fused one to keep it.
        kind = inner.iter_type if inner.iter_type == IterVar.Ordered else outer.iter_type
        fused = IterVar(None, Var(f"{outer.var.name}.{inner.var.name}.fused", dtype), kind)
        self.relations.append(Fuse(outer, inner, fused))
        self.all_iter_vars.append(fused)
        self.leaf_iter_vars[position : position + 2] = [fused]
        return fused

    def _singleton(self) -> IterVar:
        axis = IterVar(Range(0, 1), Var("singleton"), IterVar.DataPar)
        self.relations.append(Singleton(axis))
        self.all_iter_vars.append(axis)
        self.leaf_iter_vars.insert(0, axis)
        self._record("fuse", results=(axis,))
        return axis

    def reorder(self, *args: IterVar) -> None:
        """Put these axes in this order, in the places that they hold together."""
        positions = [self.leaf_position("reorder", axis) for axis in args]
        for axis, position in zip(args, positions, strict=True):
            if positions.count(position) > 1:
                self.fail("reorder", axis, "it is named twice")
            if axis.iter_type not in LOOP_TYPES:
                self.fail("reorder", axis, "a thread axis or an opaque axis cannot be moved")
        for position, axis in zip(sorted(positions), args, strict=True):
            self.leaf_iter_vars[position] = axis
        self._record("reorder", *args)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: ExprLike, y_factor: ExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two axes and put the inner parts innermost: x.outer, y.outer, x.inner, y.inner."""
        self._loop_axis("tile", x_parent)
        self._loop_axis("tile", y_parent)
        if x_parent is y_parent:
            self.fail("tile", x_parent, "two different axes are needed")
        self._positive("tile", x_parent, "x_factor", x_factor)
        self._positive("tile", y_parent, "y_factor", y_factor)
        x_outer, x_inner = self.split(x_parent, x_factor)
        y_outer, y_inner = self.split(y_parent, y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def vectorize(self, var: IterVar) -> None:
        """Make the iterations of an axis the lanes of vectors."""
        self._annotate("vectorize", var, IterVar.Vectorized, reduction=False)

    def unroll(self, var: IterVar) -> None:
        """Write the iterations of an axis out one after another."""
        self._annotate("unroll", var, IterVar.Unrolled, reduction=True)

    def parallel(self, var: IterVar) -> None:
        """Run the iterations of an axis at the same time."""
        self._annotate("parallel", var, IterVar.Parallelized, reduction=False)

    def _annotate(self, primitive: str, axis: IterVar, iter_type: int, reduction: bool) -> None:
        self._loop_axis(primitive, axis)
        if axis.iter_type != IterVar.DataPar and not reduction:
            self.fail(
                primitive,
                axis,
                "its iterations depend on one another; rfactor makes a reduction axis a data axis",
            )
        self.update_attributes(axis, iter_type=iter_type)
        self._record(primitive, axis)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Run an axis on a thread index."""
        self._loop_axis("bind", ivar)
        if not isinstance(thread_ivar, IterVar) or thread_ivar.iter_type != IterVar.ThreadIndex:
            self.fail(
                "bind", ivar, f"{axis_name(thread_ivar)} is not a thread axis; te.thread_axis makes one"
            )
        self._thread_tag("bind", ivar, thread_ivar)
        for other in self.leaf_iter_vars:
            bound = self.attributes(other).bind_thread
            if (
                bound is not None
                and bound.thread_tag == thread_ivar.thread_tag
                and not thread_ivar.thread_tag.startswith("vthread")
            ):
                self.fail(
                    "bind",
                    ivar,
                    f"axis {other.var.name} of this stage is bound to {thread_ivar.thread_tag} already",
                )
        self.update_attributes(ivar, bind_thread=thread_ivar)
        self._record("bind", ivar, thread_ivar)

    def _thread_tag(self, primitive: str, axis: IterVar, thread: IterVar) -> None:
        """Refuse a thread axis whose tag names no thread."""
        if thread.thread_tag != "pipeline" and thread_rank(thread.thread_tag) is None:
            self.fail(
                primitive,
                axis,
                f"{thread.thread_tag!r} is not a thread tag; those are blockIdx.x, threadIdx.x (also y, z) and vthread",
            )

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Threads that run around the whole stage (for scans on a GPU)."""
        axes = tuple(threads) if isinstance(threads, (list, tuple)) else (threads,)
        for axis in axes:
            if not isinstance(axis, IterVar) or axis.iter_type != IterVar.ThreadIndex:
                self.fail("env_threads", axis, "it is not a thread axis")
            self._thread_tag("env_threads", axis, axis)
        self.env_thread_axes += axes
        self._record("env_threads", *axes)

    def set_store_predicate(self, predicate: ExprLike) -> None:
        """Store only where the condition holds."""
        condition = operators.as_expr(predicate)
        if not condition.dtype.is_bool:
            self.fail(
                "set_store_predicate", None, f"the condition has type {condition.dtype}, it must be bool"
            )
        self.store_predicate = condition
        self._record("set_store_predicate", condition)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a hint to an axis: ``auto_unroll_max_step``, ``parallel_launch_point``, ``import_llvm``, ...

        ``unroll`` and ``vectorize`` are the primitives of these names."""
        self.leaf_position("pragma", var)
        if not isinstance(pragma_type, str):
            self.fail("pragma", var, f"{pragma_type!r} is not the name of a pragma")
        if pragma_type in ("unroll", "vectorize"):
            getattr(self, pragma_type)(var)
            return
        value = (
            operators.as_expr(pragma_value) if isinstance(pragma_value, (str, int, float)) else pragma_value
        )
        kept = tuple(pragma for pragma in self.attributes(var).pragmas if pragma[0] != pragma_type)
        self.update_attributes(var, pragmas=(*kept, (pragma_type, value)))
        self._record("pragma", var, pragma_type, pragma_value)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: ExprLike) -> None:
        """Prefetch what a tensor's reads need ``offset`` iterations of the axis later."""
        self.leaf_position("prefetch", var)
        if not isinstance(tensor, Tensor):
            self.fail("prefetch", var, f"{tensor!r} is not a tensor")
        distance = self._integer("prefetch", var, "offset", offset)
        self.update_attributes(var, prefetches=(*self.attributes(var).prefetches, (tensor, distance)))
        self._record("prefetch", tensor, var, offset)

    def tensorize(self, var: IterVar, tensor_intrin: Any) -> None:
        """Replace the loops from this axis inwards by a tensor intrinsic."""
        self.leaf_position("tensorize", var)
        intrin = tensor_intrin
        if hasattr(tensor_intrin, "intrin"):
            intrin = tensor_intrin.intrin
        if not hasattr(intrin, "op") or not hasattr(intrin, "body"):
            self.fail(
                "tensorize",
                var,
                f"{tensor_intrin!r} is not a tensor intrinsic; te.decl_tensor_intrin makes one",
            )
        self.update_attributes(var, iter_type=IterVar.Tensorized, tensor_intrin=tensor_intrin)
        self._record("tensorize", var, tensor_intrin)

    # -- memory ---------------------------------------------------------------------------------------------------

    def set_scope(self, scope: str) -> None:
        """Keep the result in this storage scope."""
        if not isinstance(scope, str):
            self.fail("set_scope", None, f"{scope!r} is not the name of a storage scope")
        self.scope = scope
        self._record("set_scope", scope)

    def require_global(self) -> None:
        """Refuse the scope of an output that the caller's memory holds."""
        if self.is_output and self.scope not in ("", "global"):
            self.fail("set_scope", None, f"an output lives in global memory, not in {self.scope!r}")

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Make the stride of an axis a multiple of ``factor`` plus ``offset``."""
        if not any(axis is one for one in self.all_iter_vars):
            self.fail("storage_align", axis, "it is not an axis of this stage")
        if not any(axis is one for one in self.op.axis):
            self.fail("storage_align", axis, "it has no stride; the axes of the tensor itself have one")
        sizes = {}
        for what, given in (("factor", factor), ("offset", offset)):
            size = self._integer("storage_align", axis, what, given)
            if not isinstance(size, IntImm):
                self.fail("storage_align", axis, f"{what} {given} is not a constant")
            sizes[what] = size.value
        if sizes["factor"] <= 0:
            self.fail("storage_align", axis, f"factor {factor} is not positive")
        self.update_attributes(axis, align_factor=sizes["factor"], align_offset=sizes["offset"])
        self._record("storage_align", axis, factor, offset)

    def double_buffer(self) -> None:
        """Compute the next block while the last one is read."""
        if self.is_output:
            self.fail("double_buffer", None, "an output cannot be double-buffered")
        if self.op.num_outputs != 1:
            self.fail("double_buffer", None, "only a stage with one output can be double-buffered")
        self.double_buffered = True
        self._record("double_buffer")

    def overcompute(self, *axes: IterVar) -> None:
        """Compute all that the loops around it ask for, past the ends of these axes of the operation too: fewer
        conditions, where nobody uses the elements past the end and nothing that they are computed from is out of
        bounds."""
        if self.is_output:
            self.fail("overcompute", None, "an output has no elements past its ends")
        for axis in axes:
            if axis not in self.op.axis:
                self.fail("overcompute", axis, "it is not a data axis of the operation")
        self.overcomputed = frozenset(axes)
        self._record("overcompute", *axes)

    # -- place ----------------------------------------------------------------------------------------------------

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside another stage's loop, as much of it as each iteration needs."""
        if not isinstance(parent, Stage):
            self.fail("compute_at", scope, f"{parent!r} is not a stage")
        if parent is self:
            self.fail("compute_at", scope, "a stage cannot be computed inside itself")
        if self.is_output:
            self.fail("compute_at", scope, "an output is computed at the root")
        if self.attach_type == AttachType.SCAN_UPDATE:
            self.fail("compute_at", scope, "the update of a scan is computed in the scan")
        if not any(scope is leaf for leaf in parent.leaf_iter_vars):
            names = ", ".join(leaf.var.name for leaf in parent.leaf_iter_vars) or "none"
            self.fail(
                "compute_at", scope, f"it is not an axis left of stage {parent.label}; those are {names}"
            )
        if self._holds(parent):
            self.fail("compute_at", scope, f"stage {parent.label} is itself computed inside this stage")
        if self.group is not None and not parent.is_in_group(self.group):
            self.fail(
                "compute_at",
                scope,
                f"stage {parent.label} is outside {self.group.label}, the group that this stage is part of",
            )
        self.attach_type = AttachType.SCOPE
        self.attach_ivar = scope
        self.attach_stage = parent
        self._record("compute_at", parent, scope)

    def is_in_group(self, group: Stage) -> bool:
        """True if this stage is part of a group, directly or through another group."""
        above = self.group
        while above is not None and above is not group:
            above = above.group
        return above is group

    def _holds(self, stage: Stage) -> bool:
        """True if a stage is computed inside this one, or is part of it."""
        above: Stage | None = stage
        while above is not None:
            if above is self or above.is_in_group(self):
                return True
            place = above.attach_spec()
            above = place.attach_stage if place.is_placed else None
        return False

    def compute_inline(self) -> None:
        """Put the expression wherever it is read."""
        if self.is_output:
            self.fail("compute_inline", None, "an output cannot be inlined")
        if not isinstance(self.op, ComputeOp):
            self.fail(
                "compute_inline", None, f"only a computation can be inlined, not {type(self.op).__name__}"
            )
        if self.op.reduce_axis:
            self.fail("compute_inline", None, "a reduction cannot be inlined")
        self.attach_type = AttachType.INLINE
        self.attach_ivar = self.attach_stage = None
        self._record("compute_inline")

    def compute_root(self) -> None:
        """Compute the whole of this stage before its readers."""
        if self.attach_type != AttachType.SCAN_UPDATE:
            self.attach_type = AttachType.GROUP_ROOT
            self.attach_ivar = self.attach_stage = None
        self._record("compute_root")

    @property
    def is_placed(self) -> bool:
        """True if the stage is computed inside another stage's loop."""
        return self.attach_type in (AttachType.SCOPE, AttachType.SCAN_UPDATE)

    def attach_spec(self) -> Stage:
        """The stage that says where this one is computed: itself, or the outermost group that has a place."""
        stage = self
        while stage.attach_type == AttachType.GROUP_ROOT and stage.group is not None:
            stage = stage.group
        return stage

    @property
    def iter_var_attrs(self) -> dict[IterVar, AxisAttributes]:
        """The attributes of each axis."""
        return self.axis_attributes

    def __repr__(self) -> str:
        return f"stage({self.label}, {type(self.op).__name__})"


def axis_name(axis: Any) -> str:
    """The name of an axis, for messages."""
    return axis.var.name if isinstance(axis, IterVar) else repr(axis)
