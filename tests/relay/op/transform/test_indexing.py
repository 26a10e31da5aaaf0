"""Operators that read at indices: an empty tensor has nothing to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.infer import TypeInferenceError
from tilewright.support.errors import TilewrightError

READERS = {
    "take": lambda data, indices: relay.take(data, indices, axis=0),
    "take from the flattened": lambda data, indices: relay.take(data, indices),
    "gather": lambda data, indices: relay.gather(data, 0, indices),
    "gather_nd": lambda data, indices: relay.gather_nd(data, indices),
    "adv_index": lambda data, indices: relay.adv_index([data, indices]),
}


def reader(build: Callable[..., Any], rows: Any) -> tvm.IRModule:
    """A program that reads from a tensor of that many rows."""
    data = relay.var("data", shape=(rows, 3))
    indices = relay.var("indices", shape=(2, 3), dtype="int64")
    return tvm.IRModule.from_expr(relay.Function([data, indices], build(data, indices)))


@pytest.mark.parametrize("build", READERS.values(), ids=READERS)
def test_no_rows(build: Callable[..., Any]) -> None:
    """Known to be none, they are an error of types."""
    with pytest.raises(TypeInferenceError, match="nothing in|has no elements"):
        relay.transform.InferType()(reader(build, 0))


@pytest.mark.parametrize("build", READERS.values(), ids=READERS)
def test_rows_that_the_program_finds_missing(build: Callable[..., Any]) -> None:
    """Where their number is not known, the program checks it before it reads."""
    run = relay.create_executor("vm", reader(build, relay.Any())).evaluate()
    indices = np.zeros((2, 3), "int64")
    with pytest.raises(TilewrightError, match="nothing in|has no elements"):
        run(np.zeros((0, 3), "float32"), indices)
    assert run(np.ones((1, 3), "float32"), indices).numpy().min() == 1
