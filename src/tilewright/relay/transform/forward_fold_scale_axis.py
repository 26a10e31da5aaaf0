"""ForwardFoldScaleAxis: folds scales before a convolution or dense layer into its weight.

First a traversal from the results to the inputs finds which expressions are used only by layers, directly or through
operators that a scale commutes with (relu, if it is positive; products; sums with a small operand, which is divided by
it; zero padding). Then products among those are removed, and the layers' weights are multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    constant_expressions,
    keep_type,
    scalar_value,
    shape_of,
)
from tilewright.relay.transform.lib.scale_axis import (
    CONVOLUTIONS,
    DENSE,
    Factor,
    channel_axes,
    factor_of,
    kernel_matches,
    on_data,
    on_kernel,
    operator_name,
    same_dtype,
    varying_axes,
    within,
)
from tilewright.support.span import span_scope
from tilewright.tir.data_layout import Layout


@dataclass(frozen=True)
class _Offer:
    """The scales that all users of an expression can absorb: along these axes, possibly only positive or constant
    ones."""

    axes: tuple[int, ...]
    positive: bool
    constant: bool

    def accepts(self, factor: Factor) -> bool:
        return (
            within(factor.axes, self.axes)
            and (factor.positive or not self.positive)
            and (factor.constant or not self.constant)
        )


class _Offers:
    """The offers of all expressions, found from the results to the inputs."""

    def __init__(self, body: RelayExpr) -> None:
        self.of: dict[Any, _Offer | None] = {body: None}
        self.constants = constant_expressions(body)
        for expr in reversed(list(post_order(body))):
            made = self._made_by(expr) if isinstance(expr, Call) else {}
            for position, child in enumerate(expr.children()):
                # The first child of a call is what it calls.
                self._add(child, made.get(position - 1))

    def _add(self, expr: Any, offer: _Offer | None) -> None:
        if expr not in self.of:
            self.of[expr] = offer
            return
        known = self.of[expr]
        if known is None or offer is None or known.axes != offer.axes:
            self.of[expr] = None
        else:
            self.of[expr] = _Offer(
                known.axes, known.positive or offer.positive, known.constant or offer.constant
            )

    def _made_by(self, expr: Call) -> dict[int, _Offer]:
        """The scales that a call can absorb from its arguments, by position."""
        name = operator_name(expr)
        attrs: Any = expr.attrs
        if name in CONVOLUTIONS:
            # A weight that is computed at compile time stays so.
            offer = _Offer(channel_axes(attrs.data_layout), False, expr.args[1] in self.constants)
            return {0: offer} if _weight_axes(expr) is not None else {}
        if name == DENSE:
            last = len(shape_of(expr.args[0])) - 1
            return (
                {0: _Offer((last,), False, expr.args[1] in self.constants)} if same_dtype(*expr.args) else {}
            )
        asked = self.of.get(expr)
        return self._passed(expr, name, asked) if asked is not None else {}

    def _passed(self, expr: Call, name: str, offer: _Offer) -> dict[int, _Offer]:
        """The scales that commute with an operator."""
        attrs: Any = expr.attrs
        if name in ("nn.relu", "nn.leaky_relu"):
            return {0: replace(offer, positive=True)}
        if name == "nn.pad":
            zeros = attrs.pad_mode == "constant" and scalar_value(expr.args[1]) == 0
            kept = all(tuple(attrs.pad_width[axis]) == (0, 0) for axis in offer.axes)
            return {0: offer} if zeros and kept else {}
        if name == "multiply":
            found = factor_of(expr, expr, self.constants)
            return {found[0]: offer} if found is not None else {}
        if name in ("add", "subtract"):
            place = _larger_operand(expr, offer.axes)
            # The smaller operand is divided by the factor, which must not be zero.
            return {place: replace(offer, positive=True)} if place is not None else {}
        return {}


def _larger_operand(expr: Call, axes: tuple[int, ...]) -> int | None:
    """Which operand of a sum has the shape of the result, where the other varies only along these axes."""
    shape = shape_of(expr)
    for place, other in ((0, 1), (1, 0)):
        varying = varying_axes(shape_of(expr.args[other]), len(shape))
        if shape_of(expr.args[place]) == shape and varying is not None and within(varying, axes):
            return place
    return None


def _weight_axes(expr: Call) -> str | None:
    """Which axes of a convolution's weight belong to channels of the data: I, O where each channel has a filter of its
    own, or both where channels fall into groups. None where the layouts do not fit."""
    attrs: Any = expr.attrs
    layout, kernel = attrs.data_layout, attrs.kernel_layout
    if not same_dtype(*expr.args):
        return None
    if attrs.groups == 1:
        return "I" if kernel_matches(layout, kernel, "I") else None
    channels = _channels(expr)
    if channels == attrs.groups and attrs.channels in (None, channels) and _filters(expr) == channels:
        return "O" if kernel_matches(layout, kernel, "O") else None
    whole = len(Layout(kernel).primal_axes()) == len(Layout(kernel)) and len(channel_axes(layout)) == 1
    return "OI" if whole and isinstance(channels, int) else None


def _channels(expr: Call) -> Any:
    """How many channels the data have."""
    attrs: Any = expr.attrs
    shape = shape_of(expr.args[0])
    total: Any = 1
    for axis in channel_axes(attrs.data_layout):
        if not isinstance(shape[axis], int):
            return None
        total *= shape[axis]
    return total


def _filters(expr: Call) -> Any:
    """How many filters the weight has."""
    attrs: Any = expr.attrs
    kernel = Layout(attrs.kernel_layout)
    shape = shape_of(expr.args[1])
    block = max(kernel.factor_of("O"), 1)
    outer: Any = shape[kernel.index_of("O")]
    return outer * block if isinstance(outer, int) else None


def _grouped(expr: Call, factor: Factor) -> RelayExpr:
    """The factor for a weight of which each filter only sees the channels of its group."""
    attrs: Any = expr.attrs
    kernel = Layout(attrs.kernel_layout)
    if not factor.axes:
        return factor.value
    in_groups = call("reshape", factor.value, newshape=(attrs.groups, -1))
    each = call("repeat", in_groups, repeats=_filters(expr) // attrs.groups, axis=0)
    places = kernel.index_of("O"), kernel.index_of("I")
    extents = shape_of(expr.args[1])
    shape = [extents[axis] if axis in places else 1 for axis in range(len(kernel))]
    if places[0] > places[1]:
        each = call("transpose", each, axes=(1, 0))
    return call("reshape", each, newshape=tuple(shape))


class _Forward(OperatorRewriter):
    """Leaves factors out and hands them on to the layers."""

    def __init__(self, offers: _Offers) -> None:
        super().__init__({})
        self.offers = offers
        self.factors: dict[RelayExpr, Factor] = {}
        """The scale by which an expression of the old program exceeds its replacement."""

    def visit_call(self, call: Call) -> RelayExpr:
        """Take factors in, pass them on, or begin one."""
        new = call.map_children(self.visit)
        keep_type(call, new)
        name = operator_name(call)
        with span_scope(call.span):
            if name == "multiply":
                return self._product(call, new)
            place = next((place for place, one in enumerate(call.args) if one in self.factors), None)
            return new if place is None else self._passed(call, new, place, self.factors[call.args[place]])

    def _product(self, old: Call, new: Call) -> RelayExpr:
        offer = self.offers.of.get(old)
        found = factor_of(new, old, self.offers.constants)
        if found is None:
            return new
        place, own = found
        before = self.factors.get(old.args[place])
        if offer is not None and offer.accepts(own):
            self.factors[old] = own if before is None else before.times(own)
            return new.args[place]
        if before is not None:
            self.factors[old] = before
        return new

    def _passed(self, old: Call, new: Call, place: int, factor: Factor) -> RelayExpr:
        name = operator_name(old)
        attrs: Any = old.attrs
        if name == DENSE:
            along = factor.flat
            if along is None:
                along = call("reshape", factor.value, newshape=(1, -1))
            return new.replace(args=(new.args[0], call("multiply", new.args[1], along)))
        if name in CONVOLUTIONS:
            axes = _weight_axes(old)
            assert axes is not None
            along = (
                _grouped(old, factor)
                if axes == "OI"
                else on_kernel(factor, attrs.data_layout, attrs.kernel_layout, axes)
            )
            return new.replace(args=(new.args[0], call("multiply", new.args[1], along)))
        self.factors[old] = factor
        if name in ("add", "subtract"):
            other = call("divide", new.args[1 - place], on_data(factor, len(shape_of(old))))
            return new.replace(args=(new.args[0], other) if place == 0 else (other, new.args[1]))
        return new


@dataclass
class ForwardFoldScaleAxis(FunctionPass):
    """Fold factors into the weights of the layers after them."""

    name = "ForwardFoldScaleAxis"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Fold within one function."""
        body = _Forward(_Offers(func.body)).visit(func.body)
        return func if body is func.body else func.replace(body=body)
