"""The results of a graph as expressions of the program."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, Type, TypeCall
from tilewright.relay.expr import Call, If, Let, Tuple, Var, const
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import (
    DictValue,
    InputList,
    Leaf,
    ListValue,
    Stack,
    Tensor,
    TupleOf,
)
from tilewright.relay.function import Function
from tilewright.relay.infer import type_of
from tilewright.relay.prelude import Prelude
from tilewright.support.errors import ModelError


def output_expr(store: Store, value: Any, default_dtype: str) -> RelayExpr:
    """A result: tuples, and lists and dictionaries of known length, become tuples, without what is None."""
    if isinstance(value, Tensor):
        if value.quantization is not None:
            raise ModelError("an output of the model is a quantised tensor: dequantize it in the model")
        return store.read(value)
    if isinstance(value, bool):
        return const(value, "bool")
    if isinstance(value, (int, float)):
        return const(value, "int64" if isinstance(value, int) else default_dtype)
    if isinstance(value, ListValue):
        content = store.content(value.cell)
        if isinstance(content, InputList):
            return content.expr
        if isinstance(content, Stack):
            return _list_expr(store, content)
        value = tuple(content)
    if isinstance(value, DictValue):
        value = tuple(store.content(value.cell).values())
    if isinstance(value, tuple):
        return Tuple([output_expr(store, item, default_dtype) for item in value if item is not None])
    raise ModelError(f"an output of the model is a {type(value).__name__}, not a tensor")


def _list_expr(store: Store, content: Stack) -> RelayExpr:
    """A stack as a list of the prelude, from its last element to the first."""
    module = store.scope.module
    Prelude(module)
    header = module.get_global_type_var("List")
    cons, nil = (module.type_definitions[header].constructors[place] for place in (0, 1))
    stacks = [Var(f"stack{place}", type_of(leaf, module)) for place, leaf in enumerate(content.leaves)]
    index = Var("index", TensorType((), "int64"))
    elements = iter([relay.take(stack, index, axis=0) for stack in stacks])
    element = _element(content.element, elements)
    kind: Type = TypeCall(header, [type_of(element, module)])
    rest = Var("rest", kind)
    name = Var("listed", FuncType([TensorType((), "int64"), kind], kind))
    again = Call(name, [relay.subtract(index, const(1, "int64")), Call(cons, [element, rest])])
    body = If(relay.less(index, const(0, "int64")), rest, again)
    last = relay.subtract(
        relay.take(relay.shape_of(stacks[0], "int64"), const(0, "int64"), axis=0), const(1, "int64")
    )
    made: RelayExpr = Let(name, Function([index, rest], body, kind), Call(name, [last, Call(nil, [])]))
    for stack, leaf in zip(stacks, content.leaves, strict=True):
        made = Let(stack, leaf, made)
    return made


def _element(template: Any, leaves: Any) -> RelayExpr:
    if isinstance(template, Leaf):
        found: RelayExpr = next(leaves)
        return found
    assert isinstance(template, TupleOf)
    return Tuple([_element(item, leaves) for item in template.items])
