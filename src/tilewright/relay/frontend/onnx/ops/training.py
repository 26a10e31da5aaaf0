"""Steps of optimisers: gradients in, new tensors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import TupleGetItem, Var, const
from tilewright.relay.expr_functor import ExprMutator, bind
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.function import Function
from tilewright.relay.transform.gradient import gradient as gradient_function

TRAINING_DOMAIN = "ai.onnx.preview.training"


def _groups(node: Node, tensors: Sequence[RelayExpr], states: int) -> list[tuple[RelayExpr, ...]]:
    """For each tensor that is optimised: it, its gradient and its states, which come one kind after another."""
    count, rest = divmod(len(tensors), states + 2)
    if rest:
        raise node.fail(f"{len(tensors)} tensors are not tensors with a gradient and {states} states each")
    return [tuple(tensors[kind * count + place] for kind in range(states + 2)) for place in range(count)]


def _regularized(node: Node, weight: RelayExpr, gradient: RelayExpr) -> RelayExpr:
    factor = node.constant(float(node.attr("norm_coefficient", 0.0)), weight)
    return relay.add(relay.multiply(factor, weight), gradient)


def _in_order(results: Sequence[Sequence[RelayExpr]]) -> list[RelayExpr]:
    return [each for kind in zip(*results, strict=True) for each in kind]


class _Cut(ExprMutator):
    """An expression with others in it replaced."""

    def __init__(self, values: Mapping[RelayExpr, RelayExpr]) -> None:
        super().__init__()
        self.memo_map.update(values)


@converter("Gradient", domain=TRAINING_DOMAIN)
def gradient_of(node: Node, *values: RelayExpr) -> list[RelayExpr]:
    """The derivatives of a tensor of the graph by others, at the values that are the inputs."""
    names = [*node.attr("xs"), *(node.attr("zs", None) or ())]
    if len(names) != len(values):
        raise node.fail(f"{len(values)} inputs are given for {len(names)} tensors")
    tensors = [node.graph.lookup(name) for name in names]
    inputs = [Var(name, node.type_of(tensor)) for name, tensor in zip(names, tensors, strict=True)]
    result = _Cut(dict(zip(tensors, inputs, strict=True))).visit(node.graph.lookup(node.attr("y")))
    others = [variable for variable in free_vars(result) if variable not in inputs]
    function = Function([*inputs, *others], result)
    backward = gradient_function(function, node.graph.module, mode="first_order")
    made = bind(backward.body, dict(zip(backward.params, [*values, *others], strict=True)))
    return [TupleGetItem(TupleGetItem(made, 1), place) for place in range(len(node.attr("xs")))]


def _scaled(factor: float, data: RelayExpr, node: Node) -> RelayExpr:
    return relay.multiply(node.constant(factor, data), data)


@converter("Adagrad", domain=TRAINING_DOMAIN)
def adagrad(node: Node, rate: RelayExpr, step: RelayExpr, *tensors: RelayExpr) -> list[RelayExpr]:
    """A rate that falls with the squares of past gradients."""
    results = []
    decay = float(node.attr("decay_factor", 0.0))
    epsilon = float(node.attr("epsilon", 1e-6))
    for weight, gradient, squares in _groups(node, tensors, 1):
        slowed = relay.add(const(1.0, "float32"), _scaled(decay, relay.cast(step, "float32"), node))
        current = relay.divide(rate, converted(node, slowed, node.dtype(rate)))
        slope = _regularized(node, weight, gradient)
        total = relay.add(squares, relay.multiply(slope, slope))
        root = relay.add(relay.sqrt(total), node.constant(epsilon, weight))
        moved = relay.divide(relay.multiply(converted(node, current, node.dtype(weight)), slope), root)
        results.append((relay.subtract(weight, moved), total))
    return _in_order(results)


@converter("Adam", domain=TRAINING_DOMAIN)
def adam(node: Node, rate: RelayExpr, step: RelayExpr, *tensors: RelayExpr) -> list[RelayExpr]:
    """Running means of the gradient and of its square."""
    alpha, beta = float(node.attr("alpha", 0.9)), float(node.attr("beta", 0.999))
    epsilon = float(node.attr("epsilon", 1e-6))
    after = 1 - float(node.attr("norm_coefficient_post", 0.0))
    first_step = relay.less_equal(step, node.constant(0, step))
    turns = relay.cast(step, "float32")
    one = const(1.0, "float32")
    short = relay.subtract(one, relay.power(const(alpha, "float32"), turns))
    long = relay.subtract(one, relay.power(const(beta, "float32"), turns))
    adjusted = relay.multiply(rate, converted(node, relay.divide(relay.sqrt(long), short), node.dtype(rate)))
    current = relay.where(first_step, rate, adjusted)
    results = []
    for weight, gradient, mean, square in _groups(node, tensors, 2):
        slope = _regularized(node, weight, gradient)
        new_mean = relay.add(_scaled(alpha, mean, node), _scaled(1 - alpha, slope, node))
        new_square = relay.add(
            _scaled(beta, square, node), _scaled(1 - beta, relay.multiply(slope, slope), node)
        )
        root = relay.add(relay.sqrt(new_square), node.constant(epsilon, weight))
        moved = relay.divide(relay.multiply(converted(node, current, node.dtype(weight)), new_mean), root)
        results.append((_scaled(after, relay.subtract(weight, moved), node), new_mean, new_square))
    return _in_order(results)


@converter("Momentum", domain=TRAINING_DOMAIN)
def momentum(node: Node, rate: RelayExpr, step: RelayExpr, *tensors: RelayExpr) -> list[RelayExpr]:
    """A step along a running sum of gradients; Nesterov's looks ahead."""
    alpha, beta = float(node.attr("alpha")), float(node.attr("beta"))
    # The first gradient counts in full.
    share = relay.where(
        relay.greater(step, node.constant(0, step)), const(beta, "float32"), const(1.0, "float32")
    )
    results = []
    for weight, gradient, running in _groups(node, tensors, 1):
        slope = _regularized(node, weight, gradient)
        taken = relay.multiply(converted(node, share, node.dtype(weight)), slope)
        new_running = relay.add(_scaled(alpha, running, node), taken)
        direction = new_running
        if node.attr("mode") == "nesterov":
            direction = relay.add(slope, _scaled(alpha, new_running, node))
        moved = relay.multiply(converted(node, rate, node.dtype(weight)), direction)
        results.append((relay.subtract(weight, moved), new_running))
    return _in_order(results)
