"""Dense layers with sparse weights."""

from __future__ import annotations

import numpy as np
from tests.relay.transform.checks import after, operators, typed, value

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.transform.lib.sparse_weights import block_sparse


def test_the_weight_becomes_three_variables() -> None:
    """The layer computes the same from its parts."""
    generator = np.random.default_rng(5)
    weight = generator.standard_normal((8, 4)).astype("float32") * (generator.random((8, 4)) < 0.3)
    parts = block_sparse(weight, 2, 2)
    x, w, v = relay.var("x", shape=(3, 4)), relay.var("w", shape=(8, 4)), relay.var("v", shape=(2, 8))
    before = typed(relay.Function([x, w, v], relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), v)))
    shape = [*parts[0].shape, *parts[1].shape, *parts[2].shape]
    made = after(transform.DenseToSparse(["w"], [shape]), before)
    assert [one.name_hint for one in made.params] == ["x", "v", "w.data", "w.indices", "w.indptr"]
    assert operators(made) == ["nn.sparse_dense", "nn.relu", "nn.dense"]
    data, other = (generator.standard_normal(size).astype("float32") for size in ((3, 4), (2, 8)))
    np.testing.assert_allclose(
        value(made, [data, other, *parts]), value(before, [data, weight, other]), rtol=1e-5, atol=1e-5
    )


def test_other_weights_stay() -> None:
    """By name."""
    x, w = relay.var("x", shape=(3, 4)), relay.var("w", shape=(8, 4))
    before = typed(relay.nn.dense(x, w))
    assert after(transform.DenseToSparse(["other"], [[1, 1, 1, 1, 9]]), before) is before
