"""The verifier of graph-level programs."""

import pytest
from tests.relay.programs import call, chain, let_chain

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import module_pass
from tilewright.ir.type import GlobalTypeVar
from tilewright.relay import (
    Call,
    Clause,
    Function,
    If,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from tilewright.relay.analysis import verify, well_formed
from tilewright.support.errors import VerifyError


def test_free_variables_are_left_to_the_surroundings() -> None:
    """A variable alone is an expression."""
    assert well_formed(Var("x"))


def test_a_variable_is_bound_once() -> None:
    """Neither twice around one another nor side by side."""
    x = Var("x")
    assert not well_formed(Let(x, const(1), Let(x, const(2), x)))
    assert not well_formed(Tuple([Let(x, const(1), x), Let(x, const(2), x)]))
    assert not well_formed(Function([x, x], x))


def test_the_same_binding_may_stand_in_two_places() -> None:
    """What is shared in the graph is bound in one place of it."""
    x = Var("x")
    let = Let(x, const(1), x)
    assert well_formed(Tuple([let, let]))


def test_a_variable_is_used_within_its_scope() -> None:
    """Not after it, and not before it."""
    x = Var("x")
    with pytest.raises(VerifyError, match="x is used outside its scope"):
        verify(call("add", Let(x, const(1), x), x))
    with pytest.raises(VerifyError, match="x is used outside its binding"):
        verify(call("add", x, Let(x, const(1), x)))


def test_a_shared_expression_stays_within_the_scopes_of_its_variables() -> None:
    """The second place where it stands is checked like the first."""
    x, y = Var("x"), Var("y")
    shared = call("add", x, y)
    inside = Let(y, x, Let(Var("z"), shared, shared))
    assert well_formed(Function([x], inside))
    with pytest.raises(VerifyError, match="an expression uses y outside"):
        verify(Function([x], Tuple([inside, shared])))


def test_an_inner_scope_does_not_hide_the_outer_ones() -> None:
    """An expression that binds one variable and uses another still needs the other's scope."""
    x, y = Var("x"), Var("y")
    shared = Let(y, const(1), call("add", x, y))
    with pytest.raises(VerifyError, match="uses x outside"):
        verify(Tuple([Function([x], shared), shared]))


def test_only_functions_refer_to_themselves() -> None:
    """A let-bound function may call itself; the value of another variable may not use it."""
    loop, x = Var("loop"), Var("x")
    assert well_formed(Let(loop, Function([x], loop(x)), loop))
    y = Var("y")
    with pytest.raises(VerifyError, match="the value of y uses y itself"):
        verify(Let(y, call("exp", y), y))


def test_clauses_bind_in_their_results_alone() -> None:
    """Each has its own scope."""
    x, y, data = Var("x"), Var("y"), Var("data")
    pattern = PatternTuple([PatternVar(x), PatternVar(y)])
    assert well_formed(Match(data, [Clause(pattern, call("add", x, y))]))
    assert not well_formed(Tuple([Match(data, [Clause(pattern, x)]), x]))
    assert not well_formed(Match(data, [Clause(PatternTuple([PatternVar(x), PatternVar(x)]), x)]))


def test_checks_of_single_nodes() -> None:
    """Constructors get their arguments, patterns fit, fields are counted from the front."""
    box = GlobalTypeVar("Box")
    pair = Constructor("Pair", [box, box], box)
    assert TypeData(box, [], [pair])
    x = Var("x")
    with pytest.raises(VerifyError, match="Pair takes 2 values, the call has 1"):
        verify(Call(pair, [x]))
    bad = PatternConstructor(pair, [PatternVar(Var("a")), PatternVar(Var("b"))]).replace(patterns=())
    with pytest.raises(VerifyError, match="patterns fit their constructors"):
        verify(Match(x, [Clause(bad, x)]))
    with pytest.raises(VerifyError, match="counted from the front"):
        verify(TupleGetItem(x, -1))


def test_branches_may_share() -> None:
    """An expression in both branches is in the scope of both."""
    c, x = Var("c"), Var("x")
    shared = call("exp", x)
    assert well_formed(Function([c, x], If(c, shared, shared)))


def test_a_pass_that_breaks_a_rule_is_named() -> None:
    """The verifier runs after every pass: functions of a module have no free variables and call what there is."""
    x = Var("x")

    @module_pass(opt_level=0, name="Unbinds")
    def unbinds(mod: IRModule, ctx: object) -> IRModule:
        return IRModule({"main": Function([], x)})

    @module_pass(opt_level=0, name="Forgets")
    def forgets(mod: IRModule, ctx: object) -> IRModule:
        return IRModule({"main": Function([], GlobalVar("gone")())})

    with pytest.raises(VerifyError, match="after pass Unbinds: function main: variable x is bound nowhere"):
        unbinds(IRModule())
    with pytest.raises(VerifyError, match="after pass Forgets: .*no function gone"):
        forgets(IRModule())
    assert not well_formed(IRModule({"main": Function([], x)}))


def test_long_chains() -> None:
    """Ten thousand operators, nested or let-bound."""
    assert well_formed(chain(10_000))
    assert well_formed(let_chain(10_000))
