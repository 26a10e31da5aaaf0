"""Statements of a hybrid script: loops, conditions, assignments and memory.

A name belongs to the loop body (or function) in which it is first assigned, and ends with it. A name that is assigned
once and does not read memory is replaced by its expression; any other is one element of memory, whose type is the
common type of all its values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, Range, StringImm, Var
from tilewright.support.dtype import DataType
from tilewright.te.hybrid import language
from tilewright.te.hybrid.expressions import NUMBERS, ExpressionParser, described
from tilewright.te.hybrid.symbols import (
    Element,
    Memory,
    Scalar,
    Scope,
    make_tensor,
    reads_memory,
    with_memory,
)
from tilewright.te.operation import PlaceholderOp, thread_axis
from tilewright.te.tensor import Tensor
from tilewright.tir.script.source import Source
from tilewright.tir.stmt import (
    NO_OP,
    AssertStmt,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    ProducerStore,
    Stmt,
    stmt_seq,
)
from tilewright.tir.storage_rank import thread_attribute

UNROLL_LIMIT = 65536
"""The most copies of its body that one loop over constants may make."""


class Widen(Exception):
    """A variable gets a value that its type cannot hold: the script is parsed again with this type for it."""

    def __init__(self, declaration: ast.AST, dtype: DataType) -> None:
        super().__init__(dtype)
        self.declaration = declaration
        self.dtype = dtype


class StatementParser(ExpressionParser):
    """Parses statements into ``emitted``. ``device`` counts the loops around that are bound to threads."""

    def __init__(
        self,
        source: Source,
        enclosed: dict[str, Any],
        module: dict[str, Any],
        assignments: dict[str, int],
        types: dict[ast.AST, DataType],
        device: int = 0,
        depth: int = 0,
    ) -> None:
        super().__init__(source, enclosed, module, assignments)
        self.types = types
        self.device = device
        self.depth = depth
        self.emitted: list[Stmt] = []
        self.naming = "buffer"

    def emit(self, stmt: Stmt) -> None:
        """Add a statement."""
        self.emitted.append(stmt)

    def statement(self, node: ast.stmt) -> None:
        """Parse one statement."""
        handler = self._statements.get(type(node))
        if handler is None:
            raise self.error(node, f"{type(node).__name__} cannot be used in a hybrid script")
        handler(self, node)

    def block(self, body: Sequence[ast.stmt]) -> Stmt:
        """Statements as one."""
        saved, self.emitted = self.emitted, []
        for stmt in body:
            self.statement(stmt)
        made, self.emitted = self.emitted, saved
        return stmt_seq(*made)

    # -- loops ----------------------------------------------------------------------------------------------------

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "a loop of a hybrid script has no else")
        call = node.iter
        word = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        if word in self.enclosed or self.is_defined(word):
            word = ""
        if word in language.LOOP_KINDS:
            assert isinstance(call, ast.Call)
            self._range_loop(node, self._loop_name(node.target), call, word)
        elif word == "grid":
            assert isinstance(call, ast.Call)
            self._grid_loop(node, call)
        elif word == "bind":
            assert isinstance(call, ast.Call)
            self._thread_loop(node, self._loop_name(node.target), call)
        elif word == "const_range":
            assert isinstance(call, ast.Call)
            self._unrolled(node, self._known_range(call))
        else:
            values = self.value(call)
            if not isinstance(values, tuple):
                words = ", ".join((*language.LOOP_KINDS, "const_range", "bind", "grid"))
                raise self.error(call, f"a loop runs over {words}, or over a tuple of constants")
            self._unrolled(node, values)

    def _loop_name(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise self.error(target, "the variable of a loop is a name")
        if self.is_defined(target.id):
            raise self.error(
                target, f"{target.id} has a meaning already; give the loop variable another name"
            )
        return target.id

    @contextmanager
    def _scope(self, names: dict[str, Any]) -> Iterator[Scope]:
        """The body of a loop, which may not run at all: what it assigns does not count as assigned behind it."""
        scope = Scope(dict(names), fixed=set(names))
        before = set(self.assigned)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.assigned = before

    def _body(self, node: ast.For, names: dict[str, Any]) -> Stmt:
        with self._scope(names) as scope:
            return with_memory(scope.memory, self.block(node.body))

    def _bounds(self, call: ast.Call) -> tuple[Any, Any, int]:
        """Start, number of iterations and step of a range."""
        values = [self._integer(argument) for argument in self.arguments(call, 1, 3)]
        start, stop = (0, values[0]) if len(values) == 1 else (values[0], values[1])
        step = 1 if len(values) < 3 else self.known_integer(call.args[2], values[2])
        if not step:
            raise self.error(call.args[2], "the step of a range is a constant other than zero")
        distance = _minus(stop, start) if step > 0 else _minus(start, stop)
        if abs(step) == 1:
            return start, distance, step
        if isinstance(distance, PrimExpr):
            return start, language.ceil_div(distance, abs(step)), step
        return start, -(-distance // abs(step)), step

    def _integer(self, node: ast.expr) -> Any:
        """A number or an expression that is an integer."""
        value = self.operand(node)
        if isinstance(value, PrimExpr):
            good = value.dtype.is_integral and not value.dtype.is_bool
        else:
            good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not good:
            raise self.error(node, f"an integer is needed here, not {described(value)}")
        return value if isinstance(value, PrimExpr) else int(value)

    def _known_range(self, call: ast.Call) -> range:
        """The range of ``const_range``, whose bounds are known now."""
        known: list[int] = []
        for argument in self.arguments(call, 1, 3):
            number = self.known_integer(argument, self._integer(argument))
            if number is None:
                raise self.error(argument, "the bounds of const_range are known when the script is parsed")
            known.append(number)
        return range(*known)

    def _range_loop(self, node: ast.For, name: str, call: ast.Call, word: str) -> None:
        start, count, step = self._bounds(call)
        extent = operators.as_expr(count)
        variable = Var(name, extent.dtype, self.source.span(node.target))
        value = operators.add(operators.multiply(variable, step), start)
        body = self._body(node, {name: value})
        self.emit(For(variable, 0, extent, language.LOOP_KINDS[word], body, span=self.source.span(node)))

    def _grid_loop(self, node: ast.For, call: ast.Call) -> None:
        """One loop for each extent, the last one innermost."""
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        extents = [operators.as_expr(self._integer(argument)) for argument in call.args]
        if call.keywords or len(targets) != len(extents):
            raise self.error(node, f"grid has {len(extents)} extents for {len(targets)} loop variables")
        names = [self._loop_name(target) for target in targets]
        if len(set(names)) != len(names):
            raise self.error(node.target, "the loop variables of a grid have different names")
        variables = [Var(name, extent.dtype) for name, extent in zip(names, extents, strict=True)]
        body = self._body(node, dict(zip(names, variables, strict=True)))
        span = self.source.span(node)
        for variable, extent in reversed(list(zip(variables, extents, strict=True))):
            body = For(variable, 0, extent, ForKind.SERIAL, body, span=span)
        self.emit(body)

    def _thread_loop(self, node: ast.For, name: str, call: ast.Call) -> None:
        tag_node, extent_node = self.arguments(call, 2, 2)
        tag = self.value(tag_node)
        if not isinstance(tag, str):
            raise self.error(tag_node, 'bind names a thread, such as "threadIdx.x"')
        extent = operators.as_expr(self._integer(extent_node))
        axis: IterVar = thread_axis(Range(0, extent), tag, span=self.source.span(node))
        self.device += 1
        body = self._body(node, {name: axis.var})
        self.device -= 1
        key = thread_attribute(tag)
        self.emit(AttrStmt(axis, key, extent, body, self.source.span(node)))

    def _unrolled(self, node: ast.For, values: Sequence[Any]) -> None:
        """One copy of the body for each constant."""
        if len(values) > UNROLL_LIMIT:
            raise self.error(node.iter, f"{len(values)} copies of a loop's body are too many; use range")
        for value in values:
            if isinstance(node.target, ast.Tuple):
                items = value if isinstance(value, tuple) else (value,)
                if len(items) != len(node.target.elts):
                    raise self.error(node.target, f"{len(items)} values for {len(node.target.elts)} names")
                names = [self._loop_name(target) for target in node.target.elts]
                self.emit(self._body(node, dict(zip(names, items, strict=True))))
            else:
                self.emit(self._body(node, {self._loop_name(node.target): value}))

    # -- conditions -----------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        test = self.condition(node.test)
        if isinstance(test, bool):
            for stmt in node.body if test else node.orelse:
                self.statement(stmt)
            return
        before = set(self.assigned)
        then_case = self.block(node.body)
        after_then, self.assigned = self.assigned, before
        else_case = self.block(node.orelse) if node.orelse else None
        self.assigned = after_then & self.assigned
        self.emit(IfThenElse(test, then_case, else_case, self.source.span(node)))

    def _assert(self, node: ast.Assert) -> None:
        test = self.condition(node.test)
        message = f"the assertion {ast.unparse(node.test)} does not hold"
        if node.msg is not None:
            given = self.value(node.msg)
            if not isinstance(given, str):
                raise self.error(node.msg, "the message of an assertion is a string")
            message = given
        if test is False:
            raise self.error(node, message)
        if not isinstance(test, bool):
            self.emit(AssertStmt(test, StringImm(message), NO_OP, self.source.span(node)))

    # -- assignments ----------------------------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        self.naming = first.id if isinstance(first, ast.Name) else "buffer"
        value = self.value(node.value)
        if len(node.targets) == 1 and not isinstance(first, (ast.Tuple, ast.List)):
            self._assign_one(first, node.value, self.ready_scalar(node.value, value), False)
            return
        pairs: list[tuple[ast.expr, Any]] = []
        for target in node.targets:
            pairs += self._pairs(target, node.value, value)
        # All values are read before the first is stored: the targets may be what the values are read from.
        kept: dict[int, Var] = {}
        lets: list[tuple[Var, PrimExpr]] = []
        for _, one in pairs:
            if isinstance(one, PrimExpr) and reads_memory(one) and id(one) not in kept:
                kept[id(one)] = Var("value", one.dtype)
                lets.append((kept[id(one)], one))
        saved, self.emitted = self.emitted, []
        for target, one in pairs:
            self._assign_one(target, node.value, kept.get(id(one), one), id(one) in kept)
        body = stmt_seq(*self.emitted)
        self.emitted = saved
        for variable, one in reversed(lets):
            body = LetStmt(variable, one, body)
        self.emit(body)

    def _pairs(self, target: ast.expr, node: ast.expr, value: Any) -> list[tuple[ast.expr, Any]]:
        """Each name or element on the left with its value."""
        if not isinstance(target, (ast.Tuple, ast.List)):
            return [(target, self.ready_scalar(node, value))]
        if not isinstance(value, tuple) or len(value) != len(target.elts):
            count = len(value) if isinstance(value, tuple) else 1
            raise self.error(target, f"{len(target.elts)} names for {count} values")
        return [
            pair
            for item, one in zip(target.elts, value, strict=True)
            for pair in self._pairs(item, node, one)
        ]

    def ready_scalar(self, node: ast.AST, value: Any) -> Any:
        """A value to assign: elements of memory are read, whole tensors stay what they are."""
        if isinstance(value, tuple) and any(isinstance(item, (Element, Scalar)) for item in value):
            return tuple([self.ready(node, item) for item in value])
        return self.ready(node, value) if isinstance(value, (Element, Scalar)) else value

    def _assign_one(self, target: ast.expr, node: ast.expr, value: Any, in_memory: bool) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target, node, value, in_memory)
        elif isinstance(target, ast.Subscript):
            self._store(target, node, value)
        else:
            raise self.error(target, "a name or an element of a tensor is assigned")

    def _assign_name(self, target: ast.Name, node: ast.expr, value: Any, in_memory: bool) -> None:
        name = target.id
        if any(name in scope.fixed for scope in self.scopes):
            raise self.error(target, f"{name} is a parameter or a loop variable and cannot be assigned")
        found = self.lookup(name) if self.is_defined(name) else None
        if isinstance(found, Scalar):
            self._store_scalar(found, target, node, value)
            return
        if found is not None:
            raise self.error(target, f"{name} is {described(found)} and cannot be assigned again")
        if not isinstance(value, (*NUMBERS, PrimExpr)):
            self._check_lasting(node, value)
            self.scopes[-1].names[name] = value
            return
        is_memory = in_memory or self.assignments.get(name, 1) > 1
        if not is_memory and not (isinstance(value, PrimExpr) and reads_memory(value)):
            self.scopes[-1].names[name] = value
            return
        expr = operators.as_expr(value)
        dtype = self.types.get(target, expr.dtype)
        tensor = make_tensor(name, [operators.const(1)], dtype, self.source.span(target))
        scalar = Scalar(name, tensor, target)
        self.scopes[-1].names[name] = scalar
        self.scopes[-1].memory.append(Memory(tensor, "local" if self.device else "global"))
        self._store_scalar(scalar, target, node, value)

    def _check_lasting(self, node: ast.expr, value: Any) -> None:
        """A name cannot stand for a tuple whose values would change with memory."""
        if isinstance(value, tuple) and any(isinstance(one, PrimExpr) and reads_memory(one) for one in value):
            raise self.error(node, "a tuple of values from memory cannot be stored; give each a name")

    def _store_scalar(self, scalar: Scalar, target: ast.Name, node: ast.expr, value: Any) -> None:
        if not isinstance(value, (*NUMBERS, PrimExpr)):
            raise self.error(node, f"{scalar.name} holds a number, not {described(value)}")
        expr = operators.as_expr(value)
        held = scalar.tensor.dtype
        if expr.dtype is not held:
            common = operators.common_type(held, expr.dtype)
            if common is None:
                raise self.error(node, f"{scalar.name} has type {held} and cannot hold {expr.dtype}")
            if common is not held:
                raise Widen(scalar.declaration, common)
        self.assigned.add(scalar)
        span = self.source.span(target)
        self.emit(ProducerStore(scalar.tensor, operators.cast(held, expr), [operators.const(0)], span))

    def _store(self, target: ast.Subscript, node: ast.expr, value: Any) -> None:
        element = self.value(target)
        if not isinstance(element, Element) or element.shape:
            raise self.error(target, f"only an element of a tensor can be stored, not {described(element)}")
        if not isinstance(value, (*NUMBERS, PrimExpr)):
            raise self.error(node, f"a number is stored, not {described(value)}")
        tensor = element.tensor
        if not isinstance(tensor.op, PlaceholderOp):
            raise self.error(
                target, f"{tensor.name} is the result of another operation; allocate memory and store there"
            )
        stored = operators.cast(tensor.dtype, operators.as_expr(value))
        self.emit(ProducerStore(tensor, stored, element.indices, self.source.span(target)))

    def _augmented(self, node: ast.AugAssign) -> None:
        read = ast.copy_location(_as_read(node.target), node.target)
        value = self.value(ast.copy_location(ast.BinOp(read, node.op, node.value), node))
        self._assign_one(node.target, node.value, value, False)

    # -- the rest -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.Expr) -> None:
        """Text is a comment; a call of another script may have effects."""
        if isinstance(node.value, ast.Call):
            self.value(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise self.error(node, "this expression has no effect")

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _return(self, node: ast.Return) -> None:
        raise self.error(node, "return is the last statement of a hybrid script")

    def _memory(self, node: ast.Call) -> Tensor:
        """``allocate(shape, dtype, scope)`` and ``output_tensor(shape, dtype)``."""
        word = node.func.id if isinstance(node.func, ast.Name) else ""
        parameters = ("shape", "dtype", "scope") if word == "allocate" else ("shape", "dtype")
        given: dict[str, ast.expr] = dict(zip(parameters, node.args, strict=False))
        if len(node.args) > len(parameters):
            raise self.error(node, f"{word} takes {', '.join(parameters)}")
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in parameters or keyword.arg in given:
                raise self.error(keyword.value, f"{word} takes {', '.join(parameters)}, each once")
            given[keyword.arg] = keyword.value
        if "shape" not in given:
            raise self.error(node, f"{word} needs a shape")
        if word == "output_tensor" and len(self.scopes) > 1:
            raise self.error(node, "output_tensor must be outside all loops")
        name = self.naming
        shape = self.value(given["shape"])
        extents = [operators.as_expr(self._extent(given["shape"], one)) for one in _items(shape)]
        tensor = make_tensor(name, extents, self._word(given, "dtype", "float32"), self.source.span(node))
        self.scopes[-1].memory.append(Memory(tensor, self._word(given, "scope", "global")))
        return tensor

    def _extent(self, node: ast.expr, value: Any) -> Any:
        """An extent: an integer that does not depend on what memory holds."""
        ready = self.ready(node, value)
        if isinstance(ready, PrimExpr):
            good = ready.dtype.is_integral and not reads_memory(ready)
        else:
            good = isinstance(ready, (int, np.integer)) and int(ready) >= 0
        if not good:
            raise self.error(node, f"an extent is an integer that is not negative, not {described(ready)}")
        return ready

    def _word(self, given: dict[str, ast.expr], name: str, default: str) -> str:
        if name not in given:
            return default
        value = self.value(given[name])
        if not isinstance(value, str):
            raise self.error(given[name], f"{name} is a string, not {described(value)}")
        return str(value)

    _special_calls = {**ExpressionParser._special_calls, "allocate": _memory, "output_tensor": _memory}
    _statements: dict[type[ast.stmt], Callable[[Any, Any], None]] = {
        ast.For: _for,
        ast.If: _if,
        ast.Assert: _assert,
        ast.Assign: _assign,
        ast.AugAssign: _augmented,
        ast.Expr: _expression,
        ast.Pass: _pass,
        ast.Return: _return,
    }


def _items(shape: Any) -> tuple[Any, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


def _minus(a: Any, b: Any) -> Any:
    if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
        return operators.subtract(a, b)
    return a - b


def _as_read(target: ast.expr) -> ast.expr:
    """The expression that reads the target of an assignment."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return target
