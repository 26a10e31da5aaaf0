"""Products of one batch become one."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import check, operators

from tilewright import relay
from tilewright.relay import transform


@pytest.mark.parametrize("transpose_b", [True, False])
def test_columns_are_joined(transpose_b: bool) -> None:
    """One product, a sum and an activation after it, and a slice for each."""
    x = relay.var("x", shape=(2, 3, 4))
    branches = []
    for name, columns in (("a", 5), ("b", 6), ("c", 5)):
        shape = (2, columns, 4) if transpose_b else (2, 4, columns)
        made = relay.nn.batch_matmul(x, relay.var(name, shape=shape), transpose_b=transpose_b)
        branches.append(relay.nn.relu(made + relay.var(f"{name}_bias", shape=(columns,))))
    found = operators(check(transform.CombineParallelBatchMatmul(), relay.Tuple(branches)))
    assert found.count("nn.batch_matmul") == found.count("add") == found.count("nn.relu") == 1
    assert found.count("strided_slice") == 3


def test_other_batches_stay_apart() -> None:
    """A batch of one is repeated, and cannot lie beside one of two."""
    x = relay.var("x", shape=(2, 3, 4))
    weights = [relay.var("a", shape=(2, 5, 4)), relay.var("b", shape=(1, 5, 4))]
    made = check(
        transform.CombineParallelBatchMatmul(2), relay.Tuple([relay.nn.batch_matmul(x, w) for w in weights])
    )
    assert operators(made).count("nn.batch_matmul") == 2
