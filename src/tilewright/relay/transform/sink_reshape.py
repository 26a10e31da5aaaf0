"""SinkReshape: moves elementwise operators above a reshape, next to the product that they can be fused with."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    Constants,
    OperatorRewriter,
    Rule,
    constant_shape,
    is_call,
    rewritten,
)

_PRODUCTS = ("nn.dense", "nn.matmul", "nn.contrib_dense_pack")
_PATTERNS = (OpPattern.ELEMWISE, OpPattern.BROADCAST)


@dataclass(frozen=True)
class _Reshaped:
    """The argument of a reshape, with its shape: a product, or an elementwise function of one."""

    source: RelayExpr
    shape: Constants


class _Sink(OperatorRewriter):
    """Moves reshapes of products below the elementwise operators that read them."""

    def __init__(self) -> None:
        super().__init__({})
        self.reshaped: dict[RelayExpr, _Reshaped] = {}

    def rule_of(self, op: Op) -> Rule | None:
        """Reshapes are remembered, elementwise operators moved."""
        if op.name == "reshape":
            return self._reshape
        return self._elementwise if op.get_attr("TOpPattern") in _PATTERNS else None

    def _elementwise(self, old: Call, new: Call) -> RelayExpr | None:
        """The operator on what is reshaped, and the reshape after it, where that is the same."""
        shape = constant_shape(old)
        found = next((self.reshaped[argument] for argument in new.args if argument in self.reshaped), None)
        if shape is None or found is None or _has_axis(new):
            return None
        if shape[-1:] != found.shape[-1:] or prod(shape) != prod(found.shape):
            return None
        arguments: list[RelayExpr] = []
        for argument, before in zip(new.args, old.args, strict=True):
            made = self._as_source(argument, constant_shape(before), shape, found.shape)
            if made is None:
                return None
            arguments.append(made)
        inner = Call(new.op, tuple(arguments), new.attrs)
        return self._remember(call("reshape", inner, newshape=shape), inner, found.shape)

    def _reshape(self, old: Call, new: Call) -> RelayExpr | None:
        """A reshape is remembered if it is of a product; one of another reshape skips that one."""
        shape, source = constant_shape(old), new.args[0]
        if shape is None:
            return None
        known = self.reshaped.get(source)
        if known is not None:
            if known.shape == shape:
                return known.source
            return self._remember(call("reshape", known.source, newshape=shape), known.source, known.shape)
        before = constant_shape(old.args[0])
        if before is not None and shape[-1:] == before[-1:] and _is_of_product(old.args[0], before):
            return self._remember(new, source, before)
        return None

    def _remember(self, made: Call, source: RelayExpr, shape: Constants) -> Call:
        self.reshaped[made] = _Reshaped(source, shape)
        return made

    def _as_source(
        self, argument: RelayExpr, before: Constants | None, shape: Constants, wanted: Constants
    ) -> RelayExpr | None:
        """An operand as it combines with the product itself; None if it cannot."""
        known = self.reshaped.get(argument)
        if known is not None and before == shape and known.shape == wanted:
            return known.source
        if before is None:
            return None
        if all(extent == 1 for extent in before[:-1]) and len(before) <= len(shape):
            # One number, or a row that is the same for all rows.
            return argument if len(before) <= len(wanted) else call("reshape", argument, newshape=before[-1:])
        return call("reshape", argument, newshape=wanted) if before == shape else None


def _is_of_product(expr: RelayExpr, shape: Constants) -> bool:
    """True for a product, and for what was computed from one elementwise."""
    while isinstance(expr, Call) and isinstance(expr.op, Op):
        if is_call(expr, *_PRODUCTS):
            return True
        if expr.op.get_attr("TOpPattern") not in _PATTERNS or constant_shape(expr) != shape:
            return False
        whole = [argument for argument in expr.args if constant_shape(argument) == shape]
        if not whole:
            return False
        expr = whole[0]
    return False


def _has_axis(new: Call) -> bool:
    """True if the attributes speak of the shape."""
    return any(hasattr(new.attrs, name) for name in ("axis", "shape", "newshape"))


@dataclass
class SinkReshape(FunctionPass):
    """``add(reshape(dense(x)), b)`` becomes ``reshape(add(dense(x), b))``, so that FuseOps finds the elementwise
    operators next to the product."""

    name = "SinkReshape"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(_Sink(), func)
