"""Copies with new variables."""

from tests.relay.programs import call, let_chain

from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import (
    Call,
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    Let,
    Match,
    PatternTuple,
    PatternVar,
    Tuple,
    Var,
)
from tilewright.relay.analysis import bound_vars, free_vars, well_formed
from tilewright.relay.transform.lib.fresh_variables import with_fresh_variables

x, y, z = Var("x"), Var("y"), Var("z")


def test_a_copy_shares_no_binding() -> None:
    """Functions, lets and patterns bind new variables; free ones stay."""
    match = Match(z, [Clause(PatternTuple([PatternVar(y)]), call("add", x, y))])
    program = Function([x], Let(Var("v"), Function([Var("w")], z), match))
    copy = with_fresh_variables(program)
    assert_structural_equal(copy, program)
    assert not set(bound_vars(copy)) & set(bound_vars(program))
    assert free_vars(copy) == [z]
    assert well_formed(Tuple([program, copy]))


def test_free_variables_may_get_values() -> None:
    """They are put in as they are."""
    value = call("exp", y)
    assert with_fresh_variables(call("add", x, x), {x: value}).args == (value, value)


def test_long_chains() -> None:
    """Ten thousand lets."""
    program = let_chain(10_000)
    assert_structural_equal(with_fresh_variables(program), program)


def test_generic_constructors_are_copied() -> None:
    """An empty list has the type of its place, so two places do not share one."""
    empty = Call(Constructor("Nil", [], GlobalTypeVar("List")), [])
    made = with_fresh_variables(Tuple([empty]))
    assert made.fields[0] is not empty
