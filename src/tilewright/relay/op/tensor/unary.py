"""Operators that compute each element from one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call
from tilewright.relay.op.definition import Gradient, OpPattern, define
from tilewright.relay.op.layout import elementwise
from tilewright.relay.op.relations import same_type
from tilewright.te.tensor import Tensor


def _unary(
    name: str,
    compute: Callable[[Tensor], Tensor],
    reference: Callable[[Any], Any],
    gradient: Gradient | None = None,
    description: str = "",
) -> Callable[[RelayExpr], Call]:
    """Define an operator of one argument; gives the function that calls it."""
    op = define(
        name,
        arguments=("data",),
        relation=same_type,
        compute=lambda attrs, inputs, out_type: [compute(inputs[0])],
        reference=lambda attrs, data: reference(data).astype(data.dtype, copy=False),
        gradient=gradient,
        layout=elementwise,
        kind=OpPattern.ELEMWISE,
        description=description,
    )

    def call(data: RelayExpr) -> Call:
        return Call(op, (data,))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = description
    return call


exp = _unary("exp", topi.exp, np.exp, lambda call, grad: [grad * call], "e to the power of each element.")
