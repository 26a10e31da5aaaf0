"""Values that a condition chooses at run time.

Results of two branches that have one type, up to dimensions that are left open, become an ``If`` of the program. Others
stay apart as a ``ChoiceValue``: each node that reads one is converted for either value, under the assumption that goes
with it, and all of them are joined in one ``If`` where the graph ends. This is how a squeeze that an exporter guards
(``If(d == 1, Squeeze, Identity)``) converts where the shape is open: the ranks differ, and what depends on the rank is
known on either side. There is one ``If`` because the values of a side share what they are computed from: that must not
be computed where the other side is taken, and an expression that two ``If`` read is.

A side that cannot be converted is one that the model cannot take with these types; the program stops with the reason
where it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import GlobalTypeVar, TypeVar
from tilewright.relay.adt import Clause, Match, PatternConstructor, PatternVar
from tilewright.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from tilewright.relay.frontend.common import ModelNode
from tilewright.relay.frontend.common.needs import ShapeNeeded, ValueNeeded
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.values import ChoiceValue, leaves, rebuilt, structure
from tilewright.support.errors import ModelError
from tilewright.support.span import SourceName, Span

MOST_ALTERNATIVES = 16
"""Values that stay apart at most: conditions that have nothing to do with each other multiply."""


def widened(first: TensorType, second: TensorType) -> TensorType | None:
    """The type that both have, dimensions that differ left open; None where rank or element type differ."""
    if first.dtype is not second.dtype or len(first.shape) != len(second.shape):
        return None
    return TensorType(
        [
            one
            if isinstance(one, IntImm) and isinstance(other, IntImm) and one.value == other.value
            else UnknownDimension()
            for one, other in zip(first.shape, second.shape, strict=True)
        ],
        first.dtype,
    )


def of_type(value: RelayExpr, wanted: TensorType) -> RelayExpr:
    """A value under a type that leaves dimensions open."""
    variable = Var("open", wanted)
    return Let(variable, value, variable)


@dataclass(frozen=True)
class _OneSide:
    """The results where only one of two conversions is possible."""

    results: list[Any]


def alternatives(
    node: Node,
    condition: RelayExpr,
    first: Callable[[], Sequence[Any]],
    second: Callable[[], Sequence[Any]],
) -> list[Any]:
    """The results of one of two conversions, as a condition chooses at run time."""
    sides = _both_sides(node, condition, first, second)
    return sides.results if isinstance(sides, _OneSide) else _merged(node, condition, *sides)


def _both_sides(
    node: Node,
    condition: RelayExpr,
    first: Callable[[], Sequence[Any]],
    second: Callable[[], Sequence[Any]],
) -> tuple[list[Any], list[Any]] | _OneSide:
    one, other = _attempt(node, condition, True, first), _attempt(node, condition, False, second)
    if isinstance(one, ModelError):
        if isinstance(other, ModelError):
            raise one
        return _OneSide(_guarded(node, condition, other, False, one))
    if isinstance(other, ModelError):
        return _OneSide(_guarded(node, condition, one, True, other))
    if len(one) != len(other):
        raise node.fail(f"the branches have {len(one)} and {len(other)} outputs")
    return one, other


def _attempt(
    node: Node, condition: RelayExpr, holds: bool, convert: Callable[[], Sequence[Any]]
) -> list[Any] | ModelError:
    """What a conversion gives if the condition holds or not, or why the model cannot be converted then."""
    with node.graph.assuming(condition, holds):
        try:
            return list(convert())
        except (ShapeNeeded, ValueNeeded):
            raise
        except ModelError as error:
            return error


def _merged(node: Node, condition: RelayExpr, first: list[Any], second: list[Any]) -> list[Any]:
    """The results of both sides: one ``If`` where all of them have a type in common, else each apart."""
    pairs = [(one, _same_constant(node, one, other)) for one, other in zip(first, second, strict=True)]
    if all(one is other or _have_common_type(node, one, other) for one, other in pairs):
        return join(node, condition, pairs)
    return [one if one is other else _apart(node, condition, one, other) for one, other in pairs]


def propagated(node: Node, condition: RelayExpr, convert: Callable[[], Sequence[Any]]) -> list[Any]:
    """The results of a node for either value of what it reads, apart."""
    sides = _both_sides(node, condition, convert, convert)
    if isinstance(sides, _OneSide):
        return sides.results
    return [
        one if one is other else _apart(node, condition, one, other)
        for one, other in ((one, _same_constant(node, one, other)) for one, other in zip(*sides, strict=True))
    ]


def _same_constant(node: Node, one: Any, other: Any) -> Any:
    """The second value, or the first where both are the same constant."""
    both = isinstance(one, Constant) and isinstance(other, Constant)
    if (
        both
        and node.type_of(one) == node.type_of(other)
        and np.array_equal(one.data.numpy(), other.data.numpy())
    ):
        return one
    return other


def _have_common_type(node: ModelNode, one: Any, other: Any) -> bool:
    """True where values can be joined in an ``If`` without forgetting a number that decides shapes and branches."""
    if (
        isinstance(one, ChoiceValue)
        or isinstance(other, ChoiceValue)
        or structure([one]) != structure([other])
    ):
        return False
    for pair in zip(leaves([one]), leaves([other]), strict=True):
        if widened(*(node.type_of(value) for value in pair)) is None:
            return False
        items = [node.partial(value) for value in pair] if isinstance(node, Node) else []
        known = [any(item is not None for item in found) for found in items if found is not None]
        if any(known) and items[0] != items[1]:
            return False
    return True


def _apart(node: Node, condition: RelayExpr, one: Any, other: Any) -> ChoiceValue:
    choice = ChoiceValue(condition, one, other)
    if choice.count > MOST_ALTERNATIVES:
        raise node.needs_value(condition, f"one of the conditions that choose from {choice.count} values")
    return choice


def join(node: ModelNode, condition: RelayExpr, pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Pairs of values as one value each: all that differ are chosen by one ``If``."""
    left: list[RelayExpr] = []
    right: list[RelayExpr] = []
    for one, other in pairs:
        if one is other:
            continue
        if structure([one]) != structure([other]):
            raise node.needs_value(condition, "the condition of branches that give different sequences")
        for tensors in zip(leaves([one]), leaves([other]), strict=True):
            kinds = [node.type_of(tensor) for tensor in tensors]
            both = widened(*kinds)
            if both is None:
                raise node.needs_value(
                    condition, f"the condition of branches that give {kinds[0]} and {kinds[1]}"
                )
            left.append(tensors[0] if both == kinds[0] else of_type(tensors[0], both))
            right.append(tensors[1] if both == kinds[1] else of_type(tensors[1], both))
    made = _chosen(node, condition, left, right)
    return [one if one is other else rebuilt(one, made) for one, other in pairs]


def _chosen(
    node: ModelNode, condition: RelayExpr, left: Sequence[RelayExpr], right: Sequence[RelayExpr]
) -> list[RelayExpr]:
    """Tensors of equal types, those of one side or of the other."""
    if not left:
        return []
    rank = node.rank(condition)
    test = condition if rank == 0 else relay.reshape(condition, ())
    if len(left) == 1:
        return [If(test, left[0], right[0])]
    chosen = If(test, Tuple(left), Tuple(right))
    return [TupleGetItem(chosen, place) for place in range(len(left))]


def _guarded(
    node: ModelNode, condition: RelayExpr, values: Sequence[Any], holds: bool, error: ModelError
) -> list[Any]:
    """The values of the side that can be converted; where the other is taken, the program stops with the reason."""
    results: list[Any] = []
    for value in values:
        if isinstance(value, ChoiceValue):
            parts = [
                _guarded(node, condition, [part], holds, error)[0] for part in (value.first, value.second)
            ]
            results.append(ChoiceValue(value.condition, *parts))
            continue
        tensors = leaves([value])
        stops = [_stop(node, node.type_of(tensor), error) for tensor in tensors]
        sides = (tensors, stops) if holds else (stops, tensors)
        results.append(rebuilt(value, _chosen(node, condition, *sides)))
    return results


def _stop(node: ModelNode, kind: TensorType, error: ModelError) -> RelayExpr:
    """An expression of a type that never has a value: a match that no clause fits. Its place in the model is the
    reason, which the program gives when it gets there."""
    fits, nothing = _outcome(node.module)
    value = Var("value", kind)
    reason = Span(SourceName(f"{node.op_type} {node.name}, a branch that does not fit: {error}"), 0, 0, 0, 0)
    clause = Clause(PatternConstructor(fits, [PatternVar(value)]), value)
    return Match(Call(nothing, ()), [clause], complete=False, span=reason)


def _outcome(module: IRModule) -> tuple[Constructor, Constructor]:
    """The constructors of a type that has a value or none."""
    name = "Outcome"
    for header, definition in module.type_definitions.items():
        if header.name_hint == name:
            return definition.constructors[0], definition.constructors[1]
    header, element = GlobalTypeVar(name), TypeVar("T")
    made = TypeData(
        header, [element], [Constructor("Fits", [element], header), Constructor("Unfit", [], header)]
    )
    module[header] = made
    return made.constructors[0], made.constructors[1]


def committed(node: ModelNode, values: Sequence[Any], ranks: Sequence[int | None]) -> list[Any]:
    """The results of a graph, those that a condition chooses as tensors of the program; an error where no type
    describes both.

    ``ranks`` are the numbers of dimensions that the graph declares, None where it does not: a side that has another is
    never taken.
    """
    found = [_pruned(node, value, rank) for value, rank in zip(values, ranks, strict=True)]
    choice = next((value for value in found if isinstance(value, ChoiceValue)), None)
    if choice is None:
        return found
    sides = []
    for holds in (True, False):
        taken = [_taken(value, choice.condition, holds) for value in found]
        sides.append(committed(node, taken, ranks))
    return join(node, choice.condition, list(zip(*sides, strict=True)))


def _taken(value: Any, condition: RelayExpr, holds: bool) -> Any:
    """What is left of a value where a condition holds, or where it does not."""
    if not isinstance(value, ChoiceValue):
        return value
    if value.condition is condition:
        return _taken(value.first if holds else value.second, condition, holds)
    first, second = (_taken(side, condition, holds) for side in (value.first, value.second))
    return (
        value
        if first is value.first and second is value.second
        else ChoiceValue(value.condition, first, second)
    )


def _pruned(node: ModelNode, value: Any, rank: int | None) -> Any:
    """A choice without the sides that have another number of dimensions than the model declares."""
    if not isinstance(value, ChoiceValue) or rank is None:
        return value
    one, other = _pruned(node, value.first, rank), _pruned(node, value.second, rank)
    fits = [_has_rank(node, side, rank) for side in (one, other)]
    if fits[0] == fits[1]:
        return ChoiceValue(value.condition, one, other)
    error = ModelError(f"the model declares {rank} dimensions, and here are others")
    return _guarded(node, value.condition, [one if fits[0] else other], fits[0], error)[0]


def pruned(node: ModelNode, values: Sequence[Any], infos: Sequence[Any]) -> list[Any]:
    """Results of a graph without the sides of choices that contradict what the graph declares."""
    return [_pruned(node, value, declared_rank(info)) for value, info in zip(values, infos, strict=True)]


def _has_rank(node: ModelNode, value: Any, rank: int) -> bool:
    return not isinstance(value, RelayExpr) or node.rank(value) == rank


def declared_rank(info: Any) -> int | None:
    """How many dimensions a graph declares for one of its outputs, if it does."""
    kind = info.type
    if kind.WhichOneof("value") != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return None
    return len(kind.tensor_type.shape.dim)
