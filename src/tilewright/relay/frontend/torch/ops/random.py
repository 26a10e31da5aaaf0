"""Operators that draw random numbers: a model draws the same ones in every run, and others than PyTorch does."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.random import Extents, extents_of, normal, uniform
from tilewright.relay.frontend.common.sizes import all_known
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.ops.creation import filled
from tilewright.relay.frontend.torch.registry import converter


def _extents(node: TorchNode, sizes: Any) -> Extents:
    if all_known(sizes):
        return tuple(sizes)
    return filled(node, 0, list(sizes), "float32")


def _as(node: TorchNode, drawn: RelayExpr, dtype: str) -> Expr:
    assert isinstance(drawn, Expr)
    return node.cast(drawn, dtype)


@converter("aten::rand", "aten::rand_like")
def rand(
    node: TorchNode,
    size: Any = None,
    input: Expr | None = None,
    dtype: str | None = None,
    generator: Any = None,
) -> Expr:
    """Numbers from 0 to 1."""
    if input is not None:
        return _as(node, uniform(node, extents_of(node, input)), dtype or node.dtype(input))
    return _as(node, uniform(node, _extents(node, size)), dtype or node.scope.default_dtype)


@converter("aten::randn", "aten::randn_like")
def randn(
    node: TorchNode,
    size: Any = None,
    input: Expr | None = None,
    dtype: str | None = None,
    generator: Any = None,
) -> Expr:
    """Normally distributed numbers."""
    if input is not None:
        return _as(node, normal(node, extents_of(node, input)), dtype or node.dtype(input))
    return _as(node, normal(node, _extents(node, size)), dtype or node.scope.default_dtype)


def _between(node: TorchNode, drawn: RelayExpr, low: Any, high: Any, dtype: str) -> Expr:
    """Integers from a uniform draw."""
    first, last = node.cast(low, "float32"), node.cast(high, "float32")
    assert isinstance(drawn, Expr)
    found = relay.floor(relay.add(relay.multiply(drawn, relay.subtract(last, first)), first))
    return node.cast(found, dtype)


@converter("aten::randint")
def randint(
    node: TorchNode, high: Any, size: Any, low: Any = 0, dtype: str | None = None, generator: Any = None
) -> Expr:
    """Integers below a limit."""
    return _between(node, uniform(node, _extents(node, size)), low, high, dtype or "int64")


@converter("aten::randint_like")
def randint_like(node: TorchNode, input: Expr, high: Any, low: Any = 0, dtype: str | None = None) -> Expr:
    """Integers in the shape of a tensor."""
    return _between(node, uniform(node, extents_of(node, input)), low, high, dtype or node.dtype(input))


@converter("aten::randperm")
def randperm(node: TorchNode, n: Any, dtype: str | None = None, generator: Any = None) -> Expr:
    """The numbers below a limit in an arbitrary order."""
    keys = uniform(node, _extents(node, [n]))
    return node.cast(relay.argsort(keys, 0, True, "int64"), dtype or "int64")


@converter("aten::uniform")
def uniform_(
    node: TorchNode, input: Expr, start: float = 0.0, to: float = 1.0, generator: Any = None
) -> Expr:
    """Numbers between two limits in the shape of a tensor."""
    drawn = _as(node, uniform(node, extents_of(node, input)), node.dtype(input))
    return relay.add(
        relay.multiply(drawn, node.constant(float(to) - float(start), input)),
        node.constant(float(start), input),
    )


@converter("aten::normal", "aten::normal_functional")
def normal_(
    node: TorchNode, input: Expr | None = None, mean: Operand = 0.0, std: Operand = 1.0, size: Any = None,
    dtype: str | None = None, generator: Any = None,
) -> Expr:  # fmt: skip
    """Normally distributed numbers of given means and deviations."""
    shaped = next((one for one in (input, mean, std) if isinstance(one, Expr)), None)
    extents = _extents(node, size) if shaped is None else extents_of(node, shaped)
    kind = dtype or (node.scope.default_dtype if shaped is None else node.dtype(shaped))
    drawn = _as(node, normal(node, extents), kind)
    return relay.add(relay.multiply(drawn, node.cast(std, kind)), node.cast(mean, kind))


@converter("aten::bernoulli")
def bernoulli(node: TorchNode, input: Expr, p: Operand | None = None, generator: Any = None) -> Expr:
    """One with a probability, else zero."""
    drawn = _as(node, uniform(node, extents_of(node, input)), "float32")
    limit = node.cast(input if p is None else p, "float32")
    return node.cast(relay.less(drawn, limit), node.dtype(input))


@converter("aten::exponential")
def exponential(node: TorchNode, input: Expr, lambd: float = 1.0, generator: Any = None) -> Expr:
    """Exponentially distributed numbers in the shape of a tensor."""
    drawn = _as(node, uniform(node, extents_of(node, input)), node.dtype(input))
    left = relay.log(relay.subtract(node.constant(1.0, input), drawn))
    return relay.divide(relay.negative(left), node.constant(float(lambd), input))


@converter("aten::multinomial")
def multinomial(
    node: TorchNode, input: Expr, num_samples: int, replacement: bool = False, generator: Any = None
) -> Expr:
    """Classes drawn with given weights: the greatest logarithms, each with noise of Gumbel's distribution."""
    rows = input if node.rank(input) == 2 else relay.expand_dims(input, 0)
    count, classes = node.static_shape(rows)
    tiny = node.constant(1e-30, "float32")
    logs = relay.log(node.cast(rows, "float32"))
    draws = num_samples if replacement else 1
    drawn = _as(node, uniform(node, (count, draws, classes)), "float32")
    noise = relay.negative(relay.log(relay.subtract(node.constant(1.0, "float32"), drawn)))
    noisy = relay.subtract(relay.expand_dims(logs, 1), relay.log(relay.maximum(noise, tiny)))
    if replacement:
        found = relay.cast(relay.argmax(noisy, [2]), "int64")
    else:
        flat = relay.squeeze(noisy, axis=[1])
        best: Any = relay.topk(flat, num_samples, 1, "indices", False, "int64")
        found = best
    return found if node.rank(input) == 2 else relay.squeeze(found, axis=[0])
