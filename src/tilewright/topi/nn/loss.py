"""Losses."""

from __future__ import annotations

import math
from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.softmax import log_softmax
from tilewright.topi.nn.utils import sum_types
from tilewright.topi.utils import InvalidShapeError


def nll_loss(
    predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str = "mean", ignore_index: int = -100
) -> Tensor:
    """``-predictions[n, targets[n], ...] * weights[targets[n]]``, with nothing for a target of ``ignore_index``.

    The losses of all targets ("none"), their sum ("sum"), or the sum over the weights of the targets ("mean"). A target
    that is not a class gives NaN.
    """
    if reduction not in ("none", "mean", "sum"):
        raise OpAttributeInvalid(f'nll_loss reduces by "none", "mean" or "sum", not {reduction!r}')
    if len(predictions.shape) != len(targets.shape) + 1:
        raise InvalidShapeError("nll_loss: predictions have one dimension, the classes, more than targets")
    zero = tir.const(0, predictions.dtype)

    def counted(target: Any, value: Any) -> Any:
        """The value for a target, which is read only if there is such a class."""
        known = tir.all(target >= 0, target < predictions.shape[1])
        either = tir.if_then_else(known, value, tir.const(math.nan, predictions.dtype))
        return tir.if_then_else(target.equal(ignore_index), zero, either)

    def loss_at(*at: Any) -> Any:
        target = targets(*at)
        return counted(target, zero - predictions(at[0], target, *at[1:]) * weights(target))

    if reduction == "none":
        made: Tensor = te.compute(targets.shape, loss_at, name="nll_loss", tag=tag.INJECTIVE)
        return made
    total = _total(targets.shape, loss_at, "nll_loss_sum")
    if reduction == "sum":
        return total

    def weight_at(*at: Any) -> Any:
        return counted(targets(*at), weights(targets(*at)))

    weight = _total(targets.shape, weight_at, "nll_loss_weight")
    mean: Tensor = te.compute((), lambda: total() / weight(), name="nll_loss_mean", tag=tag.ELEMWISE)
    return mean


def _total(shape: Any, element: Any, name: str) -> Tensor:
    """The sum of ``element`` over all indices of a shape."""
    axes = [te.reduce_axis((0, extent), name=f"k{number}") for number, extent in enumerate(shape)]
    made: Tensor = te.compute(
        (),
        lambda: te.sum(element(*[axis.var for axis in axes]), axis=axes),
        name=name,
        tag=tag.COMM_REDUCE,
    )
    return made


def cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    """``-sum(targets * log(predictions)) / batch``, both (batch, classes)."""
    return _cross_entropy(predictions, targets, lambda n, c: te.log(predictions(n, c)))


def cross_entropy_with_logits(predictions: Tensor, targets: Tensor) -> Tensor:
    """``-sum(targets * log_softmax(predictions)) / batch``, both (batch, classes)."""
    logarithm = log_softmax(predictions, axis=1)
    return _cross_entropy(predictions, targets, logarithm)


def _cross_entropy(predictions: Tensor, targets: Tensor, logarithm: Any) -> Tensor:
    if len(predictions.shape) != 2 or len(targets.shape) != 2:
        raise InvalidShapeError("cross entropy takes predictions and targets of shape (batch, classes)")
    for given, wanted in zip(predictions.shape, targets.shape, strict=True):
        require_equal(given, wanted, "the shapes of predictions and targets")
    inner, result = sum_types(predictions.dtype, None)
    total = _total(
        targets.shape,
        lambda n, c: targets(n, c).astype(inner) * logarithm(n, c).astype(inner),
        "cross_entropy_sum",
    )
    batch = predictions.shape[0]
    made: Tensor = te.compute(
        (),
        lambda: ((tir.const(0, inner) - total()) / batch.astype(inner)).astype(result),
        name="cross_entropy",
        tag=tag.ELEMWISE,
    )
    return made
