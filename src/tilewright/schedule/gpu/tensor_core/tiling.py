"""The sizes of a product's tiles, from the device's description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.schedule.gpu.tensor_core.factors import Product, size
from tilewright.target.gpu import GPUDescription

ROW_BYTES: Final = 128
"""Bytes of a tile's depth: a row of shared memory that all 32 banks serve at once."""
SUM_BYTES: Final = 4
BAND: Final = 8
"""Rows of tiles that are computed together."""


@dataclass(frozen=True)
class Tiling:
    """A block computes ``rows`` by ``columns`` of the result, ``depth`` steps at a time, with ``stages`` tiles in
    flight; ``splits`` blocks share the depth. ``warps`` is their grid where each multiplies alone, and ``uses_groups``
    says that groups of four multiply together instead."""

    rows: int
    columns: int
    depth: int
    stages: int
    splits: int
    warps: tuple[int, int]
    uses_groups: bool
    band: int = BAND

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // 64 * 128 if self.uses_groups else 32 * self.warps[0] * self.warps[1]

    def shared_bytes(self, itemsize: int) -> int:
        """Shared memory: the tiles, or the sums on their way to the result."""
        tiles = self.stages * (self.rows + self.columns) * self.depth * itemsize
        return max(tiles, self.rows * (self.columns + SUM_PADDING) * SUM_BYTES)


SUM_PADDING: Final = 8
"""Unused sums at the end of each row: pairs of neighbouring rows then lie in different banks."""


def choose_tiling(product: Product, gpu: GPUDescription) -> Tiling:
    """The tiling with the least estimated time."""
    return min(candidates(product, gpu), key=lambda one: _time(one, product, gpu))


def candidates(product: Product, gpu: GPUDescription) -> Iterator[Tiling]:
    """The tilings that fit a GPU and a product."""
    itemsize = product.a.dtype.itemsize
    depth = ROW_BYTES // itemsize
    steps = -(-size(product.depth) // depth)
    shapes = [(rows, columns, warps, False) for rows, columns, warps in _WARP_SHAPES]
    if gpu.has_wgmma:
        shapes = [shape for shape in shapes if shape[0] < 64]
        shapes += [(rows, columns, (0, 0), True) for rows, columns in _GROUP_SHAPES]
    for rows, columns, warps, uses_groups in shapes:
        # Below 128 bytes a panel would be narrower than a row of shared memory.
        if (columns % depth and product.reads_columns) or (rows % depth and product.reads_rows):
            continue
        for splits in _SPLITS:
            if splits > 1 and steps // splits < 2:
                break
            for stages in _STAGES:
                made = Tiling(rows, columns, depth, stages, splits, warps, uses_groups)
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


def _time(tiling: Tiling, product: Product, gpu: GPUDescription) -> float:
    """Cycles: waves of blocks, each limited by its multiplications or by the bytes that it copies, and what a block
    costs at its start and end."""
    itemsize = product.a.dtype.itemsize
    tiles = -(-size(product.rows) // tiling.rows) * -(-size(product.columns) // tiling.columns)
    blocks = tiles * size(product.batch) * tiling.splits
    steps = -(-size(product.depth) // tiling.depth)
    steps = -(-steps // tiling.splits)
    resident = max(1, min(gpu.multiprocessor_shared_bytes // tiling.shared_bytes(itemsize), 2048 // tiling.threads))
    busy = min(blocks, gpu.multiprocessors * resident)
    waves = -(-blocks // (gpu.multiprocessors * resident))
    sharing = max(1.0, busy / gpu.multiprocessors)
    # Multiply-adds that a multiprocessor does in a cycle, and bytes that it gets from L2.
    multiply = tiling.rows * tiling.columns * tiling.depth / _product_rate(gpu, itemsize)
    copy = (tiling.rows + tiling.columns) * tiling.depth * itemsize / L2_BYTES_PER_CYCLE
    step = max(max(multiply, copy) * sharing, STEP_LATENCY / max(tiling.stages - 2, 1))
    store = tiling.rows * tiling.columns * itemsize / L2_BYTES_PER_CYCLE * sharing
    total = waves * (BLOCK_LATENCY + steps * step + store)
    if tiling.splits > 1:
        sums = size(product.rows) * size(product.columns) * size(product.batch) * SUM_BYTES
        total += KERNEL_LATENCY + sums * (tiling.splits + 1) / (L2_BYTES_PER_CYCLE * gpu.multiprocessors)
    return total


def _product_rate(gpu: GPUDescription, itemsize: int) -> float:
    """Multiply-adds of a multiprocessor's matrix units in a cycle."""
    return (4096 if gpu.has_wgmma else 1024 if gpu.number >= 80 else 512) / itemsize


L2_BYTES_PER_CYCLE: Final = 48.0
"""What one multiprocessor gets from L2 in a cycle while all others read too."""
STEP_LATENCY: Final = 800.0
"""Cycles from asking for a tile to having it."""
BLOCK_LATENCY: Final = 2500.0
"""Cycles until a block's first multiplication, and for its epilogue."""
KERNEL_LATENCY: Final = 2000.0
"""Cycles from the end of a kernel to the start of the next in a CUDA graph."""
