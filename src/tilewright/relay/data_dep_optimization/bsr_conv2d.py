"""Turns convolutions with weights that are mostly zeros into sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.analysis import sparse_conv2d
from tilewright.relay.function import Function
from tilewright.relay.transform.conv2d_to_sparse import Conv2dToSparse, Conv2dToSparse2
from tilewright.relay.transform.lib.function_pass import run_on_function


def convert(
    func: Function,
    params: dict[str, Any],
    blocksize: Sequence[int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, dict[str, Any]]:
    """The function and the parameters, which change in place, with weights of so many zeros stored in blocks."""
    found = sparse_conv2d.process_params(func, params, blocksize, sparsity_threshold, layout, kernel_size)
    turned = Conv2dToSparse(found.weight_name, found.weight_shape, layout, kernel_size)
    return run_on_function(turned, func), params


def convert2(
    func: Function,
    params: dict[str, Any],
    blocksize: Sequence[int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int,
) -> tuple[Function, dict[str, Any]]:
    """As ``convert``, for weights that are constants of the function (``bind_params_by_name`` makes them so)."""
    turned = Conv2dToSparse2(layout, kernel_size, blocksize, sparsity_threshold)
    return run_on_function(turned, func), params
