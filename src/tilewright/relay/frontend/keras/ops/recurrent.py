"""Recurrent layers over a known number of steps, and wrappers of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import reshaped, sizes_of
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.ops.activations import activated
from tilewright.relay.frontend.keras.registry import layer_converter
from tilewright.relay.frontend.tensorflow.ops.shape import filled

Step = Callable[[Expr, list[Expr]], list[Expr]]
"""From the input of a step and the states before it to the states after it; the first is the output."""


def _unrolled(node: LayerNode, data: Expr, states: list[Expr], step: Step) -> Any:
    layer = node.layer
    count = node.shape(data)[1]
    if count is None:
        raise node.fail("the number of steps has to be known")
    rows = (
        [relay.squeeze(part, axis=[1]) for part in relay.split(data, count, 1)]
        if count > 1
        else [relay.squeeze(data, axis=[1])]
    )
    if layer.go_backwards:
        rows.reverse()
    outputs = []
    for row in rows:
        states = step(row, states)
        outputs.append(states[0])
    made = relay.stack(outputs, axis=1) if layer.return_sequences else outputs[-1]
    return [made, *states] if layer.return_state else made


def _initial(node: LayerNode, data: Expr, given: Any, count: int) -> list[Expr]:
    if given is not None:
        return list(given) if isinstance(given, (list, tuple)) else [given]
    zeros = filled(node, [sizes_of(node, data)[0], int(node.layer.units)], node.constant(0, data))
    return [zeros] * count


def _cell(node: LayerNode, name: str) -> Expr | None:
    held = getattr(node.layer.cell, name, None)
    return None if held is None else node.stored(name, held)


def _product(node: LayerNode, data: Expr, weight: Expr | None, bias: Expr | None = None) -> Expr:
    if weight is None:
        raise node.fail("the layer has no weights: build the model first")
    made = relay.nn.dense(data, node.permuted(weight, (1, 0)), units=node.static_shape(weight)[1])
    return made if bias is None else relay.add(made, bias)


@layer_converter("SimpleRNN")
def simple_rnn(node: LayerNode, data: Expr, initial_state: Any = None) -> Any:
    """A recurrent layer with one state."""
    kernel, recurrent, bias = (_cell(node, name) for name in ("kernel", "recurrent_kernel", "bias"))

    def step(row: Expr, states: list[Expr]) -> list[Expr]:
        total = relay.add(_product(node, row, kernel, bias), _product(node, states[0], recurrent))
        return [activated(node, total, node.layer.activation)]

    return _unrolled(node, data, _initial(node, data, initial_state, 1), step)


@layer_converter("LSTM")
def lstm(node: LayerNode, data: Expr, initial_state: Any = None) -> Any:
    """A long short-term memory."""
    kernel, recurrent, bias = (_cell(node, name) for name in ("kernel", "recurrent_kernel", "bias"))
    layer = node.layer

    def step(row: Expr, states: list[Expr]) -> list[Expr]:
        total = relay.add(_product(node, row, kernel, bias), _product(node, states[0], recurrent))
        into, forget, new, out = relay.split(total, 4, axis=1)
        opened, kept, shown = (
            activated(node, one, layer.recurrent_activation) for one in (into, forget, out)
        )
        memory = relay.add(
            relay.multiply(kept, states[1]), relay.multiply(opened, activated(node, new, layer.activation))
        )
        return [relay.multiply(shown, activated(node, memory, layer.activation)), memory]

    return _unrolled(node, data, _initial(node, data, initial_state, 2), step)


@layer_converter("GRU")
def gru(node: LayerNode, data: Expr, initial_state: Any = None) -> Any:
    """A gated recurrent unit, whose reset comes after the product or before."""
    layer = node.layer
    kernel, recurrent, bias = (_cell(node, name) for name in ("kernel", "recurrent_kernel", "bias"))
    units = int(layer.units)
    input_bias, recurrent_bias = bias, None
    if bias is not None and node.rank(bias) == 2:
        known = node.value(bias)
        assert known is not None
        input_bias, recurrent_bias = (
            node.scope.stored(f"{layer.name}/bias_{place}", known[place]) for place in (0, 1)
        )

    def step(row: Expr, states: list[Expr]) -> list[Expr]:
        update, reset, new = relay.split(_product(node, row, kernel, input_bias), 3, axis=1)
        state = states[0]
        if layer.reset_after:
            inner = relay.split(_product(node, state, recurrent, recurrent_bias), 3, axis=1)
            gate = activated(node, relay.add(update, inner[0]), layer.recurrent_activation)
            cleared = activated(node, relay.add(reset, inner[1]), layer.recurrent_activation)
            candidate: Expr = relay.add(new, relay.multiply(cleared, inner[2]))
        else:
            if recurrent is None:
                raise node.fail("the layer has no weights: build the model first")
            known = node.value(recurrent)
            assert known is not None
            gates = node.scope.stored(f"{layer.name}/gates", known[:, : 2 * units])
            last = node.scope.stored(f"{layer.name}/candidate", known[:, 2 * units :])
            inner = relay.split(_product(node, state, gates), 2, axis=1)
            gate = activated(node, relay.add(update, inner[0]), layer.recurrent_activation)
            cleared = activated(node, relay.add(reset, inner[1]), layer.recurrent_activation)
            candidate = relay.add(new, _product(node, relay.multiply(cleared, state), last))
        candidate = activated(node, candidate, layer.activation)
        kept = relay.multiply(gate, state)
        return [relay.add(kept, relay.multiply(relay.subtract(node.constant(1, gate), gate), candidate))]

    return _unrolled(node, data, _initial(node, data, initial_state, 1), step)


@layer_converter("Bidirectional")
def bidirectional(node: LayerNode, data: Expr) -> Any:
    """A recurrent layer forwards and one backwards."""
    layer = node.layer
    if layer.return_state:
        raise node.fail("states of both directions are not supported")
    forward, backward = (node.inside(one, [data]) for one in (layer.forward_layer, layer.backward_layer))
    if layer.return_sequences:
        backward = relay.reverse(backward, 1)
    mode = layer.merge_mode
    if mode == "concat":
        return relay.concatenate([forward, backward], node.rank(forward) - 1)
    functions: dict[str, Any] = {"sum": relay.add, "mul": relay.multiply, "ave": relay.add}
    if mode not in functions:
        return [forward, backward]
    made = functions[mode](forward, backward)
    return relay.multiply(made, node.constant(0.5, made)) if mode == "ave" else made


@layer_converter("TimeDistributed")
def time_distributed(node: LayerNode, data: Expr) -> Expr:
    """A layer on every step: steps are examples."""
    sizes = sizes_of(node, data)
    rows = reshaped(node, data, [-1, *sizes[2:]])
    made = node.inside(node.layer.layer, [rows])
    return reshaped(node, made, [*sizes[:2], *sizes_of(node, made)[1:]])
