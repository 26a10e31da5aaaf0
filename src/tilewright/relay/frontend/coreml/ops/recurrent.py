"""Recurrent layers over sequences (steps, batch, features)."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.recurrent import recurrent_layers
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS


def _from_ifoz(tensor: Expr) -> Expr:
    """Gates in the order of the shared layers: input, forget, candidate, output."""
    into, forget, out, new = relay.split(tensor, 4, 0)
    return relay.concatenate([into, forget, new, out], 0)


def _check(node: OperationNode, expected: dict[str, str]) -> None:
    for name, value in expected.items():
        if node.text(name, value) != value:
            raise node.fail(f"{name} {node.text(name, value)!r} is not supported, only {value!r}")


@OPERATIONS.register("lstm")
def lstm(node: OperationNode) -> list[Expr]:
    """A layer of long short-term memory, in one direction or both."""
    _check(node, {"recurrent_activation": "sigmoid", "cell_activation": "tanh", "activation": "tanh"})
    for name in ("peephole", "peephole_back", "clip"):
        if node.has(name):
            raise node.fail(f"{name} is not supported")
    data, direction = node.tensor(), node.text("direction", "forward")
    batch = node.static_shape(node.tensor("initial_h"))[0]
    both = direction == "bidirectional"
    weights: list[Expr] = []
    for suffix in ("", "_back") if both else ("",):
        made = [_from_ifoz(node.tensor(f"weight_{side}{suffix}")) for side in ("ih", "hh")]
        bias = node.optional(f"bias{suffix}")
        if bias is not None:
            gates = _from_ifoz(bias)
            made += [gates, relay.zeros_like(gates)]
        weights += made
    each = len(weights) // (2 if both else 1)
    states: list[Expr] = []
    for name in ("initial_h", "initial_c"):
        state = node.tensor(name)
        if both:
            states.append(relay.stack(list(relay.split(state, 2, 1)), 0))
        else:
            states.append(relay.expand_dims(state, 0))
    if direction == "reverse":
        data = relay.reverse(data, 0)
    made_all = recurrent_layers(node, "lstm", data, states, weights, each, 1, both)
    output = made_all[0]
    last = [relay.reshape(relay.transpose(one, (1, 0, 2)), (batch, -1)) for one in made_all[1:]]
    return [_shown(node, output, last[0], direction), *last]


def _shown(node: OperationNode, output: Expr, last: Expr, direction: str) -> Expr:
    if not node.flag("output_sequence"):
        return relay.expand_dims(last, 0)
    return relay.reverse(output, 0) if direction == "reverse" else output


@OPERATIONS.register("gru")
def gru(node: OperationNode) -> list[Expr]:
    """A layer of gated recurrent units; the reset gate is applied before the product."""
    _check(node, {"recurrent_activation": "sigmoid", "activation": "tanh"})
    data, direction = node.tensor(), node.text("direction", "forward")
    hidden = node.static_shape(node.tensor("initial_h"))[-1]
    steps = node.static_shape(data)[0]
    weight, state_weight = node.tensor("weight_ih"), node.tensor("weight_hh")
    bias = node.optional("bias")
    if direction == "reverse":
        data = relay.reverse(data, 0)
    state: Expr = node.tensor("initial_h")
    rows: list[Any] = [data] if steps == 1 else list(relay.split(data, steps, 0))
    of_reset, of_update, of_new = relay.split(state_weight, 3, 0)
    outputs = []
    for row in rows:
        given = relay.nn.dense(relay.squeeze(row, axis=[0]), weight, units=3 * hidden)
        if bias is not None:
            given = relay.add(given, bias)
        reset, update, new = relay.split(given, 3, 1)
        opened = relay.sigmoid(relay.add(reset, relay.nn.dense(state, of_reset, units=hidden)))
        kept = relay.sigmoid(relay.add(update, relay.nn.dense(state, of_update, units=hidden)))
        inner = relay.nn.dense(relay.multiply(opened, state), of_new, units=hidden)
        candidate = relay.tanh(relay.add(new, inner))
        state = relay.add(candidate, relay.multiply(kept, relay.subtract(state, candidate)))
        outputs.append(state)
    return [_shown(node, relay.stack(outputs, 0), state, direction), state]
