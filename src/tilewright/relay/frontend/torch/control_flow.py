"""PyTorch's higher-order operators, which take graphs as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright.relay.expr import If, Tuple, TupleGetItem
from tilewright.relay.frontend.torch.graph import GraphImporter, HigherOrder, flat_outputs
from tilewright.relay.frontend.torch.node import TorchNode


def _tuple(node: TorchNode, result: Any) -> Tuple:
    fields = flat_outputs(result)
    if any(field is None for field in fields):
        raise node.fail("a branch returns None among its results")
    return Tuple([field for field in fields if field is not None])


def cond(graph: GraphImporter, node: TorchNode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The results of one of two graphs."""
    predicate, when_true, when_false, *operands = args
    given = operands[0] if operands else []
    if isinstance(predicate, bool):
        return graph.inside(when_true if predicate else when_false, given)
    condition = node.cast(predicate, "bool")
    one = _tuple(node, graph.inside(when_true, given))
    chosen = If(condition, one, _tuple(node, graph.inside(when_false, given)))
    return [TupleGetItem(chosen, place) for place in range(len(one.fields))]


HIGHER_ORDER: Final[dict[str, HigherOrder]] = {"cond": cond}
"""By the names of the operators."""
