"""Branches and loops, as expressions that the virtual machine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, If, Let, Tuple, TupleGetItem, Var
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import Size, all_known, as_scalar, broadcast_to, sizes_of
from tilewright.relay.frontend.tensorflow.values import PendingList
from tilewright.relay.function import Function
from tilewright.relay.infer import type_of

_ATTEMPTS = 4
"""How often the sizes that a loop changes are looked for."""


def as_condition(node: GraphNode, data: Expr) -> Expr:
    """A scalar truth value; numbers are true unless they are zero."""
    made = data if node.dtype(data) == "bool" else relay.not_equal(data, node.constant(0, data))
    return relay.reshape(made, ()) if node.rank(made) else made


def branched(
    node: GraphNode, condition: Expr, yes: Callable[[], Sequence[Expr]], no: Callable[[], Sequence[Expr]]
) -> list[Expr]:
    """The results of one of two graphs; only one of them is converted where the condition is known."""
    known = node.value(condition)
    if known is not None:
        return list(yes() if known.reshape(-1)[0] else no())
    one, other = list(yes()), list(no())
    chosen = If(as_condition(node, condition), Tuple(one), Tuple(other))
    return [TupleGetItem(chosen, place) for place in range(len(one))]


def looped(
    node: GraphNode,
    initial: Sequence[Any],
    test: Callable[[list[Any]], Expr],
    body: Callable[[list[Any]], Sequence[Any]],
) -> list[Any]:
    """Values that a body replaces while a test of them holds.

    Sizes that the body changes are unknown in the types of the loop's variables.
    """
    initial = _started(node, initial, body)
    # Values other than tensors (a list to which the loop never writes) pass through unchanged.
    passed = [place for place, value in enumerate(initial) if not isinstance(value, RelayExpr)]
    if passed:
        return _looped_without(node, initial, passed, test, body)
    kinds: list[Type] = [type_of(value, node.module) for value in initial]
    for _ in range(_ATTEMPTS):
        variables = [Var(f"carried_{place}", kind) for place, kind in enumerate(kinds)]
        condition = as_condition(node, test(list(variables)))
        results = list(body(list(variables)))
        if len(results) != len(variables):
            raise node.fail(f"the loop has {len(variables)} variables, its body {len(results)} results")
        found = [
            _general(node, kind, type_of(result, node.module))
            for kind, result in zip(kinds, results, strict=True)
        ]
        if all(_same(one, other) for one, other in zip(kinds, found, strict=True)):
            break
        kinds = found
    loop = Var("while_loop")
    again: RelayExpr = Call(loop, results)
    function = Function(variables, If(condition, again, Tuple(variables)))
    final = Call(Let(loop, function, loop), list(initial))
    return [TupleGetItem(final, place) for place in range(len(initial))]


def _started(
    node: GraphNode, initial: Sequence[Any], body: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """The values with which a loop begins. A list to which only the loop writes has zeros of the type that the body
    gives it."""
    pending = [place for place, value in enumerate(initial) if isinstance(value, PendingList)]
    if not pending:
        return list(initial)
    variables = [
        Var(f"carried_{place}", type_of(value, node.module)) if isinstance(value, RelayExpr) else value
        for place, value in enumerate(initial)
    ]
    results = list(body(list(variables)))
    made = list(initial)
    sizes = _element_sizes(node, results, pending, initial, body)
    for place in pending:
        value = initial[place]
        if place in sizes and isinstance(value, PendingList):
            count = as_scalar(value.count)
            zero = node.constant(0, value.dtype)
            shape = sizes[place]
            made[place] = (
                relay.full(zero, (value.count, *shape), value.dtype)
                if isinstance(value.count, int) and all_known(shape)
                else broadcast_to(
                    node, zero, [value.count if isinstance(value.count, int) else count, *shape]
                )
            )
    return made


def _element_sizes(
    node: GraphNode,
    results: Sequence[Any],
    pending: Sequence[int],
    initial: Sequence[Any],
    body: Callable[[list[Any]], Sequence[Any]],
) -> dict[int, list[Size]]:
    """The sizes of the elements of lists as the body writes them. Those that the program computes are those which the
    first round writes."""
    found = {
        place: sizes_of(node, results[place])[1:]
        for place in pending
        if isinstance(results[place], RelayExpr)
    }
    if all(all_known(sizes) for sizes in found.values()):
        return found
    first = list(body(list(initial)))
    return {place: sizes_of(node, first[place])[1:] for place in found}


def _looped_without(
    node: GraphNode,
    initial: Sequence[Any],
    passed: Sequence[int],
    test: Callable[[list[Any]], Expr],
    body: Callable[[list[Any]], Sequence[Any]],
) -> list[Any]:
    """A loop over the tensors among its values."""
    carried = [place for place in range(len(initial)) if place not in passed]

    def whole(values: list[Any]) -> list[Any]:
        everything = list(initial)
        for place, value in zip(carried, values, strict=True):
            everything[place] = value
        return everything

    def following(values: list[Any]) -> list[Any]:
        results = list(body(whole(values)))
        return [results[place] for place in carried]

    final = looped(node, [initial[place] for place in carried], lambda values: test(whole(values)), following)
    return whole(list(final))


def _general(node: GraphNode, one: Type, other: Type) -> Type:
    """The type that holds values of both."""
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return one
    if one.dtype != other.dtype or len(one.shape) != len(other.shape):
        raise node.fail(f"a variable of the loop is {one} first and {other} after a round")
    return TensorType(
        [
            first if _extent(first) is not None and _extent(first) == _extent(second) else UnknownDimension()
            for first, second in zip(one.shape, other.shape, strict=True)
        ],
        one.dtype,
    )


def _extent(extent: Any) -> int | None:
    return getattr(extent, "value", None)


def _same(one: Type, other: Type) -> bool:
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return True
    return [_extent(size) for size in one.shape] == [_extent(size) for size in other.shape]
