"""QuantizeRealize: computes on integers what ``simulated_quantize`` simulates.

A realised value is an integer tensor and the scale that its integers stand for. Layers multiply 8-bit integers to sums
of 32 bits; what has no rule gets the numbers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, const
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.configuration import QAnnotateKind, current_qconfig
from tilewright.relay.quantize.rules import (
    ARITHMETIC,
    AVERAGES,
    KEEPING,
    LAYERS,
    MOVING,
    is_constant,
    operator,
)
from tilewright.relay.quantize.scaling import rescaled
from tilewright.relay.quantize.simulated import NAME
from tilewright.relay.transform.lib.function_pass import FunctionPass

_FRACTION_BITS: Final = 4
"""Bits after the point that sums of averages get, so that dividing them loses little."""


@dataclass(frozen=True)
class Realised:
    """Integers of a type, and the scale that they stand for."""

    data: RelayExpr
    scale: float
    dtype: str


class _Realize(ExprMutator):
    """Rewrites a function: expressions are floats, those that are realised have integers in ``integers``."""

    def __init__(self) -> None:
        super().__init__()
        self.configuration = current_qconfig()
        self.integers: dict[RelayExpr, Realised] = {}

    def real(self, found: Realised) -> RelayExpr:
        """The floats of integers; they are dead where only the integers are used."""
        made = call(
            "multiply", call("cast", found.data, dtype="float32"), const(np.float32(found.scale), "float32")
        )
        self.integers[made] = found
        return made

    def visit_call(self, expr: Call) -> Any:
        """By the operator's family."""
        new: Any = expr.map_children(self.visit)
        name = operator(expr)
        if name == NAME:
            return self.quantised(new)
        arguments = [self.integers.get(argument) for argument in new.args]
        if name in LAYERS and all(one is not None for one in arguments):
            return self.layer(new, *(one for one in arguments if one is not None))
        if name in ARITHMETIC and any(one is not None for one in arguments):
            return self.arithmetic(name, new, arguments)
        if name in MOVING and isinstance(new.args[0], Tuple):
            return self.joined(new)
        first = arguments[0] if arguments else None
        if first is None:
            return new
        if name in MOVING or name in KEEPING:
            return self.kept(name, new, first)
        return self.average(new, first) if name in AVERAGES else new

    def quantised(self, expr: Call) -> RelayExpr:
        """Integers within limits, from floats or from other integers."""
        data, scale, least, most = expr.args
        attrs: Any = expr.attrs
        step, low, high = (_number(one) for one in (scale, least, most))
        dtype = self.configuration.get_dtype_by_kind(attrs.kind)
        found = self.integers.get(data)
        if attrs.kind == QAnnotateKind.ACTIVATION:
            dtype = self.configuration.dtype_activation
        if found is None:
            if isinstance(data, Constant):
                return self.real(Realised(const(_integers(data, step, low, high, dtype)), step, dtype))
            scaled = call("round", call("multiply", data, const(np.float32(1 / step), "float32")))
            clipped = call("clip", scaled, a_min=low, a_max=high)
            return self.real(Realised(call("cast", clipped, dtype=dtype), step, dtype))
        wide = self.configuration.dtype_activation
        ratio = found.scale / step
        if ratio == 1.0 and found.dtype == dtype:
            return data
        made = rescaled(_cast(found, wide), wide, ratio, self.configuration)
        made = call("clip", made, a_min=low, a_max=high)
        return self.real(Realised(call("cast", made, dtype=dtype), step, dtype))

    def layer(self, expr: Call, data: Realised, weight: Realised) -> RelayExpr:
        """Products of quantised integers, summed in the type of activations."""
        wide = self.configuration.dtype_activation
        attrs: Any = expr.attrs
        made = expr.replace(args=(data.data, weight.data), attrs=attrs.replace(out_dtype=wide))
        return self.real(Realised(made, data.scale * weight.scale, wide))

    def arithmetic(self, name: str, expr: Call, known: list[Realised | None]) -> RelayExpr:
        """A product has the product of the scales; a sum the finer one of two, and constants have that of the rest."""
        wide = self.configuration.dtype_activation
        if name == "multiply":
            if any(one is None for one in known):
                return expr
            left, right = (one for one in known if one is not None)
            made = call("multiply", _cast(left, wide), _cast(right, wide))
            return self.real(Realised(made, left.scale * right.scale, wide))
        if any(
            one is None and not is_constant(argument) for one, argument in zip(known, expr.args, strict=True)
        ):
            return expr
        scale = min(one.scale for one in known if one is not None)
        parts: list[RelayExpr] = []
        for one, argument in zip(known, expr.args, strict=True):
            if one is None:
                assert isinstance(argument, Constant)
                limits = np.iinfo(wide)
                parts.append(const(_integers(argument, scale, limits.min, limits.max, wide)))
            else:
                parts.append(rescaled(_cast(one, wide), wide, one.scale / scale, self.configuration))
        return self.real(Realised(call("add", *parts), scale, wide))

    def kept(self, name: str, expr: Call, found: Realised) -> RelayExpr:
        """The operator on integers."""
        attrs: Any = expr.attrs
        if name == "clip":
            attrs = attrs.replace(
                a_min=round(attrs.a_min / found.scale), a_max=round(attrs.a_max / found.scale)
            )
            limits = np.iinfo(found.dtype)
            if attrs.a_min < limits.min or attrs.a_max > limits.max:
                attrs = attrs.replace(a_min=max(attrs.a_min, limits.min), a_max=min(attrs.a_max, limits.max))
        made = expr.replace(args=(found.data, *expr.args[1:]), attrs=attrs)
        return self.real(Realised(made, found.scale, found.dtype))

    def joined(self, expr: Call) -> RelayExpr:
        """Parts with one scale, the coarsest."""
        fields = expr.args[0]
        assert isinstance(fields, Tuple)
        parts = [self.integers[field] for field in fields.fields if field in self.integers]
        if len(parts) != len(fields.fields):
            return expr
        scale, dtype = max(one.scale for one in parts), parts[0].dtype
        wide = self.configuration.dtype_activation
        made = []
        for one in parts:
            if one.scale == scale:
                made.append(one.data)
                continue
            brought = rescaled(_cast(one, wide), wide, one.scale / scale, self.configuration)
            made.append(call("cast", brought, dtype=dtype))
        return self.real(Realised(expr.replace(args=(Tuple(made),)), scale, dtype))

    def average(self, expr: Call, found: Realised) -> RelayExpr:
        """Sums of wide integers with bits after the point."""
        wide = self.configuration.dtype_activation
        raised = call("left_shift", _cast(found, wide), const(_FRACTION_BITS, wide))
        return self.real(Realised(expr.replace(args=(raised,)), found.scale / (1 << _FRACTION_BITS), wide))

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        """A field of a literal tuple is what the tuple was made of."""
        value = self.visit(op.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[op.index]
        return op if value is op.tuple_value else op.replace(tuple_value=value)


def _number(expr: RelayExpr) -> float:
    assert isinstance(expr, Constant)
    return float(expr.data.numpy())


def _cast(found: Realised, dtype: str) -> RelayExpr:
    return found.data if found.dtype == dtype else call("cast", found.data, dtype=dtype)


def _integers(data: Constant, step: float, low: float, high: float, dtype: str) -> np.ndarray[Any, Any]:
    scaled = data.data.numpy().astype(np.float64) / step
    rounded = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)
    return np.asarray(np.clip(rounded, low, high)).astype(dtype)


@dataclass
class QuantizeRealize(FunctionPass):
    """Compute on integers."""

    name = "QuantizeRealize"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return func.replace(body=_Realize().visit(func.body))


def realize() -> Pass:
    """The pass that replaces simulated quantisation by integers."""
    return QuantizeRealize()
