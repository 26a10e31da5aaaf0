"""Operators of ONNX's first, experimental versions."""

from __future__ import annotations

from typing import Any

from tilewright.compat.onnx.base import Attributes, OnnxOpConverter
from tilewright.relay import op
from tilewright.relay.expr import const


class ParametricSoftPlus(OnnxOpConverter):
    """alpha * log(exp(beta * x) + 1)."""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        alpha, beta = (const(float(attr.get(name, 1.0))) for name in ("alpha", "beta"))
        return op.log(op.exp(beta * inputs[0]) + const(1.0)) * alpha


class Scale(OnnxOpConverter):
    """scale * x."""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        return inputs[0] * const(float(attr.get("scale", 1.0)))


class ScaledTanh(OnnxOpConverter):
    """alpha * tanh(beta * x)."""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        alpha, beta = (const(float(attr.get(name, 1.0))) for name in ("alpha", "beta"))
        return op.tanh(beta * inputs[0]) * alpha


class Affine(OnnxOpConverter):
    """alpha * x + beta."""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        return const(float(attr.get("alpha", 1.0))) * inputs[0] + const(float(attr.get("beta", 0.0)))
