"""``te.hybrid.script``: makes a Python function a tensor operation when called with tensors; called with arrays, it
runs as Python."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tilewright.ir.expr import IterVar, PrimExpr
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ParseError
from tilewright.te.hybrid import language
from tilewright.te.hybrid.parser import Program, make_operation
from tilewright.te.hybrid.statements import StatementParser
from tilewright.te.tensor import Tensor, TensorSlice
from tilewright.tir.script.source import Source, source_of_object


class HybridFunction:
    """A hybrid script. See the module's text."""

    def __init__(self, function: FunctionType, tree: tuple[Source, ast.FunctionDef] | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.__globals__ = function.__globals__
        self._tree = tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(_is_symbolic(value) for value in (*args, *kwargs.values())):
            outputs = make_operation(self.program(), self.bound(args, kwargs)).outputs
            return outputs[0] if len(outputs) == 1 else list(outputs)
        return self.emulate(*args, **kwargs)

    def program(self) -> Program:
        """The script's text with the names around it, as they are now."""
        if self._tree is None:
            source = source_of_object(self.function)
            node = source.parse().body[0]
            if not isinstance(node, ast.FunctionDef):
                raise source.error(node, "te.hybrid.script decorates a function")
            self._tree = source, node
        enclosed = {}
        cells = self.function.__closure__ or ()
        for name, cell in zip(self.function.__code__.co_freevars, cells, strict=True):
            try:
                enclosed[name] = cell.cell_contents
            except ValueError:
                # The variable gets its value only after the function is defined.
                continue
        source, node = self._tree
        return Program(source, node, enclosed, self.function.__globals__)

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by the names of the parameters."""
        try:
            found = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise ParseError(f"hybrid script {self.function.__name__}: {error}") from None
        found.apply_defaults()
        return dict(found.arguments)

    def parse_into(
        self, caller: StatementParser, node: ast.AST, arguments: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        """Inline this script at a call; its outputs become memory of the caller."""
        program = self.program()
        try:
            found = self.bound([caller.ready_scalar(node, value) for value in arguments], named)
        except ParseError as error:
            raise caller.error(node, error.message) from None
        returned, body = program.parse(found, caller.types, caller)
        caller.scopes[-1].memory.extend(returned)
        caller.emit(body)
        return returned[0].tensor if len(returned) == 1 else tuple([memory.tensor for memory in returned])

    def emulate(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function in Python, with the words of the language bound to functions that do what they say."""
        arrays: list[tuple[NDArray, Any]] = []
        given = [_as_array(value, arrays) for value in args]
        named = {name: _as_array(value, arrays) for name, value in kwargs.items()}
        namespace = {**self.function.__globals__, **language.EMULATED}
        function = self.function
        emulated = FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
        )
        emulated.__kwdefaults__ = function.__kwdefaults__
        result = emulated(*given, **named)
        for value, array in arrays:
            if (value.numpy() != array).any():
                value.copyfrom(array)
        return result

    def __repr__(self) -> str:
        return f"<hybrid script {self.function.__name__}>"


def _as_array(value: Any, arrays: list[tuple[NDArray, Any]]) -> Any:
    """An argument for emulation. NDArrays are given as NumPy arrays, which are noted with them."""
    if isinstance(value, (list, tuple)):
        return type(value)([_as_array(item, arrays) for item in value])
    if not isinstance(value, NDArray):
        return value
    arrays.append((value, value.numpy()))
    return arrays[-1][1]


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_symbolic(item) for item in value)
    return isinstance(value, (PrimExpr, Tensor, TensorSlice, IterVar))


def script(pyfunc: Callable[..., Any]) -> HybridFunction:
    """Make a hybrid script of a function.

    Called with tensors, variables or constants of the tensor language, it parses its source and gives the output
    tensors of an operation. Called with NumPy arrays or NDArrays, it runs in Python.
    """
    if not isinstance(pyfunc, FunctionType):
        raise ParseError(f"te.hybrid.script decorates a Python function, not {pyfunc!r}")
    return HybridFunction(pyfunc)
