"""Graph-level programs as Python programs: ``to_python`` writes one, ``run_as_python`` runs it.

Tensors are ``NDArray``s, tuples and their like ``ADT``s, references ``RefValue``s, values of algebraic data types
``ConstructorValue``s, and functions are Python functions. What Python has no expression for (``let``, ``match``, a
function with a body) becomes a nested function that is called at once. Operators are run by their references.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import Sequential
from tilewright.relay import transform
from tilewright.relay.adt import Match, Pattern, PatternVar
from tilewright.relay.backend.executor import as_host_value, as_result
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.function import Function
from tilewright.relay.interpreter import ConstructorValue, Interpreter, RefValue, fits
from tilewright.runtime.container import ADT, tuple_object
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import RuntimeFailure

OUTPUT = "_py_out"
"""The variable that holds the program's value."""


def to_python(expr: RelayExpr, mod: IRModule | None = None, target: Any = None) -> ast.Module:
    """The program that computes an expression, as Python's syntax tree; ``ast.unparse`` gives its text.

    It refers to constants, operators and constructors by names, which ``run_as_python`` defines.
    """
    return _converted(expr, mod)[0]


def run_as_python(expr: RelayExpr, mod: IRModule | None = None, target: Any = None) -> Any:
    """The value of an expression, computed by the Python program that ``to_python`` makes of it."""
    program, names = _converted(expr, mod)
    exec(compile(program, "<relay>", "exec"), names)
    return names[OUTPUT]


def _converted(expr: RelayExpr, mod: IRModule | None) -> tuple[ast.Module, dict[str, Any]]:
    around = mod if mod is not None else IRModule()
    module = IRModule.from_expr(expr, around.functions, around.type_definitions)
    module = Sequential([transform.InferType(), transform.SimplifyInference(), transform.InferType()])(module)
    return _Converter(module).program(expr)


def _run_operator(call: Call, *arguments: Any) -> Any:
    """The result of an operator for these values."""
    parameters = [Var(f"p{index}", each.checked_type) for index, each in enumerate(call.args)]
    call = Call(call.op, parameters, call.attrs, call.type_args)
    function = Function(parameters, call)
    return _as_value(
        as_result(Interpreter().run(function, [as_host_value(_plain(each)) for each in arguments]))
    )


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, ADT) else value


def _as_value(value: Any) -> Any:
    return tuple_object([_as_value(each) for each in value]) if isinstance(value, list) else value


def _is_true(value: NDArray) -> bool:
    return bool(value.numpy())


def _write(reference: RefValue, value: Any) -> ADT:
    reference.value = value
    return tuple_object([])


def _match(value: Any, *clauses: Any) -> Any:
    """The value of the first clause (a pattern, and a function of the pattern's variables) that fits."""
    for pattern, run in clauses:
        found: dict[Var, Any] = {}
        if fits(pattern, value, found):
            return run(*found.values())
    raise RuntimeFailure("no clause of a match fits the value")


def _variables(pattern: Pattern) -> list[Var]:
    """The variables of a pattern in the order in which ``fits`` finds their values."""
    if isinstance(pattern, PatternVar):
        return [pattern.var]
    return [each for inner in getattr(pattern, "patterns", ()) for each in _variables(inner)]


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _call(function: str | ast.expr, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_name(function) if isinstance(function, str) else function, list(arguments), [])


def _define(name: str, parameters: Sequence[str], body: list[ast.stmt], result: ast.expr) -> ast.stmt:
    made = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = [*body, ast.Return(result)]
    return made


class _Converter(Functor):
    """Makes expressions; the functions that they need are put before them, in ``body``."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.values: dict[str, Any] = {
            each.__name__: each
            for each in (_run_operator, _is_true, _write, _match, tuple_object, ConstructorValue, RefValue)
        }
        self.names: dict[Any, str] = {}
        self.body: list[ast.stmt] = []

    def program(self, given: RelayExpr) -> tuple[ast.Module, dict[str, Any]]:
        """The whole program and the values of its names."""
        functions = [
            function for function in self.module.functions.values() if isinstance(function, Function)
        ]
        main = self.module["main"]
        for variable, function in self.module.functions.items():
            if function in functions and function is not main:
                self.names[variable.name_hint] = self.fresh(variable.name_hint)
        for variable, function in self.module.functions.items():
            if variable.name_hint in self.names and isinstance(function, Function):
                self.define(self.names[variable.name_hint], function)
        result = self.visit(main if isinstance(given, Function) else main.body)
        self.body.append(ast.Assign([ast.Name(OUTPUT, ast.Store())], result))
        tree = ast.Module(self.body, [])
        return ast.fix_missing_locations(tree), self.values

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        word = "".join(each if each.isalnum() and each.isascii() else "_" for each in hint)
        name = f"_{word}_{len(self.names)}"
        self.names[object()] = name
        return name

    def constant(self, hint: str, value: Any) -> ast.expr:
        """The name of a value that the program is given."""
        name = self.fresh(hint)
        self.values[name] = value
        return _name(name)

    def variable(self, var: Var) -> str:
        """The name of a variable."""
        if var not in self.names:
            self.names[var] = self.fresh(var.name_hint)
        return self.names[var]

    def define(self, name: str, function: Function) -> None:
        """Put the definition of a function before what is being written."""
        parameters = [self.variable(each) for each in function.params]
        self.body.append(_define(name, parameters, *self.scope(function.body)))

    def scope(self, expr: RelayExpr) -> tuple[list[ast.stmt], ast.expr]:
        """What a function of its own contains: its statements and its result."""
        saved, self.body = self.body, []
        result = self.visit(expr)
        made, self.body = self.body, saved
        return made, result

    def thunk(self, hint: str, expr: RelayExpr, parameters: Sequence[str] = ()) -> ast.expr:
        """The name of a function that computes an expression when it is called."""
        name = self.fresh(hint)
        self.body.append(_define(name, parameters, *self.scope(expr)))
        return _name(name)

    def visit_var(self, node: Var) -> ast.expr:
        return _name(self.variable(node))

    def visit_global_var(self, node: GlobalVar) -> ast.expr:
        if node.name_hint not in self.names:
            raise RuntimeFailure(f"there is no function @{node.name_hint} in the module", span=node.span)
        return _name(self.names[node.name_hint])

    def visit_constant(self, node: Constant) -> ast.expr:
        return self.constant("const", node.data)

    def visit_constructor(self, node: Constructor) -> ast.expr:
        """The constructor as a function, where it is not called."""
        return self.constant(node.name_hint, lambda *fields: ConstructorValue(node.tag, list(fields), node))

    def visit_op(self, node: Op) -> ast.expr:
        raise RuntimeFailure(f"the operator {node.name} is used as a value; wrap it in a function")

    def visit_tuple(self, node: Tuple) -> ast.expr:
        return _call("tuple_object", ast.List([self.visit(each) for each in node.fields], ast.Load()))

    def visit_tuple_getitem(self, node: TupleGetItem) -> ast.expr:
        return ast.Subscript(self.visit(node.tuple_value), ast.Constant(node.index), ast.Load())

    def visit_function(self, node: Function) -> ast.expr:
        name = self.fresh("fn")
        self.define(name, node)
        return _name(name)

    def visit_let(self, node: Let) -> ast.expr:
        """A function that assigns and then computes the body: in an expression nothing can be assigned."""
        saved, self.body = self.body, []
        current: RelayExpr = node
        while isinstance(current, Let):
            if isinstance(current.value, Function):  # which may call itself by the variable's name
                self.define(self.variable(current.var), current.value)
            else:
                target: ast.expr = ast.Name(self.variable(current.var), ast.Store())
                self.body.append(ast.Assign([target], self.visit(current.value)))
            current = current.body
        result = self.visit(current)
        inner, self.body = self.body, saved
        name = self.fresh("let")
        self.body.append(_define(name, [], inner, result))
        return _call(name)

    def visit_if(self, node: If) -> ast.expr:
        chosen = [self.thunk("then", node.true_branch), self.thunk("otherwise", node.false_branch)]
        return ast.IfExp(_call("_is_true", self.visit(node.cond)), *(_call(each) for each in chosen))

    def visit_ref_create(self, node: RefCreate) -> ast.expr:
        return _call("RefValue", self.visit(node.value))

    def visit_ref_read(self, node: RefRead) -> ast.expr:
        return ast.Attribute(self.visit(node.ref), "value", ast.Load())

    def visit_ref_write(self, node: RefWrite) -> ast.expr:
        return _call("_write", self.visit(node.ref), self.visit(node.value))

    def visit_match(self, node: Match) -> ast.expr:
        clauses = []
        for clause in node.clauses:
            parameters = [self.variable(each) for each in _variables(clause.lhs)]
            run = self.thunk("clause", clause.rhs, parameters)
            clauses.append(ast.Tuple([self.constant("pattern", clause.lhs), run], ast.Load()))
        return _call("_match", self.visit(node.data), *clauses)

    def visit_call(self, node: Call) -> ast.expr:
        arguments = [self.visit(each) for each in node.args]
        if isinstance(node.op, Op):
            return _call("_run_operator", self.constant(node.op.name, node), *arguments)
        if isinstance(node.op, Constructor):
            fields = ast.List(arguments, ast.Load())
            return _call(
                "ConstructorValue", ast.Constant(node.op.tag), fields, self.constant("constructor", node.op)
            )
        return _call(self.visit(node.op), *arguments)
