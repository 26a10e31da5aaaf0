"""What a model holds is known by the expressions that stand for it."""

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.common.held import HeldValues


def test_constants_and_parameters_are_known():
    """Nothing else is: inputs, computed tensors, and what is not given."""
    held = HeldValues(tvm.IRModule())
    weight, x = relay.var("w", shape=(2,)), relay.var("x", shape=(2,))
    held.param_values[weight] = tvm.nd.array(np.array([1, 2], "float32"))
    assert held.value(weight).tolist() == [1, 2]
    assert held.value(relay.const(3)).item() == 3
    assert held.value(x) is held.value(relay.add(weight, weight)) is held.value(None) is None
