"""Puts kernels for products in the place of a schedule's stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr, ProducerLoad
from tilewright.ir.transform import PassContext
from tilewright.schedule.gpu.tensor_core.boxes import find_boxes
from tilewright.schedule.gpu.tensor_core.bulk_kernel import BulkProductKernel
from tilewright.schedule.gpu.tensor_core.epilogue import Epilogue, find_epilogue
from tilewright.schedule.gpu.tensor_core.factors import Product, find_product, size
from tilewright.schedule.gpu.tensor_core.kernel import ProductKernel
from tilewright.schedule.gpu.tensor_core.tiling import Tiling, choose_tiling
from tilewright.target.gpu import GPUDescription, describe_gpu
from tilewright.target.target import Target
from tilewright.te.extern import ExternOp, extern
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.dataflow import operations_in_order, readers_of, replace_dataflow, set_operation
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.stmt import Stmt

SUM_TYPES: Final = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "int8": "int32",
    "uint8": "int32",
}
"""The types of factors, and of the sums of their products."""
SUMS_WORTH_A_KERNEL: Final = 16
"""Rows, columns and depth below which a matrix unit would be mostly idle."""


def use_tensor_cores(schedule: Schedule, target: Target | None) -> None:
    """Replace the products that a target's matrix units can compute, in a schedule without inlined stages."""
    if target is None or target.kind.name != "cuda":
        return
    gpu = describe_gpu(target)
    while True:
        found = next(_products(schedule, gpu), None)
        if found is None:
            return
        found.replace()


class _Found:
    """A product in a schedule, with the stage of its result and, if it can be computed in the same kernel, of what
    follows."""

    def __init__(
        self, schedule: Schedule, tensors: dict[Tensor, Tensor], product: Product, stage: Stage
    ) -> None:
        """``tensors`` gives for what inlining made of a tensor the schedule's own."""
        self.schedule = schedule
        self.tensors = tensors
        self.product = product
        self.stage = stage
        self.tiling: Tiling | None = None
        self.epilogue: Epilogue | None = None
        self.last_stage = stage

    def replace(self) -> None:
        """Put the kernel in."""
        assert self.tiling is not None
        if self.tiling.splits > 1:
            self._replace_by_parts()
            return
        epilogue = self.epilogue or find_epilogue(self.product, self.product.result)
        assert epilogue is not None
        operation = self._kernel(epilogue, epilogue.operation, epilogue.operation.name)
        self._put(self.last_stage, operation)

    def _replace_by_parts(self) -> None:
        """A kernel for the sums of each part of the depth, which what follows adds up."""
        assert self.tiling is not None
        parts = self._kernel(None, self.product.result, f"{self.product.result.name}_parts")
        position = self.schedule.stages.index(self.stage)
        self.schedule.add_stage(parts, position)
        result = self.product.result
        indices: list[PrimExpr] = [axis.var for axis in result.axes]
        total: PrimExpr = ProducerLoad(parts.output(0), [operators.const(0), *indices])
        for number in range(1, self.tiling.splits):
            total = total + ProducerLoad(parts.output(0), [operators.const(number), *indices])
        self._put(self.stage, ComputeOp(result.name, "", result.attrs, result.axes, [total], result.span))
        if not self.stage.is_output:
            self.stage.compute_inline()

    def _kernel(self, epilogue: Epilogue | None, operation: ComputeOp, name: str) -> ExternOp:
        """The kernel as an operation with the outputs of another, or with the sums of all parts."""
        assert self.tiling is not None
        read = list(dict.fromkeys([*self.product.result.input_tensors, *operation.input_tensors]))
        read = [tensor for tensor in read if tensor.op is not self.product.result]
        kernel = self._product_kernel(epilogue)
        shapes: list[tuple[PrimExpr, ...]] = [tuple(tensor.shape) for tensor in operation.outputs]
        if epilogue is None:
            shapes = [(operators.const(self.tiling.splits), *shapes[0])]

        def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
            return kernel.build(dict(zip(read, inputs, strict=True)), outputs)

        made = extern(
            shapes,
            [self.tensors.get(tensor, tensor) for tensor in read],
            body,
            name=name,
            dtype=[tensor.dtype for tensor in operation.outputs],
        )
        first: Tensor = made[0] if isinstance(made, list) else made
        assert isinstance(first.op, ExternOp)
        return first.op

    def _product_kernel(self, epilogue: Epilogue | None) -> ProductKernel:
        assert self.tiling is not None
        boxes = find_boxes(self.product) if self.tiling.uses_engine else None
        if boxes is None:
            return ProductKernel(self.product, self.tiling, epilogue)
        return BulkProductKernel(self.product, self.tiling, epilogue, boxes)

    def _put(self, stage: Stage, operation: Operation) -> None:
        """Give a stage another operation, and drop the stages that nothing reads any more."""
        replaced = dict(zip(stage.op.outputs, operation.outputs, strict=True))
        set_operation(stage, operation)
        stage.start_from(operation)
        replace_dataflow(self.schedule.stages, replaced)
        needed = set(operations_in_order(self.schedule.outputs))
        schedule = self.schedule
        schedule.stages = [one for one in schedule.stages if one.op in needed]
        kept = set(schedule.stages)
        schedule.stage_map = {key: one for key, one in schedule.stage_map.items() if one in kept}


def _products(schedule: Schedule, gpu: GPUDescription) -> Iterator[_Found]:
    """The products that can be replaced."""
    trial = schedule.copy()
    _inline_all(trial)
    pairs = list(zip(schedule.stages, trial.normalize().stages, strict=True))
    tensors = {
        new: old for stage, one in pairs for new, old in zip(one.op.outputs, stage.op.outputs, strict=True)
    }
    materialized = [
        (stage, one.op)
        for stage, one in pairs
        if one.attach_type != AttachType.INLINED_ALREADY and isinstance(one.op, ComputeOp)
    ]
    for stage, operation in materialized:
        product = find_product(operation)
        if product is None or not _suits(product, gpu):
            continue
        found = _Found(schedule, tensors, product, stage)
        found.tiling = choose_tiling(product, gpu)
        readers = [
            (other, reader)
            for other, reader in materialized
            if any(tensor.op is operation for tensor in reader.input_tensors)
        ]
        if len(readers) == 1 and not stage.is_output and found.tiling.splits == 1:
            found.epilogue = find_epilogue(product, readers[0][1])
            if found.epilogue is not None:
                found.last_stage = readers[0][0]
        yield found


def _inline_all(schedule: Schedule) -> None:
    """Inline every stage without a reduction that only computations read."""
    readers = readers_of([stage.op for stage in schedule.stages])
    for stage in schedule.stages:
        operation = stage.op
        if not isinstance(operation, ComputeOp) or operation.reduce_axis or stage.is_output:
            continue
        if all(isinstance(one, ComputeOp) for tensor in operation.outputs for one in readers.get(tensor, [])):
            stage.compute_inline()


def _suits(product: Product, gpu: GPUDescription) -> bool:
    """True if the matrix units know the types, and the product is large enough for them."""
    kinds = (product.a.dtype, product.b.dtype)
    if kinds[0] != kinds[1] or not gpu.has_async_copy:
        return False
    if SUM_TYPES.get(str(kinds[0])) != str(product.sum_type):
        return False
    if product.is_split and PassContext.current().get("tir.strict_float32"):
        return False
    least = min(size(product.rows), size(product.columns), size(product.depth))
    return least >= SUMS_WORTH_A_KERNEL or (
        min(size(product.columns), size(product.depth)) >= SUMS_WORTH_A_KERNEL and size(product.rows) >= 1
    )
