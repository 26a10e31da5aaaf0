"""Free and bound variables."""

from tests.relay.programs import call, chain, let_chain

from tilewright.relay import Clause, Function, If, Let, Match, PatternTuple, PatternVar, Var
from tilewright.relay.analysis import all_vars, bound_vars, free_vars

x, y, z = Var("x"), Var("y"), Var("z")


def test_a_variable_is_free_in_itself() -> None:
    """Nothing binds it."""
    assert free_vars(x) == [x]
    assert bound_vars(x) == []


def test_functions_and_lets_bind() -> None:
    """Their variables are not free within; bindings come before uses."""
    expr = Let(x, call("add", y, z), Function([z], call("add", x, z)))
    assert bound_vars(expr) == [x, z]
    assert free_vars(expr) == [y]
    assert all_vars(expr) == [x, y, z]


def test_patterns_bind() -> None:
    """A clause binds the variables of its pattern; they can be asked of the pattern alone."""
    pattern = PatternTuple([PatternVar(x), PatternVar(y)])
    expr = Match(z, [Clause(pattern, call("add", x, y))])
    assert bound_vars(pattern) == [x, y]
    assert bound_vars(expr) == [x, y]
    assert free_vars(expr) == [z]


def test_free_variables_come_in_order_and_once() -> None:
    """From left to right, however often they are used."""
    expr = If(y, call("add", x, x), call("add", y, z))
    assert free_vars(expr) == [y, x, z]


def test_long_chains() -> None:
    """Depth does not matter."""
    assert free_vars(chain(10_000)) == []
    assert len(bound_vars(let_chain(10_000))) == 10_001
