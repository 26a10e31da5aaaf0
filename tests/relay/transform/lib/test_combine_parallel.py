"""What all combinations of branches share."""

from __future__ import annotations

from typing import Any

from tests.relay.transform.checks import after, check, operators

from tilewright import relay
from tilewright.relay import transform

COMBINE = transform.CombineParallelDense(2, to_batch=False)
X = relay.var("x", shape=(2, 4))


def dense(name: str, units: int = 3, data: Any = X) -> Any:
    """A layer with a weight of this name."""
    return relay.nn.dense(data, relay.var(name, shape=(units, 4)))


def test_too_few_branches_stay() -> None:
    """At least the given number."""
    made = check(transform.CombineParallelDense(3, to_batch=False), relay.Tuple([dense("a"), dense("b")]))
    assert operators(made).count("nn.dense") == 2


def test_what_follows_is_combined_as_far_as_it_is_the_same() -> None:
    """The same operators with the same attributes; then each branch goes on alone."""
    first = relay.tanh(relay.clip(dense("a") + relay.var("p", shape=(3,)), 0.0, 6.0))
    second = relay.sigmoid(relay.clip(dense("b", 5) + relay.var("q", shape=(5,)), 0.0, 6.0))
    made = check(COMBINE, relay.Tuple([first, second]))
    found = operators(made)
    assert found.count("nn.dense") == found.count("add") == found.count("clip") == 1
    assert found.count("strided_slice") == 2
    third = relay.clip(dense("c"), 0.0, 1.0)
    made = check(COMBINE, relay.Tuple([relay.clip(dense("a"), 0.0, 6.0), third]))
    assert operators(made).count("clip") == 2


def test_scalars_that_are_the_same() -> None:
    """One for all; different ones are repeated for the units of each branch, and combined."""
    same = relay.Tuple([dense("a") * relay.const(2.0), dense("b") * relay.const(2.0)])
    assert operators(check(COMBINE, same)).count("multiply") == 1
    different = relay.Tuple([dense("a") * relay.const(2.0), dense("b") * relay.const(3.0)])
    found = operators(check(COMBINE, different))
    assert found.count("multiply") == 1 and found.count("repeat") == 2


def test_a_result_with_two_users_ends_its_branch() -> None:
    """Both users get their part."""
    shared = dense("a")
    made = check(COMBINE, relay.Tuple([relay.nn.relu(shared), relay.tanh(shared), relay.nn.relu(dense("b"))]))
    assert operators(made).count("nn.dense") == 1
    assert operators(made).count("nn.relu") == 2


def test_an_operand_that_depends_on_a_branch_is_not_joined() -> None:
    """It is not there yet when the branches are computed together."""
    first = relay.nn.relu(dense("a"))
    second = dense("b") + first
    made = check(COMBINE, relay.Tuple([first, second]))
    assert operators(made).count("nn.dense") == 1
    assert operators(made).count("add") == 1


def test_a_weight_that_depends_on_a_branch_stays_apart() -> None:
    """It cannot be joined with what it is made from."""
    square = relay.var("s", shape=(4, 4))
    first = relay.nn.dense(relay.var("y", shape=(4, 4)), square)
    second = relay.nn.dense(first.args[0], first)
    made = check(COMBINE, relay.Tuple([first, second]))
    assert operators(made).count("nn.dense") == 2


def test_weights_bound_by_let_stay_apart() -> None:
    """They may be bound after the first branch."""
    w, v = relay.var("w", shape=(3, 4)), relay.Var("v")
    body = relay.Let(relay.Var("first"), dense("a"), relay.Let(v, relay.tanh(w), relay.nn.dense(X, v)))
    function = relay.Function(
        [X, w, *[one for one in relay.analysis.free_vars(body) if one not in (X, w)]], body
    )
    assert operators(check(COMBINE, function)).count("nn.dense") == 2


def test_branches_of_a_condition_stay_apart() -> None:
    """Only one of them is computed."""
    condition = relay.var("c", shape=(), dtype="bool")
    made = after(COMBINE, relay.If(condition, dense("a"), dense("b")))
    assert operators(made).count("nn.dense") == 2


def test_many_groups() -> None:
    """1,000 pairs of branches, one after another."""
    a, b = relay.var("a", shape=(4, 4)), relay.var("b", shape=(4, 4))
    made: Any = X
    for _ in range(1_000):
        made = relay.nn.relu(relay.nn.dense(made, a)) + relay.nn.relu(relay.nn.dense(made, b))
    done = after(COMBINE, made)
    assert operators(done).count("nn.dense") == operators(done).count("nn.relu") == 1_000
