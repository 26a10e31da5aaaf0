"""Values that are no tensors, and what is an object."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.runtime.object_generic import ObjectGeneric, convert_to_object


def test_shape_tuples_are_tuples_of_integers() -> None:
    """A ShapeTuple compares, counts and iterates as its extents do; other numbers are refused."""
    shape = tvm.runtime.ShapeTuple([1, np.int64(2), 3])
    assert shape == tvm.runtime.ShapeTuple((1, 2, 3)) and len(shape) == 3 and shape[-1] == 3
    with pytest.raises(TypeError):
        tvm.runtime.ShapeTuple([1.5])


def test_what_programs_are_handed_is_an_object() -> None:
    """Nodes, arrays, containers, targets and schedules are objects, the same as themselves alone."""
    x = te.compute((2,), lambda i: i)
    schedule = te.create_schedule(x.op)
    values = [
        x,
        tvm.nd.array(np.zeros(2)),
        tvm.convert([1]),
        tvm.convert({"a": 1}),
        tvm.target.Target("llvm"),
    ]
    for value in [*values, schedule, schedule[x], tvm.runtime.ShapeTuple([1])]:
        assert isinstance(value, tvm.Object) and value.same_as(value) and not value.same_as(x.op)
        assert tvm.runtime.convert(value) is value or isinstance(value, te.Tensor)


def test_values_that_become_objects() -> None:
    """``asobject`` says what stands for a value in a program."""

    class Three(ObjectGeneric):
        def asobject(self) -> object:
            return tvm.tir.const(3, "int32")

    assert convert_to_object(Three()).value == 3
    with pytest.raises(NotImplementedError, match="ObjectGeneric"):
        ObjectGeneric().asobject()
