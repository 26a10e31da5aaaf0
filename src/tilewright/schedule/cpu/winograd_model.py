"""The cost model of Winograd convolutions: which tile to use, if any, and which blocks to compute in.

Everything is counted in cycles of one core. Multiply-adds run at the rate of the register tiles; transforming an
element costs a few vector operations; what does not fit in L2 is paid for by the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.target.cpu import CPUDescription

TILES: Final = (2, 4, 6)
PRODUCT_EFFICIENCY: Final = 0.8
DIRECT_EFFICIENCY: Final = 0.85
"""Measured shares of the peak rate of multiply-adds."""
TRANSFORM_CYCLES: Final = 2.5
"""Cycles to transform one vector."""
BETTER: Final = 1.15
"""How much faster a larger tile must be than a smaller one: its weights take more memory, and its error is larger."""
LARGEST_WEIGHTS: Final = 32 << 20
"""Bytes of a layer's transformed weights with any but the smallest tiles, which do not even double them: a model has
many such layers, and is not to need much more memory so."""
WORTH_IT: Final = 1.2
"""How much faster than the direct convolution Winograd must be predicted to be."""


@dataclass(frozen=True)
class Convolution:
    """Sizes of a convolution of stride one with a kernel of three by three taps; ``height`` and ``width`` are the
    result's, and ``lanes`` the channels of a block of it, of so many ``vectors``. ``element_bytes`` are those of
    transformed inputs and weights. A lane of an instruction adds ``products`` of transformed numbers, or
    ``direct_products`` of those that the convolution is given."""

    batch: int
    inputs: int
    outputs: int
    height: int
    width: int
    lanes: int
    element_bytes: int = 4
    sum_bytes: int = 4
    vectors: int = 1
    products: int = 1
    direct_products: int = 1

    @property
    def vector_lanes(self) -> float:
        """Sums that a vector holds."""
        return self.lanes / self.vectors


@dataclass(frozen=True)
class Blocks:
    """Rows of tiles in a block, vectors of output channels in a group, and whether all inputs are transformed before
    the first block."""

    rows: int
    group: int
    inputs_first: bool


def choose_winograd_tile(
    cpu: CPUDescription,
    convolution: Convolution,
    largest: int,
    instead_of: Convolution | None = None,
    tiles: Sequence[int] = TILES,
) -> int | None:
    """The tile of outputs, one of ``tiles`` of at most ``largest``, with which the convolution is fastest; None if that
    is without any, or slower than the direct computation of another that it would stand for."""
    if (
        not convolution.batch
        * convolution.height
        * convolution.width
        * convolution.inputs
        * convolution.outputs
    ):
        return None  # There is nothing to compute.
    direct = _direct_cycles(cpu, instead_of or convolution)
    best: int | None = None
    limit = direct / WORTH_IT
    for tile in tiles:
        if tile > largest or (tile > tiles[0] and _weight_bytes(convolution, tile) > LARGEST_WEIGHTS):
            break
        cycles = choose_winograd_blocks(cpu, convolution, tile)[1]
        if cycles < limit:
            best, limit = tile, cycles / BETTER
    return best


def _weight_bytes(convolution: Convolution, tile: int) -> int:
    return (tile + 2) ** 2 * convolution.element_bytes * convolution.inputs * convolution.outputs


def _direct_cycles(cpu: CPUDescription, convolution: Convolution) -> float:
    channels = convolution.inputs * convolution.outputs
    products = 9 * convolution.batch * convolution.height * convolution.width * channels
    rate = convolution.vector_lanes * convolution.direct_products * max(cpu.fma_units, 1) * DIRECT_EFFICIENCY
    weight_bytes = channels * 9 * convolution.sum_bytes // convolution.direct_products
    return (products / rate + weight_bytes / cpu.memory_bytes_per_cycle) / cpu.cores


def choose_winograd_blocks(cpu: CPUDescription, convolution: Convolution, tile: int) -> tuple[Blocks, float]:
    """The blocks in which the convolution is fastest with tiles of this size, and the cycles that it then takes."""
    return ranked_winograd_blocks(cpu, convolution, tile)[0]


def ranked_winograd_blocks(
    cpu: CPUDescription, convolution: Convolution, tile: int
) -> list[tuple[Blocks, float]]:
    """All blocks, and the cycles that the convolution takes with them, the fastest first."""
    found = [(blocks, _cycles(cpu, convolution, tile, blocks)) for blocks in _candidates(convolution, tile)]
    return sorted(found, key=lambda one: one[1])


def winograd_blocks_of_open_height(cpu: CPUDescription, convolution: Convolution, tile: int) -> Blocks:
    """The blocks of a convolution whose height is known at run time only: single rows of tiles, so that none is
    computed in vain. Weights that do not stay in L2 are split into groups that do, and each group serves all rows."""
    groups = -(-convolution.outputs // convolution.lanes)
    if _weight_bytes(convolution, tile) <= cpu.l2_bytes * 3 // 4:
        return Blocks(1, groups, False)
    bytes_of_vector = _weight_bytes(convolution, tile) // groups
    fitting = [size for size in _divisors(groups) if size * bytes_of_vector <= cpu.l2_bytes // 2]
    return Blocks(1, max([*fitting, _divisors(groups)[1]] if groups > 1 else [1]), True)


def _candidates(convolution: Convolution, tile: int) -> Iterator[Blocks]:
    rows = -(-convolution.height // tile)
    groups = -(-convolution.outputs // convolution.lanes)
    for count in _divisors(rows):
        for group in reversed(_divisors(groups)):
            for inputs_first in (False, True):
                yield Blocks(count, group, inputs_first)


def _cycles(cpu: CPUDescription, convolution: Convolution, tile: int, blocks: Blocks) -> float:
    positions = (tile + 2) ** 2
    rows, columns = -(-convolution.height // tile), -(-convolution.width // tile)
    tiles = convolution.batch * rows * columns
    row_blocks = convolution.batch * rows // blocks.rows
    groups = -(-convolution.outputs // convolution.lanes // blocks.group)
    elements = positions * columns * blocks.rows
    weight_bytes = _weight_bytes(convolution, tile)
    input_bytes = elements * convolution.inputs * convolution.element_bytes
    group_bytes = elements * convolution.lanes * blocks.group * convolution.sum_bytes
    cache = cpu.l2_bytes

    products = positions * tiles * convolution.inputs * convolution.outputs
    # A group of one block leaves registers idle: each loaded input is multiplied only once.
    efficiency = PRODUCT_EFFICIENCY * (0.75 if blocks.group == 1 else 1.0)
    rate = convolution.vector_lanes * convolution.products * max(cpu.fma_units, 1)
    cycles = products / (rate * efficiency)
    in_vectors = convolution.inputs * convolution.element_bytes / convolution.sum_bytes + convolution.outputs
    cycles += tiles * positions * in_vectors / convolution.vector_lanes * TRANSFORM_CYCLES
    # Weights are streamed once per block, inputs once per group, unless they stay in cache. Only the first block finds
    # weights in memory that L3 holds.
    fits = weight_bytes + input_bytes + group_bytes <= cache
    again = 0 if fits else row_blocks - 1
    traffic = weight_bytes * (1 + (0 if weight_bytes <= cpu.l3_bytes else again))
    if blocks.inputs_first:
        traffic += input_bytes * row_blocks * (2 + (groups if input_bytes > cache // 2 else 1))
    elif input_bytes > cache // 2:
        traffic += input_bytes * row_blocks * (1 + groups)
    if group_bytes > cache // 4:
        traffic += 2 * group_bytes * row_blocks * groups
    cycles += traffic / cpu.memory_bytes_per_cycle
    if weight_bytes <= cpu.l3_bytes:
        cycles += weight_bytes * again / max(cpu.l3_bytes_per_cycle, cpu.memory_bytes_per_cycle)
    units = row_blocks * (groups if blocks.inputs_first else 1)
    return cycles * -(-units // cpu.cores) / units


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]
