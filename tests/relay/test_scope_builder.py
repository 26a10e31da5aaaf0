"""Lets and conditionals in the order of evaluation."""

import pytest
from tests.relay.programs import call

from tilewright.ir.structural import assert_structural_equal
from tilewright.ir.type import IncompleteType
from tilewright.relay import If, Let, TensorType, Tuple, Var, const, var
from tilewright.relay.scope_builder import ScopeBuilder

x, c = var("x", shape=(4,)), var("c", shape=(), dtype="bool")


def test_lets_nest_in_order() -> None:
    """The first binding is the outermost; lists become tuples."""
    builder = ScopeBuilder()
    first = builder.let("first", call("exp", x))
    second = builder.let(Var("second"), [first, x])
    builder.ret(second)
    a, b = Var("a"), Var("b")
    assert_structural_equal(builder.get(), Let(a, call("exp", x), Let(b, Tuple([a, x]), b)))


def test_branches_have_their_own_bindings() -> None:
    """And the conditional is the result of the scope around it."""
    builder = ScopeBuilder()
    outer = builder.let("outer", x)
    with builder.if_scope(c):
        inner = builder.let("inner", call("exp", outer))
        builder.ret(inner)
    with builder.else_scope():
        builder.ret(outer)
    a, b = Var("a"), Var("b")
    assert_structural_equal(builder.get(), Let(a, x, If(c, Let(b, call("exp", a), b), a)))


def test_conditionals_nest() -> None:
    """Within a branch."""
    builder = ScopeBuilder()
    with builder.if_scope(c):
        with builder.if_scope(c):
            builder.ret(const(1))
        with builder.else_scope():
            builder.ret(const(2))
    with builder.else_scope():
        builder.ret(const(3))
    assert_structural_equal(builder.get(), If(c, If(c, const(1), const(2)), const(3)))


def test_mistakes_are_said() -> None:
    """Nothing returned, two results, an else without an if."""
    with pytest.raises(RuntimeError, match="nothing was returned"):
        ScopeBuilder().get()
    builder = ScopeBuilder()
    builder.ret(x)
    with pytest.raises(RuntimeError, match="ret was called before"):
        builder.ret(x)
    with pytest.raises(RuntimeError, match="directly after an if_scope"):
        ScopeBuilder().else_scope()
    with (
        pytest.raises(RuntimeError, match="nothing was returned from the branch"),
        ScopeBuilder().if_scope(c),
    ):
        pass
    unfinished = ScopeBuilder()
    with unfinished.if_scope(c):
        unfinished.ret(x)
    with pytest.raises(RuntimeError, match="no else_scope"):
        unfinished.get()


def test_what_is_known_of_a_type() -> None:
    """Annotations, constants, and nothing."""
    builder = ScopeBuilder()
    assert builder.type_of(x) == TensorType((4,))
    assert builder.type_of(const(1)) == TensorType((), "int32")
    assert isinstance(builder.type_of(call("exp", x)), IncompleteType)
