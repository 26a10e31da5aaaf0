"""The sizes of a product's tiles, from the device's description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as product_of
from typing import Final

from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.tensor_core.boxes import find_boxes
from tilewright.schedule.gpu.tensor_core.factors import Product, size
from tilewright.target.gpu import GPUDescription

ROW_BYTES: Final = 128
"""Bytes of a tile's depth: a row of shared memory that all 32 banks serve at once."""
SUM_BYTES: Final = 4
TUNED_TILINGS: Final = 64
"""The tilings that a tuner may try: those with the least estimated times."""
BAND: Final = 8
"""Rows of tiles that are computed together."""


@dataclass(frozen=True)
class Tiling:
    """A block computes ``rows`` by ``columns`` of the result, ``depth`` steps at a time, with ``stages`` tiles in
    flight; ``splits`` blocks share the depth. ``warps`` is their grid where each multiplies by itself, and
    ``uses_groups`` says that groups of four multiply together instead; ``uses_engine``, that the copy engine fetches
    the tiles."""

    rows: int
    columns: int
    depth: int
    stages: int
    splits: int
    warps: tuple[int, int]
    uses_groups: bool
    uses_engine: bool = False
    band: int = BAND

    @property
    def sizes(self) -> tuple[int, ...]:
        """What distinguishes it from the other tilings of a product."""
        return (self.rows, self.columns, self.stages, self.splits, *self.warps, int(self.uses_engine))

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // 64 * 128 if self.uses_groups else 32 * self.warps[0] * self.warps[1]

    @property
    def steps_ahead(self) -> int:
        """How many tiles are being copied while one is multiplied."""
        return self.stages - (2 if self.uses_groups and not self.uses_engine else 1)

    def shared_bytes(self, itemsize: int) -> int:
        """Shared memory: the tiles, or the sums on their way to the result."""
        tiles = self.stages * (self.rows + self.columns) * self.depth * itemsize
        barriers = TILE_ALIGNMENT if self.uses_engine else 0
        return max(tiles, self.rows * (self.columns + SUM_PADDING) * SUM_BYTES) + barriers


TILE_ALIGNMENT: Final = 1024
"""Bytes; the barriers of stages come before the tiles."""
SUM_PADDING: Final = 8
"""Unused sums at the end of each row: pairs of neighbouring rows then lie in different banks."""


def choose_tiling(product: Product, gpu: GPUDescription) -> Tiling:
    """The tiling with the least estimated time, unless a tuner says otherwise."""
    ranked = ranked_tilings(product, gpu)
    sizes = decide("tensor_core_tile", ranked[0].sizes, lambda: [one.sizes for one in ranked[:TUNED_TILINGS]])
    return next(one for one in ranked if one.sizes == sizes)


def ranked_tilings(product: Product, gpu: GPUDescription) -> list[Tiling]:
    """The tilings that fit, those with the least estimated time first; of those that differ in the number of stages
    only, the best."""
    best: dict[tuple[int, ...], Tiling] = {}
    # Where stages make no difference to the estimate, more of them do no harm.
    for one in sorted(
        candidates(product, gpu), key=lambda one: (estimated_cycles(one, product, gpu), -one.stages)
    ):
        best.setdefault((*one.sizes[:2], *one.sizes[3:]), one)
    return list(best.values())


def candidates(product: Product, gpu: GPUDescription) -> Iterator[Tiling]:
    """The tilings that fit a GPU and a product."""
    itemsize = product.a.dtype.itemsize
    depth = ROW_BYTES // itemsize
    steps = -(-size(product.depth) // depth)
    shapes = [(rows, columns, warps, False) for rows, columns, warps in _WARP_SHAPES]
    engine: Sequence[bool] = (False,)
    if gpu.has_wgmma and not product.is_split:
        shapes = [shape for shape in shapes if shape[0] < 64]
        shapes += [(rows, columns, (0, 0), True) for rows, columns in _GROUP_SHAPES]
        engine = (False, True) if find_boxes(product) is not None else engine
    for rows, columns, warps, uses_groups in shapes:
        # Below 128 bytes a panel would be narrower than a row of shared memory.
        if (columns % depth and product.reads_columns) or (rows % depth and product.reads_rows):
            continue
        for splits in _SPLITS:
            if splits > 1 and steps // splits < 2:
                break
            for stages, uses_engine in product_of(_STAGES, engine if uses_groups else (False,)):
                made = Tiling(rows, columns, depth, stages, splits, warps, uses_groups, uses_engine)
                if made.shared_bytes(itemsize) <= gpu.shared_bytes:
                    yield made


_SPLITS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
_STAGES: Final = (3, 4, 6)
_WARP_SHAPES: Final = (
    (128, 128, (2, 4)),
    (128, 64, (4, 2)),
    (64, 128, (2, 4)),
    (64, 64, (2, 2)),
    (64, 32, (4, 1)),
    (32, 64, (2, 2)),
    (32, 32, (2, 1)),
    (16, 128, (1, 4)),
    (16, 64, (1, 4)),
    (16, 32, (1, 2)),
)
"""Rows, columns and the grid of warps: enough warps for the schedulers, and tiles of a warp that fit its registers."""
_GROUP_SHAPES: Final = (
    (128, 256),
    (128, 192),
    (128, 128),
    (128, 96),
    (128, 64),
    (128, 32),
    (64, 256),
    (64, 192),
    (64, 128),
    (64, 96),
    (64, 64),
    (64, 32),
)
"""Rows and columns: 64 rows for each group of warps."""


def estimated_cycles(tiling: Tiling, product: Product, gpu: GPUDescription) -> float:
    """Cycles that a product takes: its blocks overlap as far as a multiprocessor holds several, and are bound by the
    multiplications, by the bytes that they copy, or by the latency of copies."""
    itemsize = product.a.dtype.itemsize
    tiles = -(-size(product.rows) // tiling.rows) * -(-size(product.columns) // tiling.columns)
    # Blocks of the busiest multiprocessor, and how often it has to start anew.
    blocks = -(-tiles * size(product.batch) * tiling.splits // gpu.multiprocessors)
    resident = _resident(tiling, itemsize, gpu)
    rounds = -(-blocks // resident)
    steps = -(-size(product.depth) // (tiling.depth * tiling.splits))
    multiply = tiling.rows * tiling.columns * tiling.depth / _product_rate(gpu, tiling, itemsize)
    if product.is_split:
        warps = tiling.warps[0] * tiling.warps[1] * min(blocks, resident)
        multiply = (PRODUCTS_OF_PARTS * multiply + _splitting(tiling)) * max(BUSY_WARPS / warps, 1)
    if tiling.uses_groups:
        multiply = max(multiply, tiling.rows // 64 * STEPS_OF_TILE * INSTRUCTION_CYCLES)
    if tiling.uses_engine:
        multiply *= ENGINE_PRODUCTS
    speed = ENGINE_BYTES_PER_CYCLE if tiling.uses_engine else L2_BYTES_PER_CYCLE
    copy = (tiling.rows + tiling.columns) * tiling.depth * itemsize / speed
    wait = max(COPY_LATENCY / tiling.steps_ahead, STEP_CYCLES if tiling.uses_groups else FRAGMENT_CYCLES)
    if min(blocks, resident) == 1:
        body = blocks * (START_CYCLES + steps * max(multiply, copy, wait))
    else:
        busy = blocks * steps * max(multiply, copy) + rounds * START_CYCLES
        body = max(busy, rounds * (START_CYCLES + steps * wait))
    stored = SUM_BYTES if tiling.splits > 1 else itemsize
    total = (
        body + blocks * tiling.rows * tiling.columns * stored / STORE_BYTES_PER_CYCLE + rounds * END_CYCLES
    )
    results = size(product.rows) * size(product.columns) * size(product.batch)
    if tiling.splits > 1:
        moved = results * (tiling.splits * SUM_BYTES + itemsize)
        total += KERNEL_CYCLES + moved / (SUM_BYTES_PER_CYCLE * gpu.multiprocessors)
    return total


def _splitting(tiling: Tiling) -> float:
    """Cycles of a multiprocessor for the parts of float32 factors, which every warp makes of what it reads itself, and
    for adding the sums of a tile to the others."""
    per_warp = tiling.rows // tiling.warps[0] + tiling.columns // tiling.warps[1]
    parts = tiling.warps[0] * tiling.warps[1] * per_warp * tiling.depth * INSTRUCTIONS_OF_PARTS
    return (parts + tiling.rows * tiling.columns * INSTRUCTIONS_OF_SUMS) / LANES


def _resident(tiling: Tiling, itemsize: int, gpu: GPUDescription) -> int:
    """Blocks that a multiprocessor holds at a time."""
    threads = tiling.threads
    sums = tiling.rows * tiling.columns // threads * (2 if itemsize == 4 else 1)
    registers = threads * max(sums + OTHER_REGISTERS, LEAST_REGISTERS)
    return max(
        1,
        min(
            gpu.multiprocessor_shared_bytes // (tiling.shared_bytes(itemsize) + 1024),
            gpu.multiprocessor_threads // threads,
            gpu.multiprocessor_registers // registers,
        ),
    )


def _product_rate(gpu: GPUDescription, tiling: Tiling, itemsize: int) -> float:
    """Multiply-adds that a multiprocessor does in a cycle: Hopper's groups of warps twice as many as single warps."""
    return (4096 if tiling.uses_groups else 2048) / itemsize


# What the estimate knows of multiprocessors, in cycles and bytes a cycle; measured on an H200 over 26 products with 12
# tilings each (bench/gpu_tilings.py), where the choice takes 3 % longer than the best of them in the mean.
PRODUCTS_OF_PARTS: Final = 3
"""Multiplications for each of float32."""
INSTRUCTIONS_OF_PARTS: Final = 6
INSTRUCTIONS_OF_SUMS: Final = 2
BUSY_WARPS: Final = 8
"""Warps of a multiprocessor below which the matrix units wait for the parts of float32 factors."""
LANES: Final = 128
"""Instructions of single threads that a multiprocessor does in a cycle."""
INSTRUCTION_CYCLES: Final = 30.0
"""The least that an instruction of a group of warps takes, however few its columns are."""
STEPS_OF_TILE: Final = 4
L2_BYTES_PER_CYCLE: Final = 49.0
"""What one multiprocessor gets from L2 while all others read too."""
ENGINE_BYTES_PER_CYCLE: Final = 54.0
"""The same, if the copy engine asks."""
ENGINE_PRODUCTS: Final = 1.02
"""What the barriers of stages cost while the matrix units are the limit."""
COPY_LATENCY: Final = 1400.0
STEP_CYCLES: Final = 100.0
"""The barrier and the bookkeeping of a step."""
FRAGMENT_CYCLES: Final = 520.0
"""The same where a warp loads the fragments of each multiplication first."""
START_CYCLES: Final = 2000.0
"""Until the first tile has arrived."""
END_CYCLES: Final = 830.0
STORE_BYTES_PER_CYCLE: Final = 17.0
SUM_BYTES_PER_CYCLE: Final = 18.0
"""The speed of the kernel that adds the sums of several blocks."""
KERNEL_CYCLES: Final = 1400.0
"""What one more kernel costs in a CUDA graph."""
OTHER_REGISTERS: Final = 28
LEAST_REGISTERS: Final = 40
