"""Layout rules of operators that move data; see ``relay.op.layout_rules`` for what a rule is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.tir.data_layout import Layout, bijective_layout

Offered = Sequence[MaybeLayout]


def newly(offered: Offered) -> MaybeLayout:
    """The layout that the first argument could have, if one is offered."""
    return offered[0] if offered else None


def first_follows(attrs: Any, offered: Offered, original: Offered, types: Sequence[Any]) -> Layouts:
    """The result has the layout of the first argument, whatever it is; the others keep theirs."""
    layout = newly(offered) or original[0]
    return Layouts((layout, *original[1:]), (layout,), attrs)


def convertible(offered: Layout, original: Layout) -> bool:
    """True if an operator that names whole axes of the original layout can name them in the offered one."""
    return (
        offered.defined
        and original.defined
        and whole(original)
        and bijective_layout(original, offered) is not None
    )


def whole(layout: Layout) -> bool:
    """True if no axis is split into parts."""
    return len(layout.primal_axes()) == len(layout)
