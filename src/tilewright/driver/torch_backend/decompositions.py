"""Which operators PyTorch takes apart before this backend sees a graph: those that have no converter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

from tilewright.relay.frontend.torch.aliasing import schema_of
from tilewright.relay.frontend.torch.registry import find_converter

_NEVER: Final = frozenset({"aten::native_dropout", "aten::bernoulli", "aten::rand_like", "aten::randn_like"})
"""Random operators: their values would differ from eager's, which draws from PyTorch's generator."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that this compiler does not convert as they are."""
    found: dict[Any, Callable[..., Any]] = {}
    for table in (decomposition_table, core_aten_decompositions()):
        for operator, function in table.items():
            schema = schema_of(operator)
            if schema is None or not isinstance(operator, torch._ops.OpOverload):
                continue
            if schema.name in _NEVER or find_converter(schema.name, schema.overload_name) is not None:
                continue
            found[operator] = function
    return found
