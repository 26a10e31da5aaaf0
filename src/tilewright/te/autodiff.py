"""Gradients of tensor expressions, by reverse-mode differentiation.

The adjoint of a tensor sums, over every consumer, the adjoint of the consumer times the derivative of the consumer with
respect to the element read. An element ``X[f(i, k)]`` read at axes ``i`` and reduction axes ``k`` contributes to
``X[x]`` where ``f(i, k) == x``. Each such equation that is linear in an axis, with coefficient one, determines that
axis, so that the gradient of a matrix product is a matrix product again; what cannot be solved stays as a condition
under the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith import Analyzer, detect_linear_equation
from tilewright.ir import operators
from tilewright.ir.expr import (
    EQ,
    Add,
    IterVar,
    Max,
    Min,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    Var,
    is_const,
)
from tilewright.ir.functor import substitute_expr
from tilewright.support.errors import ExpressionError
from tilewright.support.recursion import with_recursion_room
from tilewright.te.derivative import derivative, reads_of, times
from tilewright.te.operation import ComputeOp, PlaceholderOp, compute, placeholder
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir import op
from tilewright.tir.reducer import comm_reducer
from tilewright.tir.reducer import sum as sum_reducer


@with_recursion_room
def gradient(output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None) -> list[Tensor]:
    """The gradients of ``output`` by each of ``inputs``, times ``head``.

    ``head`` has a shape that ends with the output's; without one, the identity is taken and the results are the
    full Jacobians, of shape ``output.shape + input.shape``. With one, the results have the shape
    ``head.shape[:-output.ndim] + input.shape``.
    """
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in (output, *wanted):
        if not isinstance(tensor, Tensor) or not tensor.dtype.is_float:
            raise ExpressionError(f"gradients are of and by tensors of floats, not {tensor!r}")
    head = _identity(output) if head is None else head
    lead = head.ndim - output.ndim
    if lead < 0:
        raise ExpressionError(
            f"head has {head.ndim} dimensions, the output {output.ndim}: it must have as many or more"
        )
    return _Backward(output, head, lead).run(wanted)


def _identity(output: Tensor) -> Tensor:
    """The derivative of the output by itself."""
    rank = output.ndim

    def element(*indices: Var) -> PrimExpr:
        condition: PrimExpr = operators.const_true()
        for one, other in zip(indices[:rank], indices[rank:], strict=True):
            condition = operators.logical_and(condition, operators.equal(one, other))
        return op.if_then_else(condition, operators.const(1, output.dtype), operators.const(0, output.dtype))

    return compute((*output.shape, *output.shape), element, name="identity")  # type: ignore[no-any-return]


class _Backward:
    def __init__(self, output: Tensor, head: Tensor, lead: int) -> None:
        self.output = output
        self.lead = head.shape[:lead]
        self.parts: dict[Tensor, list[Tensor]] = {output: [head]}

    def run(self, wanted: list[Tensor]) -> list[Tensor]:
        for operation in reversed(operations_in_order([self.output.op])):
            if isinstance(operation, PlaceholderOp):
                continue
            adjoints = [(tensor, self.total(tensor)) for tensor in operation.outputs if tensor in self.parts]
            for tensor, adjoint in adjoints:
                self.spread(operation, tensor, adjoint)
        return [self.total(tensor) if tensor in self.parts else self.zero(tensor) for tensor in wanted]

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of all that was contributed to a tensor's adjoint."""
        parts = self.parts[tensor]
        if len(parts) > 1:
            summed: Tensor = compute(
                parts[0].shape,
                lambda *indices: _sum([part(*indices) for part in parts]),
                name=f"{tensor.op.name}.grad",
            )
            self.parts[tensor] = [summed]
        return self.parts[tensor][0]

    def zero(self, tensor: Tensor) -> Tensor:
        made: Tensor = compute(
            (*self.lead, *tensor.shape),
            lambda *_: operators.const(0, tensor.dtype),
            name=f"{tensor.op.name}.grad",
        )
        return made

    def spread(self, operation: Operation, tensor: Tensor, adjoint: Tensor) -> None:
        """Contribute to the adjoints of what an operation reads."""
        if not isinstance(operation, ComputeOp):
            raise ExpressionError(
                f"{operation.name} is a {type(operation).__name__}, which has no gradient",
                span=operation.span,
            )
        body = operation.body[tensor.value_index]
        if isinstance(body, Reduce) and len(body.source) > 1:
            raise ExpressionError(
                f"{operation.name} reduces tuples, which have no gradient", span=operation.span
            )
        source = body.source[0] if isinstance(body, Reduce) else body
        for read in operation.input_tensors:
            if not read.dtype.is_float:
                continue
            for element in reads_of(source, read):
                local = derivative(source, element)
                if local is not None:
                    made = self.contribution(operation, tensor, adjoint, element, local)
                    self.parts.setdefault(read, []).append(made)

    def contribution(
        self, operation: ComputeOp, tensor: Tensor, adjoint: Tensor, element: ProducerLoad, local: PrimExpr
    ) -> Tensor:
        """The contribution of one read: a tensor of the shape of what is read."""
        read = element.producer
        body = operation.body[tensor.value_index]
        if isinstance(body, Reduce):
            local = self.through_reduction(operation, tensor, body, local, element)
        lead = len(self.lead)

        def entry(*indices: Var) -> PrimExpr:
            fresh = {
                axis: IterVar(axis.dom, Var(axis.var.name, axis.var.dtype), IterVar.CommReduce)
                for axis in operation.root_iter_vars
            }
            renamed = {axis.var: new.var for axis, new in fresh.items()}
            places = [substitute_expr(index, renamed) for index in element.indices]
            target = [operators.as_expr(index) for index in indices[lead:]]
            solved = _Solve(list(fresh.values()), places, target, read.shape)
            value = times(
                adjoint(*indices[:lead], *[renamed[axis.var] for axis in operation.axes]),
                substitute_expr(local, renamed),
            )
            if isinstance(body, Reduce) and not is_const(body.condition, 1):
                solved.conditions.append(substitute_expr(body.condition, renamed))
            return solved.apply(value)

        made: Tensor = compute((*self.lead, *read.shape), entry, name=f"{read.name_hint}.grad")
        return made

    def through_reduction(
        self, operation: ComputeOp, tensor: Tensor, reduce: Reduce, local: PrimExpr, element: ProducerLoad
    ) -> PrimExpr:
        """The derivative of the reduction's result by one of the values that it combines, times what the value
        depends on."""
        result = reduce.combiner.result[0]
        here = tensor(*[axis.var for axis in operation.axes])
        if isinstance(result, Add):
            return local
        if isinstance(result, (Max, Min)):
            taken = operators.equal(reduce.source[0], here)
            return op.if_then_else(taken, local, operators.const(0, local.dtype))
        return times(self.reduced_derivative(operation, reduce), local)

    def reduced_derivative(self, operation: ComputeOp, reduce: Reduce) -> PrimExpr:
        """The derivative of any other reduction by the value at one place: reduce pairs of value and
        derivative, the derivative being one at that place and zero elsewhere."""
        lhs, rhs = reduce.combiner.lhs[0], reduce.combiner.rhs[0]
        result = reduce.combiner.result[0]
        one, two = placeholder((), lhs.dtype, "left"), placeholder((), rhs.dtype, "right")
        as_loads = {lhs: one(), rhs: two()}
        by_left = derivative(
            substitute_expr(result, as_loads), reads_of(substitute_expr(result, as_loads), one)[0]
        )
        by_right = derivative(
            substitute_expr(result, as_loads), reads_of(substitute_expr(result, as_loads), two)[0]
        )

        def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[PrimExpr, PrimExpr]:
            values = {lhs: a[0], rhs: b[0]}
            back = _LoadsTo({one: a[0], two: b[0]})
            parts = []
            if by_left is not None:
                parts.append(times(back(by_left), a[1]))
            if by_right is not None:
                parts.append(times(back(by_right), b[1]))
            return substitute_expr(result, values), _sum(parts)

        identity = reduce.combiner.identity_element[0]
        pairs = comm_reducer(
            combine, lambda first, second: (identity, operators.const(0, second)), name="dual"
        )
        axes = operation.reduce_axis

        def entry(*indices: Var) -> Any:
            data, at = indices[: len(operation.axes)], indices[len(operation.axes) :]
            fresh = [
                IterVar(axis.dom, Var(axis.var.name, axis.var.dtype), IterVar.CommReduce) for axis in axes
            ]
            mapping: dict[Var, PrimExpr] = {axis.var: new.var for axis, new in zip(axes, fresh, strict=True)}
            mapping.update({axis.var: index for axis, index in zip(operation.axes, data, strict=True)})
            here: PrimExpr = operators.const_true()
            for new, index in zip(fresh, at, strict=True):
                here = operators.logical_and(here, operators.equal(new.var, index))
            value = substitute_expr(reduce.source[0], mapping)
            one_hot = op.if_then_else(here, operators.const(1, value.dtype), operators.const(0, value.dtype))
            return pairs((value, one_hot), axis=fresh)

        shape = [axis.dom.extent for axis in (*operation.axes, *axes) if axis.dom is not None]
        starts = [axis.dom.min for axis in axes if axis.dom is not None]
        _, slopes = compute(shape, entry, name=f"{operation.name}.slope")
        offsets = [axis.var - start for axis, start in zip(axes, starts, strict=True)]
        slope: PrimExpr = slopes(*[axis.var for axis in operation.axes], *offsets)
        return slope


class _LoadsTo:
    """Replaces the reads of scalar placeholders by values."""

    def __init__(self, values: dict[Tensor, PrimExpr]) -> None:
        self.values = values

    def __call__(self, expr: PrimExpr) -> PrimExpr:
        if (
            isinstance(expr, ProducerLoad)
            and isinstance(expr.producer, Tensor)
            and expr.producer in self.values
        ):
            return self.values[expr.producer]
        made: PrimExpr = expr.map_children(self)
        return made


def _sum(parts: Sequence[PrimExpr]) -> PrimExpr:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class _Solve:
    """Solves ``places == target`` for axes: those found are replaced, the rest is summed over under the
    conditions left."""

    def __init__(
        self,
        axes: list[IterVar],
        places: Sequence[PrimExpr],
        target: Sequence[PrimExpr],
        shape: Sequence[PrimExpr],
    ) -> None:
        self.axes = axes
        self.solved: dict[Var, PrimExpr] = {}
        self.conditions: list[PrimExpr] = []
        self.analyzer = Analyzer()
        for index, extent in zip(target, shape, strict=True):
            if isinstance(index, Var):
                self.analyzer.bind(index, Range(0, extent))
        for axis in axes:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom)
        for place, wanted in zip(places, target, strict=True):
            self.equation(place, operators.cast(place.dtype, wanted))

    def equation(self, place: PrimExpr, wanted: PrimExpr) -> None:
        place = self.analyzer.simplify(substitute_expr(place, self.solved))
        free = [axis.var for axis in self.axes if axis.var not in self.solved]
        coefficients = detect_linear_equation(place, free) if free else []
        for position, variable in enumerate(free):
            if coefficients and is_const(coefficients[position], 1):
                rest = self.analyzer.simplify(place - variable)
                self.fix(variable, self.analyzer.simplify(wanted - rest))
                return
        condition = self.analyzer.simplify(EQ(place, wanted))
        if not is_const(condition, 1):
            self.conditions.append(condition)

    def fix(self, variable: Var, value: PrimExpr) -> None:
        """An axis has this value, where it is inside its range."""
        self.solved = {name: substitute_expr(one, {variable: value}) for name, one in self.solved.items()}
        self.solved[variable] = value
        domain = next(axis.dom for axis in self.axes if axis.var is variable)
        assert isinstance(domain, Range)
        self.conditions.append(operators.greater_equal(value, domain.min))
        self.conditions.append(operators.less(value, domain.min + domain.extent))

    def apply(self, value: PrimExpr) -> PrimExpr:
        """The value summed over the axes that are left."""
        made = substitute_expr(value, self.solved)
        condition: PrimExpr = operators.const_true()
        for one in self.conditions:
            condition = operators.logical_and(
                condition, self.analyzer.simplify(substitute_expr(one, self.solved))
            )
        if not is_const(condition, 1):
            made = op.if_then_else(condition, made, operators.const(0, made.dtype))
        left = [axis for axis in self.axes if axis.var not in self.solved]
        return sum_reducer(made, axis=left) if left else made
