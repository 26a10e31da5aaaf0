"""PyTorch's higher-order operators, which take graphs as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, ExprWithOp, If, Tuple, TupleGetItem, Var, const
from tilewright.relay.frontend.common.sizes import size_of
from tilewright.relay.frontend.torch.graph import GraphImporter, HigherOrder, flat_outputs
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.infer import type_of
from tilewright.relay.loops import while_loop as recursive_loop

UNROLLED: Final = 64
"""Steps of a scan or map that are written out; more are a loop."""


def _tensors(node: TorchNode, result: Any) -> list[RelayExpr]:
    fields = flat_outputs(result)
    if any(field is None for field in fields):
        raise node.fail("a graph inside it returns None among its results")
    return [field for field in fields if field is not None]


def cond(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The results of one of two graphs."""
    predicate, when_true, when_false, *operands = args
    given = operands[0] if operands else kwargs.get("operands", [])
    if isinstance(predicate, bool):
        return graph.inside(when_true if predicate else when_false, given)
    condition = node.cast(predicate, "bool")
    if node.rank(condition):
        condition = relay.reshape(condition, ())
    one = _tensors(node, graph.inside(when_true, given))
    other = _tensors(node, graph.inside(when_false, given))
    chosen = If(condition, Tuple(one), Tuple(other))
    return [TupleGetItem(chosen, place) for place in range(len(one))]


def _as_variable(node: TorchNode, name: str, value: Any, widened: bool = False) -> Var:
    """A variable of a loop for a value; numbers are scalars, and a widened one has no known sizes."""
    given = value if isinstance(value, ExprWithOp) else node.tensor(value)
    kind = type_of(given, node.module)
    assert isinstance(kind, TensorType)
    shape = [UnknownDimension() for _ in kind.shape] if widened else kind.shape
    variable = Var(name, TensorType(shape, kind.dtype))
    if not isinstance(value, ExprWithOp) or value in node.scope.numbers:
        node.scope.numbers.add(variable)
    return variable


def while_loop(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A graph repeated on its own results while another holds."""
    test, body, carried, *more = args
    fixed = list(more[0]) if more else list(kwargs.get("additional_inputs", ()))
    variables = [_as_variable(node, f"carried_{place}", value) for place, value in enumerate(carried)]

    def goes_on(*values: Any) -> RelayExpr:
        found = flat_outputs(graph.inside(test, [*values, *fixed]))[0]
        assert isinstance(found, ExprWithOp)
        made = node.cast(found, "bool")
        return relay.reshape(made, ()) if node.rank(made) else made

    def following(*values: Any) -> list[RelayExpr]:
        return _tensors(node, graph.inside(body, [*values, *fixed]))

    loop = recursive_loop(goes_on, variables, following)
    final = Call(loop, [value if isinstance(value, ExprWithOp) else node.tensor(value) for value in carried])
    return [TupleGetItem(final, place) for place in range(len(carried))]


def _count(node: TorchNode, sequences: Sequence[Any]) -> int:
    size = size_of(node, sequences[0], 0)
    if not isinstance(size, int):
        raise node.fail(
            "the number of steps is not known: export the model with a fixed size of that dimension"
        )
    return size


def _steps(
    graph: GraphImporter,
    node: TorchNode,
    body: Any,
    carried: list[Any],
    sequences: list[Any],
    fixed: list[Any],
) -> tuple[list[Any], list[RelayExpr]]:
    """The last carried values, and the stacked results of all steps."""
    count = _count(node, sequences)
    if count > UNROLLED:
        return _loop_of_steps(graph, node, body, carried, sequences, fixed, count)
    stacked: list[list[Any]] = []
    for step in range(count):
        parts = [relay.take(one, const(step, "int64"), axis=0) for one in sequences]
        results = _tensors(node, graph.inside(body, [*carried, *parts, *fixed]))
        carried = list(results[: len(carried)])
        stacked.append(results[len(carried) :])
    columns: list[RelayExpr] = [relay.stack(list(column), 0) for column in zip(*stacked, strict=True)]
    return carried, columns


def _loop_of_steps(
    graph: GraphImporter,
    node: TorchNode,
    body: Any,
    carried: list[Any],
    sequences: list[Any],
    fixed: list[Any],
    count: int,
) -> tuple[list[Any], list[RelayExpr]]:
    """The same as a loop, whose variables are the step, the carried values and the results so far."""
    start = [one if isinstance(one, ExprWithOp) else node.tensor(one) for one in carried]

    def at(step: Any, values: Sequence[Any]) -> list[RelayExpr]:
        parts = [relay.take(one, step, axis=0) for one in sequences]
        return _tensors(node, graph.inside(body, [*values, *parts, *fixed]))

    # One step is converted to see the types of the results.
    example = at(const(0, "int64"), start)[len(start) :]
    kinds = [node.type_of(one) for one in example]
    if any(None in node.shape(one) for one in example):
        raise node.fail("the shapes of the results of a step are not known")
    empty = [
        relay.zeros((count, *node.static_shape(one)), str(kind.dtype))
        for one, kind in zip(example, kinds, strict=True)
    ]
    names = [Var("step", TensorType((), "int64"))]
    names += [_as_variable(node, f"carried_{place}", value) for place, value in enumerate(start)]
    names += [_as_variable(node, f"results_{place}", value) for place, value in enumerate(empty)]

    def following(step: Any, *values: Any) -> list[RelayExpr]:
        results = at(step, values[: len(start)])
        written = [
            relay.scatter_nd(old, relay.reshape(step, (1, 1)), relay.expand_dims(new, 0), "update")
            for old, new in zip(values[len(start) :], results[len(start) :], strict=True)
        ]
        return [relay.add(step, const(1, "int64")), *results[: len(start)], *written]

    loop = recursive_loop(lambda step, *_: relay.less(step, const(count, "int64")), names, following)
    final = Call(loop, [const(0, "int64"), *start, *empty])
    fields = [TupleGetItem(final, 1 + place) for place in range(len(start) + len(empty))]
    return list(fields[: len(start)]), list(fields[len(start) :])


def scan(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A graph applied to each slice of sequences, with values that it hands on."""
    body, carried, sequences, *more = args
    fixed = list(more[0]) if more else list(kwargs.get("additional_inputs", ()))
    last, columns = _steps(graph, node, body, list(carried), list(sequences), fixed)
    return [*last, *columns]


def map_impl(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A graph applied to each slice of sequences."""
    body, sequences, *more = args
    fixed = list(more[0]) if more else []
    return _steps(graph, node, body, [], list(sequences), fixed)[1]


def wrapped(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A graph in a setting that matters to training only (whether gradients are recorded), or a plain call of it."""
    for place, argument in enumerate(args):
        if hasattr(argument, "graph") and hasattr(argument, "code"):
            return graph.inside(argument, args[place + 1 :])
    raise node.fail("it has no graph among its arguments")


def with_effects(
    graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """An operator whose place in the order of calls matters, and the token that stands for the order."""
    token, operator, *given = args
    result = graph.called(node, operator, given, kwargs)
    return [token, *(result if isinstance(result, list) else [result])]


HIGHER_ORDER: Final[dict[str, HigherOrder]] = {
    "cond": cond,
    "while_loop": while_loop,
    "scan": scan,
    "map_impl": map_impl,
    "map": map_impl,
    "wrap_with_set_grad_enabled": wrapped,
    "wrap_with_autocast": wrapped,
    "wrap": wrapped,
    "wrap_activation_checkpoint": wrapped,
    "tag_activation_checkpoint": wrapped,
    "invoke_subgraph": wrapped,
    "with_effects": with_effects,
    "checkpoint": wrapped,
}
"""By the names of the operators."""
