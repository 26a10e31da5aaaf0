"""What every build begins with."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay import transform
from tilewright.relay.backend.preparation import owned


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("executor", ["graph", "vm"])
@pytest.mark.parametrize("folded", [False, True])
def test_parameters_can_be_overwritten_after_the_build(level: int, executor: str, folded: bool) -> None:
    """A model keeps the values that it was built with, whether it uses the array itself or what was folded of it."""
    data = relay.var("data", shape=(1, 256))
    weight = relay.var("weight", shape=(512, 256) if not folded else (256, 512))
    used = relay.reshape(weight, (512, 256)) if folded else weight
    module = tvm.IRModule.from_expr(relay.Function([data, weight], relay.nn.dense(data, used)))
    value = tvm.nd.array(np.ones([int(extent) for extent in weight.type_annotation.shape], "float32"))
    ones = np.ones((1, 256), "float32")
    with tvm.transform.PassContext(opt_level=level):
        if executor == "vm":
            machine = tvm.runtime.vm.VirtualMachine(
                relay.vm.compile(module, "llvm", params={"weight": value}), tvm.cpu()
            )
            value.copyfrom(np.zeros(value.shape, "float32"))
            made = machine.invoke("main", ones)
        else:
            built = relay.build(module, "llvm", params={"weight": value})
            value.copyfrom(np.zeros(value.shape, "float32"))
            runner = graph_executor.GraphModule(built["default"](tvm.cpu()))
            runner.run(data=ones)
            made = runner.get_output(0)
    np.testing.assert_array_equal(made.numpy(), np.full((1, 512), 256, "float32"))


def test_only_what_lies_in_foreign_memory_is_copied() -> None:
    """A view of a parameter is copied, an array of its own is not; parameters without elements do no harm."""
    memory = np.arange(64, dtype="float32")
    parameter = tvm.nd.from_dlpack(memory)
    inside, own = tvm.nd.from_dlpack(memory[16:32]), tvm.nd.array(memory)
    params = {"a": parameter, "b": tvm.nd.empty((0,)), "c": np.ones(3, "float32")}
    copied, same = owned([inside, own], params)
    assert same is own
    memory[:] = 0
    np.testing.assert_array_equal(copied.numpy(), np.arange(16, 32, dtype="float32"))


def test_folding_shares_what_it_does_not_change() -> None:
    """A reshaped constant lies where the constant lies, and keeps it alive."""
    value = np.arange(32768, dtype="float32").reshape(128, 256)
    function = relay.Function([], relay.reshape(relay.const(value), (256, 128)))
    constant = transform.FoldConstant()(tvm.IRModule.from_expr(function))["main"].body
    assert isinstance(constant, relay.Constant)
    del function
    np.testing.assert_array_equal(constant.data.numpy(), value.reshape(256, 128))
