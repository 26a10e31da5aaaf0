"""The free variables of a statement."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.ir.expr import IterVar, Var
from tilewright.ir.functor import post_order
from tilewright.support.node import Node
from tilewright.tir.stmt import AttrStmt


def undefined_vars(root: Node, defined: Iterable[Var] = ()) -> list[Var]:
    """Variables used in ``root`` whose definition is neither in it nor among ``defined``, in the order they are met.

    Loops, lets and allocations define their variable, and so do the attributes ``thread_extent`` and
    ``virtual_thread``.
    """
    known = {id(variable) for variable in defined}
    used: list[Var] = []
    for found in post_order(root):
        if isinstance(found, Var):
            used.append(found)
            continue
        for name in found.defining_fields:
            value = getattr(found, name)
            known.update(id(item) for item in (value if isinstance(value, tuple) else (value,)))
        if isinstance(found, AttrStmt) and isinstance(found.node, IterVar):
            known.add(id(found.node.var))
    return [variable for variable in used if id(variable) not in known]
