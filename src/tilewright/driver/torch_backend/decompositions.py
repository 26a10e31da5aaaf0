"""Which operators PyTorch takes apart before this backend sees a graph: those that have no converter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from tilewright.driver.torch_backend.convolution_gradient import convolution_backward
from tilewright.relay.frontend.torch.aliasing import schema_of
from tilewright.relay.frontend.torch.registry import find_converter

_MORE: Final = (
    "_adaptive_avg_pool2d_backward",
    "_batch_norm_no_update",
    "_batch_norm_with_update",
    "_batch_norm_with_update_functional",
    "_log_softmax",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_softmax",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "addmv",
    "batch_norm_backward",
    "dist",
    "elu",
    "gelu",
    "grid_sampler_2d",
    "hardtanh",
    "index_select",
    "leaky_relu",
    "linalg_vector_norm",
    "max_pool2d_with_indices_backward",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "nll_loss2d_backward",
    "rrelu_with_noise_backward",
    "tril_indices",
    "triu_indices",
    "unbind_copy",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
)
"""Operators beyond those that PyTorch's core set leaves out, which it can take apart without writing in place."""

_RANDOM: Final = frozenset({"native_dropout", "bernoulli", "rand_like", "randn_like", "dropout"})
"""Random operators stay as they are: eager PyTorch draws their values from its own generator."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that this compiler does not convert as they are."""
    table = {
        **core_aten_decompositions(),
        **get_decompositions([getattr(torch.ops.aten, name) for name in _MORE]),
    }
    table[torch.ops.aten.convolution_backward.default] = convolution_backward
    found: dict[Any, Callable[..., Any]] = {}
    for operator, function in table.items():
        schema = schema_of(operator)
        if schema is None or schema.name.partition("::")[2] in _RANDOM:
            continue
        if find_converter(schema.name, schema.overload_name) is None:
            found[operator] = function
    return found
