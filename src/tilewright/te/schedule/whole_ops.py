"""Bounds and statements of the operations that work on whole tensors: scans, statements, and tensor
computations by intrinsic."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import Range, Var
from tilewright.te.extern import ExternOp
from tilewright.te.scan import ScanOp
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import make_loop_nest, wrap
from tilewright.te.schedule.lowering import PROVIDE, REALIZE
from tilewright.te.schedule.reads import OUTPUTS, READS, OutputDomain, TensorDomains
from tilewright.te.schedule.relations import Ranges, Values
from tilewright.te.schedule.stage import Stage
from tilewright.te.schedule.tensorize import bind_buffer
from tilewright.te.tensor import Operation, Tensor
from tilewright.te.tensor_intrin import TensorComputeOp
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
    for tensor in operation.input_tensors:
        _read_whole(tensor, domains)


def _intrinsic(stage: Stage, context: LoweringContext) -> Stmt:
    """Loops over the outer axes, with the intrinsic's statement on the boxes that the call names."""
    operation = stage.op
    assert isinstance(operation, TensorComputeOp)
    intrin = operation.call.intrin
    values: Values = {}
    nest = make_loop_nest(
        stage, context.ranges, values, keep_trivial=context.keep_trivial, attach=context.attached_wrappers
    )
    box = [Range.from_min_extent(axis.var, 1) for axis in operation.loop_axes]
    box += [Range(0, axis.dom.extent) for axis in operation.inner_axes if axis.dom is not None]

    def bound(part: Stmt, with_inputs: bool) -> Stmt:
        for buffer, tensor in zip(intrin.buffers[len(intrin.inputs) :], operation.outputs, strict=True):
            part = bind_buffer(buffer, tensor, box, part)
        if with_inputs:
            for buffer, tensor, region in zip(
                intrin.buffers, operation.call.tensors, operation.call.regions, strict=False
            ):
                part = bind_buffer(buffer, tensor, list(region), part)
        return part

    outer = len(operation.loop_axes)
    if not operation.reduce_axis:
        if intrin.body is None:
            stage.fail("compute", None, f"intrinsic {intrin.name} gives no body")
        return wrap(nest, bound(intrin.body, True))
    if intrin.reduce_init is None or intrin.reduce_update is None:
        stage.fail(
            "compute",
            None,
            f"intrinsic {intrin.name} gives no reduce_init and reduce_update, which its reduction needs",
        )
    update = wrap(nest[outer:], bound(intrin.reduce_update, True))
    return wrap(nest[:outer], stmt_seq(bound(intrin.reduce_init, False), update))


READS[TensorComputeOp] = _intrinsic_reads
OUTPUTS[TensorComputeOp] = _whole_domain
PROVIDE[TensorComputeOp] = _intrinsic


def scan_aliases(stages: list[Stage]) -> dict[Tensor, Tensor]:
    """The tensors that live in the memory of a scan's output: what starts it, what updates it, and its state."""
    aliases: dict[Tensor, Tensor] = {}
    for stage in stages:
        operation = stage.op
        if isinstance(operation, ScanOp):
            for group in (operation.init, operation.update, operation.state_placeholder):
                aliases.update(zip(group, operation.outputs, strict=True))
    return aliases
