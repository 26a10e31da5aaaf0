"""What TVM's ``tvmc`` does with the results of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.driver.tvmc.model import TVMCResult


def get_top_results(result: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """The largest values in the first row of the first output: their positions, and below them the values."""
    output = np.asarray(result.outputs["output_0"])
    values = (output[0] if output.ndim > 1 else output).reshape(-1)
    positions = np.argsort(values)[::-1][:max_results]
    return np.array([positions, values[positions]])
