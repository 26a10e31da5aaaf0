"""Statements in TVMScript.

A statement that encloses a body (a let, an attribute, an allocation) is written as one line if it is the last of a
sequence, its body following at the same depth, and as a ``with`` block if something comes after it.

Ranges are written ``start:start + extent``, so that the parser finds the extent by removing the start from the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from tilewright.ir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferRegion
from tilewright.ir.expr import Add, CommReducer, IntImm, IterVar, PrimExpr, Range, StringImm, Var, is_const
from tilewright.ir.functor import post_order
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import INT32, DataType
from tilewright.tir import stmt as nodes
from tilewright.tir.script.names import NameTable
from tilewright.tir.script.values import ValuePrinter, quoted
from tilewright.tir.storage_rank import thread_attribute

_LOOPS = {0: "serial", 1: "parallel", 2: "vectorized", 3: "unroll", 4: "thread_binding"}
_AXES = {0: "spatial", 2: "reduce", 3: "scan", 4: "opaque"}
ITERATION_KINDS = (
    "DataPar",
    "ThreadIndex",
    "CommReduce",
    "Ordered",
    "Opaque",
    "Unrolled",
    "Vectorized",
    "Parallelized",
    "Tensorized",
)


def range_stop(low: PrimExpr, extent: PrimExpr) -> PrimExpr | None:
    """The end of a range as an expression that shows its extent; None where their types do not meet."""
    if low.dtype is not extent.dtype:
        return None
    if isinstance(low, IntImm) and isinstance(extent, IntImm):
        return IntImm(low.dtype, low.value + extent.value)
    return extent if is_const(low, 0) else Add(low, extent)


def storage_pointer(dtype: DataType, scope: str) -> PointerType:
    """The type of the pointer that a declared buffer has unless another is given."""
    return PointerType(PrimType("int8" if dtype.is_bool else dtype), scope)


class StatementPrinter(ValuePrinter):
    """Writes statements; ``names`` knows what is in scope."""

    shows_zero = False
    """True if loops show that they start at zero."""

    def __init__(self, prefix: str = "T", *, short: bool = False, names: NameTable | None = None) -> None:
        super().__init__(prefix, short=short)
        self.names = names or NameTable(frozenset({prefix}))
        self.depth = 0
        self.loops: dict[Var, PrimExpr] = {}
        self.pending_buffers: list[tuple[Buffer, set[Var]]] = []
        self.env_threads: set[Var] = set()

    # Names

    def var_name(self, var: Var) -> str:
        """The variable's name here; one that nothing defines keeps its own."""
        return self.names.mention(var, var.name)

    def buffer_name(self, buffer: Any) -> str:
        """The buffer's name here."""
        name = getattr(buffer, "name", None)
        return self.names.mention(buffer, str(buffer.name_hint if name is None else name))

    # Lines

    def line(self, *parts: Any) -> None:
        """One line; strings are written as they are, nodes as expressions."""
        self.write("\n" + "    " * self.depth)
        for part in parts:
            if isinstance(part, str) and not isinstance(part, StringImm):
                self.write(part)
            else:
                self.print(part)

    def indented(self, body: Any) -> None:
        """A block of lines one level deeper, with a new scope."""
        self.depth += 1
        with self.names.scope():
            self.body(body)
        self.depth -= 1

    def body(self, stmt: Any) -> None:
        """A statement and those that follow it in a sequence, at this depth."""
        parts = nodes.stmt_list(stmt)
        for position, part in enumerate(parts):
            self.begin(part)
            scoped = _SCOPED.get(part.node_kind)
            if scoped is None:
                self.print(part)
            elif position == len(parts) - 1:
                self._concise(scoped, part)
            else:
                with self.names.scope():
                    self._with_block(scoped, part)
        if not parts:
            self.line("pass")

    def begin(self, stmt: Any) -> None:
        """Called before each statement is written; subclasses override it to record positions."""

    def _concise(self, scoped: _Scoped, stmt: Any) -> None:
        self.define_after(stmt, scoped(self, stmt, False))
        self.body(stmt.body)

    def _with_block(self, scoped: _Scoped, stmt: Any) -> None:
        defined = scoped(self, stmt, True)
        self.depth += 1
        self.define_after(stmt, defined)
        self.body(stmt.body)
        self.depth -= 1

    def define_after(self, stmt: Any, defined: Sequence[Var]) -> None:
        """Declare the buffers that only now have all their variables."""
        for variable in defined:
            for entry in list(self.pending_buffers):
                entry[1].discard(variable)
                if not entry[1]:
                    self.pending_buffers.remove(entry)
                    self.declare_buffer(entry[0])

    # Buffers

    def declare_buffer(self, buffer: Buffer) -> None:
        """A buffer that no statement declares."""
        self.line(self.names.define(buffer, buffer.name), " = ")
        self.buffer_call("buffer_decl", None, buffer)

    def buffer_call(self, function: str, source: Any, buffer: Buffer) -> None:
        """``T.match_buffer(source, shape, dtype=...)`` and its like; what has its default value is left out."""
        self.write(f"{self.prefix}{function}(")
        if source is not None:
            self.print(source)
            self.write(", ")
        self.write("[")
        self.print_list(buffer.shape)
        self.write(f'], dtype="{buffer.dtype}"')
        annotation = buffer.data.type_annotation
        scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
        known = self.names.get(buffer.data)
        if known is not None or annotation != storage_pointer(buffer.dtype, scope):
            self.write(f", data={self.var_name(buffer.data)}")
        else:
            if scope:
                self.write(f", scope={quoted(scope)}")
            self.names.alias(buffer.data, f"{self.buffer_name(buffer)}.data")
        if buffer.strides:
            self.write(", strides=[")
            self.print_list(buffer.strides)
            self.write("]")
        index_type = buffer.shape[0].dtype if buffer.shape else INT32
        if not (is_const(buffer.elem_offset, 0) and buffer.elem_offset.dtype is index_type):
            self.write(", elem_offset=")
            self.print(buffer.elem_offset)
        if buffer.data_alignment != DEFAULT_ALIGNMENT:
            self.write(f", align={buffer.data_alignment}")
        if buffer.offset_factor != 1:
            self.write(f", offset_factor={buffer.offset_factor}")
        if buffer.buffer_type:
            self.write(f", type={quoted(buffer.buffer_type)}")
        self.write(")")

    def region(self, buffer: Any, ranges: Iterable[Range]) -> None:
        """``A[0:16, i]``."""
        self.write(f"{self.buffer_name(buffer)}[")
        separator = ""
        for bounds in ranges:
            self.write(separator)
            self.print_range(bounds)
            separator = ", "
        self.write("]" if separator else "()]")

    def print_range(self, bounds: Range) -> None:
        """One dimension of a region; a single index where the extent is one."""
        if is_const(bounds.extent, 1) and bounds.extent.dtype is bounds.min.dtype:
            self.print(bounds.min)
            return
        stop = range_stop(bounds.min, bounds.extent)
        if stop is None:
            self.print_call("min_extent", bounds.min, bounds.extent)
        else:
            self.print(bounds.min)
            self.write(":")
            self.print(stop)

    def visit_buffer_region(self, node: BufferRegion) -> None:
        """A region as the argument of a call."""
        self.region(node.buffer, node.region)

    def visit_buffer(self, node: Buffer) -> None:
        """A buffer as the argument of a call."""
        self.write(self.buffer_name(node))

    # Loops and conditions

    def visit_for(self, node: nodes.For) -> None:
        """A loop; plain loops in one another are written as one grid."""
        grid = self._grid(node)
        with self.names.scope():
            if len(grid) > 1:
                extents = [loop.extent for loop in grid]
                self.line("for ")
                # The extents are written before the names, but do not use them.
                names = [self.names.define(loop.loop_var, loop.loop_var.name) for loop in grid]
                self.write(f"{', '.join(names)} in ")
                self.print_call("grid", *extents)
            else:
                self._loop_header(node)
            self.write(":")
            for loop in grid:
                if is_const(loop.min, 0):
                    self.loops[loop.loop_var] = loop.extent
            self.depth += 1
            self.define_after(node, [loop.loop_var for loop in grid])
            self.body(grid[-1].body)
            self.depth -= 1

    def _grid(self, node: nodes.For) -> list[nodes.For]:
        """The loops that can be written as one: serial from zero, with extents that do not depend on one another."""
        found = [node]
        while _is_plain(found[0]) and isinstance(found[-1].body, nodes.For) and _is_plain(found[-1].body):
            inner = found[-1].body
            outer = {id(loop.loop_var) for loop in found}
            if id(inner.loop_var) in outer or any(id(used) in outer for used in post_order(inner.extent)):
                break
            found.append(inner)
        return found

    def _loop_header(self, node: nodes.For) -> None:
        """``for i in T.serial(...)``."""
        self.line("for ")
        place = len(self.pieces)
        self.write("")
        self.write(f" in {self.prefix}{_LOOPS[int(node.kind)]}(")
        stop = range_stop(node.min, node.extent)
        assert stop is not None
        if self.shows_zero or not is_const(node.min, 0):
            self.print(node.min)
            self.write(", ")
        self.print(stop)
        if node.thread_binding is not None:
            self.write(", thread=")
            self._thread_of_loop(node.thread_binding)
        if node.annotations:
            self.write(f", annotations={self.dictionary_text(node.annotations)}")
        self.write(")")
        self.pieces[place] = self.names.define(node.loop_var, node.loop_var.name)

    def _thread_of_loop(self, axis: IterVar) -> None:
        """Only the tag, if that is sufficient."""
        if axis.dom is None and axis.iter_type == IterVar.ThreadIndex and axis.var.dtype is INT32:
            if self.names.get(axis.var) is None:
                self.write(quoted(axis.thread_tag))
                return
        self.print_axis(axis)

    def print_axis(self, axis: IterVar) -> None:
        """An axis with its range, and its kind and tag where they are not those of a reduction."""
        arguments: list[Any] = [self.var_name(axis.var)]
        if axis.dom is not None:
            arguments += [axis.dom.min, axis.dom.extent]
        if axis.iter_type != IterVar.CommReduce or axis.thread_tag:
            arguments += [quoted(ITERATION_KINDS[axis.iter_type]), quoted(axis.thread_tag)]
        self.print_call("iter_var", *arguments)

    def visit_while(self, node: nodes.While) -> None:
        self.line("while ", node.condition, ":")
        self.indented(node.body)

    def visit_if_then_else(self, node: nodes.IfThenElse) -> None:
        """A condition; one that is all of an else branch becomes an ``elif``."""
        word = "if"
        current: Any = node
        while True:
            self.line(f"{word} ", current.condition, ":")
            self.indented(current.then_case)
            if not isinstance(current.else_case, nodes.IfThenElse):
                break
            current, word = current.else_case, "elif"
        if current.else_case is not None:
            self.line("else:")
            self.indented(current.else_case)

    def visit_seq_stmt(self, node: nodes.SeqStmt) -> None:
        """A sequence on its own."""
        self.body(node)

    # Effects

    def visit_evaluate(self, node: nodes.Evaluate) -> None:
        self.line(f"{self.prefix}evaluate(", node.value, ")")

    def visit_buffer_store(self, node: nodes.BufferStore) -> None:
        """``A[i, j] = value``."""
        self.line()
        self.print_element(self.buffer_name(node.buffer), node.indices)
        self.write(" = ")
        self.print(node.value)

    def visit_producer_store(self, node: nodes.ProducerStore) -> None:
        """A store to a tensor, as to a buffer."""
        self.line()
        self.print_element(self.buffer_name(node.producer), node.indices)
        self.write(" = ")
        self.print(node.value)

    def visit_store(self, node: nodes.Store) -> None:
        if self.short and is_const(node.predicate, 1):
            self.line()
            self.print_element(self.var_name(node.buffer_var), (node.index,))
            self.write(" = ")
            self.print(node.value)
            return
        predicate = () if is_const(node.predicate, 1) else (node.predicate,)
        self.line()
        self.print_call("store", node.buffer_var, node.index, node.value, *predicate)

    def visit_prefetch(self, node: nodes.Prefetch) -> None:
        """A hint about a region."""
        self.line(f"{self.prefix}prefetch(")
        self.region(node.buffer, node.bounds)
        self.write(")")

    # Blocks

    def visit_block_realize(self, node: nodes.BlockRealize) -> None:
        """A block with the values of its axes."""
        self._block(node.block, node.iter_values, node.predicate)

    def visit_block(self, node: nodes.Block) -> None:
        """A block on its own, for messages: its axes have no values."""
        self._block(node, None, None)

    def _block(
        self, block: nodes.Block, values: Sequence[PrimExpr] | None, predicate: PrimExpr | None
    ) -> None:
        self.line(f"with {self.prefix}block({quoted(block.name_hint)}):")
        self.depth += 1
        with self.names.scope():
            # Values are written before their axes have names: a value never refers to the axes of its own block.
            self._axes(block.iter_vars, values)
            if predicate is not None and not is_const(predicate, 1):
                self.line(f"{self.prefix}where(", predicate, ")")
            self.define_after(block, [axis.var for axis in block.iter_vars])
            self.block_inside(block)
        self.depth -= 1

    def block_inside(self, block: nodes.Block) -> None:
        """Prints the declarations of a block, then its body."""
        for name, regions in (("reads", block.reads), ("writes", block.writes)):
            self.line(f"{self.prefix}{name}(")
            self.print_list(regions)
            self.write(")")
        if block.annotations:
            self.line(f"{self.prefix}block_attr({self.dictionary_text(block.annotations)})")
        for buffer in block.alloc_buffers:
            self.line(self.names.define(buffer, buffer.name), " = ")
            self.buffer_call("alloc_buffer", None, buffer)
            self.define_after(block, [buffer.data])
        for match in block.match_buffers:
            self.line(self.names.define(match.buffer, match.buffer.name), " = ")
            self.buffer_call("match_buffer", match.source, match.buffer)
        if block.init is not None:
            self.line(f"with {self.prefix}init():")
            self.indented(block.init)
        self.body(block.body)

    def _axes(self, axes: Sequence[IterVar], values: Sequence[PrimExpr] | None) -> None:
        """The axes, all on one line where each runs as a loop around the block does."""
        if values is not None and len(values) == len(axes) > 1 and self._is_remap(axes, values):
            kinds = "".join(["S" if axis.iter_type == IterVar.DataPar else "R" for axis in axes])
            texts = ", ".join([self.text(value) for value in values])
            names = ", ".join([self.names.define(axis.var, axis.var.name) for axis in axes])
            self.line(f'{names} = {self.prefix}axis.remap("{kinds}", [{texts}])')
            return
        # A broken program is printed too, to show where it is broken: values and ranges may be missing.
        shown = [self.text(value) for value in values or ()]
        for axis, value in zip_longest(axes, shown[: len(axes)]):
            kind = _AXES.get(axis.iter_type, "opaque")
            domain = "None" if axis.dom is None else self._domain(axis.dom)
            name = self.names.define(axis.var, axis.var.name)
            rest = "" if value is None else f", {value}"
            self.line(f"{name} = {self.prefix}axis.{kind}({domain}{rest})")

    def _domain(self, domain: Range) -> str:
        """The range of an axis: its extent, or a pair where it does not start at zero."""
        stop = range_stop(domain.min, domain.extent)
        if stop is None:
            return f"{self.prefix}min_extent({self.text(domain.min)}, {self.text(domain.extent)})"
        if is_const(domain.min, 0):
            return self.text(stop)
        return f"({self.text(domain.min)}, {self.text(stop)})"

    def _is_remap(self, axes: Sequence[IterVar], values: Sequence[PrimExpr]) -> bool:
        """True if each value is a loop's variable and the axis has that loop's range."""
        for axis, value in zip(axes, values, strict=True):
            if not isinstance(value, Var) or axis.dom is None or not is_const(axis.dom.min, 0):
                return False
            extent, looped = axis.dom.extent, self.loops.get(value)
            same = extent is looped or (
                isinstance(extent, IntImm)
                and isinstance(looped, IntImm)
                and (extent.value, extent.dtype) == (looped.value, looped.dtype)
            )
            if not same or axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce):
                return False
            if axis.var.dtype is not value.dtype:
                return False
        return True

    # Attributes

    def value_text(self, value: Any) -> str:
        """An attribute's value; axes, buffers and reducers of the program are values too."""
        if isinstance(value, IterVar):
            saved, self.pieces = self.pieces, []
            self.print_axis(value)
            made, self.pieces = "".join(self.pieces), saved
            return made
        if isinstance(value, (Buffer, BufferRegion, CommReducer)):
            return self.text(value)
        return super().value_text(value)

    def attribute_node(self, node: Any) -> str:
        """Prints the node that an attribute refers to."""
        if isinstance(node, StringImm):
            return quoted(node.value)
        if isinstance(node, PrimExpr):
            return self.text(node)
        if isinstance(node, (list, tuple)):
            return f"[{', '.join([self.attribute_node(item) for item in node])}]"
        return self.value_text(node)


_Scoped = Callable[[StatementPrinter, Any, bool], Sequence[Var]]
"""Writes the head of a statement, as a line or as a ``with`` block, and gives the variables it defines."""


def _let(printer: StatementPrinter, node: nodes.LetStmt, block: bool) -> Sequence[Var]:
    value = printer.text(node.value)
    name = printer.names.define(node.var, node.var.name)
    annotation = node.var.type_annotation
    if block:
        plain = annotation == PrimType(node.value.dtype) and node.var.node_kind == "var"
        kind = "" if plain else f", type={printer.annotation_text(node.var)}"
        printer.line(f"with {printer.prefix}let({name}, {value}{kind}):")
    else:
        printer.line(f"{name}: {printer.annotation_text(node.var)} = {value}")
    return [node.var]


def _assert(printer: StatementPrinter, node: nodes.AssertStmt, block: bool) -> Sequence[Var]:
    if block:
        printer.line(f"with {printer.prefix}Assert(", node.condition, ", ", node.message, "):")
    else:
        printer.line("assert ", node.condition, ", ", node.message)
    return []


def _attr(printer: StatementPrinter, node: nodes.AttrStmt, block: bool) -> Sequence[Var]:
    opening, closing = ("with ", "):") if block else ("", ")")
    if isinstance(node.node, IterVar) and node.node.var in printer.env_threads:
        if node.attr_key == thread_attribute(node.node.thread_tag):
            name = printer.var_name(node.node.var)
            printer.line(f"{opening}{printer.prefix}launch_thread({name}, ", node.value, closing)
            return []
    subject = printer.attribute_node(node.node)
    printer.line(f"{opening}{printer.prefix}attr({subject}, {quoted(node.attr_key)}, ", node.value, closing)
    return []


def _allocate(printer: StatementPrinter, node: nodes.Allocate, block: bool) -> Sequence[Var]:
    annotation = node.buffer_var.type_annotation
    scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
    extents = ", ".join([printer.text(extent) for extent in node.extents])
    call = f"{printer.prefix}allocate([{extents}], {quoted(node.dtype)}, {quoted(scope)}"
    if not is_const(node.condition, 1):
        call += f", {printer.text(node.condition)}"
    if node.annotations:
        call += f", annotations={printer.dictionary_text(node.annotations)}"
    if annotation != PointerType(PrimType(node.dtype), scope):
        call += f", type={printer.type_text(annotation)}"
    name = printer.names.define(node.buffer_var, node.buffer_var.name)
    printer.line(f"with {call}) as {name}:" if block else f"{name} = {call})")
    return [node.buffer_var]


def _realize(printer: StatementPrinter, node: Any, block: bool) -> Sequence[Var]:
    is_buffer = isinstance(node, nodes.BufferRealize)
    subject = node.buffer if is_buffer else node.producer
    scope = _declared_scope(subject) if is_buffer else node.storage_scope
    printer.line(
        f"{'with ' if block else ''}{printer.prefix}{'realize' if is_buffer else 'producer_realize'}("
    )
    printer.region(subject, node.bounds)
    printer.write(f", {quoted(scope)}")
    if not is_const(node.condition, 1):
        printer.write(", ")
        printer.print(node.condition)
    printer.write("):" if block else ")")
    return []


def _declared_scope(buffer: Buffer) -> str:
    annotation = buffer.data.type_annotation
    return annotation.storage_scope if isinstance(annotation, PointerType) else ""


_SCOPED: dict[str, _Scoped] = {
    "let_stmt": _let,
    "assert_stmt": _assert,
    "attr_stmt": _attr,
    "allocate": _allocate,
    "buffer_realize": _realize,
    "producer_realize": _realize,
}


def _is_plain(loop: nodes.For) -> bool:
    """True for a serial loop from zero without annotations."""
    return loop.kind == 0 and is_const(loop.min, 0) and not loop.annotations and loop.thread_binding is None
