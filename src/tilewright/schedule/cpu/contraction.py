"""Classifies the axes of a reduction: which one is vectorized, which are rows, which iterate over panels.

The innermost data axis is vectorized, because results are stored along it. Loads that depend on it are the *panel*; the
others are *scalars*, broadcast to a whole vector. A data axis that the panel does not depend on is a row axis: its rows
share the panel. One that only the panel depends on is a panel axis; one that both depend on is a batch axis. So a GEMM,
a convolution in a blocked or channels-last layout and a batched GEMM are the same case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.ir.expr import FloorDiv, FloorMod, IntImm, IterVar
from tilewright.ir.functor import post_order, uses_var
from tilewright.schedule.cpu.access import Read, assumed, constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage


@dataclass(frozen=True)
class Contraction:
    """The positions of the data axes by role; a tile covers ``panel_axis`` and ``row_axes``, innermost first.
    ``gathers``: the elements of a vector are not adjacent in memory."""

    vector: int
    panel_axis: int | None
    row_axes: tuple[int, ...]
    panel_axes: frozenset[int]
    batch_axes: frozenset[int]
    panel: tuple[Read, ...]
    scalars: tuple[Read, ...]
    shares_panel: bool
    gathers: bool

    @property
    def is_product(self) -> bool:
        """True if rows share a panel and vectors share scalars, so that a register tile saves loads of both."""
        return bool(self.scalars) and self.shares_panel and bool(self.row_axes)

    @property
    def panel_bytes(self) -> int:
        """The size of all panels together."""
        return sum(bytes_of_read(read) for read in {id(read.tensor): read for read in self.panel}.values())

    def scalar_bytes(self, axes: Sequence[IterVar]) -> int:
        """The size of the scalars of one batch."""
        batch = prod(extent_of(axes[position]) for position in self.batch_axes)
        total = sum(bytes_of_read(read) for read in {id(read.tensor): read for read in self.scalars}.values())
        return total // max(batch, 1)


def bytes_of_read(read: Read) -> int:
    """The size of the tensor that is read."""
    return prod(assumed(extent) for extent in read.tensor.shape) * max(read.tensor.dtype.bits // 8, 1)


def vector_position(materialized: MaterializedStage) -> int | None:
    """The position of the innermost data axis with an extent above one; None if there is none, or if the range of a
    reduction depends on it (the rows of a sparse matrix), which then cannot be outside of it."""
    axes = materialized.compute.axes
    found = next((number for number in range(len(axes) - 1, -1, -1) if extent_of(axes[number]) > 1), None)
    if found is None:
        return None
    for axis in materialized.compute.reduce_axis:
        ends = () if axis.dom is None else (axis.dom.min, axis.dom.extent)
        if any(uses_var(end, axes[found].var) for end in ends if not isinstance(end, IntImm)):
            return None
    return found


def classify(materialized: MaterializedStage, vector: int, lanes: int = 4) -> Contraction:
    """Classifies the axes of a reduction that is vectorized along ``vector``."""
    axes = materialized.compute.axes
    panel = tuple(read for read in materialized.reads if read.moves_with(axes[vector]))
    scalars = tuple(read for read in materialized.reads if not read.moves_with(axes[vector]))
    others = [number for number in range(len(axes)) if number != vector and extent_of(axes[number]) > 1]
    in_panel = {number for number in others if any(read.moves_with(axes[number]) for read in panel)}
    in_scalars = {number for number in others if any(read.moves_with(axes[number]) for read in scalars)}
    inner_first = sorted(others, reverse=True)
    if scalars:
        rows = [number for number in inner_first if number not in in_panel]
        panels = [number for number in inner_first if number in in_panel and number not in in_scalars]
        shares = bool(rows)
    else:
        rows, panels, shares = inner_first, [], False
    if not rows:
        rows = [number for number in inner_first if number not in panels]
        shares = False
    return Contraction(
        vector,
        panels[0] if panels else None,
        tuple(rows[:2]),
        frozenset(panels),
        frozenset(number for number in others if number not in rows and number not in panels),
        panel,
        scalars,
        shares,
        not all(read.is_contiguous(axes[vector], min(lanes, extent_of(axes[vector]))) for read in panel),
    )


def block_of(axis: IterVar, reads: Sequence[Read]) -> int | None:
    """The block size of an axis in a blocked layout: the largest constant that indices divide it by."""
    found = [
        int(part.b.value)
        for read in reads
        for index in read.indices
        for part in post_order(index)
        if isinstance(part, (FloorDiv, FloorMod)) and part.a is axis.var and isinstance(part.b, IntImm)
    ]
    extent = constant_extent(axis)
    fitting = [block for block in found if extent is not None and 1 < block < extent and extent % block == 0]
    return max(fitting, default=None)


def step_of(read: Read, axis: IterVar, distance: int) -> int:
    """The change of the address over ``count`` steps of an axis from its start; 0 if unknown."""
    origin = {one.var: 0 for one in read.axes}
    start, end = read.address(origin), read.address({**origin, axis.var: distance})
    return 0 if start is None or end is None else abs(end - start)
