"""If, Loop and Scan.

A known condition selects its branch at import; a loop with a small, known number of iterations is unrolled. Other loops
become recursive functions, whose parameters are the state of the loop; a dimension that changes from one iteration to
the next is dynamic in their types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, TupleType
from tilewright.relay.expr import Call, If, Let, Tuple, TupleGetItem, Var, const
from tilewright.relay.frontend.onnx.alternatives import alternatives, committed, of_type, widened
from tilewright.relay.frontend.onnx.importer import Body
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import as_scalar, extent_of, int64, scalar, with_known
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.values import ChoiceValue, OptionalValue, SequenceValue
from tilewright.relay.function import Function

UNROLLED_TURNS = 32
"""Loops of at most so many turns are written out."""

UNROLLED_NODES = 2000
"""Loops are written out if that makes at most so many nodes."""

MOST_TURNS = 4096
"""Loops over sequences have to be written out: those of at most so many turns are."""


# If


@converter("If")
def if_(node: Node, condition: RelayExpr) -> list[Any]:
    """One of two graphs."""
    known = node.value(condition)
    if known is not None:
        branch = "then_branch" if bool(known.reshape(-1)[0]) else "else_branch"
        return node.graph.convert_body(node.attr(branch), []).outputs
    return alternatives(
        node,
        condition,
        lambda: node.graph.convert_body(node.attr("then_branch"), []).outputs,
        lambda: node.graph.convert_body(node.attr("else_branch"), []).outputs,
    )


# Loop


@converter("Loop")
def loop(node: Node, turns: RelayExpr | None, condition: RelayExpr | None, *initial: Any) -> list[Any]:
    """A graph applied to its own results: a number of times, while a condition holds, or both."""
    body = node.attr("body")
    number = node.value(turns) if turns is not None else None
    start = node.value(condition) if condition is not None else None
    count = None if number is None else int(number.reshape(-1)[0])
    if start is not None and not bool(start.reshape(-1)[0]):
        count = 0
    has_sequences = any(isinstance(value, (SequenceValue, OptionalValue)) for value in initial)
    if (turns is None or number is not None) and (condition is None or start is not None):
        most = MOST_TURNS if has_sequences else min(UNROLLED_TURNS, UNROLLED_NODES // max(len(body.node), 1))
        if count is None or count <= most:
            found = _written_out(node, body, most if count is None else count, count is not None, initial)
            if found is not None:
                return found
        elif has_sequences:
            raise node.fail(
                f"a loop over sequences that runs {count} times is not supported: up to {most} is"
            )
    if has_sequences:
        unknown = turns if turns is not None and number is None else condition
        raise node.needs_value(unknown, "how often a loop over sequences runs")
    return _loop_function(node, body, turns, condition, list(initial))


def _written_out(
    node: Node, body: Any, turns: int, is_exact: bool, initial: Sequence[Any]
) -> list[Any] | None:
    """The loop turn by turn; None where the condition after a turn is not known, where more turns than these follow
    (unless that is their number), or where all loops together make too many nodes."""
    values = list(initial)
    collected: list[list[Any]] = [[] for _ in body.output[1 + len(values) :]]
    goes_on = True
    for turn in range(turns):
        if not node.graph.spend(len(body.node)):
            return None
        inputs = [const(turn, "int64"), const(True, "bool"), *values]
        test, *results = node.graph.convert_body(body, inputs).outputs
        values = results[: len(values)]
        for found, value in zip(collected, results[len(values) :], strict=True):
            found.append(value)
        known = None if isinstance(test, ChoiceValue) else node.value(test)
        if known is None:
            return None
        goes_on = bool(known.reshape(-1)[0])
        if not goes_on:
            break
    if (goes_on and not is_exact) or (collected and not collected[0]):
        return None
    return [*values, *(relay.stack(committed(node, found, [None] * len(found)), 0) for found in collected)]


def _loop_function(
    node: Node, body: Any, turns: RelayExpr | None, condition: RelayExpr | None, initial: list[RelayExpr]
) -> list[RelayExpr]:
    width = len(initial)
    start = const(True, "bool") if condition is None else scalar(node, condition)
    limit = Var("turns", TensorType((), "int64"))

    def step(position: Var, state: Sequence[Var]) -> tuple[Body, list[RelayExpr], list[RelayExpr]]:
        made = node.graph.convert_body(body, [position, *state], captures=True)
        going, *results = made.outputs
        return made, [scalar(node, going), *results[:width]], results[width:]

    def test(position: Var, state: Sequence[Var]) -> RelayExpr:
        return state[0] if turns is None else relay.logical_and(relay.less(position, limit), state[0])

    made = repeated(node, [start, *initial], step, test)
    if turns is not None:
        made = Let(limit, scalar(node, int64(node, turns)), made)
    # Before the results stand the number of turns and the condition.
    return [TupleGetItem(made, place) for place in range(2, 1 + len(body.output))]


Step = Callable[[Var, Sequence[Var]], tuple[Body, list[RelayExpr], list[RelayExpr]]]
"""From the number of the turn and the state: the converted body, the next state, and what the turn adds to results."""


def repeated(
    node: Node, initial: Sequence[RelayExpr], step: Step, test: Callable[[Var, Sequence[Var]], RelayExpr]
) -> RelayExpr:
    """A loop: a tuple of the number of turns, the last state, and what the turns added, one after the other along a
    new first axis."""
    position = Var("turn", TensorType((), "int64"))
    types = [node.type_of(value) for value in initial]
    while True:
        state = [Var(f"state{place}", kind) for place, kind in enumerate(types)]
        body, following, added = step(position, state)
        open_types = []
        for place, (kind, value) in enumerate(zip(types, following, strict=True)):
            found = widened(kind, node.type_of(value))
            if found is None:
                raise node.fail(
                    f"value {place} of the loop is {kind} before a turn and {node.type_of(value)} after it"
                )
            open_types.append(found)
        if open_types == types:
            break
        types = open_types
    gathered, gathered_types, empty = [], [], []
    for place, value in enumerate(added):
        kind = node.type_of(value)
        whole = TensorType([UnknownDimension(), *kind.shape], kind.dtype)
        variable = Var(f"gathered{place}", whole)
        one = relay.expand_dims(value, 0)
        joined: RelayExpr = relay.concatenate([variable, one], 0)
        known = [extent.value if isinstance(extent, IntImm) else 0 for extent in kind.shape]
        if any(not isinstance(extent, IntImm) for extent in kind.shape):
            # Nothing fits behind an empty tensor whose other dimensions are not known.
            first = relay.equal(position, const(0, "int64"))
            joined = If(first, of_type(one, whole), joined)
        gathered.append((variable, joined))
        gathered_types.append(whole)
        empty.append(relay.zeros([0, *known], str(kind.dtype)))
    number = TensorType((), "int64")
    result = TupleType([number, *types, *gathered_types])
    name = Var("loop", FuncType([number, *types, *gathered_types], result))
    parameters = [position, *state, *(variable for variable, _ in gathered)]
    again = Call(
        name,
        [relay.add(position, const(1, "int64")), *following, *(value for _, value in gathered)],
    )
    turn = If(test(position, state), again, Tuple(parameters))
    function = Function(parameters, turn, result)
    made = Let(name, function, Call(name, [const(0, "int64"), *initial, *empty]))
    return body.bound(made)


# Scan


MOST_SCANNED = 4096
"""A scan of opset 8 is written out for each item of a batch of at most so many."""


def _scan_inputs(node: Node, inputs: Sequence[Any]) -> int:
    """How many of the inputs are scanned; those before them are states."""
    count = int(node.attr("num_scan_inputs"))
    if not 1 <= count <= len(inputs):
        raise node.fail(f"num_scan_inputs is {count}, the node has {len(inputs)} inputs")
    return count


@converter("Scan", since=9)
def scan(node: Node, *inputs: RelayExpr) -> list[RelayExpr]:
    """A graph applied to the slices of tensors, one after the other, with a state."""
    body = node.attr("body")
    count = _scan_inputs(node, inputs)
    states, tensors = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    axes = list(node.attr("scan_input_axes", [0] * count))
    directions = list(node.attr("scan_input_directions", [0] * count))
    outputs = len(body.output) - len(states)
    result_axes = list(node.attr("scan_output_axes", [0] * outputs))
    result_directions = list(node.attr("scan_output_directions", [0] * outputs))
    return _scanned(node, body, states, tensors, axes, directions, result_axes, result_directions)


@converter("Scan", since=8)
def scan_batched(node: Node, lengths: RelayExpr | None, *inputs: RelayExpr) -> list[RelayExpr]:
    """As of opset 8: the first axis of all tensors is that of a batch, and the second is scanned."""
    if lengths is not None:
        raise node.fail("sequence_lens of opset 8 is not supported")
    body = node.attr("body")
    count = _scan_inputs(node, inputs)
    batch = node.static_shape(inputs[0])[0]
    if batch > MOST_SCANNED:
        raise node.fail(f"a batch of {batch} is not supported: up to {MOST_SCANNED} is, before opset 9")
    directions = list(node.attr("directions", [0] * count))
    states = len(inputs) - count
    outputs = len(body.output) - states
    found = []
    for member in range(batch):
        own: list[RelayExpr] = [relay.take(value, const(member, "int64"), axis=0) for value in inputs]
        found.append(
            _scanned(
                node, body, own[:states], own[states:], [0] * count, directions, [0] * outputs, [0] * outputs
            )
        )
    return [relay.stack(list(each), 0) for each in zip(*found, strict=True)]


def _scanned(
    node: Node,
    body: Any,
    states: list[RelayExpr],
    tensors: list[RelayExpr],
    axes: Sequence[int],
    directions: Sequence[int],
    result_axes: Sequence[int],
    result_directions: Sequence[int],
) -> list[RelayExpr]:
    axes = [axis % node.rank(tensor) for axis, tensor in zip(axes, tensors, strict=True)]
    turned = [
        relay.reverse(tensor, axis) if direction else tensor
        for tensor, axis, direction in zip(tensors, axes, directions, strict=True)
    ]
    length = extent_of(node, tensors[0], axes[0])
    results: list[RelayExpr]
    if isinstance(length, int) and 0 < length <= UNROLLED_TURNS and length * len(body.node) <= UNROLLED_NODES:
        values: list[Any] = list(states)
        collected: list[list[Any]] = [[] for _ in result_axes]
        for turn in range(length):
            slices = [
                relay.take(tensor, const(turn, "int64"), axis=axis)
                for tensor, axis in zip(turned, axes, strict=True)
            ]
            made = node.graph.convert_body(body, [*values, *slices]).outputs
            values = made[: len(states)]
            for found, value in zip(collected, made[len(states) :], strict=True):
                found.append(value)
        results = [relay.stack(committed(node, found, [None] * len(found)), 0) for found in collected]
    else:
        values, results = _scan_function(node, body, states, turned, axes, length)
    for place, (axis, direction) in enumerate(zip(result_axes, result_directions, strict=True)):
        if direction:
            results[place] = relay.reverse(results[place], 0)
        rank = node.rank(results[place])
        if axis % rank:
            order = list(range(1, rank))
            order.insert(axis % rank, 0)
            results[place] = relay.transpose(results[place], order)
    return [*values, *results]


def _scan_function(
    node: Node, body: Any, states: list[RelayExpr], tensors: list[RelayExpr], axes: Sequence[int], length: Any
) -> tuple[list[RelayExpr], list[RelayExpr]]:
    whole = [Var(f"scanned{place}", node.type_of(tensor)) for place, tensor in enumerate(tensors)]
    limit = Var("turns", TensorType((), "int64"))

    def step(position: Var, state: Sequence[Var]) -> tuple[Body, list[RelayExpr], list[RelayExpr]]:
        slices = [relay.take(tensor, position, axis=axis) for tensor, axis in zip(whole, axes, strict=True)]
        made = node.graph.convert_body(body, [*state, *slices], captures=True)
        return made, made.outputs[: len(states)], made.outputs[len(states) :]

    made = repeated(node, states, step, lambda position, state: relay.less(position, limit))
    made = Let(limit, as_scalar(length), made)
    for variable, tensor in zip(whole, tensors, strict=True):
        made = Let(variable, tensor, made)
    count = len(body.output)
    fields: list[RelayExpr] = [TupleGetItem(made, 1 + place) for place in range(count)]
    values, results = fields[: len(states)], fields[len(states) :]
    if isinstance(length, int):
        results = [with_known(node, result, [length, *node.shape(result)[1:]]) for result in results]
    return values, results
