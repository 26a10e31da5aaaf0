"""ReshapeUnmoved: changes of layout and order that leave every element where it is in memory become reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, shape_of
from tilewright.tir.data_layout import Layout

PERMUTING = ("transpose", "layout_transform")
SHAPING = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten")

Atoms = list[tuple[int, int]]
"""Pieces of an axis, the outer first: how many steps, and how far apart they are in the memory of the source."""


def _in_order(shape: Sequence[int]) -> list[Atoms]:
    """The axes of a tensor that lies in memory as its shape says."""
    return [[(extent, prod(shape[place + 1 :]))] for place, extent in enumerate(shape)]


def _inner_part(atoms: Atoms, size: int) -> tuple[Atoms, Atoms] | None:
    """An axis cut into its outer part and an inner one of so many elements; None where a piece would be torn."""
    outer, inner = list(atoms), Atoms()
    while size > 1:
        if not outer:
            return None
        extent, stride = outer.pop()
        if size % extent == 0:
            inner.insert(0, (extent, stride))
            size //= extent
        elif extent % size == 0:
            inner.insert(0, (size, stride))
            outer.append((extent // size, stride * size))
            size = 1
        else:
            return None
    return outer, inner


def _reshaped(axes: list[Atoms], shape: Sequence[int]) -> list[Atoms] | None:
    """The same elements in another shape."""
    rest: Atoms = [atom for axis in axes for atom in axis]
    made: list[Atoms] = []
    for extent in reversed(shape):
        cut = _inner_part(rest, extent)
        if cut is None:
            return None
        rest, inner = cut
        made.insert(0, inner)
    return made


def _permuted(axes: list[Atoms], expr: Call) -> list[Atoms] | None:
    """The axes after a transpose or a change of layout."""
    attrs: Any = expr.attrs
    if is_call(expr, "transpose"):
        order = attrs.axes or range(len(axes))[::-1]
        return [axes[place] for place in order]
    source, result = Layout(attrs.src_layout), Layout(attrs.dst_layout)
    if not source.defined or not result.defined or len(source) != len(axes):
        return None
    named = {source[place]: axis for place, axis in enumerate(axes)}
    parts: dict[str, Atoms] = {}
    for letter in source.primal_axes():
        whole = named[letter] + named.get(letter.lower(), [])
        cut = _inner_part(whole, max(result.factor_of(letter), 1))
        if cut is None:
            return None
        parts[letter], parts[letter.lower()] = cut
    return [parts[result[place]] for place in range(len(result))]


def _is_in_order(axes: list[Atoms]) -> bool:
    """True if the elements come one after the other."""
    step = 1
    for extent, stride in reversed([atom for axis in axes for atom in axis if atom[0] > 1]):
        if stride != step:
            return False
        step *= extent
    return True


def _constant(expr: RelayExpr) -> tuple[int, ...] | None:
    shape = tuple(extent for extent in shape_of(expr) if isinstance(extent, int) and extent > 0)
    return shape if len(shape) == len(shape_of(expr)) else None


def _unmoved(old: Call, new: Call) -> RelayExpr | None:
    """One reshape for as long a chain as leaves the elements in their order; None where there is none."""
    chain = [new]
    while isinstance(inner := chain[-1].args[0], Call) and is_call(inner, *PERMUTING, *SHAPING):
        chain.append(inner)
    shape = _constant(old)
    if shape is None:
        return _unit_block(new)
    for count in range(len(chain), 0, -1):
        source = chain[count - 1].args[0]
        before = _constant(source)
        if before is None or prod(before) != prod(shape):
            continue
        axes: list[Atoms] | None = _in_order(before)
        for step in reversed(chain[:count]):
            after = shape if step is new else _constant(step)
            # A block that is filled up with zeros has more elements than there were.
            if axes is None or after is None or prod(after) != prod(before):
                axes = None
                break
            axes = _permuted(axes, step) if is_call(step, *PERMUTING) else _reshaped(axes, after)
        if axes is not None and _is_in_order(axes):
            return source if before == shape else call("reshape", source, newshape=shape)
    return None


def _unit_block(new: Call) -> RelayExpr | None:
    """An image of open size to or from blocks of one channel: an axis of one element more or less."""
    attrs: Any = new.attrs
    if not is_call(new, "layout_transform"):
        return None
    layouts = attrs.src_layout, attrs.dst_layout
    if layouts == ("NCHW", "NCHW1c"):
        return call("expand_dims", new.args[0], axis=4, num_newaxis=1)
    return call("squeeze", new.args[0], axis=(4,)) if layouts == ("NCHW1c", "NCHW") else None


@dataclass
class ReshapeUnmoved(FunctionPass):
    """``layout_transform`` from NCHW96c to NHWC of 96 channels, from NCHW to NCHW1c, or of a single pixel, alone or as
    a chain of such operators, becomes a reshape, which costs nothing when the program runs."""

    name = "ReshapeUnmoved"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter(dict.fromkeys(PERMUTING, _unmoved)), func)
