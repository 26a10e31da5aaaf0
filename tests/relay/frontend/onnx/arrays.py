"""Arrays for tests."""

from __future__ import annotations

from typing import Any

import numpy as np


def floats(*shape: int, seed: int = 0) -> Any:
    """Random numbers, the same for the same shape and seed."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")
