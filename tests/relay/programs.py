"""Small graph-level programs for tests of structure. Operators are called by name, whether or not they are defined."""

from typing import Any

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.op import Op
from tilewright.relay import Call, Function, Let, Var, var


def call(name: str, *arguments: Any, **attributes: Any) -> Call:
    """A call of the operator of this name."""
    op = Op.register(name)
    made = op.get_attr("AttrsClass")
    if made is not None:
        return Call(op, arguments, made(**attributes))
    return Call(op, arguments, DictAttrs(attributes) if attributes else None)


def chain(length: int, start: Any = None, name: str = "exp") -> Function:
    """A function that applies an operator many times."""
    x = start if start is not None else var("x", shape=(4,))
    made = x
    for _ in range(length):
        made = call(name, made)
    return Function([x], made)


def let_chain(length: int, name: str = "exp") -> Function:
    """A function that applies an operator many times, each result bound by a let."""
    x = var("x", shape=(4,))
    variables = [x, *(Var(f"v{position}") for position in range(length))]
    body: Any = variables[-1]
    for position in range(length, 0, -1):
        body = Let(variables[position], call(name, variables[position - 1]), body)
    return Function([x], body)
