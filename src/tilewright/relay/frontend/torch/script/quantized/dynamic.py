"""Dynamic quantisation: weights are quantised, and data are when they arrive, by their range."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.torch.node import Expr
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.quantized.arithmetic import quantized, shifted
from tilewright.relay.frontend.torch.script.quantized.layers import integer_linear, scaled
from tilewright.relay.frontend.torch.script.quantized.packed import Packed, unpacked
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import ObjectValue, Quantization, Tensor


def range_quantization(node: ScriptNode, data: Expr, highest: int) -> Quantization:
    """The scale and zero point with which integers from zero to ``highest`` just cover the data and zero."""
    zero = const(0.0, "float32")
    least, most = relay.minimum(relay.min(data), zero), relay.maximum(relay.max(data), zero)
    wide = relay.subtract(relay.cast(most, "float64"), relay.cast(least, "float64"))
    span = relay.cast(relay.divide(wide, const(float(highest), "float64")), "float32")
    scale = relay.where(relay.equal(span, zero), const(0.1, "float32"), span)
    start = relay.divide(relay.negative(relay.cast(least, "float64")), relay.cast(scale, "float64"))
    place = relay.clip(relay.nearbyint(start), 0, highest)
    return Quantization(scale, relay.cast(place, "int32"), "uint8")


def dynamic_linear(
    node: ScriptNode, data: Expr, packed: Packed, reduce_range: bool, with_relu: bool = False
) -> Expr:
    """A linear layer on numbers."""
    of = range_quantization(node, data, 127 if reduce_range else 255)
    product = integer_linear(node, shifted(node, quantized(node, data, of), of), packed)
    return scaled(node, product, of, packed, node.rank(product) - 1, with_relu)


@operator("quantized::linear_dynamic")
def linear_dynamic(node: ScriptNode, data: Tensor, parameters: Any, reduce_range: bool = False) -> Any:
    """A linear layer."""
    packed = unpacked(node, parameters, "linear_unpack")
    return dynamic_linear(node, node.store.read(data), packed, bool(reduce_range))


@operator("quantized::linear_relu_dynamic")
def linear_relu_dynamic(node: ScriptNode, data: Tensor, parameters: Any, reduce_range: bool = False) -> Any:
    """A linear layer and a ReLU."""
    packed = unpacked(node, parameters, "linear_unpack")
    return dynamic_linear(node, node.store.read(data), packed, bool(reduce_range), True)


# Recurrent layers


@operator("aten::quantized_lstm.input")
def quantized_lstm(
    node: ScriptNode,
    data: Tensor,
    states: Any,
    parameters: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *options: Any,
) -> list[Expr]:
    """LSTM layers, step by step: the inputs of all steps are quantised together, and the state at each step."""
    sequence = node.store.read(data)
    if batch_first:
        sequence = relay.transpose(sequence, (1, 0, 2))
    hidden, cell = (node.store.read(state) for state in node.items(states))
    cells = node.items(parameters)
    directions = 2 if bidirectional else 1
    last_hidden, last_cell = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            first: list[Expr] = [relay.take(state, const(place, "int64"), axis=0) for state in (hidden, cell)]
            steps, *final = _lstm_direction(node, sequence, first, cells[place], direction == 1)
            outputs.append(steps)
            last_hidden.append(final[0])
            last_cell.append(final[1])
        sequence = outputs[0] if directions == 1 else relay.concatenate(outputs, -1)
    if batch_first:
        sequence = relay.transpose(sequence, (1, 0, 2))
    return [sequence, relay.stack(last_hidden, 0), relay.stack(last_cell, 0)]


def _lstm_direction(
    node: ScriptNode, sequence: Expr, state: list[Expr], parameters: Any, backward: bool
) -> list[Expr]:
    from_input, from_state, reduce_range = _cell_parameters(node, parameters)
    length = node.static_shape(sequence, "the sequence")[0]
    of_inputs = dynamic_linear(node, sequence, from_input, reduce_range)
    hidden, cell = state
    outputs: list[Expr] = []
    for step in reversed(range(length)) if backward else range(length):
        gates = relay.add(
            relay.take(of_inputs, const(step, "int64"), axis=0),
            dynamic_linear(node, hidden, from_state, reduce_range),
        )
        parts = relay.split(gates, 4, axis=1)
        enter, forget, leave = (relay.sigmoid(parts[place]) for place in (0, 1, 3))
        cell = relay.add(relay.multiply(forget, cell), relay.multiply(enter, relay.tanh(parts[2])))
        hidden = relay.multiply(leave, relay.tanh(cell))
        outputs.append(hidden)
    return [relay.stack(outputs[::-1] if backward else outputs, 0), hidden, cell]


def _cell_parameters(node: ScriptNode, parameters: Any) -> tuple[Packed, Packed, bool]:
    """The packed weights of a cell, those for its input and for its state, and whether ranges are reduced."""
    if not isinstance(parameters, ObjectValue):
        raise node.fail("the packed parameters of a quantised cell are expected")
    state, _ = parameters.item.__getstate__()
    kind, _, _, flags, packed = state
    if kind != "quantized_dynamic":
        raise node.fail(
            f"recurrent cells with parameters of the kind {kind!r} are not supported: use torch.qint8"
        )
    halves = [
        unpacked(node, ObjectValue(one, (*parameters.path, name)), "linear_unpack")
        for one, name in zip(packed, ("input", "state"), strict=True)
    ]
    return halves[0], halves[1], bool(flags[0]) if flags else False
