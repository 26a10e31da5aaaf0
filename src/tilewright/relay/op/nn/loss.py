"""Losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, number, tensor_type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.nn.activation import reference_log_softmax
from tilewright.relay.op.shapes import dims, same, tensor
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.nn.loss import cross_entropy as compute_cross_entropy
from tilewright.topi.nn.loss import cross_entropy_with_logits as compute_with_logits


@attributes
class NLLLossAttrs(OpAttrs):
    """nll_loss: how the losses of the items are put together, and the class that counts for nothing."""

    reduction: str = "mean"
    ignore_index: int = -100

    def check(self) -> None:
        """The reduction must be a known one."""
        if self.reduction not in ("none", "mean", "sum"):
            raise OpAttributeInvalid(f'nll_loss reduces by "none", "mean" or "sum", not {self.reduction!r}')


def cross_entropy_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Two matrices of one shape; a scalar."""
    x, y = tensor(types[0], "the predictions"), tensor(types[1], "the targets")
    if x is None or y is None:
        return None
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise RelationError(
            f"predictions and targets are (batch, classes), not of {len(x.shape)} and {len(y.shape)} dimensions"
        )
    for given, wanted in zip(dims(x), dims(y), strict=True):
        same(given, wanted, "the shapes of predictions and targets")
    return TensorType((), x.dtype)


def _mean_entropy(targets: Any, logarithms: Any, dtype: Any) -> Any:
    total = -(targets.astype(np.float64) * logarithms).sum() / targets.shape[0]
    return np.asarray(total).astype(dtype)


def _cross_entropy_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    predictions, targets = orig.args
    share = _share(orig, grad)
    return [
        call("divide", call("multiply", share, targets), predictions),
        call("multiply", share, call("log", predictions)),
    ]


def _share(orig: Any, grad: RelayExpr) -> RelayExpr:
    """Minus the gradient of the result, divided by the number of items."""
    batch = tensor_type(orig.args[0]).concrete_shape[0]
    return call("multiply", grad, number(-1.0 / batch, orig))


def _with_logits_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    predictions, targets = orig.args
    share = _share(orig, grad)
    by_logarithm = call("multiply", share, targets)
    total = call("sum", by_logarithm, axis=1, keepdims=True)
    spread = call("multiply", total, call("nn.softmax", predictions, axis=1))
    return [
        call("subtract", by_logarithm, spread),
        call("multiply", share, call("nn.log_softmax", predictions, axis=1)),
    ]


CROSS_ENTROPY = define(
    "nn.cross_entropy",
    arguments=("predictions", "targets"),
    relation=cross_entropy_relation,
    compute=lambda attrs, inputs, out_type: [compute_cross_entropy(inputs[0], inputs[1])],
    reference=lambda attrs, x, y: _mean_entropy(y, np.log(x.astype(np.float64)), x.dtype),
    gradient=_cross_entropy_gradient,
    kind=OpPattern.OPAQUE,
    level=10,
    description="-sum(targets * log(predictions)) / batch.",
)

CROSS_ENTROPY_WITH_LOGITS = define(
    "nn.cross_entropy_with_logits",
    arguments=("predictions", "targets"),
    relation=cross_entropy_relation,
    compute=lambda attrs, inputs, out_type: [compute_with_logits(inputs[0], inputs[1])],
    reference=lambda attrs, x, y: _mean_entropy(y, reference_log_softmax(x.astype(np.float64), 1), x.dtype),
    gradient=_with_logits_gradient,
    kind=OpPattern.OPAQUE,
    level=10,
    description="-sum(targets * log_softmax(predictions)) / batch.",
)


def cross_entropy(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """-sum(targets * log(predictions)) / batch, of two matrices (batch, classes)."""
    return Call(CROSS_ENTROPY, (predictions, targets))


def cross_entropy_with_logits(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """-sum(targets * log_softmax(predictions)) / batch, of two matrices (batch, classes)."""
    return Call(CROSS_ENTROPY_WITH_LOGITS, (predictions, targets))


def nll_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Predictions (batch, classes, ...), targets without the classes, and a weight for each class."""
    predictions, targets = tensor(types[0], "the predictions"), tensor(types[1], "the targets")
    weights = tensor(types[2], "the weights")
    if predictions is None or targets is None or weights is None:
        return None
    given, wanted = dims(predictions), dims(targets)
    if len(given) != len(wanted) + 1 or len(weights.shape) != 1:
        raise RelationError(
            f"predictions have the dimensions of the targets and the classes, not {len(given)} dimensions "
            f"beside {len(wanted)}; the weights are a vector"
        )
    for one, other in zip((given[0], *given[2:]), wanted, strict=True):
        same(one, other, "the shapes of predictions and targets")
    same(dims(weights)[0], given[1], "the weights, and the classes")
    if not targets.dtype.is_integral:
        raise RelationError(f"the targets are integers, not {targets.dtype}")
    return TensorType(targets.shape if attrs.reduction == "none" else (), predictions.dtype)


def _nll_completion(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
    predictions = types[0]
    if not isinstance(predictions, TensorType) or not isinstance(types[2], IncompleteType):
        return (None, None, None)
    return (None, None, TensorType((predictions.shape[1],), predictions.dtype))


def _nll_reference(attrs: Any, predictions: Any, targets: Any, weights: Any) -> Any:
    counted = targets != attrs.ignore_index
    classes = np.where(counted, targets, 0)
    chosen = np.take_along_axis(predictions, np.expand_dims(classes, 1), axis=1).squeeze(1)
    weight = np.where(counted, weights[classes].astype(np.float64), 0)
    losses = -chosen.astype(np.float64) * weight
    if attrs.reduction == "sum":
        losses = losses.sum()
    elif attrs.reduction == "mean":
        losses = losses.sum() / weight.sum()
    return np.asarray(losses).astype(predictions.dtype)


NLL_LOSS = define(
    "nn.nll_loss",
    arguments=("predictions", "targets", "weights"),
    attrs=NLLLossAttrs,
    relation=nll_relation,
    completion=_nll_completion,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.nll_loss(inputs[0], inputs[1], inputs[2], attrs.reduction, attrs.ignore_index)
    ],
    reference=_nll_reference,
    kind=OpPattern.OPAQUE,
    level=10,
    description="The negative log likelihood of the targets.",
)


def nll_loss(
    predictions: RelayExpr,
    targets: RelayExpr,
    weights: RelayExpr,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """``-predictions[n, targets[n], ...] * weights[targets[n]]``, each ("none"), added up ("sum"), or divided by the
    weights ("mean"). A target of ``ignore_index`` counts for nothing."""
    return Call(NLL_LOSS, (predictions, targets, weights), NLLLossAttrs(reduction, ignore_index))
