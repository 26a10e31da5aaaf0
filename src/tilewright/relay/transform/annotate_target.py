"""AnnotateTarget: marks the operators that external code generators take.

An operator's attribute "target.<name>", a function of the call, says whether a code generator takes it; for a composite
function its name decides, "<name>.<pattern>". The arguments of such a call go through ``compiler_begin``, its results
through ``compiler_end``. What no target takes is marked for "default", but for calls without arguments. What is marked
for another target already stays with it: one run for each target marks the same as one run for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.adt import Match
from tilewright.relay.analysis.annotated_regions import AnnotatedRegionSet
from tilewright.relay.expr import Call, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.annotation import compiler_begin, compiler_end
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import TilewrightError

DEFAULT = "default"
_MARKS = ("annotation.compiler_begin", "annotation.compiler_end")


class _Annotate(ExprMutator):
    """``target_of`` gives the target of what was rewritten and has no end around it yet."""

    def __init__(
        self, targets: Sequence[str], include_non_call_ops: bool, regions: AnnotatedRegionSet
    ) -> None:
        super().__init__()
        self.targets = targets
        self.regions = regions
        self.include_non_call_ops = include_non_call_ops
        self.target_of: dict[RelayExpr, str] = {}

    def supported(self, call: Call) -> str:
        """The target that a call is marked for, or the first that takes it."""
        region = self.regions.get_region(call)
        if region is not None and region.target != DEFAULT:
            return region.target
        for target in self.targets:
            if isinstance(call.op, Op):
                takes = call.op.get_attr(f"target.{target}")
                if takes is not None and _takes(takes, call, target):
                    return target
            elif isinstance(call.op, Function):
                if str(call.op.attrs.get("Composite", "")).partition(".")[0] == target:
                    return target
        return DEFAULT

    def ended(self, expr: RelayExpr) -> RelayExpr:
        """A rewritten expression as others take it: with an end, if it belongs to a target."""
        target = self.target_of.get(expr)
        return expr if target is None else compiler_end(expr, target)

    def outside(self, expr: RelayExpr) -> RelayExpr:
        """An expression that is used by something without a target."""
        return self.ended(self.visit(expr))

    def begun(
        self, parts: Sequence[RelayExpr], target: str | None = None
    ) -> tuple[str, tuple[RelayExpr, ...]]:
        """Parts as they enter a target's expression. Without a target it is theirs, if they agree on one."""
        visited = [self.visit(part) for part in parts]
        if target is None:
            known = {self.target_of.get(part, DEFAULT) for part in visited if part in self.target_of}
            target = known.pop() if len(known) == 1 else DEFAULT
        return target, tuple([compiler_begin(self.ended(part), target) for part in visited])

    def visit_call(self, call: Call) -> RelayExpr:
        if isinstance(call.op, Op) and call.op.name in _MARKS:
            return self.visit(call.args[0])  # type: ignore[no-any-return]
        supported = self.supported(call)
        is_computation = isinstance(call.op, (Op, Function))
        if supported == DEFAULT and (not call.args or not (is_computation or self.include_non_call_ops)):
            return call.map_children(self.outside)
        target, args = self.begun(call.args, supported)
        op = call.op if isinstance(call.op, (Op, Function)) else self.outside(call.op)
        if isinstance(op, Function) and op.attrs.get("Composite") is None:
            op = self.visit(op)
        made = call.replace(op=op, args=args)
        self.target_of[made] = target
        return made

    def _with_parts(self, expr: Any, parts: Sequence[RelayExpr], field: str) -> RelayExpr:
        """A tuple or a field of one: marked like its parts, if such expressions are to be marked."""
        if not self.include_non_call_ops or not parts:
            return expr.map_children(self.outside)  # type: ignore[no-any-return]
        target, begun = self.begun(parts)
        made: RelayExpr = expr.replace(**{field: begun if field == "fields" else begun[0]})
        self.target_of[made] = target
        return made

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        return self._with_parts(tup, tup.fields, "fields")

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        return self._with_parts(op, (op.tuple_value,), "tuple_value")

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.is_primitive or fn.attrs.get("Composite") is not None:
            return fn
        body = self.outside(fn.body)
        return fn if body is fn.body else fn.replace(body=body)

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            chain.append((current, self.outside(current.value)))
            current = current.body
        body = self.outside(current)
        for old, value in reversed(chain):
            body = old.replace(value=value, body=body)
        return body

    def visit_if(self, ite: If) -> RelayExpr:
        return ite.map_children(self.outside)

    def visit_ref_create(self, r: RefCreate) -> RelayExpr:
        return self._with_parts(r, (r.value,), "value")

    def visit_ref_read(self, r: RefRead) -> RelayExpr:
        return self._with_parts(r, (r.ref,), "ref")

    def visit_ref_write(self, r: RefWrite) -> RelayExpr:
        if not self.include_non_call_ops:
            return r.map_children(self.outside)
        target, (ref, value) = self.begun((r.ref, r.value))
        made = r.replace(ref=ref, value=value)
        self.target_of[made] = target
        return made

    def visit_match(self, m: Match) -> RelayExpr:
        clauses = tuple([clause.replace(rhs=self.outside(clause.rhs)) for clause in m.clauses])
        return m.replace(data=self.outside(m.data), clauses=clauses)


def _takes(check: Any, call: Call, target: str) -> bool:
    """What a code generator says of a call; what goes wrong in its check is an error that names it."""
    try:
        return bool(check(_without_marks(call)))
    except (Exception, SystemExit) as error:
        name = getattr(call.op, "name", "an operator")
        text = str(error) or "no message"
        raise TilewrightError(
            f"the check 'target.{target}' of {name} failed: {type(error).__name__}: {text}", span=call.span
        ) from error


def _without_marks(call: Call) -> Call:
    """The call as a check sees it, which looks at its arguments."""
    plain = tuple([_inner(argument) for argument in call.args])
    if all(one is other for one, other in zip(plain, call.args, strict=True)):
        return call
    return call.replace(args=plain)


def _inner(expr: RelayExpr) -> RelayExpr:
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _MARKS:
        expr = expr.args[0]
    return expr


@dataclass
class AnnotateTarget(FunctionPass):
    """Mark each call for the first of ``targets`` that takes it. ``include_non_call_ops`` marks tuples and their
    fields as what they are made of."""

    targets: str | Sequence[str]
    include_non_call_ops: bool = True

    name = "AnnotateTarget"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Mark within one function."""
        targets = [self.targets] if isinstance(self.targets, str) else list(self.targets)
        begin, end = (Op.get(name) for name in _MARKS)
        regions = AnnotatedRegionSet(func.body, begin, end)
        annotate = _Annotate(targets, self.include_non_call_ops, regions)
        body = annotate.outside(func.body)
        return func if body is func.body else func.replace(body=body)
