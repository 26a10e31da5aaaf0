"""RNN, GRU and LSTM.

The contribution of the inputs is one matrix product over all steps. The steps of the usual cells are one operator (see
``recurrent_layer``); those of others are unrolled if there are few, and a loop otherwise. Sequences of different
lengths keep their state after their end; a backward direction runs over each of them reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Let, TupleGetItem, Var, const
from tilewright.relay.frontend.onnx.importer import Body
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.control_flow import repeated
from tilewright.relay.frontend.onnx.ops.dimensions import as_scalar, extent_of, reshaped, with_known
from tilewright.relay.frontend.onnx.ops.recurrent_layer import layer_steps, whole_layer
from tilewright.relay.frontend.onnx.registry import converter

UNROLLED_STEPS = 128
"""Sequences of at most so many steps are written out."""

Function = Callable[[RelayExpr], RelayExpr]


# Activations


def _affine(alpha: float, beta: float, dtype: str) -> Function:
    return lambda x: relay.add(relay.multiply(const(alpha, dtype), x), const(beta, dtype))


def _activation(node: Node, name: str, alpha: float | None, beta: float | None, dtype: str) -> Function:
    """A function by its name; what is not given has the operator's own default."""

    def number(value: float | None, default: float) -> RelayExpr:
        return const(default if value is None else value, dtype)

    zero, one = const(0, dtype), const(1, dtype)
    first, second = number(alpha, 1.0), number(beta, 0.0)
    functions: dict[str, Function] = {
        "relu": relay.nn.relu,
        "tanh": relay.tanh,
        "sigmoid": relay.sigmoid,
        "affine": _affine(1.0 if alpha is None else alpha, beta or 0.0, dtype),
        "leakyrelu": lambda x: relay.where(relay.less(x, zero), relay.multiply(number(alpha, 0.01), x), x),
        "thresholdedrelu": lambda x: relay.where(relay.greater(x, first), x, zero),
        "scaledtanh": lambda x: relay.multiply(first, relay.tanh(relay.multiply(number(beta, 1.0), x))),
        "hardsigmoid": lambda x: relay.clip(
            _affine(0.2 if alpha is None else alpha, 0.5 if beta is None else beta, dtype)(x), 0.0, 1.0
        ),
        "elu": lambda x: relay.where(
            relay.less(x, zero), relay.multiply(first, relay.subtract(relay.exp(x), one)), x
        ),
        "softsign": lambda x: relay.divide(x, relay.add(one, relay.abs(x))),
        "softplus": lambda x: relay.log(relay.add(relay.exp(x), second if beta is not None else one)),
    }
    found = functions.get(name.lower())
    if found is None:
        raise node.fail(f"the activation {name!r} is not one of {', '.join(functions)}")
    return found


def _activations(
    node: Node, names: Sequence[str], each: int, directions: int, dtype: str
) -> list[list[Function]]:
    """The functions of each direction. Numbers are given for those functions that take them, in order."""
    alphas, betas = list(node.attr("activation_alpha", [])), list(node.attr("activation_beta", []))
    takes_alpha = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
    takes_beta = {"affine", "scaledtanh", "hardsigmoid"}
    made = []
    for name in names:
        alpha = alphas.pop(0) if alphas and name.lower() in takes_alpha else None
        beta = betas.pop(0) if betas and name.lower() in takes_beta else None
        made.append(_activation(node, name, alpha, beta, dtype))
    if len(made) != each * directions:
        raise node.fail(f"{len(made)} activations are named, {each * directions} are needed")
    return [made[place * each : (place + 1) * each] for place in range(directions)]


# Cells


@dataclass
class Weights:
    """The weights and biases of one direction: for the state, for the state only, and for peepholes."""

    state: RelayExpr
    state_bias: RelayExpr | None
    peepholes: list[RelayExpr] | None


@dataclass
class Setting:
    """The parameters that all cells of a node share."""

    node: Node
    hidden: int
    clip: Function
    functions: list[Function]

    def parts(self, data: RelayExpr, count: int) -> list[RelayExpr]:
        """The gates, which are side by side in the last axis."""
        return list(relay.split(data, count, 1)) if count > 1 else [data]


Cell = Callable[[Setting, Weights, RelayExpr, list[RelayExpr]], list[RelayExpr]]
"""From what the inputs contribute and the state (hidden first) to the next state."""


def _rnn_cell(own: Setting, weights: Weights, given: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
    total = relay.add(given, relay.nn.dense(state[0], weights.state))
    return [own.functions[0](own.clip(total))]


def _gru_cell(own: Setting, weights: Weights, given: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
    (hidden,) = state
    size = own.hidden
    update_in, reset_in, new_in = own.parts(given, 3)
    gates = relay.strided_slice(weights.state, [0], [2 * size], axes=[0])
    new = relay.strided_slice(weights.state, [2 * size], [3 * size], axes=[0])
    update_state, reset_state = own.parts(relay.nn.dense(hidden, gates), 2)
    first, second = own.functions
    update = first(own.clip(relay.add(update_in, update_state)))
    reset = first(own.clip(relay.add(reset_in, reset_state)))
    if weights.state_bias is None:
        inner = relay.nn.dense(relay.multiply(reset, hidden), new)
    else:
        # The reset comes after the product, which then has the bias of the state within.
        inner = relay.multiply(reset, relay.add(relay.nn.dense(hidden, new), weights.state_bias))
    candidate = second(own.clip(relay.add(new_in, inner)))
    one = const(1, own.node.dtype(hidden))
    kept = relay.multiply(update, hidden)
    return [relay.add(relay.multiply(relay.subtract(one, update), candidate), kept)]


def _lstm_cell(own: Setting, weights: Weights, given: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
    hidden, cell = state
    total = relay.add(given, relay.nn.dense(hidden, weights.state))
    put, out, forget, new = own.parts(total, 4)
    first, second, third = own.functions
    if weights.peepholes is not None:
        put = relay.add(put, relay.multiply(weights.peepholes[0], cell))
        forget = relay.add(forget, relay.multiply(weights.peepholes[2], cell))
    taken = first(own.clip(put))
    left = (
        relay.subtract(const(1, own.node.dtype(cell)), taken)
        if own.node.attr("input_forget", 0)
        else first(own.clip(forget))
    )
    following = relay.add(relay.multiply(left, cell), relay.multiply(taken, second(own.clip(new))))
    if weights.peepholes is not None:
        out = relay.add(out, relay.multiply(weights.peepholes[1], following))
    shown = first(own.clip(out))
    return [relay.multiply(shown, third(following)), following]


# Sequences


def _direction(tensor: RelayExpr | None, place: int) -> RelayExpr | None:
    """The part of a tensor that belongs to one direction."""
    if tensor is None:
        return None
    return relay.squeeze(relay.strided_slice(tensor, [place], [place + 1], axes=[0]), [0])


def _turned(data: RelayExpr, lengths: RelayExpr | None) -> RelayExpr:
    """Sequences in the opposite direction, each within its own length."""
    return relay.reverse(data, 0) if lengths is None else relay.reverse_sequence(data, lengths, 0, 1)


def _steps(
    own: Setting,
    cell: Cell,
    weights: Weights,
    given: RelayExpr,
    state: list[RelayExpr],
    lengths: RelayExpr | None,
) -> tuple[RelayExpr, list[RelayExpr]]:
    """All hidden states (steps, batch, hidden), and the last state."""
    node = own.node
    zero = const(0, node.dtype(state[0]))

    def lasting(positions: RelayExpr) -> RelayExpr | None:
        """Which sequences have a step at a position, (..., batch, 1)."""
        if lengths is None:
            return None
        return relay.expand_dims(relay.less(relay.cast(positions, "int32"), relay.cast(lengths, "int32")), -1)

    def step(
        going: RelayExpr | None, now: RelayExpr, values: list[RelayExpr]
    ) -> tuple[list[RelayExpr], RelayExpr]:
        """The next state, and the hidden state of this step."""
        following = cell(own, weights, now, values)
        if going is None:
            return following, following[0]
        kept: list[RelayExpr] = [
            relay.where(going, new, old) for new, old in zip(following, values, strict=True)
        ]
        return kept, following[0]

    def shown(going: RelayExpr | None, made: RelayExpr) -> RelayExpr:
        return made if going is None else relay.where(going, made, zero)

    count = node.shape(given)[0]
    if count is not None and 0 < count <= UNROLLED_STEPS:
        every: list[RelayExpr] = []
        masks = lasting(const([[place] for place in range(count)], "int32"))
        for place in range(count):
            # A position that is data leaves all steps the same kernels.
            now, going = (
                None if one is None else relay.squeeze(relay.take(one, const([place], "int32"), axis=0), [0])
                for one in (given, masks)
            )
            state, made = step(going, _required(now), state)
            every.append(made)
        return shown(masks, relay.stack(every, 0)), state
    whole, limit = Var("given", node.type_of(given)), Var("steps", TensorType((), "int64"))

    def turn(position: Var, values: Sequence[Var]) -> tuple[Body, list[RelayExpr], list[RelayExpr]]:
        going = lasting(position)
        following, made = step(going, relay.take(whole, position, axis=0), list(values))
        return Body([], {}), following, [shown(going, made)]

    loop = repeated(node, state, turn, lambda position, values: relay.less(position, limit))
    loop = Let(whole, given, Let(limit, as_scalar(extent_of(node, given, 0)), loop))
    last = [TupleGetItem(loop, 1 + place) for place in range(len(state))]
    results = TupleGetItem(loop, 1 + len(state))
    return with_known(node, results, [count, *node.shape(results)[1:]]), list(last)


def _recurrent(
    node: Node,
    cell: Cell,
    gates: int,
    defaults: Sequence[str],
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None,
    lengths: RelayExpr | None,
    initial: Sequence[RelayExpr | None],
    peepholes: RelayExpr | None = None,
) -> list[RelayExpr]:
    batch_first = bool(node.attr("layout", 0))
    kind = str(node.attr("direction", "forward"))
    if kind not in ("forward", "reverse", "bidirectional"):
        raise node.fail(f"the direction {kind!r} is not known")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]
    hidden = node.static_shape(state_weight, "the weight of the state")[2]
    dtype = node.dtype(data)
    if batch_first:
        data = relay.transpose(data, (1, 0, 2))
    limit = node.attr("clip", None)
    names = list(node.attr("activations", None) or [*defaults] * len(backwards))
    each = len(defaults)
    functions = _activations(node, names, each, len(backwards), dtype)
    special = lengths is not None or peepholes is not None or limit is not None
    all_steps, all_last = [], []
    for place, backward in enumerate(backwards):
        own = Setting(
            node,
            hidden,
            (lambda x: x) if limit is None else (lambda x: relay.clip(x, -float(limit), float(limit))),
            functions[place],
        )
        mine = _turned(data, lengths) if backward else data
        state = [_initial(node, value, mine, place, hidden, batch_first) for value in initial]
        whole = None if special else whole_layer(node, gates, names[place * each : (place + 1) * each], mine)
        if whole is not None:
            of_inputs, of_state = (_required(_direction(one, place)) for one in (weight, state_weight))
            own_bias = _direction(bias, place)
            steps, last = layer_steps(node, whole, gates, hidden, mine, of_inputs, of_state, own_bias, state)
            all_steps.append(_turned(steps, lengths) if backward else steps)
            all_last.append(last)
            continue
        given, state_bias = _contributed(node, mine, weight, bias, place, gates, hidden)
        weights = Weights(
            _required(_direction(state_weight, place)),
            state_bias,
            None if peepholes is None else list(relay.split(_required(_direction(peepholes, place)), 3, 0)),
        )
        steps, last = _steps(own, cell, weights, given, state, lengths)
        all_steps.append(_turned(steps, lengths) if backward else steps)
        all_last.append(last)
    outputs = [_stacked(all_steps, 1)]
    outputs += [_stacked([last[place] for last in all_last], 0) for place in range(len(initial))]
    if batch_first:
        outputs = [
            relay.transpose(outputs[0], (2, 0, 1, 3)),
            *(relay.transpose(one, (1, 0, 2)) for one in outputs[1:]),
        ]
    return list(outputs)


def _stacked(directions: list[RelayExpr], axis: int) -> RelayExpr:
    """The tensors of all directions in one; that of a single direction without a copy."""
    return relay.stack(directions, axis) if len(directions) > 1 else relay.expand_dims(directions[0], axis)


def _required(value: RelayExpr | None) -> RelayExpr:
    assert value is not None
    return value


def _contributed(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    bias: RelayExpr | None,
    place: int,
    gates: int,
    hidden: int,
) -> tuple[RelayExpr, RelayExpr | None]:
    """The contribution of the inputs to the gates of all steps, including biases; and the bias that a GRU with
    ``linear_before_reset`` adds to the state's own product."""
    extents = [extent_of(node, data, axis) for axis in range(2)]
    flat = relay.reshape(data, (-3, 0))
    made: RelayExpr = relay.nn.dense(flat, _required(_direction(weight, place)))
    state_bias: RelayExpr | None = None
    linear = gates == 3 and bool(node.attr("linear_before_reset", 0))
    mine = _direction(bias, place)
    if mine is not None:
        first, second = relay.split(mine, 2, 0)
        added: RelayExpr = second
        if linear:
            both, state_bias = relay.split(second, [2 * hidden], 0)
            added = relay.concatenate([both, const_zeros(hidden, node.dtype(data))], 0)
        made = relay.add(made, relay.add(first, added))
    elif linear:
        state_bias = const_zeros(hidden, node.dtype(data))
    return reshaped(node, made, [*extents, gates * hidden]), state_bias


def const_zeros(size: int, dtype: str) -> RelayExpr:
    """A vector of zeros."""
    return relay.zeros((size,), dtype)


def _initial(
    node: Node, value: RelayExpr | None, data: RelayExpr, place: int, hidden: int, batch_first: bool
) -> RelayExpr:
    """The state before the first step; zeros where none is given."""
    if value is not None:
        given = relay.transpose(value, (1, 0, 2)) if batch_first else value
        return _required(_direction(given, place))
    batch = extent_of(node, data, 1)
    if isinstance(batch, int):
        return relay.zeros((batch, hidden), node.dtype(data))
    zeros = relay.zeros(
        relay.concatenate([relay.reshape(batch, (1,)), node.constants([hidden])], 0), node.dtype(data)
    )
    return with_known(node, zeros, [None, hidden])


@converter("RNN")
def rnn(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None = None,
    lengths: RelayExpr | None = None,
    hidden: RelayExpr | None = None,
) -> list[RelayExpr]:
    """A plain recurrent network."""
    return _recurrent(node, _rnn_cell, 1, ("Tanh",), data, weight, state_weight, bias, lengths, [hidden])


@converter("GRU")
def gru(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None = None,
    lengths: RelayExpr | None = None,
    hidden: RelayExpr | None = None,
) -> list[RelayExpr]:
    """Gated recurrent units."""
    return _recurrent(
        node, _gru_cell, 3, ("Sigmoid", "Tanh"), data, weight, state_weight, bias, lengths, [hidden]
    )


@converter("LSTM")
def lstm(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None = None,
    lengths: RelayExpr | None = None,
    hidden: RelayExpr | None = None,
    cell: RelayExpr | None = None,
    peepholes: RelayExpr | None = None,
) -> list[RelayExpr]:
    """Long short-term memory."""
    return _recurrent(
        node,
        _lstm_cell,
        4,
        ("Sigmoid", "Tanh", "Tanh"),
        data,
        weight,
        state_weight,
        bias,
        lengths,
        [hidden, cell],
        peepholes,
    )
