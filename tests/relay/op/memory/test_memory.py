"""Allocation made explicit, and the tensors within tuples."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.op import memory
from tilewright.relay.op.memory.memory import STORAGE
from tilewright.relay.ty import FuncType, TensorType, TupleType
from tilewright.support.errors import ExpressionError

A, B, C = TensorType((1,)), TensorType((2,)), TensorType((3,))
NESTED = TupleType([A, TupleType([B, TupleType([])]), C])


def _type_of(expr: relay.Call) -> object:
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], expr)))
    return module["main"].body.checked_type


def test_tensors_within_a_type() -> None:
    """They come in order, however deep."""
    assert memory.flatten_tuple_type(NESTED) == [A, B, C]
    assert memory.flatten_tuple_type(A) == [A]


def test_tuples_there_and_back() -> None:
    """Fields are read where they lie, and put together as the type says."""
    value = relay.var("value", NESTED)
    parts = memory.from_tuple_type(NESTED, value)
    assert [part.index for part in parts] == [0, 0, 2]  # type: ignore[attr-defined]
    assert parts[1].tuple_value.index == 1  # type: ignore[attr-defined]
    packed = memory.to_tuple_type(NESTED, parts)
    assert isinstance(packed, relay.Tuple)
    assert packed.fields[0] is parts[0] and packed.fields[1].fields[0] is parts[1]  # type: ignore[attr-defined]


def test_bad_tuples() -> None:
    """Types other than tensors and tuples, and a wrong number of tensors, are errors."""
    with pytest.raises(ExpressionError, match="tensors and tuples"):
        memory.flatten_tuple_type(FuncType([A], B))
    with pytest.raises(ExpressionError, match="3 tensors are in"):
        memory.to_tuple_type(NESTED, [relay.const(1.0)])


def test_types_of_allocations() -> None:
    """Memory has a type of its own; a tensor in it has the constant or the asserted shape."""
    storage = memory.alloc_storage(relay.const(64, "int64"), relay.const(64, "int64"), tvm.cpu())
    assert _type_of(storage) == STORAGE
    constant = memory.alloc_tensor(storage, relay.const(0, "int64"), [2, 3], "int8")
    assert _type_of(constant) == TensorType((2, 3), "int8")
    shape = relay.var("shape", shape=(2,), dtype="int64")
    asserted = memory.alloc_tensor(storage, relay.const(0, "int64"), shape, assert_shape=(relay.Any(), 3))
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([shape], asserted)))
    assert module["main"].body.checked_type == TensorType((relay.Any(), 3))
