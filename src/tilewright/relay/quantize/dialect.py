"""A model whose chosen layers are between ``qnn.quantize`` and ``qnn.dequantize``, as ONNX writes quantised models.

The compiler moves the arithmetic between them to integers (``SinkDequantize``). ``Tensors`` says what else is rounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.backend.preparation import with_main
from tilewright.relay.expr import Call, const
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.infer import infer_module
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.layers import Layer
from tilewright.relay.quantize.rules import operator
from tilewright.relay.quantize.scheme import Affine, QuantisedWeight
from tilewright.relay.quantize.tensors import TensorRewriter, Tensors
from tilewright.support.span import span_scope

HALF: Final = "bfloat16"
"""The type of 16-bit floats: it has the range of float32, so that no scale has to be found."""


@dataclass(frozen=True)
class LayerScheme:
    """How one layer is quantised; ``correction`` is added to its bias."""

    data: Affine
    weight: QuantisedWeight
    correction: np.ndarray[Any, Any] | None = None


class _Dialect(TensorRewriter):
    """Rewrites the layers of a prepared model that have a scheme, and those that are computed in 16-bit floats."""

    def __init__(self, tensors: Tensors, schemes: Mapping[str, LayerScheme], halves: Collection[str]) -> None:
        super().__init__(tensors, schemes)
        self.products = {one.product: one for one in tensors.layers if one.name in schemes}
        self.halves = {one.product for one in tensors.layers if one.name in set(halves)}
        self.floats = {one.product for one in tensors.layers if one.name not in schemes} - self.halves
        self.biases = {one.bias: one for one in self.products.values() if one.bias is not None}
        self.schemes = schemes

    def rounding(self, new: RelayExpr, old: RelayExpr, affine: Affine) -> RelayExpr:
        """As ONNX says it."""
        with span_scope(old.span):
            scale, zero = const(np.float32(affine.scale)), const(affine.zero, "int32")
            made = call("qnn.quantize", new, scale, zero, out_dtype=affine.dtype, rounding="TOEVEN")
            return call("qnn.dequantize", made, scale, zero)

    def visit_call(self, expr: Call) -> RelayExpr:
        """A layer with a scheme, its bias, a layer without, or what is between layers."""
        if expr in self.biases:
            return self.layer(self.biases[expr])
        if expr in self.products:
            return self.layer(self.products[expr])
        if expr in self.halves:
            return self.half(expr)
        if expr in self.floats:
            return expr.replace(args=(self.exact(expr.args[0]), expr.args[1]))
        return super().visit_call(expr)

    def half(self, product: Call) -> RelayExpr:
        """A product of 16-bit floats, whose sums are float32."""
        attrs: Any = product.attrs
        with span_scope(product.span):
            factors = [call("cast", self.exact(one), dtype=HALF) for one in product.args]
            return product.replace(args=tuple(factors), attrs=attrs.replace(out_dtype="float32"))

    def layer(self, layer: Layer) -> RelayExpr:
        """A layer on dequantised data and weights, with a dequantised bias."""
        scheme = self.schemes[layer.name]
        weight, zero = scheme.weight, const(0, "int32")
        with span_scope(layer.product.span):
            data = self.rounded(layer.data)
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


def quantised_module(
    mod: IRModule,
    tensors: Tensors,
    schemes: Mapping[str, LayerScheme],
    halves: Collection[str] = (),
) -> IRModule:
    """A prepared model whose layers with schemes are quantised, and those in ``halves`` computed in bfloat16."""
    main = mod["main"]
    body = _Dialect(tensors, schemes, halves).visit(main.body)
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
