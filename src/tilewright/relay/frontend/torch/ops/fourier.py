"""Fourier transforms, as PyTorch's definitions of ``torch.fft`` and ``torch.stft`` call them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.fourier import Parts, transformed
from tilewright.relay.frontend.torch.complex_pair import ComplexPair
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import complex_converter, converter


@converter("aten::_fft_r2c")
def real_to_complex(
    node: TorchNode, input: Expr, dim: Any, normalization: int, onesided: bool
) -> ComplexPair:
    """The transform of real numbers; of a one-sided one, half of the last axis in ``dim``."""
    sizes = _sizes(node, input, dim)
    scale = _scale(normalization, sizes)
    found: Parts = transformed(
        node,
        (input, None),
        _axes(node, input, dim)[-1],
        sizes[-1],
        inverse=False,
        onesided=onesided,
        scale=scale,
    )
    return _pair(_along(node, found, dim[:-1], True, 1.0))


@complex_converter("aten::_fft_c2c")
def complex_to_complex(
    node: TorchNode, input: ComplexPair, dim: Any, normalization: int, forward: bool
) -> ComplexPair:
    """The transform of complex numbers, or its inverse."""
    parts = input.tensors
    return _pair(_along(node, parts, dim, forward, _scale(normalization, _sizes(node, parts[0], dim))))


@complex_converter("aten::_fft_c2r")
def complex_to_real(
    node: TorchNode, input: ComplexPair, dim: Any, normalization: int, last_dim_size: Any
) -> Expr:
    """The inverse of the one-sided transform of real numbers."""
    parts = input.tensors
    count = int(node.number_of(last_dim_size, "the length of the last axis"))
    scale = _scale(normalization, [*_sizes(node, parts[0], dim[:-1]), count])
    found = _along(node, parts, dim[:-1], False, 1.0)
    axis = _axes(node, parts[0], dim)[-1]
    return transformed(node, found, axis, count, inverse=True, onesided=True, scale=scale)[0]


def _along(node: TorchNode, parts: Parts, dim: Any, forward: bool, scale: float) -> Parts:
    """Transforms along several axes, one after another."""
    for place, axis in enumerate(_axes(node, parts[0], dim)):
        count = node.known_size(parts[0], axis)
        factor = 1.0 if place else scale
        parts = transformed(node, parts, axis, count, inverse=not forward, onesided=False, scale=factor)
    return parts


def _pair(parts: Parts) -> ComplexPair:
    real, imag = parts
    assert imag is not None
    return ComplexPair(real, imag)


def _axes(node: TorchNode, data: Expr, dim: Any) -> list[int]:
    return [node.axis_of(int(axis), node.rank(data)) for axis in dim]


def _sizes(node: TorchNode, data: Expr, dim: Any) -> list[int]:
    return [node.known_size(data, axis) for axis in _axes(node, data, dim)]


def _scale(normalization: int, sizes: Sequence[int]) -> float:
    """The factor that PyTorch gives by a number: none, one over the root of the count, or one over the count."""
    count = prod(sizes)
    return {0: 1.0, 1: 1 / sqrt(count), 2: 1 / count}[normalization]
