"""Random sparse matrices for tests."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def random_bsr_matrix(m: int, n: int, bs_r: int, bs_c: int, density: float, dtype: str) -> Any:
    """A matrix of blocks of ``bs_r`` by ``bs_c``, of which the share ``density`` of the elements is in blocks that are
    not zero, as SciPy's ``bsr_matrix``."""
    import scipy.sparse

    blocks = int(density * m * n / (bs_r * bs_c)) + 1
    places = list(itertools.product(range(0, m, bs_r), range(0, n, bs_c)))
    generator = np.random.default_rng()
    made = np.zeros((m, n), dtype)
    for place in generator.choice(len(places), size=min(blocks, len(places)), replace=False):
        row, column = places[place]
        made[row : row + bs_r, column : column + bs_c] = generator.standard_normal((bs_r, bs_c))
    return scipy.sparse.bsr_matrix(made, blocksize=(bs_r, bs_c))
