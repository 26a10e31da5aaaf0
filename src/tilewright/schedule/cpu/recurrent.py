"""The CPU tiling of recurrent layers: rows by the number of registers, shares for all cores of a large machine."""

from __future__ import annotations

from typing import Final

from tilewright.schedule.cpu.loops import PLANNED_CORES
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.recurrent import RecurrentTiling
from tilewright.topi.utils import get_const_tuple

MOST_ROWS: Final = 4
"""The most batch rows that are multiplied by a block of weights at once."""


def recurrent_tiling(given: Tensor, weight: Tensor) -> RecurrentTiling:
    """The tiling for the current target of a layer with these inputs and weights (see ``topi.nn.recurrent``)."""
    cpu = current_cpu()
    blocks, hidden, gates, block = get_const_tuple(weight.shape)
    (batch,) = get_const_tuple([given.shape[1]])
    # As many rows as have accumulators in the registers, beside the weights.
    each = -(-gates * block // lanes_of(cpu, str(given.dtype)))
    limit = min(MOST_ROWS, max(1, cpu.vector_registers * 3 // 4 // each))
    rows = max(min(limit, batch), 1) if isinstance(batch, int) else limit
    shares = min(blocks, max(cpu.cores, PLANNED_CORES))
    return RecurrentTiling(rows, shares, hidden * blocks * block * gates >= cpu.parallel_work)
