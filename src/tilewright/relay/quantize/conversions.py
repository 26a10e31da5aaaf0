"""Conversions of inputs and outputs in functions of their own, so that a device can have the integers between them.

``main`` calls ``quantize_inputs``, ``quantized_main`` and ``dequantize_outputs``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.quantize.rules import operator

_CONVERTING: Final = frozenset({"cast", "multiply", "divide", "round", "clip", "annotation.stop_fusion"})


def _dtype(expr: RelayExpr) -> str:
    kind: Any = expr.checked_type
    return str(kind.dtype) if isinstance(kind, TensorType) else ""


def _converted(expr: RelayExpr) -> RelayExpr | None:
    """The expression that elementwise conversions with constants start from; None for other operators."""
    if not isinstance(expr, Call) or operator(expr) not in _CONVERTING:
        return None
    data = [one for one in expr.args if not isinstance(one, Constant)]
    return data[0] if len(data) == 1 else None


class _Cut(ExprMutator):
    """Replaces expressions by variables."""

    def __init__(self, known: dict[RelayExpr, Var]) -> None:
        super().__init__()
        self.known = known

    def visit(self, expr: RelayExpr) -> Any:
        return self.known[expr] if expr in self.known else super().visit(expr)


def _conversions_of_inputs(main: Function, integers: Collection[str]) -> list[RelayExpr]:
    """Casts to integers whose only floats are those of one input, converted."""
    found: list[RelayExpr] = []
    for expr in post_order(main.body):
        if not isinstance(expr, Call) or operator(expr) != "cast" or _dtype(expr) not in integers:
            continue
        inner: RelayExpr | None = expr
        while inner is not None and not (isinstance(inner, Var) and inner in main.params):
            inner = _converted(inner)
            if inner is not None and _dtype(inner) in integers:
                break
        if isinstance(inner, Var) and _dtype(inner) not in integers:
            found.append(expr)
    return found


def _integers_of_output(output: RelayExpr, integers: Collection[str]) -> RelayExpr:
    """The integers that an output is the conversion of; the output itself where it is none."""
    inner: RelayExpr | None = output
    while inner is not None:
        if _dtype(inner) in integers:
            return inner
        inner = _converted(inner)
    return output


def partition_conversions(mod: IRModule, integers: Collection[str], fully_integral: bool) -> IRModule:
    """The module in three functions. ``fully_integral`` asserts that the one in the middle is on integers only."""
    mod = infer_module(mod)
    main: Any = mod["main"]
    inputs = _conversions_of_inputs(main, integers)
    outputs = list(main.body.fields) if isinstance(main.body, Tuple) else [main.body]
    results = [_integers_of_output(one, integers) for one in outputs]

    variables = {one: Var(f"quantized_{place}", one.checked_type) for place, one in enumerate(inputs)}
    cut = _Cut(variables)
    core = [cut.visit(one) for one in results]
    inner = Tuple(core)
    others = [one for one in free_vars(inner) if one not in variables.values()]
    passed = {one: Var(f"result_{place}", one.checked_type) for place, one in enumerate(results)}
    restore = _Cut(passed)
    restored = [restore.visit(one) for one in outputs]
    quantize = Function([*main.params], Tuple([*inputs, *others]))
    middle = Function([*variables.values(), *others], inner)
    dequantize = Function(
        list(passed.values()), Tuple(restored) if isinstance(main.body, Tuple) else restored[0]
    )
    if fully_integral:
        _require_integers(middle, integers)
    names = [GlobalVar(one) for one in ("quantize_inputs", "quantized_main", "dequantize_outputs")]
    made = IRModule(dict(zip(names, (quantize, middle, dequantize), strict=True)))
    params = [Var(one.name_hint, one.checked_type) for one in main.params]
    first = Call(names[0], tuple(params))
    second = Call(names[1], tuple(TupleGetItem(first, place) for place in range(len(middle.params))))
    third = Call(names[2], tuple(TupleGetItem(second, place) for place in range(len(results))))
    made["main"] = Function(params, third, attrs=main.attrs)
    return infer_module(made)


def _require_integers(middle: Function, integers: Collection[str]) -> None:
    typed: Any = infer_module(IRModule.from_expr(middle))["main"]
    for expr in [*typed.params, *post_order(typed.body)]:
        kind = expr.checked_type if isinstance(expr, (Var, Call, Constant)) else None
        if isinstance(kind, TensorType) and str(kind.dtype) not in integers:
            what = operator(expr) or getattr(expr, "name_hint", "a constant")
            raise AssertionError(
                f"the program is not on integers only: {what} is {kind}, and partition_conversions is 'fully_integral'"
            )
