"""Both combinations, one after the other."""

from __future__ import annotations

from tests.relay.transform.checks import after, assert_same_value, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


def test_layers_and_products() -> None:
    """At level four, where the passes run."""
    x, y = relay.var("x", shape=(2, 4)), relay.var("y", shape=(2, 3, 4))
    layers = [relay.nn.dense(x, relay.var(f"w{n}", shape=(3, 4))) for n in range(3)]
    products = [relay.nn.batch_matmul(y, relay.var(f"b{n}", shape=(2, 5, 4))) for n in range(3)]
    before = typed(relay.Tuple([*layers, *products]))
    with tvm.transform.PassContext(opt_level=4):
        made = after(transform.BatchingOps(), before)
    assert operators(made).count("nn.batch_matmul") == 2
    assert "nn.dense" not in operators(made)
    assert_same_value(before, made)
