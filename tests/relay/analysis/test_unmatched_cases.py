"""Which values a match leaves out."""

from typing import Any

import pytest

from tilewright.ir.module import IRModule
from tilewright.ir.structural import structural_equal
from tilewright.relay import (
    Clause,
    Constructor,
    GlobalTypeVar,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    Tuple,
    TypeData,
    Var,
)
from tilewright.relay.analysis import unmatched_cases
from tilewright.support.errors import TilewrightError

nat = GlobalTypeVar("Nat")
definition = TypeData(nat, [], [Constructor("Zero", [], nat), Constructor("Next", [nat], nat)])
zero, following = definition.constructors
mod = IRModule({}, {nat: definition})
anything = PatternWildcard()


def Zero() -> PatternConstructor:
    return PatternConstructor(zero, [])


def Next(inner: Any = anything) -> PatternConstructor:
    return PatternConstructor(following, [inner])


def left_out(*patterns: Any) -> list[Any]:
    """The cases that clauses with these patterns leave out."""
    return unmatched_cases(Match(Var("v"), [Clause(one, Tuple([])) for one in patterns]), mod)


def test_complete_matches() -> None:
    """A wildcard, a variable, all constructors, nested ones too, in any order."""
    assert left_out(anything) == []
    assert left_out(PatternVar(Var("x"))) == []
    assert left_out(Zero(), Next()) == []
    assert left_out(Next(Next()), Zero(), Next(Zero())) == []
    assert left_out(Next(Zero()), anything) == []


def test_what_is_left_out_is_shown() -> None:
    """As a pattern of the values."""
    [case] = left_out(Zero())
    assert structural_equal(case, Next())
    [case] = left_out(Zero(), Next(Next(Zero())), Next(Zero()))
    assert structural_equal(case, Next(Next(Next())))
    [case] = left_out()
    assert isinstance(case, PatternWildcard)


def test_tuples_are_split_field_by_field() -> None:
    """All combinations must be there."""
    pair = lambda a, b: PatternTuple([a, b])
    assert left_out(pair(Zero(), anything), pair(anything, Zero()), pair(Next(), Next())) == []
    [case] = left_out(pair(Zero(), anything), pair(anything, Zero()))
    assert structural_equal(case, pair(Next(), Next()))


def test_constructors_need_the_module() -> None:
    """Without it, which others there are is not known."""
    with pytest.raises(TilewrightError, match="constructors of Nat"):
        unmatched_cases(Match(Var("v"), [Clause(Zero(), Tuple([]))]))
