"""``annotation.checkpoint`` in gradients: the operators that lead to a checkpoint are recomputed for the backward pass
instead of stored.

The segment of a checkpoint are the operator calls, tuples and fields that are used only for it. It begins after
variables, constants, other checkpoints, values that are not computed by operators, and values that are also used
elsewhere: those are stored.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.gradient_rules import CHECKPOINT, is_made_of_tensors

SEGMENT = "CheckpointSegment"
"""The attribute of a function that is a segment."""


def is_checkpoint(node: Any) -> bool:
    """True for the annotation."""
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == CHECKPOINT


def _may_belong(node: Any) -> bool:
    if isinstance(node, Call) and not isinstance(node.op, Op):
        return False
    if not isinstance(node, (Call, Tuple, TupleGetItem)):
        return False
    parts: tuple[Any, ...] = node.children()
    return all(isinstance(part, Op) or is_made_of_tensors(part.checked_type) for part in parts)


def checkpoint_owners(order: list[Any]) -> dict[RelayExpr, Call]:
    """The checkpoint of every node that belongs to a segment, from the nodes of a typed program in post order."""
    leads_to: dict[Any, Call | None] = {}
    owners: dict[RelayExpr, Call] = {}
    for node in reversed(order):
        target = leads_to.get(node)
        if is_checkpoint(node):
            target = node
        elif target is not None and _may_belong(node):
            owners[node] = target
        else:
            target = None
        for child in node.children():
            leads_to[child] = target if leads_to.get(child, target) is target else None
    return owners


class _Outline(ExprMutator):
    """Makes a function of each segment, and a call of it of each checkpoint."""

    def __init__(self, owners: dict[RelayExpr, Call]) -> None:
        super().__init__()
        self.owners = owners

    def visit_call(self, call: Call) -> RelayExpr:
        if not is_checkpoint(call):
            return call.map_children(self.visit)
        inner = call.args[0]
        if self.owners.get(inner) is not call:
            return self.visit(inner)  # type: ignore[no-any-return]
        parameters: dict[RelayExpr, Var] = {}
        made: dict[Any, Any] = {}

        def inside(child: Any) -> Any:
            if child in made or isinstance(child, (Op, Constant)):
                return made.get(child, child)
            if child not in parameters:
                parameters[child] = Var(f"c{len(parameters)}", child.checked_type)
            return parameters[child]

        for node in _members(inner, self.owners, call):
            made[node] = node.map_children(inside)
        function = Function(list(parameters.values()), made[inner], call.checked_type, (), {SEGMENT: 1})
        return Call(function, [self.visit(outside) for outside in parameters], span=call.span)


def _members(inner: RelayExpr, owners: dict[RelayExpr, Call], owner: Call) -> list[Any]:
    """The nodes of a segment, what they are made of first."""
    found: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(inner, False)]
    while stack:
        node, done = stack.pop()
        if done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(child, False) for child in node.children() if owners.get(child) is owner]
    return found


def outline_checkpoints(function: Function) -> Function:
    """The typed function with every segment as a separate function, which is called in place of the checkpoint."""
    owners = checkpoint_owners(post_order(function))
    made: Function = _Outline(owners).visit(function)
    return made
