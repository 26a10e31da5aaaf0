"""Another batch size."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import after

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.infer import TypeInferenceError
from tilewright.relay.op.shapes import dims
from tilewright.support.errors import TilewrightError


def test_types_follow_from_the_variables() -> None:
    """Data change, weights stay."""
    x, w = relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))
    made = after(transform.ChangeBatch({x: 0}), relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w))))
    assert [dims(one.checked_type) for one in made.params] == [(16, 4, 6, 6), (8, 4, 3, 3)]
    assert dims(made.ret_type) == (16, 8, 4, 4)


def test_the_axis_and_the_size_are_given() -> None:
    """The batch may stand anywhere."""
    x = relay.var("x", shape=(5, 1))
    made = after(transform.ChangeBatch({x: -1}, batch_size=3), relay.exp(x))
    assert dims(made.ret_type) == (5, 3)


def test_a_batch_size_that_is_written_out() -> None:
    """It does not fit any more, and type inference says so."""
    x = relay.var("x", shape=(1, 6))
    with pytest.raises(TypeInferenceError, match="reshape"):
        after(transform.ChangeBatch({x: 0}), relay.reshape(x, (1, 2, 3)))


def test_a_variable_that_is_no_tensor() -> None:
    """It has no batch."""
    x = relay.Var("x", relay.TupleType([relay.TensorType((1,), "float32")]))
    with pytest.raises(TilewrightError, match="is not a tensor"):
        after(transform.ChangeBatch({x: 0}), relay.Function([x], relay.TupleGetItem(x, 0)))
