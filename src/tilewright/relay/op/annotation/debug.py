"""Inspecting values while a program runs on the reference executor."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.env_func import EnvFunc
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.relations import any_type
from tilewright.runtime.registry import register_func


@attributes
class DebugAttrs(OpAttrs):
    """The registered function that sees the value; None for the debugger."""

    debug_func: EnvFunc | None = None


def _shown(attrs: DebugAttrs, value: Any) -> Any:
    if attrs.debug_func is None:
        breakpoint()
    else:
        attrs.debug_func(value)
    return value


_DEBUG = define(
    "debug",
    arguments=("program",),
    attrs=DebugAttrs,
    relation=any_type,
    compute=lambda attrs, inputs, out_type: [topi.identity(one) for one in inputs],
    reference=_shown,
    gradient=lambda result, grad: [grad],
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=1,
    description="Its argument, which a function sees on the way.",
)

_NUMBERS = count()


def debug(expr: RelayExpr, debug_func: Callable[[Any], Any] | None = None) -> Call:
    """``expr``, whose value is given to ``debug_func`` when the reference executor comes by; without one, Python's
    debugger starts there. Compiled programs pass the value on."""
    seen = None
    if debug_func is not None:
        seen = EnvFunc(f"relay.debug.function{next(_NUMBERS)}")
        register_func(seen.name, debug_func)
    return Call(_DEBUG, (expr,), DebugAttrs(seen))
