"""Statements: control flow, allocation, assertions.

Loops are emitted in rotated form: a test before, the body, a step and a test after. The counter has pointer width, so
that addresses need no extension; it is truncated where it is used as a number.
"""

from __future__ import annotations

from typing import Any

from tilewright.codegen.llvm import loop_hints, matrix_unit, memory, parallel
from tilewright.codegen.llvm.expressions import ExpressionEmitter
from tilewright.codegen.llvm.indices import power_of_two_factor
from tilewright.codegen.llvm.runtime_calls import fail, likely_metadata
from tilewright.codegen.llvm.writer import FunctionText
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm, Var, is_const
from tilewright.ir.op import Op
from tilewright.support.errors import CodegenError
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tilewright.tir.transform.use_matrix_unit import TILES

_STACK_ALIGNMENT = 64
_LARGEST_STACK_BUFFER = 1 << 20
_STREAMING = "pragma_nontemporal_store"
_STREAM_ALIGNMENT = 64
_THREAD_ATTRIBUTES = ("thread_extent", "virtual_thread")


class StatementEmitter(ExpressionEmitter):
    """Emits statements."""

    def child(self, function: FunctionText) -> StatementEmitter:
        """An emitter for an outlined part of the same function."""
        made = StatementEmitter(self.module, self.context, function)
        made.streaming = self.streaming
        return made

    def statement(self, stmt: Stmt) -> None:
        """Emit a statement; what was computed for the one before is forgotten."""
        self.forget()
        handler = self._handlers.get(type(stmt)) or self._handler(type(stmt))
        handler(self, stmt)

    def visit_seq_stmt(self, node: SeqStmt) -> None:
        for stmt in node.seq:
            self.statement(stmt)

    def visit_evaluate(self, node: Evaluate) -> None:
        if isinstance(node.value, (Call,)) or node.value.children():
            self.visit(node.value)

    def visit_store(self, node: Store) -> None:
        memory.store(self, node)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self.define(node.var, self.visit(node.value))
        if node.var.dtype.is_integral and node.var.dtype.lanes == 1:
            self.context.factors[node.var] = power_of_two_factor(node.value, self.context.factors)
        if isinstance(node.value, Call) and node.value.op.name == "tir.call_extern":
            name = node.value.args[0]
            if isinstance(name, StringImm) and name.value == "tilewright_workspace_alloc":
                self.context.alignments[node.var] = _STACK_ALIGNMENT
        self.statement(node.body)

    def visit_allocate(self, node: Allocate) -> None:
        """Stack memory, in the entry block, so that small arrays can become registers."""
        size = node.constant_size()
        if size is None:
            raise CodegenError(
                f"the buffer {node.buffer_var.name} has no constant size; run LowerTVMBuiltin before code is made",
                span=node.span,
            )
        if not is_const(node.condition, 1):
            raise CodegenError(f"the allocation of {node.buffer_var.name} has a condition", span=node.span)
        itemsize = 8 if node.dtype.is_handle else node.dtype.itemsize
        total = max(size, 1) * node.dtype.lanes * itemsize
        if total > _LARGEST_STACK_BUFFER:
            raise CodegenError(
                f"the buffer {node.buffer_var.name} of {total} bytes does not fit the stack; run LowerTVMBuiltin",
                span=node.span,
            )
        self.define(node.buffer_var, self.function.alloca(f"[{total} x i8]", _STACK_ALIGNMENT))
        self.context.alignments[node.buffer_var] = _STACK_ALIGNMENT
        self.statement(node.body)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        """Handles the attributes that concern code generation."""
        key = node.attr_key
        if key in _THREAD_ATTRIBUTES:
            raise CodegenError(
                f"an axis is bound to a GPU thread ({key}), which {self.machine.target.kind} code has none of; "
                "build for a GPU target or use parallel()",
                span=node.span,
            )
        if key == "storage_alignment" and isinstance(node.value, IntImm) and isinstance(node.node, Var):
            self.context.alignments[node.node] = node.value.value
        elif key == "volatile_scope" and isinstance(node.node, Var):
            self.context.volatile.add(node.node)
        elif key == _STREAMING:
            self._streaming(node)
            return
        elif key == TILES:
            self._with_tiles(node)
            return
        elif key == "pragma_import_llvm" and isinstance(node.value, StringImm):
            # Stages that call the same functions bring the same text.
            if node.value.value not in self.module.imported:
                self.module.imported.append(node.value.value)
        self.statement(node.body)

    def _streaming(self, node: AttrStmt) -> None:
        """Stores below go past the caches, if the memory is aligned to whole vectors; a second version serves the rest.

        The fence makes the stores visible before anything that follows.
        """
        if self.streaming:
            self.statement(node.body)
            return
        function, index = self.function, self.types.index
        stored = [found.buffer_var for found in statements_in(node.body) if isinstance(found, Store)]
        targets = [var for var in dict.fromkeys(stored) if var in self.variables]
        bits = "0"
        for var in targets:
            address = function.value(f"ptrtoint ptr {self.variable(var)} to {index}")
            bits = function.value(f"or {index} {bits}, {address}")
        rest = function.value(f"and {index} {bits}, {_STREAM_ALIGNMENT - 1}")
        aligned = function.value(f"icmp eq {index} {rest}, 0")
        labels = [function.new_label(hint) for hint in ("stream", "plain", "written")]
        function.branch_if(aligned, labels[0], labels[1], likely_metadata(self))
        before = function.known
        function.begin(labels[0], before)
        known = dict(self.context.alignments)
        self.context.alignments.update(dict.fromkeys(targets, _STREAM_ALIGNMENT))
        self.streaming = True
        self.statement(node.body)
        self.streaming = False
        self.context.alignments = known
        self.store_fence()
        function.branch(labels[2])
        function.begin(labels[1], before)
        self.statement(node.body)
        function.branch(labels[2])
        function.begin(labels[2], before)

    def _with_tiles(self, node: AttrStmt) -> None:
        """Products below are on the matrix unit, which every thread that computes them configures."""
        assert isinstance(node.value, Call)
        sizes = [size.value for size in node.value.args if isinstance(size, IntImm)]
        is_outlined = (
            isinstance(node.body, For) and node.body.kind == ForKind.PARALLEL and not self.in_parallel
        )
        if is_outlined:
            self.context.tiles = sizes
            self.statement(node.body)
            self.context.tiles = None
            return
        matrix_unit.configure(self, sizes)
        self.statement(node.body)
        matrix_unit.release(self)

    def store_fence(self) -> None:
        """Wait for streaming stores, where the CPU does not order them by itself."""
        if self.machine.family == "x86":
            self.function.effect("call void @llvm.x86.sse.sfence()")

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        """Leaves the function with an error if the condition is false."""
        condition = self.visit(node.condition)
        function = self.function
        good, bad = function.new_label("holds"), function.new_label("fails")
        function.branch_if(condition, good, bad, likely_metadata(self))
        before = function.known
        function.begin(bad, before)
        # What was computed for the condition is still there for the message.
        fail(self, node.message)
        function.begin(good, before)
        self.statement(node.body)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        condition = self.visit(node.condition)
        function = self.function
        then_label, after = function.new_label("then"), function.new_label("after")
        else_label = after if node.else_case is None else function.new_label("else")
        function.branch_if(
            condition, then_label, else_label, likely_metadata(self) if _is_likely(node.condition) else ""
        )
        before = function.known
        function.begin(then_label, before)
        self.statement(node.then_case)
        function.branch(after)
        if node.else_case is not None:
            function.begin(else_label, before)
            self.statement(node.else_case)
            function.branch(after)
        function.begin(after, before)

    def visit_while(self, node: While) -> None:
        function = self.function
        test, body, after = function.new_label("while"), function.new_label("do"), function.new_label("done")
        self.module.text.has_scalar_loops = True
        function.branch(test)
        function.begin(test, function.known)
        self.forget()
        function.branch_if(self.visit(node.condition), body, after)
        tested = function.known
        function.begin(body, tested)
        self.statement(node.body)
        function.branch(test)
        function.begin(after, tested)

    def visit_for(self, node: For) -> None:
        if node.kind == ForKind.PARALLEL and not self.in_parallel:
            parallel.outline(self, node)
            return
        if node.kind == ForKind.VECTORIZED:
            raise CodegenError(
                f"the loop {node.loop_var.name} is vectorized; run VectorizeLoop before code is made",
                span=node.span,
            )
        if node.kind == ForKind.THREAD_BINDING:
            raise CodegenError(
                f"the loop {node.loop_var.name} is bound to a GPU thread, which a CPU has none of",
                span=node.span,
            )
        kind = self.counter_type(node)
        begin = self.index_as(node.min, kind)
        if isinstance(node.min, IntImm) and isinstance(node.extent, IntImm):
            if node.extent.value <= 0:
                return
            end, certain = str(node.min.value + node.extent.value), True
        else:
            extent = self.index_as(node.extent, kind)
            zero = isinstance(node.min, IntImm) and node.min.value == 0
            end = extent if zero else self.function.value(f"add nsw {kind} {begin}, {extent}")
            certain = isinstance(node.extent, IntImm) and node.extent.value > 0
        factor = power_of_two_factor(node.min, self.context.factors) if is_const(node.extent, 1) else 1
        self.context.factors[node.loop_var] = factor
        self.loop(node.loop_var, begin, end, "1", node, certain)

    def counter_type(self, node: For) -> str:
        """The integer type in which a loop counts."""
        return self.types.index

    def loop(self, loop_var: Var, begin: str, end: str, step: str, node: For, certain: bool = False) -> None:
        """Run the body of ``node`` from ``begin`` up to ``end``; ``certain`` says that it runs at least once."""
        function, index = self.function, self.counter_type(node)
        body, after = function.new_label("loop"), function.new_label("done")
        before = function.block
        if certain:
            function.branch(body)
        else:
            function.branch_if(function.value(f"icmp slt {index} {begin}, {end}"), body, after)
        known = function.known
        function.begin(body, known)
        counter = function.name_value()
        place = len(function.lines)
        function.lines.append("")
        self.define_counter(loop_var, counter, index)
        self.statement(node.body)
        following = function.value(f"add nsw {index} {counter}, {step}")
        function.lines[place] = (
            f"  {counter} = phi {index} [ {begin}, %{before} ], [ {following}, %{function.block} ]"
        )
        again = function.value(f"icmp slt {index} {following}, {end}")
        function.branch_if(again, body, after, loop_hints.metadata(self.module.text, node))
        function.begin(after, known)

    def define_counter(self, loop_var: Var, counter: str, kind: str) -> None:
        """Give a loop variable the value of a counter: its wide value, and the narrow one cut out of it."""
        bits = loop_var.dtype.bits
        self.wide_variables[loop_var] = counter
        if bits == self.types.pointer_bits:
            self.variables[loop_var] = counter
        else:
            how = "trunc" if bits < self.types.pointer_bits else "sext"
            self.variables[loop_var] = self.function.value(f"{how} {self.types.index} {counter} to i{bits}")


def _is_likely(condition: PrimExpr) -> bool:
    operator: Any = condition.op if isinstance(condition, Call) else None
    return isinstance(operator, Op) and operator.name == "tir.likely"
