"""Recipes of the language itself: functions, branches, loops, references and lists."""

from __future__ import annotations

from typing import Any

from tests.relay.random_program.evaluation import Value
from tests.relay.random_program.generator import FLOATS, NUMBERS, RECIPES, Generator, recipe

from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, If, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var, const, var
from tilewright.relay.function import Function
from tilewright.relay.loops import while_loop
from tilewright.relay.op import reduce, tensor
from tilewright.relay.tensor_array import constructor_named


def _type(value: Value) -> TensorType:
    return TensorType(value.shape, value.dtype)


def _calls() -> dict[str, Any]:
    """The recipes of operators."""
    return {name: made for name, made in RECIPES.items() if not name.startswith("@")}


def block(g: Generator, count: int) -> tuple[Value | None, Any]:
    """A few calls in a block of their own: the last value, and the block."""
    with g.scope() as inner:
        for _ in range(count):
            g.step(_calls())
    return (inner.values[-1] if inner.values else None), inner


def _same(g: Generator, value: Value) -> RelayExpr:
    """Another expression of the same type."""
    return g.tensor((value.dtype,), shape=value.shape).expr


def _condition(g: Generator) -> RelayExpr:
    """A scalar of type bool."""
    data = g.tensor(("float32",))
    return tensor.less(reduce.mean(data.expr), const(g.random.uniform(-1, 1), "float32"))


@recipe("@if")
def branches(g: Generator) -> Any:
    """One of two blocks."""
    condition = g.value(_condition(g))
    result, inner = block(g, g.integer(1, 3))
    if condition is None or result is None:
        return None
    g.features.add("if")
    with g.scope() as other:
        for _ in range(g.integer(0, 2)):
            g.step(_calls())
        fitting = [value for value in other.values if _type(value) == _type(result)]
        second = fitting[-1].expr if fitting else _same(g, result)
    chosen, rest = inner.closed(result.expr), other.closed(second)
    return If(condition.expr, *((chosen, rest) if g.chance(0.5) else (rest, chosen)))


def _function(g: Generator, closed: bool) -> tuple[Function, list[Value]] | None:
    """A function and arguments for it. A closed one sees its parameters alone."""
    arguments = [g.tensor(NUMBERS, rank=(1, 2, 3)) for _ in range(g.integer(1, 3))]
    outer, before = g.scopes, len(g.inputs)
    parameters = []
    with g.scope() as inner:
        if closed:
            g.scopes = [inner]
        for argument in arguments:
            parameter = Var(g.name("p"), _type(argument))
            g.evaluation.define(parameter, g.evaluation.run(argument.expr))
            parameters.append(parameter)
            inner.values.append(Value(parameter, argument.array, argument.spread))
        for _ in range(g.integer(1, 4)):
            g.step(_calls())
        g.scopes = outer
    made = inner.values[len(parameters) :]
    if not made or (closed and len(g.inputs) != before):
        # What a global function made anew would be a free variable of it.
        return None
    results = [value.expr for value in made[-2:]]
    body = results[0] if len(results) == 1 or g.chance(0.5) else Tuple(results)
    return Function(parameters, inner.closed(body)), arguments


@recipe("@call")
def call(g: Generator) -> Any:
    """A function that is written where it is called."""
    made = _function(g, closed=False)
    if made is None:
        return None
    g.features.add("closure")
    return Call(made[0], [argument.expr for argument in made[1]])


@recipe("@closure")
def closure(g: Generator) -> Any:
    """A function that a let binds and that is called twice."""
    made = _function(g, closed=False)
    if made is None:
        return None
    g.features.add("closure")
    function, arguments = made
    variable = Var(g.name("f"))
    g.let(variable, function)
    first = Call(variable, [argument.expr for argument in arguments])
    if not g.accept(first):
        return None
    return Call(variable, [_same(g, argument) for argument in arguments])


@recipe("@global")
def global_function(g: Generator) -> Any:
    """A function of the module."""
    made = _function(g, closed=True)
    if made is None:
        return None
    g.features.add("closure")
    name = GlobalVar(g.name("function"))
    g.module[name] = made[0]
    return Call(name, [argument.expr for argument in made[1]])


@recipe("@tuple")
def through_a_tuple(g: Generator) -> Any:
    """Tensors that pass through a tuple, a nested one now and then."""
    fields: list[RelayExpr] = [g.tensor(NUMBERS).expr for _ in range(g.integer(1, 3))]
    if g.chance(0.3):
        fields.append(Tuple(fields[:2]))
        return TupleGetItem(TupleGetItem(Tuple(fields), len(fields) - 1), 0)
    return TupleGetItem(Tuple(fields), g.integer(0, len(fields) - 1))


@recipe("@loop")
def loop(g: Generator) -> Any:
    """A value that a bounded number of steps changes."""
    g.features.add("loop")
    start = g.tensor(("float32",), rank=(0, 1, 2))
    step = g.choice([tensor.tanh, tensor.sin, tensor.sigmoid, tensor.atan])
    other = g.tensor(("float32",), shape=start.shape, low=-1, high=1).expr
    counter = var(g.name("i"), shape=(), dtype="int32")
    state = var(g.name("state"), shape=start.shape, dtype="float32")
    bound = const(g.integer(0, 4), "int32")
    made = while_loop(
        lambda i, x: tensor.less(i, bound),
        [counter, state],
        lambda i, x: [i + const(1, "int32"), step(x) + other],
    )
    return TupleGetItem(Call(made, [const(0, "int32"), start.expr]), 1)


@recipe("@reference")
def reference(g: Generator) -> Any:
    """A place that is written and read in order."""
    g.features.add("reference")
    first = g.tensor(NUMBERS)
    place, read = Var(g.name("r")), Var(g.name("read"))
    g.let(place, RefCreate(first.expr))
    g.let(read, RefRead(place))
    g.let(Var(g.name("written")), RefWrite(place, tensor.maximum(read, _same(g, first))))
    after = Var(g.name("after"))
    g.let(after, RefRead(place))
    return tensor.subtract(after, read) if first.dtype in FLOATS else tensor.copy(after)


@recipe("@list")
def fold(g: Generator) -> Any:
    """A list that is mapped and folded."""
    g.features.add("data")
    prelude = g.prelude
    first = g.tensor(("float32",), rank=(0, 1, 2))
    cons = constructor_named(g.module, "List", "Cons")
    chain = constructor_named(g.module, "List", "Nil")()
    for _ in range(g.integer(0, 3)):
        chain = cons(_same(g, first), chain)
    x, total, each = (Var(g.name("e"), _type(first)) for _ in range(3))
    mapped = prelude.map(Function([x], tensor.tanh(x)), chain)
    return prelude.foldl(Function([total, each], tensor.add(total, each)), first.expr, mapped)
