"""Weights of dense layers that are mostly zeros, converted to block-sparse form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.transform.lib.rewriting import is_call
from tilewright.relay.transform.lib.sparse_weights import block_sparse
from tilewright.runtime.ndarray import array


class SparseAnalysisResult(NamedTuple):
    """The names of the weights, and for each the extents of its values, of its columns and of its row starts."""

    weight_name: list[str]
    weight_shape: list[list[int]]


def weight_variables(expr: RelayExpr, operator: str) -> list[str]:
    """The names of the variables that are the second argument of an operator."""
    found: dict[str, None] = {}

    def look(node: Any) -> None:
        if is_call(node, operator) and isinstance(node.args[1], Var):
            found[node.args[1].name_hint] = None

    post_order_visit(expr, look)
    return list(found)


def store_in_blocks(
    params: dict[str, Any], name: str, matrix: Any, block_size: Sequence[int], result: SparseAnalysisResult
) -> None:
    """Replace a weight, given as a matrix, by its values, columns and row starts."""
    parts = dict(zip(("data", "indices", "indptr"), block_sparse(matrix, *block_size), strict=True))
    params.pop(name)
    params.update({f"{name}.{part}": array(value) for part, value in parts.items()})
    result.weight_name.append(name)
    result.weight_shape.append([extent for value in parts.values() for extent in value.shape])


def process_params(
    expr: RelayExpr,
    params: dict[str, Any],
    block_size: Sequence[int],
    sparsity_threshold: float,
    filter_func: Callable[[Any], bool] | None = None,
) -> SparseAnalysisResult:
    """Store the weights of which at least a part of ``sparsity_threshold`` are zeros as blocks, in ``params`` itself;
    ``filter_func`` says of an array whether it may be."""
    result = SparseAnalysisResult([], [])
    for name in weight_variables(expr, "nn.dense"):
        if name not in params:
            continue
        weight = params[name].numpy()
        if filter_func is not None and not filter_func(weight):
            continue
        if 1 - np.count_nonzero(weight) / weight.size >= sparsity_threshold:
            store_in_blocks(params, name, weight, block_size, result)
    return result
