"""An index as a sum of multiples of variables."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.ir.expr import Add, IntImm, Mul, PrimExpr, Sub, Var


def index_terms(index: PrimExpr, variables: Collection[Var]) -> tuple[dict[Var, int], list[PrimExpr]]:
    """What each of the variables is multiplied by, and the terms that are not multiples of one of them.

    Those terms come without their factors, and a variable may still occur in them: ``i * 4 + i // 2 - j`` is ``({i: 4},
    [i // 2, j])`` if only ``i`` is asked for.
    """
    strides: dict[Var, int] = {}
    rest: list[PrimExpr] = []
    waiting = [(index, 1)]
    while waiting:
        part, times = waiting.pop()
        if isinstance(part, Add):
            waiting += [(part.a, times), (part.b, times)]
        elif isinstance(part, Sub):
            waiting += [(part.a, times), (part.b, -times)]
        elif isinstance(part, Mul) and isinstance(part.b, IntImm):
            waiting.append((part.a, times * part.b.value))
        elif isinstance(part, Mul) and isinstance(part.a, IntImm):
            waiting.append((part.b, times * part.a.value))
        elif isinstance(part, Var) and part in variables:
            strides[part] = strides.get(part, 0) + times
        else:
            rest.append(part)
    return strides, rest
