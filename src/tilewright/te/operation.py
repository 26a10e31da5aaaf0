"""The operations that users write: placeholders and computations; and their axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import (
    ExprLike,
    FloatImm,
    IntImm,
    IterVar,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    SizeVar,
    Var,
)
from tilewright.ir.functor import Mutator, post_order
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node
from tilewright.support.recursion import recursion_room
from tilewright.support.span import Span, user_span
from tilewright.te.tag import BROADCAST, ELEMWISE, current_tag
from tilewright.te.tensor import Operation, Tensor, as_shape


@node
class PlaceholderOp(Operation):
    """An input."""

    shape: tuple[PrimExpr, ...]
    dtype: DataType

    def __init__(self, name: str, shape: Sequence[PrimExpr], dtype: str, span: Span | None = None) -> None:
        self.shape = tuple(shape)
        self.dtype = DataType(dtype)
        self._finish(name, "", None, span, [self.shape], [self.dtype])


class BaseComputeOp(Operation):
    """Base of operations with one expression or intrinsic for each element."""

    __slots__ = ()


@node
class ComputeOp(BaseComputeOp):
    """One expression an output, in terms of the axes; or reductions that share their axes."""

    axes: tuple[IterVar, ...]
    body: tuple[PrimExpr, ...]
    inputs: tuple[Tensor, ...]
    derived = ("inputs",)

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        axis: Sequence[IterVar],
        body: Sequence[PrimExpr],
        span: Span | None = None,
    ) -> None:
        self.axes = tuple(axis)
        self.body = tuple(body)
        self.inputs = read_tensors(self.body)
        _check_body(name, self.body, span)
        shape = [_extent(iter_var) for iter_var in self.axes]
        self._finish(name, tag, attrs, span, [shape] * len(self.body), [value.dtype for value in self.body])

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return self.axes

    def scalar(self, index: int) -> PrimExpr:
        """Arithmetic on tensors without dimensions becomes part of what uses it: in ``lambda i: a[i] + scalar`` it may
        depend on the axes of that computation. A constant stays a tensor: what it is used for might be folded, and a
        division by zero is an error only where it is computed."""
        body = self.body[index]
        if self.tag in (ELEMWISE, BROADCAST) and not isinstance(body, (Reduce, IntImm, FloatImm)):
            return body
        return Operation.scalar(self, index)

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else ()

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return self.inputs

    def replace_inputs(self, mapping: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in mapping for tensor in self.inputs):
            return self
        body = replace_tensors(self.body, mapping)
        return ComputeOp(self.name, self.tag, self.attrs, self.axes, share_reduction(body), self.span)


def _extent(iter_var: IterVar) -> PrimExpr:
    if iter_var.dom is None:
        raise ExpressionError(f"axis {iter_var.var.name} has no range")
    return iter_var.dom.extent


def _check_body(name: str, body: Sequence[PrimExpr], span: Span | None) -> None:
    """Reductions must be the whole expression, and all outputs are reductions over the same axes or none is."""
    if not body:
        raise ExpressionError(f"computation {name} gives no value", span=span)
    first = body[0]
    for value in body:
        if isinstance(first, Reduce) != isinstance(value, Reduce):
            raise ExpressionError(f"computation {name}: either all outputs are reductions or none", span=span)
        if isinstance(value, Reduce) and isinstance(first, Reduce):
            same = len(value.axis) == len(first.axis) and all(
                one is other for one, other in zip(value.axis, first.axis, strict=True)
            )
            if not same:
                raise ExpressionError(
                    f"computation {name}: its reductions run over different axes", span=span
                )
        parts = (*value.source, *value.init, value.condition) if isinstance(value, Reduce) else (value,)
        for part in parts:
            if any(isinstance(found, Reduce) for found in post_order(part)):
                raise ExpressionError(
                    f"computation {name}: a reduction must be the whole expression, not a part of one; "
                    "compute it as a separate tensor first",
                    span=span,
                )


def share_reduction(body: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Outputs of one tuple reduction share their source again after a rewrite made copies."""
    first = body[0]
    if not isinstance(first, Reduce) or len(body) == 1:
        return list(body)
    return [first.replace(value_index=index, dtype=first.source[index].dtype) for index in range(len(body))]


def read_tensors(exprs: Sequence[PrimExpr]) -> tuple[Tensor, ...]:
    """The tensors that expressions read, each once, in the order of the first read."""
    found: dict[Tensor, None] = {}
    for expr in exprs:
        roots = (
            [expr, *(axis.dom for axis in expr.axis if axis.dom is not None)]
            if isinstance(expr, Reduce)
            else [expr]
        )
        for root in roots:
            for part in post_order(root):
                if isinstance(part, ProducerLoad) and isinstance(part.producer, Tensor):
                    found.setdefault(part.producer)
    return tuple(found)


class ReplaceTensors(Mutator):
    """Makes expressions read other tensors."""

    memoize = True

    def __init__(self, mapping: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.mapping = mapping

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        target = self.mapping.get(node.producer)  # type: ignore[call-overload]
        return made if target is None else ProducerLoad(target, made.indices, made.span)


def replace_tensors(exprs: Sequence[PrimExpr], mapping: Mapping[Tensor, Tensor]) -> list[PrimExpr]:
    """Expressions reading other tensors."""
    rewriter = ReplaceTensors(mapping)
    with recursion_room():
        return [rewriter.visit(expr) for expr in exprs]


def placeholder(
    shape: ExprLike | Sequence[ExprLike], dtype: str | None = None, name: str = "placeholder"
) -> Tensor:
    """An input tensor."""
    return PlaceholderOp(name, as_shape(shape), dtype or "float32", user_span()).output(0)


def compute(
    shape: ExprLike | Sequence[ExprLike],
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """A tensor whose element at ``i, j, ...`` is ``fcompute(i, j, ...)``.

    The axes are named after the function's parameters. A function that gives a tuple makes a tuple of tensors;
    one that calls a tensor intrinsic makes a tensor that the intrinsic computes block by block, and may take
    fewer parameters than there are dimensions: the others are inside the intrinsic.
    """
    span = user_span()
    scope_tag = current_tag()
    if scope_tag is not None:
        if tag:
            raise ExpressionError(
                f"computation {name} has the tag {tag!r} inside a tag_scope({scope_tag!r})", span=span
            )
        tag = scope_tag
    extents = as_shape(shape)
    for position, extent in enumerate(extents):
        if not extent.dtype.is_integral:
            raise ExpressionError(f"dimension {position} of {name} is {extent}, not an integer", span=span)
    names = _axis_names(fcompute, len(extents), name, span)
    axes = [
        IterVar(
            Range.from_min_extent(operators.const(0, extent.dtype), extent),
            Var(axis_name, extent.dtype),
            IterVar.DataPar,
        )
        for axis_name, extent in zip(names, extents, strict=False)
    ]
    result = fcompute(*[axis.var for axis in axes])
    from_intrinsic = getattr(result, "make_operation", None)
    if from_intrinsic is not None:
        return _outputs(from_intrinsic(name, tag, attrs, axes, extents, span))
    if len(names) < len(extents):
        raise _wrong_count(name, len(extents), names, span)
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    body = [_as_value(value, name, span) for value in values]
    return _outputs(ComputeOp(name, tag, attrs, axes, body, span))


def _outputs(operation: Operation) -> Any:
    """The tensor, or the tuple of tensors where there are several."""
    return operation.outputs[0] if operation.num_outputs == 1 else operation.outputs


def _as_value(value: Any, name: str, span: Span | None) -> PrimExpr:
    if value is None:
        raise ExpressionError(f"the function of computation {name} returned nothing", span=span)
    expr = operators.as_expr(value)
    if expr.dtype.is_handle:
        raise ExpressionError(f"computation {name} gives {expr}, which is not a number", span=span)
    return expr


def _axis_names(function: Callable[..., Any], count: int, name: str, span: Span | None) -> list[str]:
    """The names of the parameters; ``i0, i1, ...`` where the function takes any number. There may be fewer than
    ``count``."""
    code = getattr(function, "__code__", None)
    if code is None:
        parameters = list(inspect.signature(function).parameters.values())
        plain = [
            parameter.name for parameter in parameters if parameter.kind == parameter.POSITIONAL_OR_KEYWORD
        ]
        takes_any = any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters)
        defaults = 0
    else:
        bound = 1 if inspect.ismethod(function) else 0
        plain = list(code.co_varnames[bound : code.co_argcount])
        takes_any = bool(code.co_flags & inspect.CO_VARARGS)
        defaults = len(getattr(function, "__defaults__", None) or ())
    if len(plain) - defaults > count:
        raise _wrong_count(name, count, plain, span)
    if takes_any:
        plain += [f"i{index}" for index in range(count - len(plain))]
    return plain[:count]


def _wrong_count(name: str, count: int, plain: list[str], span: Span | None) -> ExpressionError:
    return ExpressionError(
        f"computation {name} has {count} dimensions, its function takes {len(plain)} ({', '.join(plain)})",
        span=span,
    )


def var(name: str = "tindex", dtype: str = "int32", span: Span | None = None) -> Var:
    """A scalar variable: a size that is known when the program runs."""
    return Var(name, dtype, span)


def size_var(name: str = "size", dtype: str = "int32", span: Span | None = None) -> SizeVar:
    """A variable that is never negative."""
    return SizeVar(name, dtype, span)


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: Span | None = None) -> IterVar:
    """A thread index (``blockIdx.x``, ``threadIdx.y``, ``vthread``, ...) that an axis can be bound to."""
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise ExpressionError("a thread axis needs a tag, such as blockIdx.x")
    if isinstance(dom, (int, PrimExpr)):
        dom = Range(0, dom)
    return IterVar(dom, name or tag, IterVar.ThreadIndex, tag, span)


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "", span: Span | None = None) -> IterVar:
    """An axis to reduce over; ``dom`` is ``(begin, end)`` or a Range."""
    return IterVar(dom, name, IterVar.CommReduce, thread_tag, span)
