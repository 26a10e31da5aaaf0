"""Running sums and products with the options that models give."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr


def running(
    function: Callable[..., Expr],
    data: RelayExpr,
    axis: int,
    *,
    exclusive: bool,
    reverse: bool,
    dtype: str | None = None,
) -> Expr:
    """``relay.cumsum`` or ``relay.cumprod`` along an axis, from its end if ``reverse``."""
    if not reverse:
        return function(data, axis=axis, dtype=dtype, exclusive=exclusive)
    made = function(relay.reverse(data, axis), axis=axis, dtype=dtype, exclusive=exclusive)
    return relay.reverse(made, axis)
