"""Printing a lowered statement as hybrid script."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import expr as nodes
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Var
from tilewright.ir.op import Op
from tilewright.ir.text import ATOM, PRODUCT, UNARY, ExprPrinter
from tilewright.support.dtype import FLOAT32, INT32
from tilewright.support.errors import LoweringError
from tilewright.support.recursion import with_recursion_room
from tilewright.te.hybrid import language
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import (
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    is_no_op,
)

_LOOPS = {
    ForKind.SERIAL: "range",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorize",
    ForKind.UNROLLED: "unroll",
}
_SYMBOLS = {
    "shift_left": "<<",
    "shift_right": ">>",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_WORDS = {"pow": "power", "fabs": "abs"}


class _Names:
    """A name that Python takes for everything, no two alike."""

    def __init__(self) -> None:
        self.given: dict[Any, str] = {}
        self.taken: set[str] = {*language.EMULATED, *keyword.kwlist, "True", "False", "None"}

    def of(self, key: Any, wanted: str) -> str:
        """The name of a variable or tensor."""
        if key not in self.given:
            base = re.sub(r"\W", "_", wanted)
            base = f"_{base}" if not base or base[0].isdigit() else base
            name, number = base, 1
            while name in self.taken:
                name, number = f"{base}_{number}", number + 1
            self.taken.add(name)
            self.given[key] = name
        return self.given[key]


class _Expressions(ExprPrinter):
    """Writes expressions in the words of the language."""

    def __init__(self, names: _Names, origins: dict[Tensor, list[PrimExpr]]) -> None:
        super().__init__("")
        self.names = names
        self.origins = origins
        self.analyzer = Analyzer()

    def var_name(self, var: Var) -> str:
        return self.names.of(var, var.name)

    def buffer_name(self, buffer: Any) -> str:
        return self.names.of(buffer, buffer.name)

    def indices(self, tensor: Any, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Indices into the memory of a tensor, of which only a box may have memory."""
        origin = self.origins.get(tensor)
        if origin is None:
            return list(indices)
        return [
            self.analyzer.simplify(operators.subtract(index, start))
            for index, start in zip(indices, origin, strict=True)
        ]

    def visit_producer_load(self, node: ProducerLoad) -> None:
        self.print_element(self.buffer_name(node.producer), self.indices(node.producer, node.indices))

    def precedence(self, node: Any) -> int:
        if isinstance(node, nodes.FloatImm) and node.dtype is FLOAT32:
            return UNARY if node.value < 0 else ATOM
        if isinstance(node, nodes.Div):
            return PRODUCT if node.dtype.is_float else ATOM
        return super().precedence(node)

    def visit_int_imm(self, node: nodes.IntImm) -> None:
        if node.dtype is INT32 or node.dtype.is_bool:
            super().visit_int_imm(node)
        else:
            self.write(f"{self._type(node.dtype)}({node.value})")

    def visit_float_imm(self, node: nodes.FloatImm) -> None:
        digits = repr(node.value)
        if not math.isfinite(node.value):
            # A literal too large for a float is infinity.
            digits = {"inf": "1e999", "-inf": "-1e999"}.get(digits, "(1e999 - 1e999)")
        self.write(digits if node.dtype is FLOAT32 else f"{self._type(node.dtype)}({digits})")

    def _type(self, dtype: Any) -> str:
        if dtype not in language.EXPRESSIONS:
            raise LoweringError(f"values of type {dtype} cannot be written in hybrid script")
        return str(dtype)

    def visit_cast(self, node: nodes.Cast) -> None:
        self.print_call(self._type(node.dtype), node.value)

    def visit_select(self, node: nodes.Select) -> None:
        self._choice(node.condition, node.true_value, node.false_value)

    def _choice(self, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> None:
        self.write("(")
        for piece in (yes, " if ", condition, " else ", no):
            self.write(piece) if isinstance(piece, str) else self.print_operand(piece, ATOM)
        self.write(")")

    def visit_call(self, node: nodes.Call) -> None:
        name = node.op.name.removeprefix("tir.") if isinstance(node.op, Op) else ""
        if name == "if_then_else":
            self._choice(*node.args)
        elif name in _SYMBOLS:
            self.write("(")
            self.print_operand(node.args[0], ATOM)
            self.write(f" {_SYMBOLS[name]} ")
            self.print_operand(node.args[1], ATOM)
            self.write(")")
        elif name == "bitwise_not":
            self.write("~")
            self.print_operand(node.args[0], ATOM)
        elif _WORDS.get(name, name) in language.EXPRESSIONS:
            self.print_call(_WORDS.get(name, name), *node.args)
        else:
            raise LoweringError(f"{name or node.op} cannot be written in hybrid script")

    def visit_default(self, node: Any) -> None:
        raise LoweringError(f"{type(node).__name__} cannot be written in hybrid script")

    visit_load = visit_ramp = visit_broadcast = visit_shuffle = visit_let = visit_reduce = visit_default


class _Printer:
    """Writes one function."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.names = _Names()
        self.origins: dict[Tensor, list[PrimExpr]] = {}
        self.expressions = _Expressions(self.names, self.origins)
        self.lines: list[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        """Write a line at the present depth."""
        self.lines.append("    " * self.depth + text)

    def text(self, expr: PrimExpr) -> str:
        return self.expressions.text(expr)

    def function(self, body: Stmt, name: str) -> str:
        """The whole function."""
        parameters = []
        for given in self.inputs:
            if not isinstance(given, (Tensor, Var)):
                raise LoweringError(f"a hybrid function takes tensors and variables, not {given!r}")
            parameters.append(self.names.of(given, given.name))
        self._sizes()
        for tensor in self.outputs:
            shape = self._shape(tensor.shape)
            self.line(f'{self.names.of(tensor, tensor.name)} = output_tensor({shape}, "{tensor.dtype}")')
        self.statement(body)
        self.line(f"return {', '.join([self.names.of(tensor, tensor.name) for tensor in self.outputs])}")
        return "\n".join([f"def {name}({', '.join(parameters)}):", *self.lines]) + "\n"

    def _sizes(self) -> None:
        """Sizes that no parameter gives are read from the shapes of the inputs."""
        known = {given for given in self.inputs if isinstance(given, Var)}
        for given in self.inputs:
            if isinstance(given, Tensor):
                for dimension, extent in enumerate(given.shape):
                    if isinstance(extent, Var) and extent not in known:
                        known.add(extent)
                        place = f"{self.names.of(given, given.name)}.shape[{dimension}]"
                        self.line(f"{self.names.of(extent, extent.name)} = {place}")

    def _shape(self, extents: Sequence[PrimExpr]) -> str:
        texts = [self.text(extent) for extent in extents]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def block(self, head: str, body: Stmt) -> None:
        """Statements under a head."""
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        self.statement(body)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def statement(self, stmt: Stmt) -> None:
        handler = _STATEMENTS.get(type(stmt))
        if handler is None:
            raise LoweringError(f"{type(stmt).__name__} cannot be written in hybrid script")
        handler(self, stmt)

    def sequence(self, stmt: SeqStmt) -> None:
        for part in stmt.seq:
            self.statement(part)

    def loop(self, stmt: For) -> None:
        word = _LOOPS.get(stmt.kind)
        if word is None:
            raise LoweringError("a loop bound to a thread cannot be written in hybrid script")
        start = "" if nodes.is_const(stmt.min, 0) else f"{self.text(stmt.min)}, "
        stop = stmt.extent if not start else operators.add(stmt.min, stmt.extent)
        head = f"for {self.expressions.var_name(stmt.loop_var)} in {word}({start}{self.text(stop)}):"
        self.block(head, stmt.body)

    def attribute(self, stmt: AttrStmt) -> None:
        if stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
            name = self.expressions.var_name(stmt.node.var)
            self.block(f'for {name} in bind("{stmt.node.thread_tag}", {self.text(stmt.value)}):', stmt.body)
            return
        if stmt.attr_key == "buffer_bind_scope":
            raise LoweringError(
                "a statement on buffers (extern, tensorize) cannot be written in hybrid script"
            )
        self.statement(stmt.body)

    def realize(self, stmt: ProducerRealize) -> None:
        tensor = stmt.producer
        assert isinstance(tensor, Tensor)
        if not any(tensor is output for output in self.outputs):
            name = self.names.of(tensor, tensor.name)
            shape = self._shape([bound.extent for bound in stmt.bounds])
            if any(not nodes.is_const(bound.min, 0) for bound in stmt.bounds):
                self.origins[tensor] = [bound.min for bound in stmt.bounds]
            self.line(f'{name} = allocate({shape}, "{tensor.dtype}", "{stmt.storage_scope or "global"}")')
        self.statement(stmt.body)

    def store(self, stmt: ProducerStore) -> None:
        place = self.text(ProducerLoad(stmt.producer, stmt.indices))
        self.line(f"{place} = {self.text(stmt.value)}")

    def condition(self, stmt: IfThenElse) -> None:
        self.block(f"if {self.text(stmt.condition)}:", stmt.then_case)
        if stmt.else_case is not None:
            self.block("else:", stmt.else_case)

    def let(self, stmt: LetStmt) -> None:
        self.line(f"{self.expressions.var_name(stmt.var)} = {self.text(stmt.value)}")
        self.statement(stmt.body)

    def assertion(self, stmt: AssertStmt) -> None:
        self.line(f"assert {self.text(stmt.condition)}, {self.text(stmt.message)}")
        self.statement(stmt.body)

    def evaluate(self, stmt: Evaluate) -> None:
        if not is_no_op(stmt):
            raise LoweringError(f"{stmt.value} cannot be written in hybrid script")

    def nothing(self, stmt: Prefetch) -> None:
        """A hint has no words."""


_STATEMENTS: Mapping[type[Stmt], Any] = {
    SeqStmt: _Printer.sequence,
    For: _Printer.loop,
    AttrStmt: _Printer.attribute,
    ProducerRealize: _Printer.realize,
    ProducerStore: _Printer.store,
    IfThenElse: _Printer.condition,
    LetStmt: _Printer.let,
    AssertStmt: _Printer.assertion,
    Evaluate: _Printer.evaluate,
    Prefetch: _Printer.nothing,
}


@with_recursion_room
def hybrid_source(body: Stmt, inputs: Sequence[Any], outputs: Sequence[Tensor], name: str) -> str:
    """A statement of a schedule as the text of a hybrid script with these inputs, which returns the outputs."""
    return _Printer(inputs, outputs).function(body, name)
