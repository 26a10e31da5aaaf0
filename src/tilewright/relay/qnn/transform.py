"""Passes on quantised operators."""

from __future__ import annotations

from tilewright.relay.qnn.op.rules import CANONICAL, LEGAL
from tilewright.relay.transform.legalize import Legalize as _Legalize


def CanonicalizeOps() -> _Legalize:
    """Bring quantised operators into their canonical form: ordinary operators on integers."""
    return _Legalize(CANONICAL)


def Legalize() -> _Legalize:
    """Replace quantised operators by what the target wants in their place."""
    return _Legalize(LEGAL)
