"""A guess at the speed of a program before anything was measured: arithmetic in vectors, cache lines, and cores.

It orders programs that differ by a lot (no vectors, no parallel loop, lines that are fetched from memory again and
again), so that the first candidates that are measured are not those. What is measured replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.auto_scheduler.features.of_state import Features
from tilewright.auto_scheduler.features.vector import DEFAULT_MAX_BUFFERS, feature_names

_PLACES = {name: place for place, name in enumerate(feature_names())}
_NEAR, _MIDDLE = 32 << 10, 1 << 20
"""What is used again within so many bytes is found in L1, or in L2."""
_CYCLES = (0.5, 4.0, 16.0)
"""What a cache line costs in cycles from L1, L2, and farther away."""
_SCALAR_LANES = 2.0
"""How many lanes a loop that is not vectorized gets from the compiler, by and large."""
_CALL_CYCLES = 10.0


def _plain(rows: Features, name: str) -> NDArray[np.float64]:
    """A feature without its logarithm."""
    return np.exp2(rows[:, _PLACES[name]].astype(np.float64)) - 1.0


def guessed_cycles(rows: Features, hardware: Any) -> float:
    """The cycles that the stores of a program take, on all cores."""
    arithmetic = sum(
        _plain(rows, name) for name in ("float_addsub", "float_mul", "float_cmp", "float_divmod")
    )
    calls = _plain(rows, "float_math_func") + _plain(rows, "float_other_func")
    widest = max(1.0, hardware.vector_unit_bytes / 4)
    lanes = np.where(
        _plain(rows, "vec_num") > 0.5,
        np.clip(_plain(rows, "vec_len"), 1.0, widest),
        min(_SCALAR_LANES, widest),
    )
    cycles = (arithmetic / 2 + _CALL_CYCLES * calls + _plain(rows, "outer_prod") / 4) / lanes
    for number in range(DEFAULT_MAX_BUFFERS):
        lines = _plain(rows, f"B{number}.lines")
        far = _plain(rows, f"B{number}.reuse_dis_bytes")
        never = rows[:, _PLACES[f"B{number}.reuse_type.kNoReuse"]] > 0.5
        cost = np.select(
            [never, far <= _NEAR, far <= _MIDDLE], [_CYCLES[1], _CYCLES[0], _CYCLES[1]], _CYCLES[2]
        )
        cycles = cycles + lines * cost
    cores = max(1, hardware.num_cores)
    pieces = np.maximum(1.0, _plain(rows, "parallel_prod"))
    # The last round of pieces leaves cores idle.
    speed = pieces / np.ceil(pieces / cores)
    return float(np.sum(cycles / speed))


def guessed_scores(found: Sequence[Features], hardware: Any) -> NDArray[np.float64]:
    """A score for each program, the fastest 1; minus infinity for what has no rows."""
    cycles = np.array([guessed_cycles(rows, hardware) if len(rows) else np.inf for rows in found])
    least = cycles.min(initial=np.inf)
    return np.where(np.isfinite(cycles), least / np.maximum(cycles, 1.0), -np.inf)
