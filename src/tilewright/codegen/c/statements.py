"""Statements as C text.

A store of several lanes evaluates all values before it stores the first: a later lane may read what an earlier one
overwrites.
"""

from __future__ import annotations

from tilewright.codegen.c.expressions import ExpressionPrinter, bare, string_literal
from tilewright.ir.expr import Call, PrimExpr, StringImm, Var, is_const
from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import CodegenError
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
    is_no_op,
)
from tilewright.tir.transform.lib.effects import side_effect

_KINDS = """
ValueError TypeError IndexError KeyError AssertionError RuntimeError MemoryError NotImplementedError AttributeError
OverflowError ZeroDivisionError OSError
"""

_ERROR_KINDS = frozenset(_KINDS.split())


class StatementPrinter(ExpressionPrinter):
    """Prints statements; a language overrides what it writes differently."""

    def statement(self, node: Stmt) -> None:
        """Write a statement."""
        self.start_statement()
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        handler(self, node)

    def block(self, opening: str, body: Stmt) -> None:
        """Write a statement in braces after the opening."""
        self.line(f"{opening} {{")
        self.indentation += 1
        self.statement(body)
        self.indentation -= 1
        self.line("}")

    # ---- control ----

    def visit_seq_stmt(self, node: SeqStmt) -> None:
        for part in node.seq:
            self.statement(part)

    def visit_for(self, node: For) -> None:
        if node.kind in (ForKind.VECTORIZED, ForKind.THREAD_BINDING):
            raise CodegenError(
                f"loop {node.loop_var.name} is {node.kind.name.lower()}, which must be lowered first"
            )
        low, end = bare(self.scalar(node.min)), self._loop_end(node)
        kind = self.type_name(node.loop_var.dtype)
        name = self.names.define(node.loop_var)
        self.loop_hint(node)
        self.block(f"for ({kind} {name} = {low}; {name} < {end}; ++{name})", node.body)

    def loop_hint(self, node: For) -> None:
        """The language's hint before a loop."""

    def _loop_end(self, node: For) -> str:
        end = self.scalar(node.extent if is_const(node.min, 0) else node.min + node.extent)
        if side_effect(node.extent) <= CallEffectKind.Pure:
            return end
        # The body may change what the extent reads.
        name = self.names.fresh(f"{node.loop_var.name}_end")
        self.line(self.binding(node.loop_var.dtype, name, end))
        return name

    def visit_while(self, node: While) -> None:
        self.line("for (;;) {")
        self.indentation += 1
        self.start_statement()
        self.line(f"if (!{self.scalar(node.condition)}) break;")
        self.statement(node.body)
        self.indentation -= 1
        self.line("}")

    def visit_if_then_else(self, node: IfThenElse) -> None:
        self.block(f"if ({bare(self.scalar(node.condition))})", node.then_case)
        if node.else_case is not None and not is_no_op(node.else_case):
            self.lines.pop()
            self.block("} else", node.else_case)

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        self.line(f"if (!{self.scalar(node.condition)}) {{")
        self.indentation += 1
        self.failure(node.message)
        self.indentation -= 1
        self.line("}")
        self.statement(node.body)

    def failure(self, message: PrimExpr) -> None:
        """Write what happens where an assertion fails."""
        self.line("return -1;")

    # ---- memory and values ----

    def declare_pointer(self, variable: Var, restrict: bool = False) -> str:
        """The declaration of a pointer variable, without its value."""
        annotation = variable.type_annotation
        element = None
        if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
            element = annotation.element_type.dtype.element
        if element is None:
            return f"void* {self.names.define(variable)}"
        self.element_types[variable] = element
        qualifier = f"{self.restrict_word} " if restrict else ""
        return f"{self.pointer_space(variable)}{self.storage_type(element)}* {qualifier}{self.names.define(variable)}"

    restrict_word = "restrict"

    def visit_let_stmt(self, node: LetStmt) -> None:
        if node.var.dtype.is_handle:
            self._let_pointer(node)
        elif node.value.dtype.lanes > 1:
            lanes = [self.of_lane(node.value, lane) for lane in range(node.value.dtype.lanes)]
            kind = self.type_name(node.var.dtype.element)
            self.line(f"{kind} {self.names.define(node.var)}[{len(lanes)}] = {{{', '.join(lanes)}}};")
        else:
            value = self.scalar(node.value)
            self.line(self.binding(node.var.dtype, self.names.define(node.var), value))
        self.statement(node.body)

    def _let_pointer(self, node: LetStmt) -> None:
        value = self.scalar(node.value)
        declaration = self.declare_pointer(node.var)
        kind = declaration.rpartition(" ")[0]
        self.line(
            f"{declaration} = ({kind}){value};" if kind != "void*" else f"{declaration} = (void*){value};"
        )

    def visit_allocate(self, node: Allocate) -> None:
        size = node.constant_size()
        if size is None:
            raise CodegenError(f"{self.language} needs a constant size for {node.buffer_var.name}")
        element = node.dtype.element
        self.element_types[node.buffer_var] = element
        name = self.names.define(node.buffer_var)
        self.line(self.allocation(node, name, self.storage_type(element), max(size * node.dtype.lanes, 1)))
        self.statement(node.body)

    def allocation(self, node: Allocate, name: str, kind: str, size: int) -> str:
        """The declaration of memory for a number of elements."""
        return f"{kind} {name}[{size}];"

    def visit_store(self, node: Store) -> None:
        lanes = node.value.dtype.lanes
        if lanes == 1:
            target = self.element(node.buffer_var, node.value.dtype, self.scalar(node.index))
            self._guarded_line(node.predicate, None, f"{target} = {bare(self.scalar(node.value))};")
            return
        kind = self.type_name(node.value.dtype.element)
        values = self.names.fresh("lanes")
        texts = [bare(self.of_lane(node.value, lane)) for lane in range(lanes)]
        self.line(f"{kind} {values}[{lanes}] = {{{', '.join(texts)}}};")
        for lane in range(lanes):
            self._store_lane(node, lane, f"{values}[{lane}]")

    def _store_lane(self, node: Store, lane: int, value: str) -> None:
        outer, self.lane = self.lane, lane
        index = self.index_text(node.index, node.value.dtype.lanes)
        self.lane = outer
        target = self.element(node.buffer_var, node.value.dtype.element, index)
        self._guarded_line(node.predicate, lane, f"{target} = {value};")

    def _guarded_line(self, predicate: PrimExpr, lane: int | None, text: str) -> None:
        if is_const(predicate, 1):
            self.line(text)
            return
        condition = (
            self.scalar(predicate) if predicate.dtype.lanes == 1 else self.of_lane(predicate, lane or 0)
        )
        self.line(f"if ({condition}) {{ {text} }}")

    # ---- effects ----

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key == "volatile_scope" and isinstance(node.node, Var):
            self.volatile.add(node.node)
        self.statement(node.body)

    def visit_evaluate(self, node: Evaluate) -> None:
        if is_no_op(node):
            return
        call = node.value
        if isinstance(call, Call) and isinstance(call.op, Op):
            handler = getattr(self, f"do_{call.op.name.removeprefix('tir.')}", None)
            if handler is not None:
                handler(call)
                return
        self.line(f"{self._effect(call)};")

    def _effect(self, value: PrimExpr) -> str:
        text = self.scalar(value) if value.dtype.lanes == 1 else self.of_lane(value, 0)
        return text if isinstance(value, Call) else f"(void){text}"

    def do_ret(self, call: Call) -> None:
        self.line(f"return {self.scalar(call.args[0])};" if call.args else "return;")

    def do_prefetch(self, call: Call) -> None:
        self.line(f"__builtin_prefetch({self.scalar(call.args[0])});")


def split_message(message: PrimExpr) -> tuple[str, str, list[PrimExpr]]:
    """The kind of error, the text and the values of an assertion's message."""
    values: list[PrimExpr] = []
    if isinstance(message, Call) and message.op.name == "tir.format_message":
        values = list(message.args[1:])
        message = message.args[0]
    text = message.value if isinstance(message, StringImm) else "an assertion failed"
    kind, colon, rest = text.partition(": ")
    return (kind, rest, values) if colon and kind in _ERROR_KINDS else ("AssertionError", text, values)


__all__ = ["StatementPrinter", "split_message", "string_literal"]
