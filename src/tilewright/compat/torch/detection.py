"""TVM's ``relay.frontend.pytorch_utils``: rewrites of torchvision's traced detectors, which users apply by name.

A model that has not the form that a rewrite looks for stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.backend.preparation import with_main
from tilewright.relay.expr import Call, Constant, If, Tuple, TupleGetItem, const

__all__ = [
    "rewrite_batched_nms_with_max_out_size",
    "rewrite_nms_to_batched_nms",
    "rewrite_scatter_to_gather",
]

_SUPPRESSION: Final = "vision.non_max_suppression"
_VIEWS: Final = (
    "broadcast_to",
    "cast",
    "dyn.broadcast_to",
    "dyn.reshape",
    "expand_dims",
    "reshape",
    "squeeze",
)
_PARTS: Final = ("dyn.strided_slice", "strided_slice")


def rewrite_nms_to_batched_nms(mod: IRModule) -> IRModule:
    """The module with suppression class by class in place of torchvision's trick: to move the boxes of each class so
    far that those of different classes do not overlap."""
    return _rewritten(mod, _by_class)


def rewrite_batched_nms_with_max_out_size(mod: IRModule) -> IRModule:
    """The module with suppression that ends at as many boxes as are kept of its result."""
    return _rewritten(mod, _limited)


def rewrite_scatter_to_gather(mod: IRModule, num_scales: int) -> IRModule:
    """The module with features of ``num_scales`` scales put in order by one gather.

    torchvision writes the features of each scale to the rows whose level is that scale. Every row must have one of the
    levels, which torchvision ensures.
    """
    return _rewritten(mod, lambda call: _gathered(call, num_scales))


def _rewritten(mod: IRModule, change: Callable[[Call], RelayExpr | None]) -> IRModule:
    """The module with every call in ``main`` replaced for which there is a replacement."""
    main = mod["main"]
    return with_main(mod, _replaced(main, change))


def _replaced(root: Any, change: Callable[[Call], RelayExpr | None]) -> Any:
    made: dict[Any, Any] = {}
    for node in post_order(root):
        current: Any = node.map_children(made.__getitem__)
        if isinstance(current, Call):
            better = change(current)
            current = current if better is None else better
        made[node] = current
    return made[root]


def _calls(expr: Any, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def _behind(expr: Any, *names: str) -> Any:
    """What an expression is computed from, through any number of calls of these operators."""
    while _calls(expr, *names):
        expr = expr.args[0]
    return expr


# Class by class


def _by_class(call: Call) -> RelayExpr | None:
    """Suppression of the boxes where they were, with their classes, for one of moved boxes."""
    attrs: Any = call.attrs
    if not _calls(call, _SUPPRESSION) or attrs.id_index >= 0:
        return None
    joined = _behind(call.args[0], "expand_dims")
    if not _calls(joined, "concatenate") or not isinstance(joined.args[0], Tuple):
        return None
    ranks, sorted_boxes = joined.args[0].fields
    if not isinstance(sorted_boxes, Call) or not _calls(sorted_boxes, "take"):
        return None
    moved, order = sorted_boxes.args
    found = _unmoved(moved)
    if found is None:
        return None
    boxes, classes = found
    fields = [
        relay.expand_dims(relay.take(classes, order, axis=0), 1),
        ranks,
        relay.take(boxes, order, axis=0),
    ]
    data = relay.expand_dims(relay.concatenate(fields, 1), 0)
    by_class = type(attrs)(force_suppress=False, top_k=attrs.top_k, coord_start=2, score_index=1, id_index=0)
    return Call(call.op, [data, *call.args[1:]], by_class, span=call.span)


def _unmoved(moved: Any) -> tuple[Any, Any] | None:
    """The boxes and the classes of ``boxes + classes * (max(boxes) + 1)``."""
    if not _calls(moved, "add"):
        return None
    for boxes, offset in (moved.args, reversed(moved.args)):
        product = _behind(offset, *_VIEWS, *_PARTS)
        if not _calls(product, "multiply"):
            continue
        for classes, reach in (product.args, reversed(product.args)):
            terms = _behind(reach, *_VIEWS)
            if _calls(terms, "add") and any(
                _calls(largest, "max") and _behind(largest.args[0], *_VIEWS) is _behind(boxes, *_VIEWS)
                for largest in (_behind(term, *_VIEWS) for term in terms.args)
            ):
                return boxes, classes
    return None


# As many boxes as are kept


def _limited(call: Call) -> RelayExpr | None:
    """A slice of what suppression keeps, with that limit in the suppression."""
    if not _calls(call, "strided_slice"):
        return None
    attrs: Any = call.attrs
    first, last, steps = ([int(one) for one in given] for given in (attrs.begin, attrs.end, attrs.strides))
    if first != [0] or len(last) != 1 or last[0] <= 0 or steps not in ([], [1]):
        return None
    kept = call.args[0]
    branch = kept.false_branch if isinstance(kept, If) else kept
    suppression = _suppression_behind(branch)
    if suppression is None:
        return None
    limit = suppression.args[3]
    if not isinstance(limit, Constant) or 0 <= int(limit.data.numpy()) <= last[0]:
        return None
    arguments = [*suppression.args[:3], const(last[0], "int32"), *suppression.args[4:]]
    smaller = Call(suppression.op, arguments, suppression.attrs, suppression.type_args, suppression.span)
    made = _replaced(branch, lambda one: smaller if one is suppression else None)
    if isinstance(kept, If):
        made = If(kept.cond, kept.true_branch, made, kept.span)
    return Call(call.op, [made, *call.args[1:]], call.attrs, call.type_args, call.span)


def _suppression_behind(expr: Any) -> Any:
    """The suppression whose indices an expression selects rows by."""
    while True:
        if _calls(expr, *_VIEWS, *_PARTS):
            expr = expr.args[0]
        elif _calls(expr, "take"):
            expr = expr.args[1]
        elif isinstance(expr, TupleGetItem) and expr.index == 0:
            expr = expr.tuple_value
        else:
            return expr if _calls(expr, _SUPPRESSION) else None


# Scales in order


def _gathered(call: Call, scales: int) -> RelayExpr | None:
    """A gather for a chain of scatters."""
    rows: list[Any] = []
    sources: list[Any] = []
    current: Any = call
    while _calls(current, "scatter") and current.attrs.axis == 0:
        current, index, source = current.args
        rows.append(_behind(index, *_VIEWS))
        sources.append(source)
    if len(sources) != scales or not _are_levels(rows):
        return None
    places = relay.concatenate([relay.reshape(one, (-1,)) for one in rows], 0)
    order = relay.argsort(places, 0, True, "int64")
    return relay.take(relay.concatenate(sources, 0), order, axis=0)


def _are_levels(rows: list[Any]) -> bool:
    """True if each of these are the rows where the same levels equal another number."""
    compared = []
    for one in rows:
        test = _behind(one, *_VIEWS, "take", "argwhere")
        if not _calls(test, "equal"):
            return False
        numbers = [_behind(side, *_VIEWS) for side in test.args]
        constants = [side for side in numbers if isinstance(side, Constant)]
        others = [side for side in numbers if not isinstance(side, Constant)]
        if len(constants) != 1 or constants[0].data.numpy().size != 1:
            return False
        compared.append((others[0], constants[0].data.numpy().item()))
    levels = {level for level, _ in compared}
    return len(levels) == 1 and len({number for _, number in compared}) == len(rows)
