"""Bounds and statements of the operations that work on whole tensors: scans, statements, and tensor
computations by intrinsic."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import Range, Var
from tilewright.te.extern import ExternOp
from tilewright.te.scan import ScanOp
from tilewright.te.schedule.compute_stmt import make_compute_nest, root_values
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import guard, make_loop_nest, wrap
from tilewright.te.schedule.lowering import PROVIDE, REALIZE
from tilewright.te.schedule.reads import OUTPUTS, READS, OutputDomain, TensorDomains, note_indices
from tilewright.te.schedule.relations import Ranges, Values
from tilewright.te.schedule.stage import Stage
from tilewright.te.schedule.tensorize import bind_buffer
from tilewright.te.tensor import Operation, Tensor
from tilewright.te.tensor_intrin import TensorComputeOp
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import NO_OP, AttrStmt, Stmt, stmt_seq

Sets = Mapping[Var, IntervalSet]


def _read_whole(tensor: Tensor, domains: TensorDomains, skip: int = 0) -> None:
    """Every index of a tensor is read, from dimension ``skip`` on."""
    if tensor in domains:
        for dimension, extent in list(enumerate(tensor.shape))[skip:]:
            zero = operators.const(0, extent.dtype)
            domains[tensor][dimension].append(IntervalSet(zero, operators.subtract(extent, 1)))


def _whole_shapes(stage: Stage, ranges: Ranges) -> list[list[Range]]:
    return [[Range(0, extent) for extent in tensor.shape] for tensor in stage.op.outputs]


def _whole_domain(operation: Operation, domains: TensorDomains) -> OutputDomain:
    return {axis: None for axis in operation.root_iter_vars}


# -- scans
# ------------------------------------------------------------------------------------------------------------


def _scan_reads(operation: ScanOp, analyzer: Analyzer, sets: Sets, domains: TensorDomains) -> None:
    for tensor in operation.init:
        _read_whole(tensor, domains)
    for tensor in operation.update:
        if tensor in domains:
            domains[tensor][0].append(sets[operation.scan_axis.var])
            _read_whole(tensor, domains, skip=1)


def _scan(stage: Stage, context: LoweringContext) -> Stmt:
    """First the initial steps, then a loop over time with the update inside."""
    operation = stage.op
    assert isinstance(operation, ScanOp)
    starts = [context.provide(one) for one in context.scan_init.get(operation, [])]
    values: Values = {}
    nest = make_loop_nest(
        stage, context.ranges, values, keep_trivial=context.keep_trivial, attach=context.attached_wrappers
    )
    return stmt_seq(*starts, wrap(nest, NO_OP))


READS[ScanOp] = _scan_reads
OUTPUTS[ScanOp] = _whole_domain
PROVIDE[ScanOp] = _scan
REALIZE[ScanOp] = _whole_shapes


# -- statements
# -------------------------------------------------------------------------------------------------------


def _extern_reads(operation: ExternOp, analyzer: Analyzer, sets: Sets, domains: TensorDomains) -> None:
    for tensor in operation.input_tensors:
        _read_whole(tensor, domains)


def _extern(stage: Stage, context: LoweringContext) -> Stmt:
    operation = stage.op
    assert isinstance(operation, ExternOp)
    body: Stmt = AttrStmt(operators.const(0, "int32"), "extern_scope", 0, operation.body)
    pairs = [
        *zip(operation.input_placeholders, operation.inputs, strict=True),
        *zip(operation.output_placeholders, operation.outputs, strict=True),
    ]
    for buffer, tensor in reversed(pairs):
        body = bind_buffer(buffer, tensor, [Range(0, extent) for extent in tensor.shape], body)
    return body


READS[ExternOp] = _extern_reads
OUTPUTS[ExternOp] = _whole_domain
PROVIDE[ExternOp] = _extern
REALIZE[ExternOp] = _whole_shapes


# -- tensor computations
# ----------------------------------------------------------------------------------------------


def _intrinsic_reads(
    operation: TensorComputeOp, analyzer: Analyzer, sets: Sets, domains: TensorDomains
) -> None:
    for tensor, region in zip(operation.call.tensors, operation.call.regions, strict=True):
        if tensor in domains:
            for dimension, box in enumerate(region):
                last = operators.subtract(operators.add(box.min, box.extent), 1)
                note_indices(tensor, dimension, (box.min, last), analyzer, sets, domains)


def _intrinsic_domain(operation: TensorComputeOp, domains: TensorDomains) -> OutputDomain:
    covered: OutputDomain = {axis: None for axis in operation.root_iter_vars}
    for dimension, axis in enumerate(operation.loop_axes):
        covered[axis] = [found for tensor in operation.outputs for found in domains[tensor][dimension]]
    return covered


def _intrinsic(stage: Stage, context: LoweringContext) -> Stmt:
    """Loops over the outer axes, with the intrinsic's statement on the boxes that the call names."""
    operation = stage.op
    assert isinstance(operation, TensorComputeOp)
    intrin = operation.call.intrin
    nest = make_compute_nest(stage, context)
    mapping = root_values(operation, nest.main_values, context.analyzer)
    box = [Range.from_min_extent(axis.var, 1) for axis in operation.loop_axes]
    box += [Range(0, axis.dom.extent) for axis in operation.inner_axes if axis.dom is not None]
    scalars = dict(zip(intrin.scalar_params, operation.call.scalar_inputs, strict=True))

    def bound(part: Stmt, with_inputs: bool) -> Stmt:
        part = substitute(part, scalars)
        for buffer, tensor in zip(intrin.buffers[len(intrin.inputs) :], operation.outputs, strict=True):
            part = bind_buffer(buffer, tensor, box, part)
        if with_inputs:
            for buffer, tensor, region in zip(
                intrin.buffers, operation.call.tensors, operation.call.regions, strict=False
            ):
                part = bind_buffer(buffer, tensor, list(region), part)
        return part

    if not operation.reduce_axis:
        if intrin.body is None:
            stage.fail("compute", None, f"intrinsic {intrin.name} gives no body")
        return wrap(nest.main, guard(nest.main_predicates, substitute(bound(intrin.body, True), mapping)))
    if intrin.reduce_init is None or intrin.reduce_update is None:
        stage.fail(
            "compute",
            None,
            f"intrinsic {intrin.name} does not define reduce_init and reduce_update, which its reduction needs",
        )
    init_mapping = root_values(operation, nest.init_values, context.analyzer)
    init = guard(nest.init_predicates, substitute(bound(intrin.reduce_init, False), init_mapping))
    update = guard(nest.main_predicates, substitute(bound(intrin.reduce_update, True), mapping))
    common, inner = nest.main[: nest.common], nest.main[nest.common :]
    return wrap(common, stmt_seq(wrap(nest.init, init), wrap(inner, update)))


READS[TensorComputeOp] = _intrinsic_reads
OUTPUTS[TensorComputeOp] = _intrinsic_domain
PROVIDE[TensorComputeOp] = _intrinsic
