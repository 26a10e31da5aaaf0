"""A long short-term memory, unrolled in time: each step calls a function and is bound by a let."""

from __future__ import annotations

from typing import Any

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import Call, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import add, sigmoid, tanh, zeros
from tilewright.relay.op.transform import split
from tilewright.relay.scope_builder import ScopeBuilder
from tilewright.relay.testing.init import create_workload


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """One step: from the input, the states (output and memory) and the weights to the output and the new states."""
    state = TensorType((batch_size, num_hidden), dtype)
    weight = TensorType((4 * num_hidden, num_hidden), dtype)
    bias = TensorType((4 * num_hidden,), dtype)
    inputs = Var("inputs", state)
    states = Var("states", TupleType([state, state]))
    parameters = [
        Var("i2h_weight", weight),
        Var("i2h_bias", bias),
        Var("h2h_weight", weight),
        Var("h2h_bias", bias),
    ]
    builder = ScopeBuilder()

    def let(what: str, value: Any) -> Var:
        return builder.let(Var(f"{name}{what}"), value)

    from_input = let(
        "i2h", nn.bias_add(nn.dense(inputs, parameters[0], units=4 * num_hidden), parameters[1], axis=-1)
    )
    from_output = let(
        "h2h",
        nn.bias_add(
            nn.dense(TupleGetItem(states, 0), parameters[2], units=4 * num_hidden), parameters[3], axis=-1
        ),
    )
    gates = let("gates", split(add(from_input, from_output), indices_or_sections=4, axis=1).astuple())
    take = let("in_gate", sigmoid(TupleGetItem(gates, 0)))
    forget = let("forget_gate", sigmoid(TupleGetItem(gates, 1)))
    change = let("in_transform", tanh(TupleGetItem(gates, 2)))
    give = let("out_gate", sigmoid(TupleGetItem(gates, 3)))
    memory = let("next_c", forget * TupleGetItem(states, 1) + take * change)
    output = let("next_h", give * tanh(memory))
    builder.ret(Tuple([output, Tuple([output, memory])]))
    kind = TupleType([state, TupleType([state, state])])
    return Function([inputs, states, *parameters], builder.get(), kind)


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """As many steps as ``iterations``, all on "data", each with its own weights."""
    state = TensorType((batch_size, num_hidden), dtype)
    weight = TensorType((4 * num_hidden, num_hidden), dtype)
    bias = TensorType((4 * num_hidden,), dtype)
    data = Var("data", state)
    builder = ScopeBuilder()
    nothing = builder.let("zeros", zeros((batch_size, num_hidden), dtype))
    states = builder.let("init_states", Tuple([nothing, nothing]))
    out = nothing
    for step in range(iterations):
        parameters = [
            Var(f"i2h_{step}_weight", weight),
            Var(f"i2h_{step}_bias", bias),
            Var(f"h2h_{step}_weight", weight),
            Var(f"h2h_{step}_bias", bias),
        ]
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{step}_")
        made = builder.let(f"call_{step}", Call(cell, [data, states, *parameters]))
        out = builder.let(f"out_{step}", TupleGetItem(made, 0))
        states = builder.let(f"states_{step}", TupleGetItem(made, 1))
    builder.ret(out)
    body = builder.get()
    return Function(free_vars(body), body, state)


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[Any, Any]:
    """The model as a module, and values for its parameters."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
