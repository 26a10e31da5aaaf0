"""ToMixedPrecision: computes heavy operators in float16 or bfloat16, the rest in float32.

Convolutions and matrix products get 16-bit arguments, and accumulate in float32. Operators after them stay in the
16-bit type as long as they tolerate it; the others get float32 again. The lists are in ``mixed_precision_lists``; an
operator's own rule (``register_mixed_precision_conversion``) takes precedence.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.relay.adt import Clause, Match
from tilewright.relay.expr import Call, Constant, If, Let, RefCreate, RefWrite, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.mixed_precision_lists import CATEGORIES, Category
from tilewright.relay.transform.lib.rewriting import keep_type, made_type
from tilewright.support.errors import OpNotImplemented, TilewrightError
from tilewright.support.span import span_scope

WIDE = "float32"
NARROW = ("float16", "bfloat16")

ERROR, WARN, QUIET = 0, 1, 2


class _Convert(ExprMutator):
    """Rewrites; an expression of float32 may come out narrow, all others keep their types."""

    def __init__(self, narrow: str) -> None:
        super().__init__()
        self.narrow = narrow
        self.unknown: dict[str, None] = {}
        self.casts: dict[tuple[RelayExpr, str], RelayExpr] = {}
        self.source: dict[RelayExpr, RelayExpr] = {}
        """The arguments of the casts that this pass created."""

    # Types

    def as_dtype(self, expr: RelayExpr, dtype: str) -> RelayExpr:
        """A tensor in a type; a conversion is made once, and one that was made is not undone by another."""
        if _dtype(expr) == dtype:
            return expr
        source = self.source.get(expr)
        if source is not None and _dtype(source) == dtype:
            return source
        found = self.casts.get((expr, dtype))
        if found is None:
            with span_scope(getattr(expr, "span", None)):
                found = call("cast", expr, dtype=dtype)
            self.casts[expr, dtype] = found
            self.source[found] = expr
        return found

    def as_type(self, expr: RelayExpr, wanted: Type) -> RelayExpr:
        """A value whose tensors have the element types that a type says."""
        if isinstance(wanted, TensorType):
            return self.as_dtype(expr, str(wanted.dtype))
        if not isinstance(wanted, TupleType) or _element_types(made_type(expr)) == _element_types(wanted):
            return expr
        return Tuple(
            [self.as_type(field, each) for field, each in zip(_fields(expr), wanted.fields, strict=True)]
        )

    def narrowed(self, expr: RelayExpr) -> RelayExpr:
        """A value with all its tensors of float32 in the narrow type."""
        found = made_type(expr)
        if isinstance(found, TensorType):
            return self.as_dtype(expr, self.narrow) if str(found.dtype) == WIDE else expr
        if isinstance(found, TupleType) and WIDE in _element_types(found):
            return Tuple([self.narrowed(field) for field in _fields(expr)])
        return expr

    # Calls

    def visit_call(self, call: Call) -> RelayExpr:
        """By the category of the operator."""
        arguments = [self.visit(argument) for argument in call.args]
        if not isinstance(call.op, Op):
            callee = self.visit(call.op)
            return self._rebuilt(call, callee, self._as_before(call, arguments), call.attrs)
        category, accumulated, result = self._category(call, call.op)
        if category == Category.FOLLOW and not self._follows(arguments):
            category = Category.NEVER
        if not {WIDE, self.narrow} & {dtype for one in arguments for dtype in _element_types(made_type(one))}:
            category = Category.NEVER
        if category == Category.NEVER:
            return self._rebuilt(call, call.op, self._as_before(call, arguments), call.attrs)
        attrs: Any = call.attrs
        if getattr(attrs, "out_dtype", None) in ("", WIDE):
            attrs = attrs.replace(out_dtype=accumulated)
        arguments = [self.narrowed(argument) for argument in arguments]
        made = self._rebuilt(call, call.op, arguments, attrs)
        found = made_type(made)
        if isinstance(found, TensorType) and str(found.dtype) == accumulated:
            return self.as_dtype(made, result)
        return made

    def _rebuilt(self, old: Call, op: RelayExpr, arguments: Sequence[RelayExpr], attrs: Any) -> RelayExpr:
        same = op is old.op and attrs is old.attrs
        if same and all(new is argument for new, argument in zip(arguments, old.args, strict=True)):
            return old
        made = old.replace(op=op, args=tuple(arguments), attrs=attrs)
        if not isinstance(op, Op):
            keep_type(old, made)
        return made

    def _as_before(self, old: Call, arguments: Sequence[RelayExpr]) -> list[RelayExpr]:
        return [
            self.as_type(new, made_type(argument)) for new, argument in zip(arguments, old.args, strict=True)
        ]

    def _category(self, call: Call, op: Op) -> tuple[Category, str, str]:
        """The category, the accumulation type, and the result type."""
        rule = op.get_attr("FTVMMixedPrecisionConversionType")
        if rule is not None:
            category, accumulated, result = rule(call, self.narrow)
            return Category(int(category)), str(accumulated), str(result)
        found = CATEGORIES.get(op.name)
        if found is None:
            self.unknown[op.name] = None
            found = Category.NEVER
        return found, WIDE if hasattr(call.attrs, "out_dtype") else self.narrow, self.narrow

    def _follows(self, arguments: Sequence[RelayExpr]) -> bool:
        """True if tensors come in the narrow type, but for variables and constants, which are cheap to convert."""
        leaves = [leaf for argument in arguments for leaf in _leaves(argument)]
        narrow = [self.narrow in _element_types(made_type(leaf)) for leaf in leaves]
        wide = [
            WIDE in _element_types(made_type(leaf)) and not isinstance(leaf, (Var, Constant))
            for leaf in leaves
        ]
        return any(narrow) and not any(wide)

    # Other expressions

    def visit_let(self, let: Let) -> RelayExpr:
        """A variable has the type that its value has now."""
        chain: list[tuple[Let, Var, RelayExpr]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            value = self.visit(current.value)
            variable = current.var
            if not isinstance(value, Function) and made_type(value) != made_type(variable):
                variable = Var(variable.name_hint, made_type(value), variable.span)
            self.memo_map[current.var] = variable
            chain.append((current, variable, value))
            current = current.body
        body = self.visit(current)
        for old, variable, value in reversed(chain):
            if variable is not old.var or value is not old.value or body is not old.body:
                body = old.replace(var=variable, value=value, body=body)
            else:
                body = old
            self.memo_map[old] = body
        return body  # type: ignore[no-any-return]

    def visit_if(self, ite: If) -> RelayExpr:
        """Both branches have the type that they had."""
        kind = made_type(ite)
        branches = [self.as_type(self.visit(each), kind) for each in (ite.true_branch, ite.false_branch)]
        condition = self.visit(ite.cond)
        if condition is ite.cond and branches[0] is ite.true_branch and branches[1] is ite.false_branch:
            return ite
        made = ite.replace(cond=condition, true_branch=branches[0], false_branch=branches[1])
        keep_type(ite, made)
        return made

    def visit_match(self, m: Match) -> RelayExpr:
        """The clauses give what they gave."""
        kind = made_type(m)
        data = self.visit(m.data)
        clauses = [Clause(one.lhs, self.as_type(self.visit(one.rhs), kind)) for one in m.clauses]
        if data is m.data and all(new.rhs is old.rhs for new, old in zip(clauses, m.clauses, strict=True)):
            return m
        made = m.replace(data=data, clauses=tuple(clauses))
        keep_type(m, made)
        return made

    def visit_ref_create(self, r: RefCreate) -> RelayExpr:
        """References hold what they held."""
        value = self.as_type(self.visit(r.value), made_type(r.value))
        return r if value is r.value else r.replace(value=value)

    def visit_ref_write(self, r: RefWrite) -> RelayExpr:
        """References hold what they held."""
        reference = self.visit(r.ref)
        value = self.as_type(self.visit(r.value), made_type(r.value))
        return r if reference is r.ref and value is r.value else r.replace(ref=reference, value=value)

    def visit_function(self, fn: Function) -> RelayExpr:
        """A function within gives what it gave."""
        kind = made_type(fn)
        if fn.is_primitive or not isinstance(kind, FuncType):
            return fn
        body = self.as_type(self.visit(fn.body), kind.ret_type)
        if body is fn.body:
            return fn
        made = fn.replace(body=body)
        keep_type(fn, made)
        return made


def _dtype(expr: RelayExpr) -> str:
    found = made_type(expr)
    return str(found.dtype) if isinstance(found, TensorType) else ""


def _element_types(kind: Type) -> tuple[str, ...]:
    if isinstance(kind, TupleType):
        return tuple(dtype for field in kind.fields for dtype in _element_types(field))
    return (str(kind.dtype),) if isinstance(kind, TensorType) else ()


def _fields(expr: RelayExpr) -> list[RelayExpr]:
    if isinstance(expr, Tuple):
        return list(expr.fields)
    kind = made_type(expr)
    assert isinstance(kind, TupleType)
    return [TupleGetItem(expr, position) for position in range(len(kind.fields))]


def _leaves(expr: RelayExpr) -> list[RelayExpr]:
    return [leaf for field in expr.fields for leaf in _leaves(field)] if isinstance(expr, Tuple) else [expr]


@dataclass
class ToMixedPrecision(FunctionPass):
    """Compute in ``mixed_precision_type`` where that pays and harms little.

    Operators that are in no list and have no rule keep float32: silently where ``missing_op_mode`` is 2, with a warning
    where it is 1; where it is 0 they are an error. The results of ``main`` may be narrow; those of other functions have
    the types that they had.
    """

    mixed_precision_type: str = "float16"
    missing_op_mode: int = WARN

    name = "ToMixedPrecision"
    opt_level = 0

    def __post_init__(self) -> None:
        if self.mixed_precision_type not in NARROW:
            raise TilewrightError(
                f"the mixed-precision type is one of {', '.join(NARROW)}, not {self.mixed_precision_type!r}"
            )
        if self.missing_op_mode not in (ERROR, WARN, QUIET):
            raise TilewrightError(f"missing_op_mode is 0, 1 or 2, not {self.missing_op_mode!r}")

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Convert one function."""
        convert = _Convert(self.mixed_precision_type)
        body = convert.visit(func.body)
        if convert.unknown and self.missing_op_mode != QUIET:
            self._report(list(convert.unknown))
        if "main" not in mod or mod["main"] is not func:
            body = convert.as_type(body, made_type(func.body))
        return func if body is func.body else func.replace(body=body, ret_type=None)

    def _report(self, names: list[str]) -> None:
        listed = ", ".join(sorted(names))
        if self.missing_op_mode == ERROR:
            raise OpNotImplemented(
                f"ToMixedPrecision has no rule for {listed}; register one with register_mixed_precision_conversion, "
                "or leave them in float32 with missing_op_mode=1"
            )
        warnings.warn(f"left in float32, because there is no rule: {listed}", stacklevel=3)
