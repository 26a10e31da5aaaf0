"""Convolution weights that are mostly zeros, converted to block-sparse form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.analysis.sparse_dense import SparseAnalysisResult, store_in_blocks, weight_variables


def process_params(
    expr: RelayExpr,
    params: dict[str, Any],
    block_size: Sequence[int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int = 1,
) -> SparseAnalysisResult:
    """Store the weights of ``kernel_size`` of which at least a part of ``sparsity_threshold`` are zeros as blocks, in
    ``params`` itself. A weight is ``HWIO`` where data are ``NHWC``, else ``OIHW``."""
    result = SparseAnalysisResult([], [])
    order = (3, 0, 1, 2) if layout == "NHWC" else (0, 2, 3, 1)
    for name in weight_variables(expr, "nn.conv2d"):
        weight = params[name].numpy() if name in params else None
        if weight is None or weight.ndim != 4:
            continue
        turned = weight.transpose(order)
        if turned.shape[1:3] != (kernel_size, kernel_size):
            continue
        if 1 - np.count_nonzero(weight) / weight.size >= sparsity_threshold:
            store_in_blocks(params, name, turned.reshape(turned.shape[0], -1), block_size, result)
    return result
