"""Copies of what owns a part of the runtime: of arrays by value, of functions and machines not at all."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor
from tilewright.runtime.container import ADT
from tilewright.runtime.use_count import object_use_count

WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    lambda value: pickle.loads(pickle.dumps(value)),
]


@pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "int4", "float32x4"])
def test_a_copy_of_an_array_has_memory_of_its_own(way: Callable[[Any], Any], dtype: str) -> None:
    """The copy has the elements and the type, survives the original, and does not see what is written later."""
    array = tvm.nd.empty((2, 3), dtype)
    ones = np.ones_like(array.numpy())
    array.copyfrom(ones)
    made = way(array)
    assert object_use_count(array) == object_use_count(made) == 1
    array.copyfrom(np.zeros_like(ones))
    del array
    assert (made.dtype, made.shape, made.device) == (dtype, (2, 3), tvm.cpu(0))
    np.testing.assert_array_equal(made.numpy(), ones)


def test_parameters_are_copied_by_value() -> None:
    """``copy.deepcopy`` of a dictionary of parameters, as training loops make it."""
    parameters = {"w": tvm.nd.array(np.arange(4, dtype="float32"))}
    saved = copy.deepcopy(parameters)
    parameters["w"].copyfrom(np.zeros(4, "float32"))
    assert saved["w"].numpy().tolist() == [0, 1, 2, 3]


def test_a_copy_of_read_only_memory_can_be_written() -> None:
    """As with NumPy, what is read-only is the memory and not the value."""
    values = np.ones(3, "float32")
    values.flags.writeable = False
    array = tvm.nd.from_dlpack(values)
    assert array.read_only
    made = copy.copy(array)
    made[:] = 2.0
    assert (array.numpy().tolist(), made.numpy().tolist()) == ([1, 1, 1], [2, 2, 2])


def test_values_of_algebraic_types_are_copied_with_their_fields() -> None:
    """The fields are read, copied and put together again."""
    value = ADT(3, [tvm.nd.array(np.ones(2, "float32")), ADT(0, [])])
    made = copy.deepcopy(value)
    del value
    assert (made.tag, len(made), made[1].tag) == (3, 2, 0)
    assert made[0].numpy().tolist() == [1, 1]


def test_what_belongs_to_this_process_is_not_copied() -> None:
    """A function, and what holds one, is refused with a TypeError instead of being released twice."""
    x = te.placeholder((4,), name="x")
    function = tvm.runtime.convert(lambda: 1)
    library = tvm.build(te.create_schedule(te.compute((4,), lambda i: x[i] + 1.0).op), [x], "llvm")
    parameter = relay.var("p", shape=(2,))
    model = relay.build(relay.Function([parameter], parameter + relay.const(1.0)), "llvm")
    executor = graph_executor.GraphModule(model["default"](tvm.cpu()))
    for value in (function, library, executor):
        with pytest.raises(
            TypeError, match="cannot be copied or pickled|cannot pickle|can't pickle|be pickled"
        ):
            copy.deepcopy(value)
    with pytest.raises(TypeError, match="a PackedFunc belongs to the runtime of this process"):
        copy.copy(function)
    assert function() == 1
