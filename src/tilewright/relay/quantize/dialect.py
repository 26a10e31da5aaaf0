"""A model whose chosen layers are between ``qnn.quantize`` and ``qnn.dequantize``, as ONNX writes quantised models.

The compiler moves the arithmetic between them to integers (``SinkDequantize``). Quantising commutes with operators that
only move elements, so that it is done before them: there are fewer bytes to move then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.backend.preparation import with_main
from tilewright.relay.expr import Call, Constant, Tuple, const
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.layers import Layer
from tilewright.relay.quantize.rules import operator
from tilewright.relay.quantize.scheme import Affine, QuantisedWeight
from tilewright.support.span import span_scope

MOVING: Final = frozenset(
    {"nn.max_pool2d", "nn.batch_flatten", "reshape", "transpose", "squeeze", "expand_dims", "concatenate"}
)
SHARING: Final = frozenset(
    {"add", "multiply", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "concatenate"}
)
"""Operators that read the integers of an image that a layer reads as well, rather than another copy in floats."""
_IMAGE_RANK: Final = 4
HALF: Final = "bfloat16"
"""The type of 16-bit floats: it has the range of float32, so that no scale has to be found."""


@dataclass(frozen=True)
class LayerScheme:
    """How one layer is quantised; ``correction`` is added to its bias."""

    data: Affine
    weight: QuantisedWeight
    correction: np.ndarray[Any, Any] | None = None


class _Dialect(ExprMutator):
    """Rewrites the layers of a prepared model that have a scheme, and those that are computed in 16-bit floats."""

    def __init__(
        self, layers: Collection[Layer], schemes: Mapping[str, LayerScheme], halves: Collection[str]
    ) -> None:
        super().__init__()
        self.layers = {one.product: one for one in layers if one.name in schemes}
        self.halves = {one.product for one in layers if one.name in set(halves)}
        self.biases = {one.bias: one for one in self.layers.values() if one.bias is not None}
        self.schemes = schemes
        # The first layer that reads a tensor decides how others see it.
        self.shared: dict[RelayExpr, Affine] = {}
        for one in self.layers.values():
            self.shared.setdefault(source_of(one.data), schemes[one.name].data)
        self.made: dict[tuple[RelayExpr, Affine], RelayExpr] = {}

    def quantised(self, expr: RelayExpr, affine: Affine) -> RelayExpr:
        """The numbers of an expression, rounded to those that integers stand for."""
        key = (expr, affine)
        if key not in self.made:
            self.made[key] = self._quantised(expr, affine)
        return self.made[key]

    def _quantised(self, expr: RelayExpr, affine: Affine) -> RelayExpr:
        if isinstance(expr, Call) and operator(expr) in MOVING:
            first = expr.args[0]
            if not isinstance(first, Tuple):
                return expr.replace(args=(self.quantised(first, affine),))
            return expr.replace(args=(Tuple([self.quantised(one, affine) for one in first.fields]),))
        scale, zero = const(np.float32(affine.scale)), const(affine.zero, "int32")
        made = call("qnn.quantize", self.visit(expr), scale, zero, out_dtype=affine.dtype, rounding="TOEVEN")
        return call("qnn.dequantize", made, scale, zero)

    def visit_call(self, expr: Call) -> RelayExpr:
        """A layer with a scheme, its bias, or what may share its data."""
        if expr in self.biases:
            return self.layer(self.biases[expr])
        if expr in self.layers:
            return self.layer(self.layers[expr])
        if expr in self.halves:
            return self.half(expr)
        if operator(expr) in SHARING and _rank(expr) == _IMAGE_RANK:
            with span_scope(expr.span):
                return expr.replace(args=tuple(self.read(argument) for argument in expr.args))
        return super().visit_call(expr)

    def read(self, expr: RelayExpr) -> RelayExpr:
        """An argument, as the layers that read it see it."""
        if isinstance(expr, Tuple):
            return Tuple([self.read(field) for field in expr.fields])
        known = None if isinstance(expr, Constant) else self.shared.get(expr)
        return self.visit(expr) if known is None else self.quantised(expr, known)

    def half(self, product: Call) -> RelayExpr:
        """A product of 16-bit floats, whose sums are float32."""
        attrs: Any = product.attrs
        with span_scope(product.span):
            factors = [call("cast", self.visit(one), dtype=HALF) for one in product.args]
            return product.replace(args=tuple(factors), attrs=attrs.replace(out_dtype="float32"))

    def layer(self, layer: Layer) -> RelayExpr:
        """A layer on dequantised data and weights, with a dequantised bias."""
        scheme = self.schemes[layer.name]
        weight, zero = scheme.weight, const(0, "int32")
        with span_scope(layer.product.span):
            data = self.quantised(layer.data, scheme.data)
            weights = call(
                "qnn.dequantize", const(weight.integers), const(weight.scale), zero, axis=weight.axis
            )
            made: RelayExpr = layer.product.replace(args=(data, weights))
            if layer.bias is None and scheme.correction is None:
                return made
            scale = np.float32(scheme.data.scale) * weight.scale
            bias = call(
                "qnn.dequantize", const(bias_integers(layer, scheme, scale)), const(scale), zero, axis=0
            )
            return call("nn.bias_add", made, bias, axis=layer.channel_axis)


def bias_integers(layer: Layer, scheme: LayerScheme, scale: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bias in the scale of the sums."""
    value = np.zeros(len(scale)) if layer.bias is None else layer.bias.args[1].data.numpy().astype(np.float64)  # type: ignore[attr-defined]
    if scheme.correction is not None:
        value = value + scheme.correction
    limits = np.iinfo(np.int32)
    return np.asarray(np.clip(np.rint(value / scale.astype(np.float64)), limits.min, limits.max)).astype(
        np.int32
    )


def source_of(expr: RelayExpr) -> RelayExpr:
    """Where a tensor comes from, before operators that only move elements."""
    while isinstance(expr, Call) and operator(expr) in MOVING and not isinstance(expr.args[0], Tuple):
        expr = expr.args[0]
    return expr


def _rank(expr: RelayExpr) -> int:
    kind: Any = expr.checked_type
    return len(getattr(kind, "shape", ()))


def quantised_module(
    mod: IRModule,
    layers: Collection[Layer],
    schemes: Mapping[str, LayerScheme],
    halves: Collection[str] = (),
) -> IRModule:
    """A prepared model whose layers with schemes are quantised, and those in ``halves`` computed in bfloat16."""
    main = mod["main"]
    body = _Dialect(layers, schemes, halves).visit(main.body)
    return infer_module(with_main(mod, main.replace(body=body)))


class _WithoutRounding(ExprMutator):
    """Leaves out ``qnn.quantize`` where ``qnn.dequantize`` follows."""

    def visit_call(self, expr: Call) -> Any:
        if operator(expr) == "qnn.dequantize" and operator(expr.args[0]) == "qnn.quantize":
            inner: Any = expr.args[0]
            return self.visit(inner.args[0])
        return super().visit_call(expr)


def without_rounding(mod: IRModule) -> IRModule:
    """A model in this form as it would be without quantised data; weights stay what the integers stand for."""
    main = mod["main"]
    return infer_module(with_main(mod, main.replace(body=_WithoutRounding().visit(main.body))))
