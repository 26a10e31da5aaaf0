"""Pointers into buffers become addresses."""

import pytest

from tilewright import tir
from tilewright.tir.transform.lower_device_storage_access_info import LowerDeviceStorageAccessInfo


@pytest.mark.parametrize(("lanes", "offset"), [(1, 6), (4, 24)])
def test_address_of_the_first_element(apply, nodes_of, lanes, offset):
    """The offset counts elements of the type that the pointer is for."""
    a = tir.decl_buffer((64,), name="A")
    kind = "float32" if lanes == 1 else f"float32x{lanes}"
    annotation = tir.call_intrin(kind, "tir.type_annotation")
    pointer = tir.call_intrin("handle", "tir.tvm_access_ptr", annotation, a.data, 6, 4, 1)
    body = tir.Evaluate(tir.call_extern("int32", "use", pointer))
    after = apply(tir.PrimFunc([a], body), LowerDeviceStorageAccessInfo())
    (load,) = nodes_of(after.body, tir.Load)
    assert load.buffer_var is a.data and load.dtype == kind
    first = load.index.base if lanes > 1 else load.index
    assert int(first) == offset
    assert {call.op.name for call in nodes_of(after.body, tir.Call)} == {"tir.address_of", "tir.call_extern"}
