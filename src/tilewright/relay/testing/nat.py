"""Natural numbers as an algebraic data type: zero, and the successor of a number."""

from __future__ import annotations

from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import GlobalTypeVar
from tilewright.relay.backend.interpreter import ConstructorValue
from tilewright.relay.prelude import Prelude
from tilewright.support.errors import TilewrightError


def add_nat_definitions(prelude: Prelude) -> None:
    """Add the type ``nat`` and its functions to the prelude's module."""
    prelude.mod.import_from_std("nat.rly")


def get_type(prelude: Prelude, name: str) -> tuple[GlobalTypeVar, Any]:
    """A type of the prelude's module: its variable, followed by its constructors."""
    found = prelude.mod.get_global_type_var(name)
    return (found, *prelude.mod[found].constructors)


def _constructors(prelude: Prelude) -> tuple[Constructor, Constructor]:
    _, *found = get_type(prelude, "nat")
    zero, successor = found
    return zero, successor


def count(prelude: Prelude, n: ConstructorValue) -> int:
    """The Python number that a value of type ``nat`` stands for."""
    zero, successor = _constructors(prelude)
    total = 0
    current: Any = n
    while current.tag == successor.tag:
        total += 1
        (current,) = current.fields
    if current.tag != zero.tag:
        raise TilewrightError("count takes a value of type nat")
    return total


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The value of type ``nat`` that stands for a Python number."""
    zero, successor = _constructors(prelude)
    made = ConstructorValue(zero.tag, [], zero)
    for _ in range(_natural(n)):
        made = ConstructorValue(successor.tag, [made], successor)
    return made


def make_nat_expr(prelude: Prelude, n: int) -> RelayExpr:
    """The expression of type ``nat`` that stands for a Python number."""
    zero, successor = _constructors(prelude)
    made: RelayExpr = zero()
    for _ in range(_natural(n)):
        made = successor(made)
    return made


def _natural(n: int) -> int:
    if n < 0:
        raise TilewrightError(f"{n} is not a natural number")
    return n
