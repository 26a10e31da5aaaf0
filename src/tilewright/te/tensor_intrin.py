"""Tensor intrinsics: parts of a computation that one hardware instruction or external function computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import ExprLike, IterVar, PrimExpr, Range, Var
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Node, node
from tilewright.support.span import Span
from tilewright.te.operation import BaseComputeOp, PlaceholderOp
from tilewright.te.tensor import Operation, Tensor, TensorSlice
from tilewright.tir.stmt import Evaluate, Stmt


@node
class TensorIntrin(Node):
    """An intrinsic: what it computes (``op``), on which buffers, and how: ``body`` computes the whole;
    ``reduce_init`` and ``reduce_update`` start and continue a reduction that loops around the intrinsic
    finish."""

    name: str
    op: Operation
    inputs: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    scalar_params: tuple[Var, ...]
    body: Stmt | None
    reduce_init: Stmt | None
    reduce_update: Stmt | None

    def __call__(self, *args: Any, **kwargs: Any) -> TensorIntrinCall:
        """Apply the intrinsic to boxes of tensors; the arguments that are no tensors are its scalars, in order."""
        boxes = [argument for argument in args if isinstance(argument, (Tensor, TensorSlice))]
        scalars = [argument for argument in args if not isinstance(argument, (Tensor, TensorSlice))]
        scalars += _list(kwargs.get("scalar_inputs", ()))
        tensors = [argument.tensor if isinstance(argument, TensorSlice) else argument for argument in boxes]
        reduce_axis = kwargs.get("reduce_axis", ())
        axes = tuple(_list(reduce_axis))
        if len(boxes) != len(self.inputs):
            raise ExpressionError(
                f"intrinsic {self.name} takes {len(self.inputs)} tensors, {len(boxes)} were given"
            )
        if len(scalars) != len(self.scalar_params):
            raise ExpressionError(
                f"intrinsic {self.name} takes {len(self.scalar_params)} scalars, {len(scalars)} were given"
            )
        regions = [_region(argument) for argument in boxes]
        return TensorIntrinCall(
            self, tuple(tensors), tuple(regions), axes, tuple(operators.as_expr(one) for one in scalars)
        )

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"


def _list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _region(argument: Any) -> tuple[Range, ...]:
    """The box of a tensor that an argument such as ``A[i, 0:16]`` names."""
    if not isinstance(argument, TensorSlice):
        return tuple(Range(0, extent) for extent in argument.shape)
    box = []
    for index, extent in zip(argument.indices, argument.tensor.shape, strict=True):
        if isinstance(index, slice):
            begin = 0 if index.start is None else index.start
            end = extent if index.stop is None else index.stop
            box.append(Range(begin, end))
        else:
            box.append(Range.from_min_extent(index, 1))
    return tuple(box)


@node
class TensorIntrinCall(Node):
    """An intrinsic applied to boxes of tensors inside ``te.compute``."""

    intrin: TensorIntrin
    tensors: tuple[Tensor, ...]
    regions: tuple[tuple[Range, ...], ...]
    reduce_axis: tuple[IterVar, ...]
    scalar_inputs: tuple[PrimExpr, ...]

    def make_operation(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        axes: Sequence[IterVar],
        shape: Sequence[PrimExpr],
        span: Span | None,
    ) -> Operation:
        """The operation that ``te.compute`` makes of this call."""
        return TensorComputeOp(name, tag, attrs, axes, shape, self, span)


@node
class TensorComputeOp(BaseComputeOp):
    """A tensor that an intrinsic computes block by block: the first axes are loops, the others are inside of
    the intrinsic."""

    loop_axes: tuple[IterVar, ...]
    inner_axes: tuple[IterVar, ...]
    call: TensorIntrinCall

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        axes: Sequence[IterVar],
        shape: Sequence[PrimExpr],
        call: TensorIntrinCall,
        span: Span | None = None,
    ) -> None:
        self.loop_axes = tuple(axes)
        self.inner_axes = tuple(
            IterVar(Range(0, extent), Var(f"ax{index}", extent.dtype), IterVar.Opaque)
            for index, extent in enumerate(shape)
            if index >= len(axes)
        )
        self.call = call
        dtypes = [tensor.dtype for tensor in call.intrin.op.outputs]
        self._finish(name, tag, attrs, span, [tuple(shape)] * len(dtypes), dtypes)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return self.loop_axes + self.inner_axes

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return self.call.reduce_axis

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.call.tensors))

    def replace_inputs(self, mapping: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in mapping for tensor in self.call.tensors):
            return self
        tensors = tuple(mapping.get(tensor, tensor) for tensor in self.call.tensors)
        return TensorComputeOp(
            self.name,
            self.tag,
            self.attrs,
            self.loop_axes,
            self.outputs[0].shape,
            self.call.replace(tensors=tensors),
            self.span,
        )


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Sequence[Var] | None = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """An intrinsic that computes what ``op`` does.

    ``fcompute(inputs, outputs)`` gets buffers and gives a statement, or three: the whole, the start and the
    continuation of a reduction.
    """
    if not isinstance(op, Operation):
        raise ExpressionError(f"a tensor intrinsic is declared with an operation, not {op!r}")
    inputs = op.input_tensors
    for tensor in inputs:
        if not isinstance(tensor.op, PlaceholderOp):
            raise ExpressionError(
                f"intrinsic {name}: its inputs must be placeholders, {tensor.name} is computed"
            )
    given = dict(binds or {})
    parameters = dict(default_buffer_params or {})
    if "offset_factor" not in parameters and "elem_offset" not in parameters:
        parameters["offset_factor"] = 1
    buffers = [
        given[tensor]
        if tensor in given
        else decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, **parameters)
        for tensor in (*inputs, *op.outputs)
    ]
    ins, outs = buffers[: len(inputs)], buffers[len(inputs) :]
    made = fcompute(ins, outs, scalar_params) if scalar_params else fcompute(ins, outs)
    parts = list(made) if isinstance(made, (tuple, list)) else [made]
    if len(parts) > 3:
        raise ExpressionError(f"intrinsic {name} gives {len(parts)} statements, at most three have a meaning")
    statements = [_as_stmt(part, name) for part in parts] + [None] * (3 - len(parts))
    return TensorIntrin(name, op, inputs, tuple(buffers), tuple(scalar_params or ()), *statements)


def _as_stmt(part: ExprLike | Stmt | None, name: str) -> Stmt | None:
    if part is None or isinstance(part, Stmt):
        return part
    if isinstance(part, PrimExpr):
        return Evaluate(part)
    raise ExpressionError(f"intrinsic {name} gives {part!r}, which is neither a statement nor a call")
