"""Turns loops of kind VECTORIZED into vector expressions.

The loop variable becomes a ramp, and every expression that depends on it becomes a vector. A statement without a vector
form (a condition that differs from lane to lane, a call of unknown code) becomes a serial loop over the lanes, while
the statements around it stay vectors; so does a loop whose extent is not a constant.

A ``Select`` that chooses lane by lane evaluates both of its values in every lane. Reads in them that are not shown to
be inside of their buffer get the condition as a predicate: a lane that does not ask for an element does not read it.

Invariant from here on: no loop has the kind VECTORIZED.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    IntImm,
    Let,
    Load,
    Mul,
    Not,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
    is_const,
)
from tilewright.ir.functor import Mutator, substitute_expr
from tilewright.ir.intrinsics import DOT_PRODUCTS, MATH_BINARY, MATH_UNARY
from tilewright.ir.module import IRModule
from tilewright.ir.op import CallEffectKind
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.analysis.read_bounds import Size, parameter_sizes
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.effects import side_effect
from tilewright.tir.transform.lib.speculation import SpeculatedReads
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator, broadcast, with_one_definition

_BITS = (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "shift_left",
    "shift_right",
    "popcount",
    "clz",
)
_ELEMENTWISE = frozenset(
    f"tir.{name}"
    for name in (
        *MATH_UNARY,
        *MATH_BINARY,
        *_BITS,
        "likely",
        "fma",
        "isnan",
        "isfinite",
        "isinf",
        "reinterpret",
        "pack_word",
        *DOT_PRODUCTS,
    )
)
"""Operators that act on each lane by itself."""


class _NoVectorForm(LoweringError):
    """An expression or statement must be evaluated lane by lane; caught at the statement it is in."""


class _Vectorizer(Mutator):
    """The body of one loop, with its variable as a ramp."""

    memoize = True

    def __init__(self, variable: Var, start: PrimExpr, lanes: int, speculated: SpeculatedReads) -> None:
        super().__init__()
        self.variable = variable
        self.speculated = speculated
        self.start = start
        self.lanes = lanes
        self.vectors: dict[Var, PrimExpr] = {variable: Ramp(start, 1, lanes)}
        self.bindings = 0

    def _widened(self, vector: PrimExpr) -> PrimExpr | None:
        """The vectors of all iterations one after another, if they are one vector of the same kind."""
        lanes = vector.dtype.lanes * self.lanes
        if isinstance(vector, Broadcast):
            return Broadcast(vector.value, lanes) if self.visit(vector.value) is vector.value else None
        if isinstance(vector, Ramp):
            base, stride = self.visit(vector.base), vector.stride
            if isinstance(base, Ramp) and isinstance(base.stride, IntImm) and isinstance(stride, IntImm):
                if base.stride.value == stride.value * vector.lanes:
                    return Ramp(base.base, stride, lanes)
        if isinstance(vector, Load) and _is_always(vector.predicate):
            index = self._widened(vector.index)
            if index is not None:
                dtype = vector.dtype.with_lanes(lanes)
                return vector.replace(dtype=dtype, index=index, predicate=_all_lanes(index))
        return None

    # Statements

    def visit_store(self, node: Store) -> Stmt:
        try:
            if isinstance(node.index, Ramp) and _is_always(node.predicate):
                wide_index, wide_value = self._widened(node.index), self._widened(node.value)
                if wide_index is not None and wide_value is not None:
                    return node.replace(value=wide_value, index=wide_index, predicate=_all_lanes(wide_index))
            value, index, predicate = (
                self.visit(node.value),
                self.visit(node.index),
                self.visit(node.predicate),
            )
            if value is node.value and index is node.index and predicate is node.predicate:
                return node
            self._require(node.index.dtype.lanes == 1 and node.value.dtype.lanes == 1)
            # Every lane writes one place: only the order of the lanes says which one is last.
            self._require(index is not node.index)
        except _NoVectorForm:
            return self.lane_by_lane(node)
        return Store(
            node.buffer_var,
            broadcast(value, self.lanes),
            broadcast(index, self.lanes),
            broadcast(predicate, self.lanes),
            node.span,
        )

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        try:
            value, indices = self.visit(node.value), self._indices(node)
            if value is node.value and all(map(is_, indices, node.indices)):
                return node
            self._require(node.value.dtype.lanes == 1 and indices[-1] is not node.indices[-1])
        except _NoVectorForm:
            return self.lane_by_lane(node)
        return BufferStore(node.buffer, broadcast(value, self.lanes), indices, node.span)

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        try:
            value = self.visit(node.value)
        except _NoVectorForm:
            return self.lane_by_lane(node)
        if value is node.value and side_effect(value) >= CallEffectKind.UpdateState:
            # The effect happens once an iteration, whether or not it depends on the iteration.
            return self.lane_by_lane(node)
        return node if value is node.value else Evaluate(value, node.span)

    def visit_for(self, node: For) -> Stmt:
        kind = ForKind.SERIAL if node.kind == ForKind.VECTORIZED else node.kind
        if not self._uniform(node.min, node.extent) or node.kind == ForKind.THREAD_BINDING:
            return self.lane_by_lane(node)
        body = self.visit(node.body)
        if body is node.body and kind == node.kind:
            return node
        return node.replace(body=body, kind=kind)

    def visit_while(self, node: While) -> Stmt:
        # How often the loop runs may depend on what the body writes, so on the lane.
        return self.lane_by_lane(node)

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        if self._uniform(node.condition):
            return node.map_children(self.visit)
        whole = self._holds_in_all_lanes(node.condition)
        if whole is None or node.else_case is not None:
            return self.lane_by_lane(node)
        # A bound that few vectors cross: the others are computed as vectors.
        return IfThenElse(whole, self.visit(node.then_case), self.lane_by_lane(node), node.span)

    def _holds_in_all_lanes(self, condition: PrimExpr) -> PrimExpr | None:
        """Whether a likely bound holds in every lane, as that of the lane where it is closest; None if the condition is
        of another kind."""
        if not isinstance(condition, Call) or condition.op.name != "tir.likely":
            return None
        bound = condition.args[0]
        if not isinstance(bound, (LT, LE, GT, GE)):
            return None
        strides = [self._stride(side) for side in (bound.a, bound.b)]
        if strides[0] is None or strides[1] is None:
            return None
        grows = strides[0] > strides[1]
        lane = self.lanes - 1 if grows == isinstance(bound, (LT, LE)) else 0
        closest: PrimExpr = substitute_expr(condition, {self.variable: operators.add(self.start, lane)})
        return closest

    def _stride(self, expr: PrimExpr) -> int | None:
        """By how much an expression grows from lane to lane, if always by as much."""
        try:
            vector = self.visit(expr)
        except _NoVectorForm:
            return None
        if vector is expr or isinstance(vector, Broadcast):
            return 0
        if isinstance(vector, Ramp) and isinstance(vector.stride, IntImm):
            return int(vector.stride.value)
        return None

    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        if not self._uniform(node.condition, node.message):
            return self.lane_by_lane(node)
        return node.map_children(self.visit)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if not self._uniform(node.value):
            return self.lane_by_lane(node)
        return node.map_children(self.visit)

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        return node.map_children(self.visit)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        try:
            value = self.visit(node.value)
            if value is node.value:
                return node.map_children(self.visit)
            variable = self._vector_variable(node.var)
            self.bindings += 1
            try:
                body = self.visit(node.body)
            finally:
                self.bindings -= 1
        except _NoVectorForm:
            return self.lane_by_lane(node)
        return LetStmt(variable, value, body, node.span)

    def visit_allocate(self, node: Allocate) -> Stmt:
        if not self._uniform(node.condition, *node.extents):
            raise LoweringError(
                f"the size of {node.buffer_var.name} depends on the vectorized loop {self.variable.name}"
            )
        lane = operators.subtract(self.variable, self.start)
        body = self.visit(_LaneOfBuffer(node.buffer_var, self.lanes, lane).visit(node.body))
        return node.replace(extents=(*node.extents, IntImm(lane.dtype, self.lanes)), body=body)

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, Stmt):
            return self.lane_by_lane(node)
        if not node.children():
            return node
        return node.map_children(_Unchanged(self).check)

    def lane_by_lane(self, stmt: Stmt) -> Stmt:
        """A serial loop over the lanes."""
        if self.bindings:
            # A vector binding around this statement has no element to offer: the binding goes lane by lane too.
            raise _NoVectorForm("a statement under a vector binding has no vector form")
        lane = Var(f"{self.variable.name}.s", self.variable.dtype)
        body = substitute(stmt, {self.variable: operators.add(self.start, lane)})
        return For(lane, 0, self.lanes, ForKind.SERIAL, _LoopVectorizer(self.speculated).visit(body))

    def _uniform(self, *exprs: PrimExpr) -> bool:
        """True if the expressions are the same in every lane."""
        try:
            for expr in exprs:
                if self.visit(expr) is not expr:
                    return False
        except _NoVectorForm:
            return False
        return True

    def _vector_variable(self, variable: Var) -> Var:
        self._require(variable.dtype.lanes == 1 and not variable.dtype.is_handle)
        vector = Var(variable.name, variable.dtype.with_lanes(self.lanes))
        self.vectors[variable] = vector
        return vector

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _NoVectorForm("no vector form")

    # Expressions

    def visit_var(self, node: Var) -> PrimExpr:
        return self.vectors.get(node, node)

    def visit_add(self, node: Add) -> PrimExpr:
        return self._linear(node, operators.add, lambda scalar, stride: stride)

    def visit_sub(self, node: Sub) -> PrimExpr:
        return self._linear(node, operators.subtract, lambda scalar, stride: operators.negative(stride))

    def visit_mul(self, node: Mul) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        for vector, scalar in ((a, b), (b, a)):
            if isinstance(vector, Ramp) and scalar.dtype.lanes == 1:
                return _ramp(
                    operators.multiply(vector.base, scalar),
                    operators.multiply(vector.stride, scalar),
                    self.lanes,
                )
        return node.rebuild(a=broadcast(a, self.lanes), b=broadcast(b, self.lanes))

    def _linear(self, node: Add | Sub, make: Any, turned: Any) -> PrimExpr:
        """A sum or difference; of ramps and scalars, a ramp. ``turned`` is the stride of a ramp on the right side."""
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        if isinstance(a, Ramp) and b.dtype.lanes == 1:
            return _ramp(make(a.base, b), a.stride, self.lanes)
        if isinstance(b, Ramp) and a.dtype.lanes == 1:
            return _ramp(make(a, b.base), turned(a, b.stride), self.lanes)
        if isinstance(a, Ramp) and isinstance(b, Ramp):
            return _ramp(make(a.base, b.base), make(a.stride, b.stride), self.lanes)
        return node.rebuild(a=broadcast(a, self.lanes), b=broadcast(b, self.lanes))

    def _elementwise(self, node: Any) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node  # type: ignore[no-any-return]
        self._require(node.dtype.lanes == 1)
        return type(node)(broadcast(a, self.lanes), broadcast(b, self.lanes), node.span)  # type: ignore[no-any-return]

    visit_div = visit_mod = visit_floor_div = visit_floor_mod = visit_min = visit_max = _elementwise
    visit_eq = visit_ne = visit_lt = visit_le = visit_gt = visit_ge = visit_and = visit_or = _elementwise

    def visit_not(self, node: Not) -> PrimExpr:
        a = self.visit(node.a)
        return node if a is node.a else Not(a, node.span)

    def visit_cast(self, node: Cast) -> PrimExpr:
        value = self.visit(node.value)
        if value is node.value:
            return node
        if isinstance(value, Ramp) and node.dtype.is_int and node.dtype.bits >= value.dtype.bits > 16:
            # Index arithmetic does not overflow, so the wider ramp has the same elements.
            return Ramp(
                operators.cast(node.dtype, value.base), operators.cast(node.dtype, value.stride), self.lanes
            )
        return Cast(node.dtype.with_lanes(value.dtype.lanes), value, node.span)

    def visit_select(self, node: Select) -> PrimExpr:
        condition = self.visit(node.condition)
        uniform = condition is node.condition
        # A condition that all lanes share becomes a branch later on, which skips the other value.
        chosen = node if uniform else self.speculated.guarded(node)
        made = [condition, *(self.visit(child) for child in (chosen.true_value, chosen.false_value))]
        if all(map(is_, made, node.children())):
            return node
        self._require(node.dtype.lanes == 1)
        if not uniform:
            condition = broadcast(condition, self.lanes)
        return Select(condition, broadcast(made[1], self.lanes), broadcast(made[2], self.lanes), node.span)

    def visit_load(self, node: Load) -> PrimExpr:
        index, predicate = self.visit(node.index), self.visit(node.predicate)
        if index is node.index and predicate is node.predicate:
            return node
        self._require(node.dtype.lanes == 1)
        return Load(
            node.dtype.with_lanes(self.lanes),
            node.buffer_var,
            broadcast(index, self.lanes),
            broadcast(predicate, self.lanes),
            node.span,
        )

    def visit_buffer_load(self, node: BufferLoad) -> PrimExpr:
        indices = self._indices(node)
        return node if all(map(is_, indices, node.indices)) else BufferLoad(node.buffer, indices, node.span)

    def _indices(self, node: BufferLoad | BufferStore) -> tuple[PrimExpr, ...]:
        """The indices of a buffer access; only the last may differ from lane to lane."""
        indices = tuple([self.visit(index) for index in node.indices])
        self._require(all(map(is_, indices[:-1], node.indices[:-1])))
        changed = bool(indices) and indices[-1] is not node.indices[-1]
        self._require(not changed or (node.buffer.dtype.lanes == 1 and node.indices[-1].dtype.lanes == 1))
        return indices

    def visit_let(self, node: Let) -> PrimExpr:
        value = self.visit(node.value)
        if value is node.value:
            body = self.visit(node.body)
            return node if body is node.body else Let(node.var, value, body, node.span)
        variable = self._vector_variable(node.var)
        return Let(variable, value, self.visit(node.body), node.span)

    def visit_call(self, node: Call) -> PrimExpr:
        made = tuple([self.visit(argument) for argument in node.args])
        if all(map(is_, made, node.args)):
            return node
        self._require(node.dtype.lanes == 1)
        name = getattr(node.op, "name", "")
        dtype = node.dtype.with_lanes(self.lanes)
        if name == "tir.if_then_else":
            self._require(made[0] is node.args[0])
            return Call(
                dtype, node.op, (made[0], *(broadcast(value, self.lanes) for value in made[1:])), node.span
            )
        if name == "tir.lookup_byte":
            return Call(dtype, node.op, (broadcast(made[0], self.lanes), made[1]), node.span)
        if name in _ELEMENTWISE:
            return Call(dtype, node.op, [broadcast(value, self.lanes) for value in made], node.span)
        if name == "tir.call_llvm_pure_intrin":
            vectors = [broadcast(value, self.lanes) for value in made[2:]]
            return Call(dtype, node.op, (*made[:2], *vectors), node.span)
        raise _NoVectorForm(f"{name} has no vector form")


class _Unchanged:
    """Accepts a node without a vector form, as long as nothing below it is a vector of this loop."""

    def __init__(self, vectorizer: _Vectorizer) -> None:
        self.vectorizer = vectorizer

    def check(self, node: Any) -> Any:
        if self.vectorizer.visit(node) is not node:
            raise _NoVectorForm("no vector form")
        return node


class _LaneOfBuffer(Mutator):
    """Accesses of a buffer that gets one element per lane for each of its elements."""

    memoize = True

    def __init__(self, buffer: Var, lanes: int, lane: PrimExpr) -> None:
        super().__init__()
        self.buffer = buffer
        self.lanes = lanes
        self.lane = lane

    def visit_load(self, node: Load) -> PrimExpr:
        return self._access(node)  # type: ignore[no-any-return]

    def visit_store(self, node: Store) -> Stmt:
        return self._access(node)  # type: ignore[no-any-return]

    def _access(self, node: Any) -> Any:
        made = node.map_children(self.visit)
        if node.buffer_var is not self.buffer:
            return made
        lanes = operators.const(self.lanes, made.index.dtype.element)
        return made.replace(index=operators.add(operators.multiply(made.index, lanes), self.lane))


_SHORT_VECTOR = 16
"""Lanes up to which a vector of any length is one."""


class _LoopVectorizer(StmtMutator):
    """Vectorizes every loop of kind VECTORIZED, outermost first."""

    def __init__(self, speculated: SpeculatedReads) -> None:
        super().__init__()
        self.speculated = speculated

    def visit_for(self, node: For) -> Stmt:
        if node.kind != ForKind.VECTORIZED:
            return node.map_children(self.visit)
        if not isinstance(node.extent, IntImm):
            return node.replace(kind=ForKind.SERIAL, body=self.visit(node.body))
        if node.extent.value <= 0:
            return Evaluate(0)
        parts, start = [], node.min
        for lanes in _vector_lengths(node.extent.value):
            parts.append(self._vector(node, start, lanes))
            start = operators.add(start, lanes)
        return stmt_seq(*parts) if len(parts) > 1 else parts[0]

    def _vector(self, node: For, start: PrimExpr, lanes: int) -> Stmt:
        """These iterations of the loop as one vector."""
        if lanes == 1:
            return self.visit(substitute(node.body, {node.loop_var: start}))  # type: ignore[no-any-return]
        return _Vectorizer(node.loop_var, start, lanes, self.speculated).visit(node.body)  # type: ignore[no-any-return]


def _vector_lengths(lanes: int) -> list[int]:
    """Vectors that make up so many lanes.

    A long vector whose length is not a power of two would be widened to one that is, and then taken apart again: 48
    lanes are 32 and 16.
    """
    if lanes <= _SHORT_VECTOR:
        return [lanes]
    return [1 << bit for bit in range(lanes.bit_length() - 1, -1, -1) if lanes >> bit & 1]


class _LoopSerializer(StmtMutator):
    """Makes vectorized loops serial."""

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        return made.replace(kind=ForKind.SERIAL) if made.kind == ForKind.VECTORIZED else made


def _is_always(predicate: PrimExpr) -> bool:
    """True for the predicate of an access whose lanes are all used."""
    return is_const(predicate.value if isinstance(predicate, Broadcast) else predicate, 1)


def _all_lanes(index: PrimExpr) -> PrimExpr:
    """The predicate of an access whose lanes are all used."""
    return Broadcast(operators.const(True, "bool"), index.dtype.lanes)


def _ramp(base: PrimExpr, stride: PrimExpr, lanes: int) -> PrimExpr:
    """A ramp, or a broadcast where the stride is zero."""
    return (
        Broadcast(base, lanes)
        if isinstance(stride, IntImm) and stride.value == 0
        else Ramp(base, stride, lanes)
    )


def vectorize_loops(stmt: Stmt, sizes: dict[Var, Size] | None = None) -> Stmt:
    """The statement with its vectorized loops turned into vector expressions.

    ``sizes`` are those of buffers that come from outside of the statement; reads of others are guarded more often.
    """
    made = _LoopVectorizer(SpeculatedReads(stmt, sizes or {})).visit(stmt)
    return stmt if made is stmt else with_one_definition(made)


def skip_vectorize(stmt: Stmt) -> Stmt:
    """The statement with its vectorized loops made serial."""
    return _LoopSerializer().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class VectorizeLoop(PrimFuncPass):
    """Turns vectorized loops into vector expressions, or into serial loops where that is switched off."""

    enable_vectorize: bool = True

    name = "tir.VectorizeLoop"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not self.enable_vectorize:
            return function.with_body(skip_vectorize(function.body))
        return function.with_body(vectorize_loops(function.body, parameter_sizes(function)))
