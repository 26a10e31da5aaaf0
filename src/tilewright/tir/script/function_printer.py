"""Functions and modules in TVMScript.

The head of a function declares what its body cannot: variables that no statement defines (those of symbolic shapes, of
let expressions, of reductions), thread indices, the buffers of the parameters, and buffers that the body uses without
allocating them.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IterVar, is_const
from tilewright.ir.module import IRModule
from tilewright.ir.type import PointerType
from tilewright.support.dtype import INT32
from tilewright.support.recursion import recursion_room
from tilewright.tir import stmt as nodes
from tilewright.tir.script.names import NameTable, identifier
from tilewright.tir.script.printer import StatementPrinter, storage_pointer
from tilewright.tir.script.survey import Survey, free_variables


def is_root_block(stmt: Any) -> bool:
    """True for the implicit block around a whole function."""
    if not isinstance(stmt, nodes.BlockRealize):
        return False
    block = stmt.block
    said = (block.iter_vars, block.reads, block.writes, block.match_buffers, block.annotations)
    return block.name_hint == "root" and not any(said) and block.init is None and is_const(stmt.predicate, 1)


def is_root_like(stmt: Any) -> bool:
    """True for a block without axes: the parser takes it for a root that was written out."""
    return isinstance(stmt, nodes.BlockRealize) and not stmt.block.iter_vars


class FunctionPrinter(StatementPrinter):
    """Writes one function."""

    def function(self, name: str, func: Any) -> None:
        """``@T.prim_func def name(...)``."""
        survey = Survey([[func.buffer_map.get(parameter) for parameter in func.params], func.body])
        mentioned = Survey(list(func.attrs.items())).used
        parameters = []
        for parameter in func.params:
            buffer = func.buffer_map.get(parameter)
            # The buffer is what the body speaks of, so it gets the plain name.
            same = buffer is not None and identifier(buffer.name) == identifier(parameter.name)
            shown = self.names.define(parameter, f"var_{parameter.name}" if same else parameter.name)
            parameters.append(f"{shown}: {self.annotation_text(parameter)}")
        returned = self.type_text(func.ret_type)
        self.line(f"@{self.prefix}prim_func")
        self.line(f"def {identifier(name)}({', '.join(parameters)}) -> {returned}:")
        self.depth += 1
        survey.used.update(mentioned)
        if len(func.attrs) and not mentioned:
            self.line(f"{self.prefix}func_attr({self.value_text(func.attrs)})")
        self._head(func, survey)
        if mentioned:
            self.line(f"{self.prefix}func_attr({self.value_text(func.attrs)})")
        self.line("# body")
        self._function_body(func.body, survey)
        self.depth -= 1

    def _head(self, func: Any, survey: Survey) -> None:
        """Declare what the body needs."""
        bound = [func.buffer_map[parameter] for parameter in func.params if parameter in func.buffer_map]
        local = set(survey.defined) | {buffer.data for buffer in survey.declared}
        for axis in survey.threads:
            if _is_env_thread(axis) and axis.var not in self.env_threads and axis.var not in local:
                self.env_threads.add(axis.var)
                name = self.names.define(axis.var, axis.var.name or axis.thread_tag)
                self.line(f'{name} = {self.prefix}env_thread("{axis.thread_tag}")')
        pointers = {buffer.data for buffer in survey.buffers if _has_own_pointer(buffer)}
        for variable in survey.used:
            if variable not in local and variable not in pointers and self.names.get(variable) is None:
                declaration = self.variable_declaration(variable)
                self.line(f"{self.names.define(variable, variable.name)} = {declaration}")
        for parameter in func.params:
            buffer = func.buffer_map.get(parameter)
            if buffer is not None:
                self.line(self.names.define(buffer, buffer.name), " = ")
                self.buffer_call("match_buffer", parameter, buffer)
        for buffer in survey.buffers:
            if buffer in bound or buffer in survey.declared:
                continue
            needed = {variable for variable in free_variables(buffer) if variable in local}
            if needed:
                self.pending_buffers.append((buffer, needed))
            else:
                self.declare_buffer(buffer)

    def _function_body(self, body: Any, survey: Survey) -> None:
        """The body; a root block that the parser puts back is left out."""
        if is_root_block(body) and not (not body.block.alloc_buffers and is_root_like(body.block.body)):
            inner = Survey(body.block.body)
            if body.block.alloc_buffers or inner.has_blocks:
                self.line(f'# with {self.prefix}block("root")')
                for buffer in body.block.alloc_buffers:
                    self.line(self.names.define(buffer, buffer.name), " = ")
                    self.buffer_call("alloc_buffer", None, buffer)
                    self.define_after(body, [buffer.data])
                self.body(body.block.body)
                return
        elif survey.has_blocks and not is_root_like(body):
            self.line(f"{self.prefix}no_root_block()")
        self.body(body)


def _is_env_thread(axis: IterVar) -> bool:
    """True if ``T.env_thread(tag)`` says all about a thread index."""
    return (
        axis.dom is None
        and axis.iter_type == IterVar.ThreadIndex
        and axis.var.dtype is INT32
        and bool(axis.thread_tag)
    )


def _has_own_pointer(buffer: Buffer) -> bool:
    """True if the buffer's pointer is what its declaration makes by itself."""
    annotation = buffer.data.type_annotation
    scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
    return annotation == storage_pointer(buffer.dtype, scope) and buffer.data.node_kind == "var"


def print_function(func: Any, prefix: str = "T", show_meta: bool = False) -> str:
    """A function in TVMScript."""
    printer = FunctionPrinter(prefix, names=_names(prefix))
    with recursion_room():
        printer.function(str(func.attrs.get("global_symbol", "func")), func)
    return (
        f"# from tvm.script import tir as {prefix}"
        + "".join(printer.pieces)
        + _metadata(printer, show_meta)
        + "\n"
    )


def print_module(
    module: IRModule, prefix: str = "T", show_meta: bool = False, *, printer: FunctionPrinter | None = None
) -> str:
    """A module in TVMScript: a class of functions. Functions of other levels are named in a comment."""
    printer = printer or FunctionPrinter(prefix, names=_names(prefix))
    printer.line("@tvm.script.ir_module")
    printer.line("class Module:")
    printer.depth = 1
    if len(module.attrs):
        printer.line(f"{printer.prefix}module_attrs({printer.value_text(module.attrs)})")
    with recursion_room():
        for variable, func in module.functions.items():
            if not hasattr(func, "buffer_map"):
                printer.line(f"# {variable.name_hint}: {type(func).__name__}")
                continue
            printer.names, printer.env_threads, printer.pending_buffers = _names(prefix), set(), []
            printer.function(variable.name_hint, func)
            printer.write("\n")
    if not module.functions:
        printer.line("pass")
    text = "".join(printer.pieces).rstrip()
    return f"# from tvm.script import tir as {prefix}" + text + _metadata(printer, show_meta) + "\n"


def print_statement(stmt: Any) -> str:
    """A statement on its own, short: what ``repr`` shows."""
    printer = StatementPrinter(short=True)
    with recursion_room():
        printer.body(stmt)
    return "".join(printer.pieces).strip("\n")


def _names(prefix: str) -> NameTable:
    return NameTable(frozenset({prefix}))


def _metadata(printer: StatementPrinter, show: bool) -> str:
    """Comments that say what the values without a text are."""
    if not show:
        return ""
    return "".join(
        [f"\n# metadata({position}): {value!r}" for position, value in enumerate(printer.metadata)]
    )
