"""Losses, which models compute when they are given targets."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import as_scalar, multiplied, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.activations import log_sigmoid, log_softmax
from tilewright.relay.frontend.torch.ops.elementwise import xlogy
from tilewright.relay.frontend.torch.registry import converter

_MEAN, _SUM = 1, 2


def reduced(node: TorchNode, losses: Expr, reduction: int) -> Expr:
    """Losses as they are (0), their mean (1) or their sum (2)."""
    axes = list(range(node.rank(losses)))
    if not axes or reduction == 0:
        return losses
    return relay.mean(losses, axes) if reduction == _MEAN else relay.sum(losses, axes)


@converter("aten::mse_loss")
def mse_loss(node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN) -> Expr:
    """Squares of differences."""
    one, two = node.promoted(input, target)
    apart = relay.subtract(one, two)
    return reduced(node, relay.multiply(apart, apart), reduction)


@converter("aten::l1_loss")
def l1_loss(node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN) -> Expr:
    """Sizes of differences."""
    one, two = node.promoted(input, target)
    return reduced(node, relay.abs(relay.subtract(one, two)), reduction)


@converter("aten::smooth_l1_loss")
def smooth_l1_loss(
    node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN, beta: float = 1.0
) -> Expr:
    """Sizes of differences, squares where they are small."""
    if not beta:
        return l1_loss(node, input, target, reduction)
    one, two = node.promoted(input, target)
    apart = relay.abs(relay.subtract(one, two))
    limit, half = node.constant(beta, apart), node.constant(0.5, apart)
    near = relay.divide(relay.multiply(half, relay.multiply(apart, apart)), limit)
    far = relay.subtract(apart, relay.multiply(half, limit))
    return reduced(node, relay.where(relay.less(apart, limit), near, far), reduction)


@converter("aten::huber_loss")
def huber_loss(
    node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN, delta: float = 1.0
) -> Expr:
    """Squares of small differences, and in proportion to large ones."""
    made = smooth_l1_loss(node, input, target, reduction, delta)
    return relay.multiply(made, node.constant(delta, made))


@converter("aten::binary_cross_entropy")
def binary_cross_entropy(
    node: TorchNode, input: Expr, target: Expr, weight: Expr | None = None, reduction: int = _MEAN
) -> Expr:
    """Of probabilities; logarithms are not below -100."""
    one, low = node.constant(1.0, input), node.constant(-100.0, input)
    sure = relay.maximum(relay.log(input), low)
    unsure = relay.maximum(relay.log(relay.subtract(one, input)), low)
    found = relay.subtract(relay.multiply(relay.subtract(target, one), unsure), relay.multiply(target, sure))
    return reduced(node, found if weight is None else relay.multiply(found, weight), reduction)


@converter("aten::binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    node: TorchNode,
    input: Expr,
    target: Expr,
    weight: Expr | None = None,
    pos_weight: Expr | None = None,
    reduction: int = _MEAN,
) -> Expr:
    """Of logits."""
    one = node.constant(1.0, input)
    sure = log_sigmoid(node, input)
    if pos_weight is None:
        found = relay.subtract(relay.multiply(relay.subtract(one, target), input), sure)
    else:
        factor = relay.add(relay.multiply(relay.subtract(pos_weight, one), target), one)
        found = relay.subtract(
            relay.multiply(relay.subtract(one, target), input), relay.multiply(factor, sure)
        )
    return reduced(node, found if weight is None else relay.multiply(found, weight), reduction)


@converter("aten::kl_div")
def kl_div(
    node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN, log_target: bool = False
) -> Expr:
    """The divergence of Kullback and Leibler, of logarithms of probabilities."""
    if log_target:
        found = relay.multiply(relay.exp(target), relay.subtract(target, input))
    else:
        found = relay.subtract(xlogy(node, target, target), relay.multiply(target, input))
    return reduced(node, found, reduction)


@converter("aten::soft_margin_loss")
def soft_margin_loss(node: TorchNode, input: Expr, target: Expr, reduction: int = _MEAN) -> Expr:
    """log(1 + exp(-x y))."""
    return reduced(node, relay.negative(log_sigmoid(node, relay.multiply(input, target))), reduction)


@converter("aten::poisson_nll_loss")
def poisson_nll_loss(
    node: TorchNode, input: Expr, target: Expr, log_input: bool, full: bool, eps: float, reduction: int
) -> Expr:
    """Of counts."""
    if full:
        raise node.fail("the term of Stirling is not supported: use full=False")
    if log_input:
        found = relay.subtract(relay.exp(input), relay.multiply(target, input))
    else:
        moved = relay.log(relay.add(input, node.constant(eps, input)))
        found = relay.subtract(input, relay.multiply(target, moved))
    return reduced(node, found, reduction)


@converter("aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd")
def nll_loss(
    node: TorchNode,
    input: Expr,
    target: Expr,
    weight: Expr | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> Expr:
    """The logarithms of the probabilities of targets, the other way around."""
    return _likelihood(node, input, target, weight, reduction, ignore_index)[0]


@converter("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss_forward(
    node: TorchNode,
    input: Expr,
    target: Expr,
    weight: Expr | None,
    reduction: int,
    ignore_index: int,
) -> list[Expr]:
    """With the sum of the targets' weights."""
    return list(_likelihood(node, input, target, weight, reduction, ignore_index))


def _likelihood(
    node: TorchNode, input: Expr, target: Expr, weight: Expr | None, reduction: int, ignore_index: int
) -> tuple[Expr, Expr]:
    """The loss, and the sum of the weights of the targets that count."""
    axis = 0 if node.rank(input) == 1 else 1
    ignored = relay.equal(target, node.constant(ignore_index, target))
    safe = relay.where(ignored, node.constant(0, target), target)
    chosen = (
        relay.squeeze(relay.gather(input, axis, relay.expand_dims(safe, axis)), axis=[axis])
        if node.rank(target)
        else relay.take(input, safe, axis=0)
    )
    zero = node.constant(0.0, input)
    each = relay.ones_like(chosen) if weight is None else relay.take(weight, safe, axis=0)
    each = relay.where(ignored, zero, node.cast(each, node.dtype(input)))
    losses = relay.negative(relay.multiply(chosen, each))
    axes = list(range(node.rank(losses)))
    total = relay.sum(each, axes) if axes else each
    if reduction == 0:
        return losses, total
    summed = relay.sum(losses, axes) if axes else losses
    return (relay.divide(summed, total) if reduction == _MEAN else summed), total


@converter("aten::cross_entropy_loss")
def cross_entropy_loss(
    node: TorchNode,
    input: Expr,
    target: Expr,
    weight: Expr | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Expr:
    """Of logits; targets are classes, or probabilities of all classes."""
    axis = 0 if node.rank(input) == 1 else 1
    logs = log_softmax(node, input, axis)
    if not node.is_integral(target):
        return _of_probabilities(node, logs, target, weight, reduction, label_smoothing, axis)
    if not label_smoothing:
        return nll_loss(node, logs, target, weight, reduction, ignore_index)
    count = node.known_size(input, axis)
    ignored = relay.equal(target, node.constant(ignore_index, target))
    main, total = _likelihood(node, logs, target, weight, 0 if reduction == 0 else _SUM, ignore_index)
    outer = [-1] + [1] * (node.rank(input) - axis - 1)
    scaled = logs if weight is None else relay.multiply(logs, relay.reshape(weight, outer))
    smooth = relay.negative(relay.sum(scaled, [axis]))
    smooth = relay.where(ignored, node.constant(0.0, smooth), smooth)
    if reduction != 0:
        smooth = relay.sum(smooth, list(range(node.rank(smooth)))) if node.rank(smooth) else smooth
    if reduction == _MEAN:
        main, smooth = relay.divide(main, total), relay.divide(smooth, total)
    share = node.constant(label_smoothing / count, main)
    return relay.add(
        relay.multiply(node.constant(1 - label_smoothing, main), main), relay.multiply(share, smooth)
    )


def _of_probabilities(
    node: TorchNode,
    logs: Expr,
    target: Expr,
    weight: Expr | None,
    reduction: int,
    label_smoothing: float,
    axis: int,
) -> Expr:
    if label_smoothing:
        count = node.known_size(logs, axis)
        kept = relay.multiply(target, node.constant(1 - label_smoothing, target))
        target = relay.add(kept, node.constant(label_smoothing / count, target))
    found = relay.multiply(logs, target)
    if weight is not None:
        found = relay.multiply(found, relay.reshape(weight, [-1] + [1] * (node.rank(logs) - axis - 1)))
    losses = relay.negative(relay.sum(found, [axis]))
    if reduction == 0:
        return losses
    total = relay.sum(losses, list(range(node.rank(losses)))) if node.rank(losses) else losses
    if reduction == _SUM:
        return total
    members = multiplied([size for place, size in enumerate(sizes_of(node, logs)) if place != axis])
    return relay.divide(total, as_scalar(members, node.dtype(total)))
