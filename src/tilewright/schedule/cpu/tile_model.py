"""Chooses the register tile of a reduction with a cost model of one reduction step.

A tile is ``rows x vectors`` accumulators that stay in registers during the whole reduction. Each step loads the vectors
of the *panel* (which depends on the vector axis), broadcasts one scalar per row, and does one multiply-add per
accumulator. A step is bound by its multiply-adds, its loads, the latency of a multiply-add, or the L2 bandwidth for a
long panel: it takes about the longest of these, and somewhat more if several are close. The tile with the least total
time is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from tilewright.target.cpu import CPUDescription

LOADS_A_CYCLE: Final = 1.7
STEP_OVERHEAD: Final = 0.3
"""Loop overhead of a step, in cycles."""
SHARPNESS: Final = 6
"""The exponent of the norm that combines the times of a step: two equal ones take an eighth more than one. Measured
with 6 to 14 accumulators where a latency of four cycles on two units needs 8."""
TAIL_PENALTY: Final = 1.01
"""The penalty for a second copy of the kernel, for the partial tile at the end of an axis."""
MOST_ROWS: Final = 30
MOST_ROWS_OF_UNKNOWN: Final = 6
"""Rows of a tile along an axis of dynamic extent, unless more are needed to hide the latency of multiply-adds. What
more rows leave over would be computed in more small tiles."""


@dataclass(frozen=True)
class TileProblem:
    """The properties of a reduction that the model uses.

    ``rows`` are the extents of the two axes that rows are taken from, the inner one first; ``columns`` is the extent
    of the vector axis, of which a tile may cover ``widest``, and ``panels`` that of an axis that repeats panels (1 if
    there is none). An extent that is not constant is None. ``steps`` is the length of the reduction.
    ``shares_panel``: all rows read the same panel; ``has_scalars``: each row reads a number that all vectors share.
    ``is_group``: the panels are a part of their axis, and a tile that reaches beyond them is computed whole.
    ``window``: steps of the innermost reduction, where neighbouring rows read overlapping vectors. ``widens``: elements
    are narrower than their sums, so that a load widens them into a register before they are multiplied.
    """

    rows: tuple[int | None, int | None]
    columns: int | None
    widest: int
    panels: int | None
    lanes: int
    steps: int
    shares_panel: bool
    has_scalars: bool
    is_group: bool = False
    window: int = 1
    widens: bool = False


@dataclass(frozen=True)
class Tile:
    """Sizes of the tile along the two row axes, the vector axis (in elements) and the panel axis."""

    rows: tuple[int, int]
    columns: int
    panels: int

    @property
    def accumulators(self) -> int:
        """Rows times elements of a row."""
        return self.rows[0] * self.rows[1] * self.panels * self.columns


@lru_cache(maxsize=1024)
def choose_tile(cpu: CPUDescription, problem: TileProblem) -> Tile:
    """The tile with the least predicted time; of equal ones the one with the fewest accumulators."""
    return ranked_tiles(cpu, problem)[0]


@lru_cache(maxsize=1024)
def ranked_tiles(cpu: CPUDescription, problem: TileProblem) -> tuple[Tile, ...]:
    """All tiles that fit in the registers, the one with the least predicted time first."""
    tiles = _candidates(cpu, problem)
    return tuple(sorted(tiles, key=lambda tile: (tile_cycles(cpu, problem, tile), tile.accumulators)))


def _candidates(cpu: CPUDescription, problem: TileProblem) -> Iterator[Tile]:
    """All tiles that fit in the registers, and the smallest possible one."""
    lanes = problem.lanes
    columns = lanes if problem.columns is None else min(problem.columns, problem.widest)
    counts = (1, 2, 4) if cpu.groups_registers else range(1, 5)  # registers are grouped by powers of two
    widths = [count * lanes for count in counts if (count - 1) * lanes < columns]
    panels = range(1, min(4 if problem.panels is None else problem.panels, 4) + 1)
    most = MOST_ROWS if problem.columns is not None else MOST_ROWS_OF_UNKNOWN
    in_flight = max(cpu.fma_units, 1) * cpu.fma_latency
    if problem.rows[0] is None:
        most = max(MOST_ROWS_OF_UNKNOWN, min(most, in_flight) if problem.shares_panel else 0)
    inner = _sizes(problem.rows[0], most)
    outer = _sizes(problem.rows[1], 8 if problem.rows[1] is not None else MOST_ROWS_OF_UNKNOWN)
    for width, panel, one, other in product(widths, panels, inner, outer):
        vectors, rows = width // lanes * panel, one * other
        # A tile covers either a wide panel or several panels, not both; and of several panels not only a part, whose
        # rows would be apart in memory.
        if panel > 1 and (width > lanes or width < columns):
            continue
        if other > 1 and one < (problem.rows[0] or one):
            continue
        if problem.rows[0] is None and one > MOST_ROWS_OF_UNKNOWN and rows * vectors > in_flight:
            continue
        needed = rows * vectors + _beside(cpu, problem, rows, vectors, panel > 1)
        if needed <= cpu.vector_registers or rows * vectors == 1:
            yield Tile((one, other), min(width, columns), panel)


def _beside(cpu: CPUDescription, problem: TileProblem, rows: int, vectors: int, several: bool) -> int:
    """Registers that a tile needs beside its accumulators; ``several``: its vectors belong to several panels."""
    if not problem.shares_panel:
        # Where loads are instructions of their own, the weights and the data of a window stay in registers.
        if cpu.folds_loads:
            return 3 if problem.widens else 2  # LLVM widens the next vector while one is multiplied
        return (2 * problem.window + 1) * max(vectors, 1)
    if cpu.multiplies_by_element and problem.has_scalars:
        # The scalars of the next few steps are loaded together, one vector per row, and one ahead of its use.
        return vectors + rows + 2
    # The vectors of the panel stay in registers while the scalars pass through one; with several panels, the other way
    # around.
    return (min(vectors, rows) if several else vectors) + 1


def _sizes(extent: int | None, most: int) -> range:
    if extent is None:
        return range(1, most + 1)
    return range(1, min(max(extent, 1), most) + 1)


def _parts(extent: int | None, size: int) -> list[tuple[int, float]]:
    """The tile sizes that an axis is split into, and the count of each."""
    if extent is None:
        # Long enough that the remainder does not matter.
        return [(size, 1000 / size)]
    whole, rest = divmod(max(extent, 1), size)
    return [(part, count) for part, count in ((size, whole), (rest, 1)) if part and count]


def _whole_tiles(extent: int | None, size: int) -> int | None:
    return None if extent is None else -(-extent // size) * size


def tile_cycles(cpu: CPUDescription, problem: TileProblem, tile: Tile) -> float:
    """Cycles of one reduction step for all rows, columns and panels."""
    cuts: list[list[tuple[int, float]]] = [
        _parts(problem.rows[0], tile.rows[0]),
        _parts(problem.rows[1], tile.rows[1]),
        _parts(problem.columns, tile.columns),
        _parts(
            _whole_tiles(problem.panels, tile.panels) if problem.is_group else problem.panels, tile.panels
        ),
    ]
    cycles = 0.0
    for (one, many), (other, others), (width, widths), (panel, panels) in product(*cuts):
        vectors = -(-width // problem.lanes) * panel
        cycles += many * others * widths * panels * _step(cpu, problem, one * other, vectors, panel > 1)
    for parts in cuts:
        if len(parts) > 1:
            cycles *= TAIL_PENALTY
    return cycles


def _step(cpu: CPUDescription, problem: TileProblem, rows: int, vectors: int, several: bool) -> float:
    """Cycles of one reduction step of a tile; ``several``: its vectors belong to several panels."""
    arithmetic = rows * vectors / max(cpu.fma_units, 1)
    loads = float(vectors if problem.shares_panel else rows * vectors)
    if problem.has_scalars:
        loads += rows / problem.lanes if cpu.multiplies_by_element else rows
    if several and not cpu.has_vector_offsets:
        loads += vectors  # as many instructions compute addresses
    streamed = 0.0
    panel_bytes = vectors * cpu.vector_bits // 8
    if problem.shares_panel and panel_bytes * problem.steps > cpu.l1d_bytes // 2:
        streamed = panel_bytes / cpu.l2_bytes_per_cycle
        if problem.rows[0] is None and panel_bytes * problem.steps > cpu.l2_bytes * 3 // 4:
            # Few rows of an open extent share a panel: each tile loads it from memory again.
            streamed = panel_bytes / cpu.memory_bytes_per_cycle
    # Where loads and addresses are instructions of their own, they are issued beside the multiply-adds.
    issued = 0.0
    if not (cpu.has_vector_offsets or cpu.groups_registers):
        issued = (rows * vectors + loads) / (max(cpu.fma_units, 1) + 1)
    times = (arithmetic, loads / LOADS_A_CYCLE, float(cpu.fma_latency), streamed, issued)
    together: float = sum(time**SHARPNESS for time in times)
    return float(together ** (1 / SHARPNESS)) + STEP_OVERHEAD
