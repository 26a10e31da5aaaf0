"""Tensors of random numbers, drawn by the runtime when the compiled code runs.

Each thread has a generator of its own; ``tvm.get_global_func("tvm.contrib.random.seed")(7)`` sets that of the calling
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.convert import convert
from tilewright.support.errors import ExpressionError
from tilewright.te.extern import extern
from tilewright.te.tensor import Tensor
from tilewright.tir.op import call_packed


def _drawn(name: str, first: Any, second: Any, size: Sequence[Any], dtype: str) -> Tensor:
    made: Tensor = extern(
        [size],
        [],
        lambda ins, outs: call_packed(f"tvm.contrib.random.{name}", convert(first), convert(second), outs[0]),
        dtype=dtype,
        name=name,
    )
    return made


def randint(low: int, high: int, size: Sequence[Any], dtype: str = "int32") -> Tensor:
    """Integers from ``low`` to ``high``, the latter excluded, each as likely as any other."""
    if not dtype.startswith(("int", "uint")):
        raise ExpressionError(f"randint draws integers, not {dtype}")
    return _drawn("randint", int(low), int(high), size, dtype)


def uniform(low: float, high: float, size: Sequence[Any]) -> Tensor:
    """float32 numbers from ``low`` to ``high``, the latter excluded, evenly spread."""
    return _drawn("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: Sequence[Any]) -> Tensor:
    """float32 numbers of the normal distribution with mean ``loc`` and standard deviation ``scale``."""
    return _drawn("normal", float(loc), float(scale), size, "float32")
