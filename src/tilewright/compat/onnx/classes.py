"""The classes of TVM's converters of ONNX: one for each operator, most of them by a table."""

from __future__ import annotations

from typing import Any, Final

from tilewright.compat.onnx.aten import ATen
from tilewright.compat.onnx.base import (
    TRAINING_DOMAIN,
    Elemwise,
    OnnxOpConverter,
    Pool,
    Unary,
    converts,
)
from tilewright.compat.onnx.layers import GRU, LSTM, RNN, Clip, Resize
from tilewright.compat.onnx.old_operators import Affine, ParametricSoftPlus, Scale, ScaledTanh
from tilewright.compat.onnx.reductions import (
    LogSoftmax,
    NegativeLogLikelihoodLoss,
    Reduce,
    Unsqueeze,
)
from tilewright.relay.frontend.onnx.registry import DEFAULT_DOMAIN, MICROSOFT_DOMAIN

_RENAMED: Final = {
    "Absolute": "Abs",
    "BatchNorm": "BatchNormalization",
    "InstanceNorm": "InstanceNormalization",
    "Maximum": "Max",
    "Minimum": "Min",
    "Prelu": "PRelu",
}
"""Classes whose operator has another name."""

_GROUPS: Final[list[tuple[type[OnnxOpConverter], str, str]]] = [
    (Unary, DEFAULT_DOMAIN, "Absolute"),
    (Elemwise, DEFAULT_DOMAIN, "Add And Div Equal Mul Not Or Sub Tile"),
    (Pool, DEFAULT_DOMAIN, "AveragePool MaxPool"),
    (Pool, MICROSOFT_DOMAIN, "QLinearAveragePool"),
    (
        OnnxOpConverter,
        DEFAULT_DOMAIN,
        "ArgMax ArgMin BatchNorm BitShift Cast Celu Compress Concat Constant ConstantOfShape Conv ConvInteger "
        "ConvTranspose CumSum DepthToSpace DequantizeLinear DynamicQuantizeLinear Einsum Elu Erf Expand EyeLike "
        "Flatten Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid "
        "Hardmax If InstanceNorm IsInf LRN Loop LpPool MatMul MaxRoiPool MaxUnpool Maximum Mean Minimum Mod "
        "NonMaxSuppression NonZero OneHot Pad Pow Prelu QLinearConv QLinearMatMul QuantizeLinear RandomUniform "
        "Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceSumSquare Reshape ReverseSequence RoiAlign "
        "Scatter ScatterND Selu Shape Shrink Sign Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign "
        "SpaceToDepth Split Squeeze Sum ThresholdedRelu TopK Unique Upsample Where",
    ),
    (
        OnnxOpConverter,
        MICROSOFT_DOMAIN,
        "QLinearAdd QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid",
    ),
    (OnnxOpConverter, TRAINING_DOMAIN, "Adagrad Adam Momentum"),
    (
        Reduce,
        DEFAULT_DOMAIN,
        "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum",
    ),
]
"""A base, the domain of the operators, and their classes."""

_REDUCTIONS: Final = {
    "ReduceLogSumExp": "logsumexp",
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceSum": "sum",
}
"""Relay's names of reductions: what ``Reduce.run_calculation`` calls."""


def _class(base: type[OnnxOpConverter], domain: str, name: str) -> type[OnnxOpConverter]:
    operator = _RENAMED.get(name, name)
    members: dict[str, Any] = {"__doc__": f"Converts {operator}.", "__module__": __name__}
    if name in _REDUCTIONS:
        members["name"] = _REDUCTIONS[name]
    return converts(operator, domain)(type(name, (base,), members))


_CLASSES: Final = {
    name: _class(base, domain, name) for base, domain, names in _GROUPS for name in names.split()
} | {
    one.__name__: one
    for one in (
        *(ATen, Affine, Clip, Elemwise, GRU, LSTM, LogSoftmax, NegativeLogLikelihoodLoss, OnnxOpConverter),
        *(ParametricSoftPlus, Pool, RNN, Reduce, Resize, Scale, ScaledTanh, Unary, Unsqueeze),
    )
}

__all__ = sorted(_CLASSES)


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
