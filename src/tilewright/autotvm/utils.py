"""Small helpers of AutoTVM, under the names that scripts import them by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from tilewright.topi.utils import get_const_int, get_const_tuple

SI_PREFIXES = "yzafpn\xb5m kMGTPEZY"
_ONE = SI_PREFIXES.index(" ")


def get_rank(values: Sequence[float]) -> np.ndarray[Any, Any]:
    """The rank of each value: 0 for the largest."""
    order = np.argsort(-np.asarray(values, dtype=float), kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def sample_ints(low: int, high: int, m: int) -> list[int]:
    """So many different integers from a range, which may be far longer than a list could be."""
    if m > high - low:
        raise ValueError(f"cannot draw {m} different integers from {low} up to {high}")
    return Random(int(np.random.randint(0, 1 << 31))).sample(range(low, high), m)


def pool_map(func: Callable[[Any], Any], args: Iterable[Any], batch_size: int, verbose: bool = False) -> Any:
    """The results of a function for every argument."""
    found = [func(argument) for argument in args]
    return np.array(found) if found else None


def get_func_name(func: Callable[..., Any]) -> str:
    """The name of a function, also behind decorators."""
    return func.func_name if hasattr(func, "func_name") else str(func.__qualname__)


def format_si_prefix(x: float, si_prefix: str) -> float:
    """A number in the unit of a prefix: ``format_si_prefix(1024, "k")`` is 1.024."""
    if si_prefix not in SI_PREFIXES or len(si_prefix) != 1:
        raise ValueError(f"{si_prefix!r} is not an SI prefix: it is one of {', '.join(SI_PREFIXES)}")
    return float(x * 10.0 ** (3 * (_ONE - SI_PREFIXES.index(si_prefix))))


__all__ = [
    "format_si_prefix",
    "get_const_int",
    "get_const_tuple",
    "get_func_name",
    "get_rank",
    "pool_map",
    "sample_ints",
]
