"""What programs of the virtual machine call."""

from __future__ import annotations

import tilewright as tvm
from tilewright import relay
from tilewright.relay.op import vm
from tilewright.relay.ty import TensorType, TupleType


def _type_of(expr: relay.Call) -> object:
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], expr)))
    return module["main"].body.checked_type


def test_calls_of_the_virtual_machine() -> None:
    """Kernels give nothing; shapes are int64; a reshaped tensor has the new shape."""
    x = relay.const([1.0, 2.0])
    assert _type_of(vm.shape_of(x)) == TensorType((1,), "int64")
    assert _type_of(vm.reshape_tensor(x, relay.const([1, 2], "int64"), [1, 2])) == TensorType((1, 2))
    kernel = relay.Function([], relay.const(1.0))
    call = vm.invoke_tvm_op(kernel, relay.Tuple([x]), relay.Tuple([x]))
    assert _type_of(call) == TupleType([])
    shapes = vm.shape_func(kernel, relay.Tuple([x]), relay.Tuple([x]), [False, True])
    assert shapes.attrs.is_input == (0, 1)  # type: ignore[union-attr]
    assert _type_of(shapes) == TupleType([])
