"""CheckIndices: operators that read or write at indices fail where an index is out of range.

By default an index that is out of range never touches memory outside a tensor, and never fails: reads take the nearest
element, writes are left out. Under ``PassContext(config={"relay.check_indices": True})`` the program stops with an
error that names the operator, the node of the model, the axis, the index and the bound.

Checked are take (but for the mode "wrap"), gather, gather_nd, adv_index, scatter, scatter_add, scatter_nd and
image.crop_and_resize. Not checked is one_hot, which is defined for every index: a row without a one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import dims
from tilewright.relay.op.transform.index_check import check_indices
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.span import Span


class _Checker(ExprMutator):
    """Puts checks before the indices of calls. Types are those of the program before."""

    def visit_call(self, call: Call) -> RelayExpr:
        made = call.map_children(self.visit)
        operator = call.op.name if isinstance(call.op, Op) else ""
        rule = _RULES.get(operator)
        if rule is None:
            return made
        what = f"{_place(call.span)} ({operator})" if call.span is not None else operator
        args = rule(call, list(made.args), what)
        return made if args is None else made.replace(args=tuple(args))


def _place(span: Span) -> str:
    """The node of a model, or the line of a program."""
    return f"{span.source_name}:{span.line}" if span.line else str(span.source_name)


def _rank(expr: RelayExpr) -> int:
    found = expr.checked_type
    return len(found.shape) if isinstance(found, TensorType) else 0


def _take(call: Call, args: list[Any], what: str) -> list[Any] | None:
    attrs: Any = call.attrs
    if attrs.mode == "wrap":
        return None
    axes = () if attrs.axis is None else (attrs.axis % _rank(call.args[0]),)
    data, indices = args
    given = _counted_from_back(indices)
    if given is None:
        return [data, check_indices(indices, data, what, axes)]
    checked = check_indices(given, data, what, axes, from_back=True)
    test, moved, _ = indices.args
    return [
        data,
        indices.replace(
            args=(
                test.replace(args=(checked, *test.args[1:])),
                moved.replace(args=(checked, *moved.args[1:])),
                checked,
            )
        ),
    ]


def _counted_from_back(indices: Any) -> RelayExpr | None:
    """The indices ``i`` of ``where(less(i, 0), add(i, n), i)``, with which frontends count from the back."""
    if not _is_call(indices, "where"):
        return None
    test, moved, given = indices.args
    counted = _is_call(test, "less") and _is_call(moved, "add")
    found: RelayExpr | None = given if counted and test.args[0] is given is moved.args[0] else None
    return found


def _is_call(expr: RelayExpr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _elements(call: Call, args: list[Any], what: str) -> list[Any]:
    """gather and scatter: an index along one axis."""
    attrs: Any = call.attrs
    data, indices, *rest = args
    axis = attrs.axis % _rank(call.args[0])
    return [data, check_indices(indices, data, what, (axis,), from_back=True), *rest]


def _vectors(call: Call, args: list[Any], what: str) -> list[Any] | None:
    """gather_nd and scatter_nd: index vectors along the first axis of the indices."""
    data, indices, *rest = args
    attrs: Any = call.attrs
    # scatter_nd has no batch.
    first = int(getattr(attrs, "batch_dims", 0))
    found = call.args[1].checked_type
    depth = dims(found)[0] if isinstance(found, TensorType) else None
    if not isinstance(depth, int):
        depth = attrs.index_rank
    axes = tuple(range(first, first + depth))
    return [data, check_indices(indices, data, what, axes, vectors=True, from_back=True), *rest]


def _by_tensors(call: Call, args: list[Any], what: str) -> list[Any] | None:
    """adv_index: a tuple of the data and an index tensor for each of its first axes."""
    if not isinstance(args[0], Tuple):
        return None
    data, *indices = args[0].fields
    checked = [check_indices(one, data, what, (axis,), from_back=True) for axis, one in enumerate(indices)]
    return [args[0].replace(fields=(data, *checked))]


def _boxes(call: Call, args: list[Any], what: str) -> list[Any]:
    data, boxes, numbers = args
    batch = str(call.attrs["layout"]).index("N")  # type: ignore[index]
    return [data, boxes, check_indices(numbers, data, what, (batch,))]


Rule = Callable[[Call, list[Any], str], Sequence[Any] | None]

_RULES: dict[str, Rule] = {
    "take": _take,
    "gather": _elements,
    "scatter": _elements,
    "scatter_add": _elements,
    "gather_nd": _vectors,
    "scatter_nd": _vectors,
    "adv_index": _by_tensors,
    "image.crop_and_resize": _boxes,
}


@dataclass(frozen=True)
class CheckIndices(FunctionPass):
    """Check indices, if the option ``relay.check_indices`` is set."""

    name = "CheckIndices"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        if not ctx.get("relay.check_indices"):
            return func
        made = _Checker().visit(func)
        assert isinstance(made, Function)
        return made
