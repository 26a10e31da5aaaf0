"""How operators take to other data layouts: what AlterOpLayout and ConvertLayout ask.

A rule is called as ``rule(attrs, offered, original, types)``. ``original`` are the layouts that the arguments have in
the program so far and ``offered`` those that they could have now, None where a layout is not known; ``types`` are the
arguments' types before the change. It gives a ``Layouts``: what the arguments shall have, what the results then have,
and the attributes that say so. The pass inserts a ``layout_transform`` wherever an argument has another layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.tir.data_layout import Layout

MaybeLayout = Layout | None


@dataclass(frozen=True)
class Layouts:
    """The layouts of the arguments and results of a call, and the attributes under which it works on them."""

    inputs: tuple[MaybeLayout, ...]
    outputs: tuple[MaybeLayout, ...]
    attrs: Any = None


def elementwise(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Whatever layout comes in goes out."""
    layout = next((one for one in (*offered, *original) if one is not None), None)
    return Layouts((layout,) * len(types), (layout,), attrs)
