"""Long short-term memory over sequences (steps, batch, features)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.common.recurrent import recurrent_layers
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.registry import LAYERS

_GATES: Final = ("inputGate", "forgetGate", "blockInput", "outputGate")


def _check(node: LayerNode, options: Message, *activations: Sequence[Message]) -> None:
    """Refuse what the common operator does not compute."""
    for listed in activations:
        if [one.which("sigmoid", "tanh") for one in listed] not in (["sigmoid", "tanh", "tanh"], []):
            raise node.fail("only the activations sigmoid, tanh, tanh are supported")
    if options.hasPeepholeVectors or options.coupledInputAndForgetGate or options.forgetBias:
        raise node.fail("peepholes, coupled gates and a bias of the forget gate are not supported")


def _weights(node: LayerNode, params: Message, held: Message, direction: str = "") -> list[Expr]:
    """The weights of one direction: of the inputs, of the state, and perhaps biases."""
    inputs, hidden = int(params.inputVectorSize), int(params.outputVectorSize)

    def joined(suffix: str, shape: tuple[int, ...]) -> Expr:
        parts = [
            node.weight(getattr(held, gate + suffix), shape, direction + gate + suffix) for gate in _GATES
        ]
        return relay.concatenate(parts, 0)

    made = [joined("WeightMatrix", (hidden, inputs)), joined("RecursionMatrix", (hidden, hidden))]
    if params.params.hasBiasVectors:
        bias = joined("BiasVector", (hidden,))
        made += [bias, relay.zeros_like(bias)]
    return made


def _states(node: LayerNode, states: Sequence[Expr], directions: int, batch: int, hidden: int) -> list[Expr]:
    """The hidden states and the cells before the first step, of all directions; zeros where none are given."""
    if not states:
        return [relay.zeros((directions, batch, hidden), "float32")] * 2
    flat = [relay.reshape(one, (1, batch, hidden)) for one in states]
    # Each direction has its hidden state, then its cell.
    return [relay.concatenate(flat[kind::2], 0) if directions > 1 else flat[kind] for kind in (0, 1)]


@LAYERS.register("uniDirectionalLSTM")
def lstm(node: LayerNode, params: Message, data: Expr, *states: Expr) -> list[Expr]:
    """A layer of long short-term memory, forwards or backwards."""
    _check(node, params.params, params.activations)
    hidden, shape = int(params.outputVectorSize), node.static_shape(data)
    weights = _weights(node, params, params.weightParams)
    rows = relay.reshape(data, (shape[0], shape[1], int(params.inputVectorSize)))
    if params.reverseInput:
        rows = relay.reverse(rows, 0)
    before = _states(node, states, 1, shape[1], hidden)
    made = recurrent_layers(node, "lstm", rows, before, weights, len(weights), 1, False)
    output = made[0]
    if not params.params.sequenceOutput:
        output = made[1]
    elif params.reverseInput:
        output = relay.reverse(output, 0)
    # Images of one pixel stay images.
    tail = (1,) * (len(shape) - 3)
    return [relay.reshape(one, (-1, shape[1], hidden, *tail)) for one in (output, *made[1:])]


@LAYERS.register("biDirectionalLSTM")
def bidirectional_lstm(node: LayerNode, params: Message, data: Expr, *states: Expr) -> list[Expr]:
    """A layer of long short-term memory in both directions, whose outputs stand beside each other."""
    _check(node, params.params, params.activationsForwardLSTM, params.activationsBackwardLSTM)
    if len(params.weightParams) != 2:
        raise node.fail(f"there are weights for {len(params.weightParams)} directions")
    hidden, shape = int(params.outputVectorSize), node.static_shape(data)
    weights = [
        one
        for held, name in zip(params.weightParams, ("forward", "backward"), strict=True)
        for one in _weights(node, params, held, name)
    ]
    rows = relay.reshape(data, (shape[0], shape[1], int(params.inputVectorSize)))
    before = _states(node, states, 2, shape[1], hidden)
    output, last, cells = recurrent_layers(node, "lstm", rows, before, weights, len(weights) // 2, 1, True)
    ends = [relay.split(one, 2, 0) for one in (last, cells)]
    if not params.params.sequenceOutput:
        output = relay.concatenate([ends[0][0], ends[0][1]], 2)
    tail = (1,) * (len(shape) - 3)
    finals = [ends[kind][direction] for direction in (0, 1) for kind in (0, 1)]
    return [
        relay.reshape(output, (-1, shape[1], 2 * hidden, *tail)),
        *(relay.reshape(one, (1, shape[1], hidden, *tail)) for one in finals),
    ]
