"""Tensors continued beyond their edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import (
    Size,
    added,
    all_known,
    as_scalar,
    size_of,
    vector,
    with_known,
)
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.views import LAST, part
from tilewright.relay.frontend.torch.registry import converter


def _pairs(node: TorchNode, data: Expr, pad: Any) -> list[tuple[Size, Size]]:
    """What is added before and after each axis; widths are given for the last axis first."""
    rank = node.rank(data)
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise node.fail(f"{len(pad)} widths do not fit a tensor of {rank} dimensions")
    found: list[tuple[Size, Size]] = [(0, 0)] * rank
    for place in range(len(pad) // 2):
        found[rank - 1 - place] = (pad[2 * place], pad[2 * place + 1])
    return found


@converter("aten::constant_pad_nd")
def constant_pad_nd(node: TorchNode, input: Expr, pad: Any, value: Any = 0) -> Expr:
    """A number around the tensor; negative widths take elements away."""
    pairs = _pairs(node, input, pad)
    fill = node.cast(value, node.dtype(input))
    made = input
    if all_known([width for pair in pairs for width in pair]):
        for axis, (one, other) in enumerate(pairs):
            assert isinstance(one, int) and isinstance(other, int)
            if one < 0 or other < 0:
                size = node.shape(made)[axis]
                end: Size = LAST if other >= 0 else other if size is None else size + other
                made = part(node, made, axis, max(-one, 0), end)
        wide = [(max(int(str(one)), 0), max(int(str(other)), 0)) for one, other in pairs]
        return relay.nn.pad(made, wide, fill) if any(one or other for one, other in wide) else made
    sides = relay.stack([vector([pair[side] for pair in pairs]) for side in (0, 1)], 1)
    padded = relay.nn.pad(input, sides, fill)
    known = [
        size + one + other if size is not None and isinstance(one, int) and isinstance(other, int) else None
        for size, (one, other) in zip(node.shape(input), pairs, strict=True)
    ]
    return with_known(node, padded, known)


def _continued(node: TorchNode, data: Expr, pad: Any, mode: str) -> Expr:
    """Axes continued by their own elements: mirrored, repeated at the edge, or from the other end."""
    made = data
    for axis, (one, other) in enumerate(_pairs(node, data, pad)):
        if isinstance(one, int) and isinstance(other, int) and not one and not other:
            continue
        made = _axis_continued(node, made, axis, one, other, mode)
    return made


def _axis_continued(node: TorchNode, data: Expr, axis: int, before: Size, after: Size, mode: str) -> Expr:
    size = node.shape(data)[axis]
    if isinstance(before, int) and isinstance(after, int):
        if mode == "edge" and size is not None and min(before, after) < 0:
            # What is taken away on one side may be all that the other side repeats.
            clipped = np.clip(np.arange(-before, size + after), 0, size - 1)
            return relay.take(data, const(clipped.astype("int64")), axis=axis)
        if before < 0 or after < 0:
            end: Size = LAST if after >= 0 else after if size is None else size + after
            data = part(node, data, axis, max(-before, 0), end)
            return (
                _axis_continued(node, data, axis, max(before, 0), max(after, 0), mode)
                if max(before, after) > 0
                else data
            )
        if mode in ("reflect", "edge"):
            widths = [(before, after) if place == axis else (0, 0) for place in range(node.rank(data))]
            return relay.nn.pad(data, widths, pad_mode=mode)
        if size is not None:
            places = np.arange(-before, size + after) % size
            return relay.take(data, const(places.astype("int64")), axis=axis)
    whole = as_scalar(size_of(node, data, axis))
    first = relay.negative(as_scalar(before))
    places_of = relay.arange(first, as_scalar(added(whole, after)), const(1, "int64"), "int64")
    last = relay.subtract(whole, const(1, "int64"))
    zero = const(0, "int64")
    if mode == "edge":
        inside = relay.maximum(relay.minimum(places_of, last), zero)
    elif mode == "reflect":
        inside = relay.subtract(last, relay.abs(relay.subtract(last, relay.abs(places_of))))
    else:
        inside = relay.floor_mod(places_of, whole)
    return relay.take(data, inside, axis=axis)


@converter("aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d")
def reflection_pad(node: TorchNode, input: Expr, padding: Any) -> Expr:
    """A mirror image around the tensor."""
    return _continued(node, input, padding, "reflect")


@converter("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d")
def replication_pad(node: TorchNode, input: Expr, padding: Any) -> Expr:
    """The edge repeated around the tensor."""
    return _continued(node, input, padding, "edge")


@converter("aten::_pad_circular")
def pad_circular(node: TorchNode, input: Expr, pad: Any) -> Expr:
    """The other end of each axis around the tensor."""
    return _continued(node, input, pad, "wrap")


@converter("aten::pad", "aten::_pad_enum")
def pad(node: TorchNode, input: Expr, pad: Any, mode: str = "constant", value: Any = None) -> Expr:
    """Any of these."""
    if mode == "constant":
        return constant_pad_nd(node, input, pad, 0 if value is None else value)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise node.fail(f"the mode is constant, reflect, replicate or circular, not {mode!r}")
    return _continued(node, input, pad, modes[mode])
