"""Functions and modules of a script: the entry points of the parser."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tilewright.ir import diagnostics
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import Call, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.support.errors import ParseError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.script import parser_calls
from tilewright.tir.script.function_printer import is_root_like
from tilewright.tir.script.parser_expressions import TIR
from tilewright.tir.script.parser_statements import StatementParser
from tilewright.tir.script.source import (
    Source,
    environment_of,
    namespace_aliases,
    source_of_object,
    source_of_text,
)
from tilewright.tir.stmt import Block, BlockRealize, Stmt


class FunctionParser(StatementParser):
    """Reads one function."""

    def function(self, node: ast.FunctionDef) -> PrimFunc:
        """The function that a definition describes."""
        arguments = node.args
        if (
            arguments.vararg
            or arguments.kwarg
            or arguments.kwonlyargs
            or arguments.defaults
            or arguments.posonlyargs
        ):
            raise self.error(node, "a function of a script has plain parameters")
        for argument in arguments.args:
            self._parameter(argument)
        returned = None
        if node.returns is not None:
            value = self.value(node.returns)
            returned = None if value is None else parser_calls.as_type(value)
        body = self._with_root(node, self.statements(node.body))
        return PrimFunc(
            self.parameters, body, returned, self.buffer_map, self.function_attributes, self.source.span(node)
        )

    def _parameter(self, argument: ast.arg) -> None:
        if argument.annotation is None:
            raise self.error(argument, f"parameter {argument.arg} needs a type, such as T.handle or T.int32")
        kind = self.value(argument.annotation)
        if isinstance(kind, str):
            # Annotations may be strings, as under ``from __future__ import annotations``.
            kind = self.value(ast.parse(kind, mode="eval").body)
        if isinstance(kind, parser_calls.TypeMaker):
            raise self.error(argument, "the type needs its arguments in brackets")
        if isinstance(kind, parser_calls.BufferAnnotation):
            variable = Var(argument.arg, "handle")
            shape = [self.as_expr(argument, extent) for extent in kind.shape]
            buffer = decl_buffer(shape, kind.dtype, argument.arg, **kind.options)
            self.buffer_map[variable] = buffer
            self.define(argument.arg, buffer)
        else:
            variable = parser_calls.make_variable(argument.arg, kind)
            self.define(argument.arg, variable)
        self.parameters.append(variable)

    def _with_root(self, node: ast.AST, body: Stmt) -> Stmt:
        """The body in the root block of a function with blocks, unless the script writes it itself."""
        allocated = self.block.allocated
        if not allocated and (not (self.has_blocks and self.wants_root) or is_root_like(body)):
            return body
        span = self.source.span(node)
        return BlockRealize([], True, Block([], [], [], "root", body, None, allocated, span=span), span)


def _function_of(source: Source, node: ast.FunctionDef, environment: Mapping[str, Any]) -> PrimFunc:
    parser = FunctionParser(source, dict(environment))
    with recursion_room():
        return parser.function(node)


@contextmanager
def _reported() -> Iterator[None]:
    """Shows what is wrong with a script to the renderer of diagnostics that a program has set."""
    try:
        yield
    except ParseError as problem:
        diagnostics.report(problem)
        raise


@_reported()
def parse_function(function: Callable[..., Any]) -> PrimFunc:
    """The loop-level function that a Python function describes; its source is read, it is never called."""
    source = source_of_object(function)
    (node,) = source.parse().body
    if not isinstance(node, ast.FunctionDef):
        raise source.error(node, "T.prim_func decorates a function")
    return _function_of(source, node, environment_of(function))


def make_module(functions: Mapping[str, PrimFunc], attributes: Mapping[str, Any] | None = None) -> IRModule:
    """A module of functions, in which calls by name refer to the module's own functions."""
    module = IRModule(functions, attrs=attributes)
    linker = _Linker(module)
    with recursion_room():
        return module.map_functions(
            lambda _, func: linker.visit(func) if isinstance(func, PrimFunc) else func
        )


class _Linker(Mutator):
    """Lets calls refer to the functions of a module."""

    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self.module = module

    def visit_call(self, node: Call) -> Call:
        made = node.map_children(self.visit)
        if isinstance(node.op, GlobalVar) and node.op.name_hint in self.module:
            return made.replace(op=self.module.get_global_var(node.op.name_hint))
        return made


@_reported()
def parse_source(
    text: str, tir_prefix: str = "T", environment: Mapping[str, Any] | None = None
) -> PrimFunc | IRModule:
    """The function or module that a text describes."""
    source = source_of_text(text)
    names: dict[str, Any] = dict.fromkeys((tir_prefix, *namespace_aliases(text)), TIR)
    names.update(environment or {})
    for node in source.parse().body:
        if isinstance(node, ast.FunctionDef):
            return _function_of(source, node, names)
        if isinstance(node, ast.ClassDef):
            return _parse_class(source, node, names)
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr)):
            raise source.error(node, "a script is one function or one class of functions")
    raise ParseError("the script has neither a function nor a class")


def _parse_class(source: Source, node: ast.ClassDef, names: Mapping[str, Any]) -> IRModule:
    functions: dict[str, PrimFunc] = {}
    attributes: dict[str, Any] = {}
    for stmt in node.body:
        if isinstance(stmt, ast.FunctionDef):
            if stmt.name in functions:
                raise source.error(stmt, f"the module already has a function {stmt.name}")
            functions[stmt.name] = _function_of(source, stmt, names)
        elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
            parser = FunctionParser(source, dict(names))
            if parser.function_name(stmt.value) != "module_attrs" or len(stmt.value.args) != 1:
                raise source.error(stmt, "a class holds functions and T.module_attrs({...})")
            attributes.update(parser.literal(stmt.value.args[0]))
        elif not isinstance(stmt, (ast.Pass, ast.Expr)):
            raise source.error(stmt, "a class of a script holds functions")
    return make_module(functions, attributes)
