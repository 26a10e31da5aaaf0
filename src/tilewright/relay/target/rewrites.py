"""The graph rewrites of a kind of device: passes, preferred layouts, legalization of unsupported operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright.ir.base import RelayExpr
from tilewright.ir.transform import Pass
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.tir.data_layout import Layout

AlterLayout = Callable[[Any, Sequence[RelayExpr], Sequence[Any], Any], RelayExpr | None]
"""(attrs, inputs, types of the inputs, type of the result) to the call in another layout, None to leave it."""
LegalForm = Callable[[Any, Sequence[RelayExpr], Sequence[Any]], RelayExpr | None]
"""(attrs, inputs, types of the inputs and of the result) to the replacement of the call, None to leave it."""


class LayoutPlan(Protocol):
    """Layouts that were chosen for a whole function before its calls are replaced one by one."""

    @property
    def layouts(self) -> Mapping[RelayExpr, Layout]:
        """The layouts of tensors between calls that have no preference."""

    def around(self, call: Call) -> AbstractContextManager[None]:
        """The context in which the rule for this call must run."""


@dataclass(frozen=True)
class GraphRewrites:
    """The rewrites for targets with a key."""

    passes: tuple[Callable[[], Pass], ...] = ()
    """Passes that run on canonicalized programs, before the second-to-last constant folding."""
    alter_layout: Mapping[str, AlterLayout] = field(default_factory=dict)
    legalize: Mapping[str, LegalForm] = field(default_factory=dict)
    plan_layouts: Callable[[Function], LayoutPlan] | None = None
    quantized_passes: tuple[Callable[[], Pass], ...] = ()
    """Passes that run on programs with operators of the quantised dialect."""
    folded_passes: tuple[Callable[[], Pass], ...] = ()
    """Passes that run after ``passes`` and a constant folding: weights and biases are constants."""
    fused_passes: tuple[Callable[[], Pass], ...] = ()
    """Passes that run on programs of primitive functions."""
    early_passes: tuple[Callable[[], Pass], ...] = ()
    """Passes that run before parallel branches are combined."""
    joins_dense: bool = False
    """True if dense layers of one tensor should become one layer with more units."""
    kept: frozenset[str] = frozenset()
    """Operators that SimplifyInference leaves whole, because the device has one kernel for them."""
