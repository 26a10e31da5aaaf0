"""Lowers reductions across threads.

``tvm_thread_allreduce(count, values..., condition, results..., thread indices...)`` under ``reduce_scope`` combines
the values of all threads along the given indices, and gives every one of them the result. Two ways:

* by shuffles, where the threads along the indices are neighbouring lanes of a warp: five exchanges of registers on 32
  lanes. Where they are several whole warps, each warp combines its own values, and then those of all warps, through
  shared memory and with one barrier;
* through shared memory elsewhere: each thread writes its value, and half of them combine two at a time until one is
  left, with a barrier after each step. The result is read from the first element of the thread's group.

Invariant from here on: no ``tvm_thread_allreduce`` is left; the memory that held its results is shared memory in the
second case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, CommReducer, IntImm, IterVar, Load, PrimExpr, Var
from tilewright.ir.functor import free_vars, substitute_expr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    While,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator


@dataclass(frozen=True)
class _Thread:
    """A thread index of the block: its variable, extent, and dimension (0 for x)."""

    var: Var
    extent: int
    dimension: int


@dataclass(frozen=True)
class _Request:
    """The parts of one call."""

    reducer: CommReducer
    values: tuple[PrimExpr, ...]
    condition: PrimExpr
    results: tuple[Var, ...]
    along: tuple[_Thread, ...]
    others: tuple[_Thread, ...]

    @property
    def types(self) -> list[DataType]:
        return [value.dtype for value in self.values]

    def combine(self, left: list[PrimExpr], right: list[PrimExpr]) -> list[PrimExpr]:
        """The combination of two tuples of values."""
        mapping = dict(zip((*self.reducer.lhs, *self.reducer.rhs), (*left, *right), strict=True))
        return [substitute_expr(result, mapping) for result in self.reducer.result]

    def own(self) -> list[PrimExpr]:
        """A thread's contribution: its values, or the identity where its condition is false."""
        identity = self.reducer.identity_element
        if isinstance(self.condition, IntImm) and self.condition.value:
            return list(self.values)
        return [
            operators.call("if_then_else", value.dtype, [self.condition, value, neutral])
            for value, neutral in zip(self.values, identity, strict=True)
        ]


class _Lower(ScopedMutator):
    def __init__(self, warp_size: int | None) -> None:
        super().__init__()
        self.warp_size = warp_size
        self.axes: list[tuple[IterVar, PrimExpr]] = []
        self.reducers: list[CommReducer] = []
        self.divergence = 0
        self.loop_depth = 0
        self.loads: dict[Var, PrimExpr] = {}
        self.memory: dict[Var, dict[int, tuple[Var, DataType]]] = {}

    # ---- statements around ----

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "reduce_scope" and isinstance(node.node, CommReducer):
            self.reducers.append(node.node)
            body: Stmt = self.visit(node.body)
            self.reducers.pop()
            return body
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            self.axes.append((node.node, node.value))
            made: Stmt = node.map_children(self.visit)
            self.axes.pop()
            return made
        return node.map_children(self.visit)

    def visit_for(self, node: For) -> Stmt:
        return self._in_loop(node)

    def visit_while(self, node: While) -> Stmt:
        return self._in_loop(node)

    def _in_loop(self, node: Stmt) -> Stmt:
        self.loop_depth += 1
        made: Stmt = node.map_children(self.visit)
        self.loop_depth -= 1
        return made

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        threads = {axis.var for axis, _ in self.axes if axis.thread_tag.startswith("threadIdx")}
        divergent = any(variable in threads for variable in free_vars(node.condition))
        self.divergence += divergent
        made: Stmt = node.map_children(self.visit)
        self.divergence -= divergent
        return made

    def visit_allocate(self, node: Allocate) -> Stmt:
        made: Allocate = node.map_children(self.visit)
        replaced = self.memory.pop(node.buffer_var, None)
        if replaced is None:
            return made
        body: Stmt = made.body
        for size, (variable, dtype) in replaced.items():
            body = Allocate(variable, dtype, [max(size, 1)], operators.const_true(), body, span=node.span)
        return body

    def visit_load(self, node: Load) -> PrimExpr:
        found = self.loads.get(node.buffer_var)
        return node.map_children(self.visit) if found is None else found

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        call = node.value
        if isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "tir.tvm_thread_allreduce":
            return self._reduce(self._request(call))
        return node.map_children(self.visit)

    # ---- the reduction ----

    def _request(self, call: Call) -> _Request:
        if not self.reducers:
            raise LoweringError("tvm_thread_allreduce is outside a reduce_scope", span=call.span)
        reducer = self.reducers[-1]
        count = len(reducer.lhs)
        values = tuple(self.visit(value) for value in call.args[1 : 1 + count])
        results = call.args[2 + count : 2 + 2 * count]
        wanted = {argument for argument in call.args[2 + 2 * count :] if isinstance(argument, Var)}
        threads = self._threads()
        return _Request(
            reducer,
            values,
            self.visit(call.args[1 + count]),
            tuple(result for result in results if isinstance(result, Var)),
            tuple(thread for thread in threads if thread.var in wanted),
            tuple(thread for thread in threads if thread.var not in wanted),
        )

    def _threads(self) -> list[_Thread]:
        """The thread indices of the block, x first; one that is bound twice counts once."""
        found: dict[str, _Thread] = {}
        for axis, extent in self.axes:
            prefix, _, letter = axis.thread_tag.partition(".")
            if prefix != "threadIdx":
                continue
            if not isinstance(extent, IntImm):
                raise LoweringError(
                    f"{axis.thread_tag} has extent {extent}; a reduction across threads needs a constant"
                )
            found[axis.thread_tag] = _Thread(axis.var, extent.value, "xyz".index(letter))
        return sorted(found.values(), key=lambda thread: thread.dimension)

    def _reduce(self, request: _Request) -> Stmt:
        reduce_extent = _product(request.along)
        if reduce_extent == 1:
            return self._alone(request)
        if self.divergence:
            raise LoweringError(
                "threads combine their values inside a condition that they decide differently, where some would wait "
                "forever; pass the condition to the reduction instead"
            )
        width = self._shuffle_width(request, reduce_extent)
        if width == reduce_extent:
            return self._by_shuffles(request, width)
        if width > 1:
            return self._by_warps(request, reduce_extent)
        return self._through_shared_memory(request, reduce_extent)

    def _alone(self, request: _Request) -> Stmt:
        """One thread along the indices: its value is the result."""
        return stmt_seq(
            *[Store(result, value, 0) for result, value in zip(request.results, request.own(), strict=True)]
        )

    def _shuffle_width(self, request: _Request, reduce_extent: int) -> int:
        """How many neighbouring lanes of a warp combine their values; 1 if shuffles do not help."""
        # Threads of a warp are consecutive in x.
        along = [thread for thread in request.along if thread.extent > 1]
        if not self.warp_size or len(along) != 1 or along[0].dimension != 0:
            return 1
        if not all(dtype.lanes == 1 and dtype.bits in (1, 8, 16, 32, 64) for dtype in request.types):
            return 1
        if reduce_extent <= self.warp_size:
            return reduce_extent if reduce_extent.bit_count() == 1 else 1
        warps, rest = divmod(reduce_extent, self.warp_size)
        return self.warp_size if rest == 0 and warps.bit_count() == 1 and warps <= self.warp_size else 1

    def _by_shuffles(self, request: _Request, width: int) -> Stmt:
        """All threads of the reduction are lanes of one warp."""
        steps: list[Callable[[Stmt], Stmt]] = []
        current = self._in_warp(steps, request, request.own(), width)
        return _inside(
            steps,
            stmt_seq(
                *[Store(result, value, 0) for result, value in zip(request.results, current, strict=True)]
            ),
        )

    def _by_warps(self, request: _Request, reduce_extent: int) -> Stmt:
        """Each warp combines its values, and then those of all warps, which it reads from shared memory."""
        assert self.warp_size
        warps = reduce_extent // self.warp_size
        place, group = _flat_index(request.along), _flat_index(request.others)
        buffers = [
            self._shared(result, dtype, warps * _product(request.others))
            for result, dtype in zip(request.results, request.types, strict=True)
        ]
        base = operators.multiply(group, warps)
        lane = operators.floormod(place, self.warp_size)
        own = operators.add(base, operators.floordiv(place, self.warp_size))
        steps: list[Callable[[Stmt], Stmt]] = []
        current = self._in_warp(steps, request, request.own(), self.warp_size)
        stores = stmt_seq(
            *[Store(buffer, value, own) for buffer, value in zip(buffers, current, strict=True)]
        )
        parts: list[Stmt] = [_barrier()] if self.loop_depth else []
        parts += [_inside(steps, IfThenElse(operators.equal(lane, 0), stores)), _barrier()]
        index = operators.add(base, operators.floormod(lane, warps))
        partial: list[PrimExpr] = [
            Load(dtype, buffer, index) for buffer, dtype in zip(buffers, request.types, strict=True)
        ]
        again: list[Callable[[Stmt], Stmt]] = []
        total = self._in_warp(again, request, partial, warps)
        kept = [
            self._local(result, dtype) for result, dtype in zip(request.results, request.types, strict=True)
        ]
        parts.append(
            _inside(again, stmt_seq(*[Store(one, value, 0) for one, value in zip(kept, total, strict=True)]))
        )
        for result, one, dtype in zip(request.results, kept, request.types, strict=True):
            self.loads[result] = Load(dtype, one, 0)
        return stmt_seq(*parts)

    def _in_warp(
        self,
        steps: list[Callable[[Stmt], Stmt]],
        request: _Request,
        values: Sequence[PrimExpr],
        width: int,
    ) -> list[PrimExpr]:
        """The combination of the values of ``width`` neighbouring lanes, in each of them."""
        mask = Var("active_lanes", "uint32")
        steps.append(_let(mask, operators.call("tvm_warp_activemask", "uint32", [])))
        current = self._name_all(steps, "mine", list(values))

        def shuffled(name: str, operand: int) -> list[PrimExpr]:
            return [
                _exchanged(
                    value,
                    lambda word: operators.call(
                        name, word.dtype, [mask, word, operand, width, self.warp_size]
                    ),
                )
                for value in current
            ]

        distance = width // 2
        while distance >= 1:
            named = self._name_all(steps, "other", shuffled("tvm_warp_shuffle_down", distance))
            current = self._name_all(steps, "mine", request.combine(current, named))
            distance //= 2
        return self._name_all(steps, "all", shuffled("tvm_warp_shuffle", 0))

    def _name_all(
        self, steps: list[Callable[[Stmt], Stmt]], name: str, values: list[PrimExpr]
    ) -> list[PrimExpr]:
        """Variables for the values, so that each is computed once."""
        variables = [Var(name, value.dtype) for value in values]
        steps.extend(_let(variable, value) for variable, value in zip(variables, values, strict=True))
        return list(variables)

    def _through_shared_memory(self, request: _Request, reduce_extent: int) -> Stmt:
        size = reduce_extent * _product(request.others)
        buffers = [
            self._shared(result, dtype, size)
            for result, dtype in zip(request.results, request.types, strict=True)
        ]
        place, group = _flat_index(request.along), _flat_index(request.others)
        base = operators.multiply(group, reduce_extent)
        index = operators.add(base, place)
        for result, buffer, dtype in zip(request.results, buffers, request.types, strict=True):
            self.loads[result] = Load(dtype, buffer, base)
        parts: list[Stmt] = [
            # Threads may still be reading the result of an earlier round from this memory.
            *([_barrier()] if self.loop_depth else []),
            *[Store(buffer, value, index) for buffer, value in zip(buffers, request.own(), strict=True)],
            _barrier(),
        ]
        half = 1
        while half * 2 < reduce_extent:
            half *= 2
        active = reduce_extent
        while active > 1:
            # ``half`` is the greatest power of two below what is active; elements past it fold onto the first ones.
            guard = operators.less(place, active - half)
            parts += [IfThenElse(guard, self._step(request, buffers, index, half)), _barrier()]
            active, half = half, half // 2
        return stmt_seq(*parts)

    def _shared(self, result: Var, dtype: DataType, size: int) -> Var:
        """Shared memory in place of a result's; reductions in two branches of the program use the same."""
        made = Var(f"{result.name}_shared", PointerType(PrimType(dtype), "shared"))
        return self.memory.setdefault(result, {}).setdefault(size, (made, dtype))[0]

    def _local(self, result: Var, dtype: DataType) -> Var:
        """A thread's own memory for a result."""
        made = Var(f"{result.name}_all", PointerType(PrimType(dtype), "local"))
        return self.memory.setdefault(result, {}).setdefault(-1, (made, dtype))[0]

    def _step(self, request: _Request, buffers: list[Var], index: PrimExpr, distance: int) -> Stmt:
        """Combine the element of this thread with the one at a distance."""
        types = request.types
        left: list[PrimExpr] = [
            Load(dtype, buffer, index) for buffer, dtype in zip(buffers, types, strict=True)
        ]
        right: list[PrimExpr] = [
            Load(dtype, buffer, operators.add(index, distance))
            for buffer, dtype in zip(buffers, types, strict=True)
        ]
        names = [Var("combined", dtype) for dtype in types]
        body = stmt_seq(*[Store(buffer, name, index) for buffer, name in zip(buffers, names, strict=True)])
        for name, value in zip(reversed(names), reversed(request.combine(left, right)), strict=True):
            body = LetStmt(name, value, body)
        return body


def _inside(steps: Sequence[Callable[[Stmt], Stmt]], body: Stmt) -> Stmt:
    """A statement inside the variables that it uses."""
    for step in reversed(steps):
        body = step(body)
    return body


def _exchanged(value: PrimExpr, exchange: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """Another lane's value of any type: lanes exchange words of 32 bits."""
    dtype = value.dtype
    if dtype.bits == 32:
        return exchange(value)
    if dtype.bits == 64:
        whole = value if dtype.is_uint else operators.call("reinterpret", "uint64", [value])
        low = operators.cast("uint32", whole)
        high = operators.cast("uint32", operators.right_shift(whole, operators.const(32, "uint64")))
        joined = operators.bitwise_or(
            operators.left_shift(operators.cast("uint64", exchange(high)), operators.const(32, "uint64")),
            operators.cast("uint64", exchange(low)),
        )
        return joined if dtype.is_uint else operators.call("reinterpret", dtype, [joined])
    if dtype.is_integral:
        return operators.cast(dtype, exchange(operators.cast("int32", value)))
    bits = f"uint{dtype.bits}"
    word = exchange(operators.cast("uint32", operators.call("reinterpret", bits, [value])))
    return operators.call("reinterpret", dtype, [operators.cast(bits, word)])


def _let(variable: Var, value: PrimExpr) -> Callable[[Stmt], Stmt]:
    return lambda body: LetStmt(variable, value, body)


def _product(threads: tuple[_Thread, ...]) -> int:
    total = 1
    for thread in threads:
        total *= thread.extent
    return total


def _flat_index(threads: tuple[_Thread, ...]) -> PrimExpr:
    """The number of a thread among those along these indices, the first index varying fastest."""
    total: PrimExpr = operators.const(0)
    stride = 1
    for thread in threads:
        total = operators.add(total, operators.multiply(thread.var, stride))
        stride *= thread.extent
    return total


def _barrier() -> Stmt:
    return Evaluate(operators.call("tvm_storage_sync", "int32", ["shared"]))


@dataclass(frozen=True)
class LowerThreadAllreduce(PrimFuncPass):
    """Lower reductions across threads to shuffles or to shared memory."""

    name = "tir.LowerThreadAllreduce"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        target = function.attrs.get("target")
        warp_size = None
        if isinstance(target, Target) and target.kind.warp_shuffle:
            warp_size = int(target.attrs.get("thread_warp_size", 32))
        return function.with_body(_Lower(warp_size).visit(function.body))
