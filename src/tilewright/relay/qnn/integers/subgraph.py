"""The expression between ``qnn.dequantize`` and ``qnn.quantize``, and its form in integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem
from tilewright.relay.qnn.integers.affine import (
    Affine,
    NotInteger,
    TensorAffineType,
    TupleAffineType,
    rescaled,
    tensor_type,
)

RULE = "FTVMFakeQuantizationToInteger"


def is_call(expr: Any, name: str) -> bool:
    """True for a call of the operator of this name."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def integer_form(quantize: Call) -> RelayExpr | None:
    """What a call of ``qnn.quantize`` is, computed on integers; None where an operator on the way has no rule, or
    where nothing on the way is quantised."""
    data, scale, zero_point = quantize.args
    attrs: Any = quantize.attrs
    wanted = TensorAffineType(scale, zero_point, attrs.out_dtype, attrs.axis)
    order = list(_subgraph(data))
    if not any(is_call(expr, "qnn.dequantize") for expr in order) or is_call(data, "qnn.dequantize"):
        return None
    made: dict[RelayExpr, RelayExpr] = {}
    affine: dict[RelayExpr, Affine] = {}
    try:
        for expr in order:
            _convert(expr, made, affine, wanted)
        result = made[data]
        return rescaled(result, tensor_type(affine[result]), wanted, attrs.out_dtype)
    except NotInteger:
        return None


def _subgraph(root: RelayExpr) -> Iterator[RelayExpr]:
    """The expressions from the leaves to the root, arguments first."""
    seen: set[RelayExpr] = set()
    stack: list[tuple[RelayExpr, bool]] = [(root, False)]
    while stack:
        expr, expanded = stack.pop()
        if expanded:
            yield expr
            continue
        if expr in seen:
            continue
        seen.add(expr)
        stack.append((expr, True))
        stack += [(part, False) for part in reversed(_arguments(expr))]


def _arguments(expr: RelayExpr) -> list[RelayExpr]:
    if is_call(expr, "qnn.dequantize"):
        return []
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        return list(expr.args)
    if isinstance(expr, Tuple):
        return list(expr.fields)
    return [expr.tuple_value] if isinstance(expr, TupleGetItem) else []


def _convert(
    expr: RelayExpr,
    made: dict[RelayExpr, RelayExpr],
    affine: dict[RelayExpr, Affine],
    wanted: TensorAffineType,
) -> None:
    """Add the form in integers of an expression whose parts have theirs."""
    if is_call(expr, "qnn.dequantize"):
        assert isinstance(expr, Call)
        data, scale, zero_point = expr.args
        attrs: Any = expr.attrs
        new, kind = data, TensorAffineType(scale, zero_point, str(_dtype(data)), attrs.axis)
    elif isinstance(expr, Constant):
        made[expr] = expr  # A rule that can use a number asks for it.
        return
    elif isinstance(expr, Tuple):
        fields = [made[field] for field in expr.fields]
        new, kind = Tuple(fields), TupleAffineType([tensor_type(affine.get(field)) for field in fields])  # type: ignore[assignment]
    elif isinstance(expr, TupleGetItem):
        value = made[expr.tuple_value]
        of_fields = affine[value]
        if not isinstance(of_fields, TupleAffineType):
            raise NotInteger("a field of what is not a tuple")
        new, kind = TupleGetItem(value, expr.index), of_fields.types[expr.index]
    elif isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.get_attr(RULE) is not None:
        call = Call(expr.op, [made[argument] for argument in expr.args], expr.attrs, span=expr.span)
        affine[call] = wanted
        new, kind = expr.op.get_attr(RULE)(call, affine)
    else:
        raise NotInteger(f"there is no rule for {expr}")
    made[expr] = new
    affine[new] = kind


def _dtype(data: RelayExpr) -> Any:
    kind: Any = data.checked_type
    return kind.dtype
