"""Running a graph in the caller's memory."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.runtime.graph_call import ALIGNMENT, GraphCall, input_storage, output_storage
from tilewright.runtime.graph_executor import GraphExecutor


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy at an address that a graph can use in place."""
    raw = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    made = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


@pytest.fixture(scope="module")
def executor() -> GraphExecutor:
    """(a + b, a * 2, a), where the third result is an input."""
    a, b = relay.var("a", shape=(4, 8)), relay.var("b", shape=(4, 8))
    body = relay.Tuple([a + b, a * relay.const(2.0), a])
    return relay.build(tvm.IRModule.from_expr(relay.Function([a, b], body)), "llvm")["default"](tvm.cpu(0))


def test_inputs_and_outputs_are_in_the_memory_of_each_call(executor: GraphExecutor) -> None:
    storages = [input_storage(executor, 0), input_storage(executor, 1)]
    storages += [output_storage(executor, 0), output_storage(executor, 1)]
    assert None not in storages
    call = GraphCall(executor, storages)  # type: ignore[arg-type]
    kept = []
    for scale in (1, 10):
        a = aligned(np.arange(32, dtype="float32").reshape(4, 8) * scale)
        b = aligned(np.full((4, 8), scale, "float32"))
        total, double = aligned(np.zeros((4, 8), "float32")), aligned(np.zeros((4, 8), "float32"))
        call([each.ctypes.data for each in (a, b, total, double)])
        kept.append((a, b, total, double))
    # The second call has not touched what the first one wrote.
    for a, b, total, double in kept:
        np.testing.assert_array_equal(total, a + b)
        np.testing.assert_array_equal(double, a * 2)


def test_an_output_that_is_an_input_has_no_storage_of_its_own(executor: GraphExecutor) -> None:
    assert output_storage(executor, 2) is None


def test_memory_must_be_aligned(executor: GraphExecutor) -> None:
    storage = input_storage(executor, 0)
    assert storage is not None
    with pytest.raises(ValueError, match="aligned to 64 bytes"):
        GraphCall(executor, [storage])([aligned(np.zeros(64, "float32")).ctypes.data + 4])


def test_a_storage_has_one_address(executor: GraphExecutor) -> None:
    with pytest.raises(ValueError, match="one address"):
        GraphCall(executor, [1, 1])
