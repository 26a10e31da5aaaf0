"""Replacing the inner loops of a stage by a tensor intrinsic.

The loops from the tensorised axis inwards must compute what the intrinsic declares: both are written in the same local
axes, and compared after simplification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tilewright.arith import Analyzer, IntervalSet, union_sets
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.container import Array, Map
from tilewright.ir.expr import Call, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Select, Var, is_const
from tilewright.ir.functor import Mutator, substitute_expr
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.runtime.registry import register_func
from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.compute_stmt import make_compute_nest, root_values
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import wrap
from tilewright.te.schedule.reads import TensorDomains, note_reads
from tilewright.te.schedule.relations import Ranges, Sets, pass_up_sets
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.te.tensor_intrin import TensorIntrin
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import AttrStmt, IfThenElse, Stmt, stmt_seq

Region = list[Range]


def _tensorized_position(stage: Stage) -> int | None:
    for position, axis in enumerate(stage.leaf_iter_vars):
        if stage.attributes(axis).tensor_intrin is not None:
            return position
    return None


def is_tensorized(stage: Stage) -> bool:
    """True if an axis of the stage is tensorised."""
    return _tensorized_position(stage) is not None


def tensorize_stmt(stage: Stage, context: LoweringContext) -> Stmt:
    """The outer loops of the stage with the intrinsic inside."""
    return _Tensorize(stage, context).build()


def _outside_lowering(stage: Stage, ranges: Ranges) -> LoweringContext:
    """What is known of a stage by its ranges only."""

    def refuse(*_: object) -> NoReturn:
        raise ScheduleError(f"stage {stage.label} is looked at, not lowered")

    return LoweringContext(ranges, {}, refuse, refuse, {}, {})


@register_func("test.op.InferTensorizeRegion", override=True)
def infer_tensorize_region(stage: Stage, ranges: Ranges) -> Array[Any]:
    """For each root axis of a tensorised stage the range that one call of the intrinsic covers, and for each input the
    box that it reads; ``ranges`` is what bound inference found."""
    found = _Tensorize(stage, _outside_lowering(stage, ranges))
    box = found.axis_box()
    inputs = {tensor: Array(region) for tensor, region in found.input_boxes(box).items()}
    return Array([Map(box), Map(inputs)])


@register_func("test.op.MatchTensorizeBody", override=True)
def match_tensorize_body(
    stage: Stage, box: Mapping[IterVar, Range], inputs: Mapping[Tensor, Region], intrin: TensorIntrin
) -> Array[PrimExpr]:
    """What a tensorised stage computes in one call, with the axes and inputs of the intrinsic: where the two match, the
    body of the intrinsic's declaration."""
    found = _Tensorize(stage, _outside_lowering(stage, dict(box)))
    found.intrin = intrin
    regions = {tensor: list(region) for tensor, region in dict(inputs).items()}
    return Array(found.body_in_terms_of(dict(box), regions))


def bind_buffer(buffer: Buffer, tensor: Tensor, region: Region, body: Stmt) -> Stmt:
    """Within the body, the buffer is a view of a box of the tensor."""
    bounds = [part for one in region for part in (one.min, one.extent)]
    return AttrStmt(
        (buffer, tensor), "buffer_bind_scope", operators.call("tvm_tuple", "handle", bounds), body
    )


class _Tensorize:
    def __init__(self, stage: Stage, context: LoweringContext) -> None:
        self.stage = stage
        self.context = context
        assert isinstance(stage.op, ComputeOp)
        self.operation = stage.op
        position = _tensorized_position(stage)
        assert position is not None
        self.position = position
        self.axis = stage.leaf_iter_vars[position]
        self.intrin: TensorIntrin = stage.attributes(self.axis).tensor_intrin
        self.analyzer = context.analyzer

    def fail(self, reason: str) -> NoReturn:
        raise ScheduleError(
            f"tensorize on stage {self.stage.label}, axis {self.axis.var.name}, with {self.intrin.name}: {reason}",
            span=self.operation.span,
        )

    def build(self) -> Stmt:
        box = self.axis_box()
        inputs = self.input_boxes(box)
        self.check(box, inputs)
        nest = make_compute_nest(self.stage, self.context)
        if nest.main_predicates:
            needed = " and ".join(str(one) for one in nest.main_predicates)
            self.fail(f"the loops do not divide the axes: {needed} would be needed")
        mapping = root_values(self.operation, nest.main_values, self.analyzer)
        outside = nest.main[: self.position]
        if not self.operation.reduce_axis or self.position <= nest.common:
            return wrap(outside, substitute(self.bind(self.part("body"), box, inputs), mapping))
        update = self.bind(self.part("reduce_update"), box, inputs)
        common, inner = outside[: nest.common], outside[nest.common :]
        if self.intrin.reduce_init is None:
            first = self.first_iteration(nest.common)
            return wrap(
                outside,
                substitute(IfThenElse(first, self.bind(self.part("body"), box, inputs), update), mapping),
            )
        start = self.bind_outputs(self.part("reduce_init"), box)
        init_mapping = root_values(self.operation, nest.init_values, self.analyzer)
        init_box_stmt = wrap(
            nest.init[: self.position],
            substitute(
                start, {**mapping, **init_mapping, **self.renamed(nest.main_values, nest.init_values)}
            ),
        )
        return wrap(common, stmt_seq(init_box_stmt, wrap(inner, substitute(update, mapping))))

    def renamed(self, main: dict[IterVar, PrimExpr], init: dict[IterVar, PrimExpr]) -> dict[Any, PrimExpr]:
        """The loops of the initialisation have separate variables."""
        return {
            value: init[axis]
            for axis, value in main.items()
            if isinstance(value, Var) and axis in init and init[axis] is not value
        }

    def part(self, name: str) -> Stmt:
        found: Stmt | None = getattr(self.intrin, name)
        if found is None:
            self.fail(f"the intrinsic does not define {name}, which this schedule needs")
        return found

    def first_iteration(self, common: int) -> PrimExpr:
        """True in the first iteration of the reduction loops outside the intrinsic."""
        condition: PrimExpr = operators.const_true()
        for axis in self.stage.leaf_iter_vars[common : self.position]:
            if axis.iter_type == IterVar.CommReduce and not is_const(self.context.ranges[axis].extent, 1):
                condition = operators.logical_and(
                    condition, operators.equal(axis.var, self.context.ranges[axis].min)
                )
        return condition

    def axis_box(self) -> dict[IterVar, Range]:
        """For each root axis, the range that one call covers."""
        ranges = self.context.ranges
        sets: Sets = {}
        for position, axis in enumerate(self.stage.leaf_iter_vars):
            whole = ranges[axis]
            if position >= self.position:
                sets[axis] = IntervalSet.from_range(whole)
            else:
                thread = self.stage.thread_of(axis)
                sets[axis] = IntervalSet.single_point(whole.min if is_const(whole.extent, 1) else thread.var)
        pass_up_sets(self.stage.relations, ranges, sets, self.analyzer)
        return {
            axis: sets[axis].cover_range(ranges[axis], self.analyzer)
            for axis in self.operation.root_iter_vars
        }

    def input_boxes(self, box: dict[IterVar, Range]) -> dict[Tensor, Region]:
        """For each input, the box that one call reads."""
        domains: TensorDomains = {
            tensor: [[] for _ in range(max(len(tensor.shape), 1))] for tensor in self.operation.input_tensors
        }
        sets = {axis.var: IntervalSet.from_range(whole) for axis, whole in box.items()}
        note_reads(self.operation, self.analyzer, sets, domains)
        found: dict[Tensor, Region] = {}
        for tensor, dimensions in domains.items():
            region = []
            for extent, sets_read in zip(tensor.shape, dimensions, strict=False):
                covered = union_sets(sets_read, self.analyzer).cover_range(Range(0, extent), self.analyzer)
                region.append(
                    Range.from_min_extent(
                        self.analyzer.simplify(covered.min), self.analyzer.simplify(covered.extent)
                    )
                )
            found[tensor] = region
        return found

    def check(self, box: dict[IterVar, Range], inputs: dict[Tensor, Region]) -> None:
        """Refuse an intrinsic that computes something else."""
        mine, theirs = self.operation, self.declared()
        local: dict[Var, PrimExpr] = {}
        to_theirs: dict[Var, PrimExpr] = {}
        for axis, other in self.paired_axes(box).items():
            local[axis.var] = box[axis].min
            if other is None:
                # The intrinsic may depend on the loops outside of it.
                to_theirs[axis.var] = box[axis].min
            else:
                fresh = self.inner_axis(axis, box[axis])
                local[axis.var] = operators.add(fresh, box[axis].min)
                to_theirs[other.var] = fresh
        for one, other_value in zip(mine.body, theirs.body, strict=True):
            self.compare(one, other_value, local, to_theirs, inputs)

    def declared(self) -> ComputeOp:
        """The computation that declares the intrinsic."""
        if not isinstance(self.intrin.op, ComputeOp):
            self.fail("the intrinsic is not declared by a computation")
        return self.intrin.op

    def paired_axes(self, box: dict[IterVar, Range]) -> dict[IterVar, IterVar | None]:
        """The axes of the intrinsic for those of the stage; None for an axis that has one value inside."""
        mine, theirs = self.operation, self.declared()
        if len(theirs.axes) > len(mine.axes):
            self.fail(f"the intrinsic has {len(theirs.axes)} data axes, the stage {len(mine.axes)}")
        pairs: dict[IterVar, IterVar | None] = {}
        skipped = len(mine.axes) - len(theirs.axes)
        for axis in mine.axes[:skipped]:
            self.expect_extent(axis, box[axis], operators.const(1, axis.var.dtype))
            pairs[axis] = None
        for axis, other in zip(mine.axes[skipped:], theirs.axes, strict=True):
            assert other.dom is not None
            self.expect_extent(axis, box[axis], other.dom.extent)
            pairs[axis] = other
        wanted = list(theirs.reduce_axis)
        for axis in mine.reduce_axis:
            if (
                wanted
                and wanted[0].dom is not None
                and self.analyzer.can_prove_equal(wanted[0].dom.extent, box[axis].extent)
            ):
                pairs[axis] = wanted.pop(0)
            else:
                self.expect_extent(axis, box[axis], operators.const(1, axis.var.dtype))
                pairs[axis] = None
        if wanted:
            self.fail(f"the intrinsic reduces over {wanted[0].var.name}, the stage has no such axis inside")
        return pairs

    def body_in_terms_of(self, box: dict[IterVar, Range], inputs: dict[Tensor, Region]) -> list[PrimExpr]:
        """What the stage computes, with the axes and inputs of the intrinsic."""
        pairs = self.paired_axes(box)
        local = {
            axis.var: box[axis].min if other is None else operators.add(other.var, box[axis].min)
            for axis, other in pairs.items()
        }
        reduced = [pairs[axis] for axis in self.operation.reduce_axis]
        axes = tuple(other for other in reduced if other is not None)
        tensors = dict(zip(self.operation.input_tensors, self.intrin.inputs, strict=False))
        found: list[PrimExpr] = []
        for value in self.operation.body:
            sources = value.source if isinstance(value, Reduce) else (value,)
            made = [
                _Localize(inputs, tensors, self.analyzer).visit(substitute_expr(one, local))
                for one in sources
            ]
            found.append(
                value.replace(source=tuple(made), axis=axes) if isinstance(value, Reduce) else made[0]
            )
        return found

    def expect_extent(self, axis: IterVar, found: Range, wanted: PrimExpr) -> None:
        if not self.analyzer.can_prove_equal(operators.cast(found.extent.dtype, wanted), found.extent):
            self.fail(f"axis {axis.var.name} has extent {found.extent} inside, the intrinsic wants {wanted}")

    def inner_axis(self, axis: IterVar, found: Range) -> Var:
        """An axis as the intrinsic sees it, from 0: its extent decides what packed indices come to."""
        fresh = Var(axis.var.name, axis.var.dtype)
        self.analyzer.bind(fresh, Range.from_min_extent(operators.const(0, axis.var.dtype), found.extent))
        return fresh

    def compare(
        self,
        mine: PrimExpr,
        theirs: PrimExpr,
        local: dict[Var, PrimExpr],
        to_theirs: dict[Var, PrimExpr],
        inputs: dict[Tensor, Region],
    ) -> None:
        """Refuse unless both expressions are the same in local axes."""
        values = [(mine, theirs)]
        if isinstance(mine, Reduce) and isinstance(theirs, Reduce):
            if not structural_equal(mine.combiner, theirs.combiner):
                self.fail("the intrinsic combines in another way")
            values = list(zip(mine.source, theirs.source, strict=True))
        elif isinstance(mine, Reduce) != isinstance(theirs, Reduce):
            self.fail("one of intrinsic and stage is a reduction, the other is not")
        tensors = dict(zip(self.operation.input_tensors, self.intrin.inputs, strict=False))
        if len(self.operation.input_tensors) != len(self.intrin.inputs):
            self.fail(
                f"the intrinsic reads {len(self.intrin.inputs)} tensors, the stage {len(self.operation.input_tensors)}"
            )
        for one, other in values:
            left = _Localize(inputs, tensors, self.analyzer).visit(substitute_expr(one, local))
            right = _Simplified(self.analyzer).visit(substitute_expr(other, to_theirs))
            if not structural_equal(left, right):
                self.fail(f"the stage computes {left}, the intrinsic {right}")

    def bind(self, body: Stmt, box: dict[IterVar, Range], inputs: dict[Tensor, Region]) -> Stmt:
        body = self.bind_outputs(body, box)
        for buffer, tensor in zip(self.intrin.buffers, self.operation.input_tensors, strict=False):
            body = bind_buffer(buffer, tensor, inputs[tensor], body)
        return body

    def bind_outputs(self, body: Stmt, box: dict[IterVar, Range]) -> Stmt:
        region = [box[axis] for axis in self.operation.axes]
        for buffer, tensor in zip(
            self.intrin.buffers[len(self.intrin.inputs) :], self.operation.outputs, strict=True
        ):
            body = bind_buffer(buffer, tensor, region, body)
        return body


class _Simplified(Mutator):
    """Simplifies the indices of reads, and forgets how a choice is evaluated: the intrinsic decides that."""

    memoize = True

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        chooses = isinstance(made.op, Op) and made.op.name == "tir.if_then_else"
        if not chooses:
            return made
        condition, first, second = made.args
        return Select(condition, first, second, made.span)

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        return ProducerLoad(node.producer, [self.analyzer.simplify(index) for index in node.indices])


class _Localize(_Simplified):
    """Makes reads relative to the boxes of the inputs, of the intrinsic's tensors; leading dimensions of extent
    one go."""

    def __init__(
        self, inputs: dict[Tensor, Region], tensors: dict[Tensor, Tensor], analyzer: Analyzer
    ) -> None:
        super().__init__(analyzer)
        self.inputs = inputs
        self.tensors = tensors

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        tensor = node.producer
        if not isinstance(tensor, Tensor) or tensor not in self.inputs:
            return node
        target = self.tensors[tensor]
        indices = [
            self.analyzer.simplify(operators.subtract(index, box.min))
            for index, box in zip(node.indices, self.inputs[tensor], strict=True)
        ]
        return ProducerLoad(target, indices[len(indices) - len(target.shape) :])
