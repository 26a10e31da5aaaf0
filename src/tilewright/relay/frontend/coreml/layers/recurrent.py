"""Long short-term memory over sequences (steps, batch, features)."""

from __future__ import annotations

from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.common.recurrent import recurrent_layers
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.registry import LAYERS
from tilewright.relay.frontend.tensorflow.node import Expr

_GATES: Final = ("inputGate", "forgetGate", "blockInput", "outputGate")


def _check(node: LayerNode, params: Message) -> None:
    """Refuse what the common operator does not compute."""
    kinds = [one.which("sigmoid", "tanh") for one in params.activations]
    if kinds not in (["sigmoid", "tanh", "tanh"], []):
        raise node.fail("only the activations sigmoid, tanh, tanh are supported")
    options = params.params
    if options.hasPeepholeVectors or options.coupledInputAndForgetGate or options.forgetBias:
        raise node.fail("peepholes, coupled gates and a bias of the forget gate are not supported")


@LAYERS.register("uniDirectionalLSTM")
def lstm(node: LayerNode, params: Message, data: Expr, *states: Expr) -> list[Expr]:
    """A layer of long short-term memory, forwards or backwards."""
    _check(node, params)
    held, inputs, hidden = params.weightParams, int(params.inputVectorSize), int(params.outputVectorSize)

    def joined(suffix: str, shape: tuple[int, ...]) -> Expr:
        return relay.concatenate(
            [node.weight(getattr(held, gate + suffix), shape, gate + suffix) for gate in _GATES], 0
        )

    weights = [joined("WeightMatrix", (hidden, inputs)), joined("RecursionMatrix", (hidden, hidden))]
    if params.params.hasBiasVectors:
        bias = joined("BiasVector", (hidden,))
        weights += [bias, relay.zeros_like(bias)]
    shape = node.static_shape(data)
    rows = relay.reshape(data, (shape[0], shape[1], inputs))
    before = [
        relay.reshape(one, (1, shape[1], hidden))
        for one in (states or (relay.zeros((1, shape[1], hidden), "float32"),) * 2)
    ]
    if params.reverseInput:
        rows = relay.reverse(rows, 0)
    made = recurrent_layers(node, "lstm", rows, before, weights, len(weights), 1, False)
    output = made[0]
    if not params.params.sequenceOutput:
        output = made[1]
    elif params.reverseInput:
        output = relay.reverse(output, 0)
    # Images of one pixel stay images.
    tail = (1,) * (len(shape) - 3)
    return [relay.reshape(one, (-1, shape[1], hidden, *tail)) for one in (output, *made[1:])]
