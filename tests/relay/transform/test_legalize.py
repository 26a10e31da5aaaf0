"""What a target registers replaces the calls of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.relay.transform.checks import after, check, operators, spans_kept, typed

from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import transform

KEY = "FTVMTestLegalize"


@pytest.fixture
def doubling() -> Iterator[list[Any]]:
    """relu as a maximum; what the rule was given is kept."""
    seen: list[Any] = []

    def rule(attrs: Any, arguments: list[Any], types: list[Any]) -> Any:
        seen.append((attrs, arguments, types))
        if types[0].concrete_shape == (1,):
            return None
        return relay.maximum(arguments[0], relay.const(0.0))

    Op.get("nn.relu").set_attr(KEY, rule)
    yield seen
    Op.get("nn.relu").reset_attr(KEY)


def test_calls_are_replaced(doubling: list[Any]) -> None:
    """The rule sees attributes, rewritten arguments, and the types of arguments and result."""
    x = relay.var("x", shape=(4,))
    made = check(transform.Legalize(KEY), relay.nn.relu(relay.nn.relu(x)))
    assert operators(made) == ["maximum", "maximum"]
    assert [str(one) for one in doubling[0][2]] == ["Tensor[(4), float32]"] * 2
    assert spans_kept(made)


def test_none_leaves_the_call(doubling: list[Any]) -> None:
    """A rule may decline."""
    x = relay.var("x", shape=(1,))
    function = typed(relay.nn.relu(x))
    assert operators(after(transform.Legalize(KEY), function)) == ["nn.relu"]
    assert len(doubling) == 1


def test_other_operators_are_not_asked(doubling: list[Any]) -> None:
    """Only those with the attribute."""
    x = relay.var("x", shape=(4,))
    assert operators(after(transform.Legalize(KEY), relay.exp(x))) == ["exp"]
    assert doubling == []
