"""What the rewriting passes share."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.transform.checks import operators, typed

from tilewright import relay
from tilewright.relay.transform.lib.rewriting import (
    FieldsOfTuples,
    OperatorRewriter,
    constant_expressions,
    made_type,
    rewritten,
    scalar_value,
    shape_of,
    uses_of,
)
from tilewright.support.span import SourceName, Span, span_scope

X = relay.var("x", shape=(2, 3))


def to_tanh(old: Any, new: Any) -> Any:
    """A rule: relu becomes tanh of tanh."""
    return relay.tanh(relay.tanh(new.args[0]))


def test_a_rule_replaces_calls() -> None:
    """Arguments first, and what is made has the type and the place of what was there."""
    place = Span(SourceName("model"), 7, 7, 1, 1)
    with span_scope(place):
        given = relay.nn.relu(relay.nn.relu(X))
    function = typed(given)
    made = rewritten(OperatorRewriter({"nn.relu": to_tanh}), function)
    assert operators(made) == ["tanh"] * 4
    assert made.body.checked_type == function.body.checked_type
    assert made.body.span == made.body.args[0].span == place


def test_a_rule_may_decline() -> None:
    """The very same function comes back."""
    function = typed(relay.nn.relu(X))
    assert rewritten(OperatorRewriter({"nn.relu": lambda old, new: None}), function) is function


def test_primitive_functions_stay() -> None:
    """They are kernels already."""
    p = relay.var("p", shape=(2, 3))
    kernel = relay.Function([p], relay.nn.relu(p), attrs={"Primitive": 1})
    function = typed(relay.Function([X], kernel(X)))
    assert rewritten(OperatorRewriter({"nn.relu": to_tanh}), function) is function


def test_fields_of_tuples_that_stand_there() -> None:
    """The field itself."""
    pair = relay.Tuple([X, relay.nn.relu(X)])
    function = typed(relay.Function([X], relay.TupleGetItem(pair, 1)))
    assert operators(rewritten(FieldsOfTuples({}), function)) == ["nn.relu"]
    assert isinstance(rewritten(FieldsOfTuples({}), function).body, relay.Call)


def test_the_type_of_what_was_just_made() -> None:
    """From the types of its parts, without inference over the program."""
    typed(X)
    parts = relay.split(relay.concatenate([X, relay.const(np.ones((2, 3), "float32"))], 1), 3, 1)
    assert shape_of(parts[2]) == (2, 2)
    v = relay.Var("v", made_type(X))
    assert shape_of(relay.Let(v, X, relay.transpose(v))) == (3, 2)


def test_one_number_in_every_element() -> None:
    """Of constants that are not empty."""
    assert scalar_value(relay.const(2.5)) == 2.5
    assert scalar_value(relay.const(np.full((2, 2), 3, "int32"))) == 3
    assert scalar_value(relay.const(np.array([1, 2]))) is None
    assert scalar_value(relay.const(np.zeros((0, 2)))) is None
    assert scalar_value(X) is None


def test_uses_are_counted() -> None:
    """Each place once."""
    relu = relay.nn.relu(X)
    counts = uses_of(relu + relu)
    assert counts[relu] == 2
    assert counts[X] == 1


def test_expressions_of_constants() -> None:
    """Those without variables."""
    c = relay.const(1.0)
    sums = c + c
    found = constant_expressions(X * sums)
    assert sums in found
    assert X not in found
