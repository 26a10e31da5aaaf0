"""Turns dense layers with weights that are mostly zeros into sparse ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.relay.analysis import sparse_dense
from tilewright.relay.function import Function
from tilewright.relay.transform.dense_to_sparse import DenseToSparse
from tilewright.relay.transform.lib.function_pass import run_on_function


def convert(
    func: Function,
    params: dict[str, Any],
    blocksize: Sequence[int],
    sparsity_threshold: float,
    filter_func: Callable[[Any], bool] | None = None,
) -> tuple[Function, dict[str, Any]]:
    """The function and the parameters, which change in place, with weights of so many zeros stored in blocks."""
    found = sparse_dense.process_params(func, params, blocksize, sparsity_threshold, filter_func)
    return run_on_function(DenseToSparse(found.weight_name, found.weight_shape), func), params
