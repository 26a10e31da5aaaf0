"""The list of checks. A check looks at one node and returns what is wrong with it, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Check = Callable[[Any], str | None]

CHECKS: Final[dict[str, list[Check]]] = {}
"""The checks of each kind of node."""


def check(*kinds: str) -> Callable[[Check], Check]:
    """Register a check for nodes of these kinds; its name appears in messages."""

    def register(function: Check) -> Check:
        for kind in kinds:
            CHECKS.setdefault(kind, []).append(function)
        return function

    return register
