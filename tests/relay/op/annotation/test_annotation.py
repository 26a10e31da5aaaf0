"""Annotations, and the function that looks at values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ExpressionError


def test_attributes_of_annotations() -> None:
    """Devices are kept by DLPack's number, code generators by name."""
    x = relay.var("x", shape=(2,))
    assert relay.annotation.on_device(x, tvm.cuda(1)).attrs.device_type == 2  # type: ignore[union-attr]
    fixed = relay.annotation.on_device(x, "opencl", is_fixed=True)
    assert (fixed.attrs.device_type, fixed.attrs.is_fixed) == (4, True)  # type: ignore[union-attr]
    assert relay.annotation.compiler_begin(x, "dnnl").attrs.compiler == "dnnl"  # type: ignore[union-attr]
    assert relay.annotation.compiler_end(x, "dnnl").op.name == "annotation.compiler_end"  # type: ignore[attr-defined]
    with pytest.raises(ExpressionError, match="a device is a Device or its name"):
        relay.annotation.on_device(x, 1.5)


def test_annotations_of_tuples() -> None:
    """A tuple has the type that it had before."""
    x = relay.var("x", shape=(2,))
    made = relay.annotation.compiler_begin(relay.Tuple([x, x]), "dnnl")
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], made)))
    assert module["main"].body.checked_type == relay.TupleType([relay.TensorType((2,))] * 2)


def test_function_on_device() -> None:
    """Devices of parameters and result stand in the attributes; there is one for each parameter."""
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], x)
    placed = relay.annotation.function_on_device(function, [tvm.cpu()], tvm.cuda())
    assert placed.attrs["param_device_types"] == (1,)
    assert placed.attrs["result_device_type"] == 2
    with pytest.raises(ExpressionError, match="1 parameters is given 2 devices"):
        relay.annotation.function_on_device(function, [tvm.cpu(), tvm.cpu()], tvm.cpu())


def test_debug_sees_the_value() -> None:
    """The function is called with the value on its way, which goes on unchanged."""
    seen: list[Any] = []
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.debug(x + x, seen.append) + x)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    made = Interpreter(module).run(module["main"], [np.asarray([1, 2], "float32")])
    np.testing.assert_array_equal(made, [3, 6])
    np.testing.assert_array_equal(np.asarray(seen), [[2, 4]])
