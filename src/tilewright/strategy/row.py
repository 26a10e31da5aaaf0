"""One row of the table of strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.strategy.implementation import DEFAULT_LEVEL
from tilewright.target.target import Target

Compute = Callable[[Any, Sequence[Any], Any], list[Any]]
"""(attrs, inputs, out_type) to the output tensors."""
Predicate = Callable[[Any, Sequence[Any], Any, Target], str | None]
"""(attrs, inputs, out_type, target) to why a row does not apply, None where it does."""


@dataclass(frozen=True)
class Row:
    """Under targets with ``key``, ``operator`` is computed by ``compute`` unless ``predicate`` gives a reason against
    it.

    ``schedule`` (attrs, outs, target) replaces the scheduler of the target. ``computation`` names what ``compute``
    calls, and ``reason`` says why that is better than the definition: a build reports both.
    """

    operator: str
    key: str
    name: str
    compute: Compute
    computation: str
    predicate: Predicate
    reason: str
    schedule: Callable[..., Any] | None = None
    plevel: int = DEFAULT_LEVEL
