"""BackwardFoldScaleAxis: folds scales after a convolution or dense layer into its weight.

From a product, the scale moves back through operators that it commutes with (relu, if it is positive; sums, whose other
operand it multiplies instead; biases; zero padding) to the layer that produced the data. Each step requires that there
is no other user of what is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    constant_expressions,
    keep_type,
    scalar_value,
    shape_of,
    uses_of,
)
from tilewright.relay.transform.lib.scale_axis import (
    CONVOLUTIONS,
    DENSE,
    TRANSPOSED,
    Factor,
    channel_axes,
    factor_of,
    flattened,
    kernel_matches,
    on_kernel,
    operator_name,
    output_layout,
    same_dtype,
    scaled,
    varying_axes,
    within,
)
from tilewright.support.span import span_scope

_Kind = tuple[tuple[int, ...], bool]
"""The axes of a factor, and whether it is constant."""

LAYERS = CONVOLUTIONS | {DENSE, TRANSPOSED}
"""Operators with a weight that can take a factor."""

ANY, POSITIVE, SMALL = 1, 2, -1
"""Which factors an expression can absorb: any, or only positive ones. SMALL is for operands that are no larger than the
factor, which are multiplied themselves."""


class _Backward(ExprMutator):
    """Rewrites with and without a factor that comes from behind."""

    def __init__(self, body: RelayExpr) -> None:
        super().__init__()
        self.uses = uses_of(body)
        self.constants = constant_expressions(body)
        self.taken: dict[tuple[RelayExpr, _Kind], int] = {}

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions stay."""
        return fn if fn.is_primitive else super().visit_function(fn)

    # What an expression can take

    def takes(self, expr: RelayExpr, factor: Factor) -> bool:
        """True if the expression can be rewritten to give the product."""
        needed = self._needed(expr, (factor.axes, factor.constant))
        return bool(needed) and (needed == ANY or factor.positive)

    def _needed(self, expr: RelayExpr, kind: _Kind) -> int:
        found = self.taken.get((expr, kind))
        if found is None:
            found = self.taken[expr, kind] = self._find_needed(expr, kind)
        return found

    def _find_needed(self, expr: RelayExpr, kind: _Kind) -> int:
        axes, constant = kind
        name = operator_name(expr)
        if not name or self.uses[expr] != 1:
            return 0
        assert isinstance(expr, Call)
        attrs: Any = expr.attrs
        rank = len(shape_of(expr))
        if name in LAYERS:
            if not same_dtype(expr, expr.args[1]) or (expr.args[1] in self.constants and not constant):
                # A weight that is computed at compile time stays so.
                return 0
        if name == TRANSPOSED and attrs.groups != 1:
            return 0
        if name in CONVOLUTIONS or name == TRANSPOSED:
            layout = output_layout(attrs)
            fits = within(axes, channel_axes(layout)) and kernel_matches(layout, attrs.kernel_layout, "O")
            return ANY if fits else 0
        if name == DENSE:
            return ANY if within(axes, (rank - 1,)) else 0
        if name in ("nn.relu", "nn.leaky_relu"):
            return POSITIVE if self._needed(expr.args[0], kind) else 0
        if name == "nn.bias_add":
            return self._needed(expr.args[0], kind) if within(axes, (attrs.axis % rank,)) else 0
        if name == "nn.pad":
            zeros = attrs.pad_mode == "constant" and scalar_value(expr.args[1]) == 0
            return self._needed(expr.args[0], kind) if zeros and not _padded(attrs, axes) else 0
        if name in ("add", "subtract"):
            return self._needed_by_sum(expr, kind)
        if name == "multiply":
            found = factor_of(expr, expr, self.constants)
            return self._needed(expr.args[found[0]], kind) if found is not None else 0
        return 0

    def _needed_by_sum(self, expr: Call, kind: _Kind) -> int:
        """The factor goes into both operands, or into one, and the other, if it is small, is multiplied."""
        needs = [self._operand_needs(expr, operand, kind) for operand in expr.args]
        return max(*needs, 0) if all(needs) else 0

    def _operand_needs(self, expr: Call, operand: RelayExpr, kind: _Kind) -> int:
        shape = shape_of(expr)
        needed = self._needed(operand, kind) if shape_of(operand) == shape else 0
        if needed:
            return needed
        varying = varying_axes(shape_of(operand), len(shape))
        return SMALL if varying is not None and within(varying, kind[0]) else 0

    # Rewriting

    def visit_call(self, call: Call) -> RelayExpr:
        """Without a factor from behind: a product may begin one."""
        if operator_name(call) == "multiply":
            found = factor_of(call, call, self.constants)
            if found is not None and self.takes(call.args[found[0]], found[1]):
                position, factor = found
                with span_scope(call.span):
                    rewritten = self._rewritten(factor)
                return self._with(call.args[position], rewritten)
        return call.map_children(self.visit)

    def _rewritten(self, factor: Factor) -> Factor:
        value = self.visit(factor.value)
        keep_type(factor.value, value)
        flat = None if factor.flat is None else flattened(value, shape_of(value))
        return Factor(value, flat, factor.axes, factor.positive, factor.constant)

    def _with(self, expr: RelayExpr, factor: Factor) -> RelayExpr:
        """The expression, which takes the factor, times the factor."""
        assert isinstance(expr, Call)
        with span_scope(expr.span):
            made = self._scaled_call(expr, factor)
        keep_type(expr, made)
        return made

    def _scaled_call(self, expr: Call, factor: Factor) -> RelayExpr:
        name = operator_name(expr)
        if name in LAYERS:
            return self._scaled_layer(expr, factor)
        if name in ("nn.relu", "nn.leaky_relu", "nn.pad"):
            rest = [self.visit(argument) for argument in expr.args[1:]]
            return expr.replace(args=(self._with(expr.args[0], factor), *rest))
        if name == "nn.bias_add":
            flat = factor.flat
            if flat is None:
                flat = call("reshape", factor.value, newshape=(-1,))
            bias = call("multiply", self.visit(expr.args[1]), flat)
            return expr.replace(args=(self._with(expr.args[0], factor), bias))
        if name == "multiply":
            found = factor_of(expr, expr, self.constants)
            assert found is not None
            inner, own = expr.args[found[0]], self._rewritten(found[1])
            both = own.times(factor)
            return (
                self._with(inner, both)
                if self.takes(inner, both)
                else call("multiply", self._with(inner, factor), own.value)
            )
        kind = (factor.axes, factor.constant)
        operands = [
            self._with(operand, factor)
            if self._operand_needs(expr, operand, kind) != SMALL
            else scaled(self.visit(operand), factor, len(shape_of(expr)))
            for operand in expr.args
        ]
        return expr.replace(args=tuple(operands))

    def _scaled_layer(self, expr: Call, factor: Factor) -> RelayExpr:
        attrs: Any = expr.attrs
        data, weight = (self.visit(argument) for argument in expr.args)
        if operator_name(expr) == DENSE:
            if factor.flat is not None:
                along: RelayExpr = call("expand_dims", factor.flat, axis=1, num_newaxis=1)
            else:
                along = call("reshape", factor.value, newshape=(-1, 1))
        else:
            along = on_kernel(factor, output_layout(attrs), attrs.kernel_layout, "O")
        return expr.replace(args=(data, call("multiply", weight, along)))


def _padded(attrs: Any, axes: tuple[int, ...]) -> bool:
    return any(tuple(attrs.pad_width[axis]) != (0, 0) for axis in axes)


@dataclass
class BackwardFoldScaleAxis(FunctionPass):
    """Fold factors into the weights of the layers before them."""

    name = "BackwardFoldScaleAxis"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Fold within one function."""
        body = _Backward(func.body).visit(func.body)
        return func if body is func.body else func.replace(body=body)
