"""Layers: operators with parameters that are named after them."""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import var
from tilewright.relay.op import nn


def batch_norm_infer(
    data: RelayExpr,
    gamma: Any = None,
    beta: Any = None,
    moving_mean: Any = None,
    moving_var: Any = None,
    **kwargs: Any,
) -> Any:
    """Batch normalisation with fixed statistics: only the normalised tensor."""
    name = kwargs.pop("name")
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    parameters = [var(f"{name}_{part}") if value is None else value for part, value in given.items()]
    scale, shift, mean, variance = parameters
    return nn.batch_norm(data, scale, shift, mean, variance, **kwargs)[0]


def _weight(weight: Any, name: str) -> Any:
    return var(f"{name}_weight") if weight is None else weight


def conv1d(data: RelayExpr, weight: Any = None, **kwargs: Any) -> Any:
    """Convolution along one axis."""
    name = kwargs.pop("name")
    return nn.conv1d(data, _weight(weight, name), **kwargs)


def conv2d(data: RelayExpr, weight: Any = None, **kwargs: Any) -> Any:
    """Convolution along two axes."""
    name = kwargs.pop("name")
    return nn.conv2d(data, _weight(weight, name), **kwargs)


def conv3d(data: RelayExpr, weight: Any = None, **kwargs: Any) -> Any:
    """Convolution along three axes."""
    name = kwargs.pop("name")
    return nn.conv3d(data, _weight(weight, name), **kwargs)


def conv2d_transpose(data: RelayExpr, weight: Any = None, **kwargs: Any) -> Any:
    """Transposed convolution along two axes."""
    name = kwargs.pop("name")
    return nn.conv2d_transpose(data, _weight(weight, name), **kwargs)


def dense_add_bias(
    data: RelayExpr, weight: Any = None, bias: Any = None, units: int | None = None, **kwargs: Any
) -> Any:
    """A product with a weight, and a bias."""
    name = kwargs.pop("name")
    product = nn.dense(data, _weight(weight, name), units, **kwargs)
    return nn.bias_add(product, var(f"{name}_bias") if bias is None else bias, axis=-1)


def conv_bias(data: RelayExpr, name: str, channels: int, **kwargs: Any) -> Any:
    """Convolution along two axes, and a bias."""
    return nn.bias_add(conv2d(data, name=name, channels=channels, **kwargs), var(f"{name}_bias"))
