"""Weights that are given transposed."""

from __future__ import annotations

import numpy as np
from tests.relay.transform.checks import after, operators, typed, value

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.analysis import search_fc_transpose


def test_the_transpose_goes() -> None:
    """The variable in its place has a new name and the turned shape."""
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 3))
    before = typed(relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, (1, 0)))))
    made = after(transform.SimplifyFCTranspose(search_fc_transpose(before)), before)
    assert operators(made) == ["nn.dense"]
    assert [one.name_hint for one in made.params] == ["x", "w.T"]
    generator = np.random.default_rng(7)
    data, weight = generator.standard_normal((2, 4)), generator.standard_normal((4, 3))
    inputs = [data.astype("float32"), weight.astype("float32")]
    np.testing.assert_allclose(
        value(made, [inputs[0], inputs[1].T]), value(before, inputs), rtol=1e-5, atol=1e-6
    )


def test_a_weight_with_other_users_is_given_twice() -> None:
    """As it is, and transposed."""
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 3))
    body = relay.Tuple([relay.nn.dense(x, relay.transpose(w)), relay.nn.relu(w)])
    made = after(transform.SimplifyFCTranspose(["w"]), relay.Function([x, w], body))
    assert [one.name_hint for one in made.params] == ["x", "w", "w.T"]


def test_other_names_stay() -> None:
    """Only those that are asked for."""
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 3))
    made = after(transform.SimplifyFCTranspose(["v"]), relay.nn.dense(x, relay.transpose(w)))
    assert operators(made) == ["transpose", "nn.dense"]
