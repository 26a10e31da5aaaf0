"""Passes over one function at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.function import BaseFunc
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.node import node
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate
from tilewright.tir.transform.function_pass import PrimFuncPass


@node
class OtherFunction(BaseFunc):
    """A function of another level."""

    attrs: DictAttrs


class Rename(Mutator):
    """Replaces one variable."""

    def __init__(self, old: Var, new: Var) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit_var(self, node: Var) -> PrimExpr:
        return self.new if node is self.old else node


@dataclass(frozen=True)
class RenameFirst(PrimFuncPass):
    """Gives the first parameter another name."""

    new_name: str
    name = "test.RenameFirst"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        old = function.params[0]
        new = Var(self.new_name, old.dtype)
        body = Rename(old, new).visit(function.body)
        return function.replace(params=(new, *function.params[1:]), body=body)


def test_functions_of_other_levels_pass_through() -> None:
    """Only loop-level functions are rewritten."""
    x = Var("x")
    other = OtherFunction(DictAttrs({}))
    module = IRModule({"f": PrimFunc([x], Evaluate(x + 1)), "g": other})
    made = RenameFirst("y")(module)
    assert made["g"] is other
    assert made["f"].params[0].name == "y" and str(made["f"].body.value) == "y + 1"


def test_passes_have_room_for_recursion() -> None:
    """A pass may recurse through an expression of 20,000 levels."""
    x = Var("x")
    chain: PrimExpr = x
    for _ in range(20_000):
        chain = chain + x
    made = RenameFirst("y")(IRModule({"f": PrimFunc([x], Evaluate(chain))}))
    expr = made["f"].body.value
    while expr.children():
        expr = expr.a
    assert expr.name == "y"


def test_a_pass_must_say_what_it_does() -> None:
    """A pass without its method fails with its name."""

    class Nothing(PrimFuncPass):
        """Forgot its method."""

    with pytest.raises(NotImplementedError, match="Nothing does not say"):
        Nothing()(IRModule({"f": PrimFunc([], Evaluate(0))}))
