"""Modules of functions."""

import pytest

from tilewright import relay
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.expr import Var
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.type import GlobalTypeVar
from tilewright.support.errors import ExpressionError, TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Evaluate


def function(value: int = 0) -> PrimFunc:
    """A function that does nothing."""
    return PrimFunc([Var("x")], Evaluate(value))


def test_functions_by_name_and_variable() -> None:
    """A function is found by its name and by its variable."""
    main = function()
    module = IRModule({"main": main})
    variable = module.get_global_var("main")
    assert module["main"] is main and module[variable] is main
    assert module.functions == {variable: main} and module.get_global_vars() == [variable]
    assert "main" in module and variable in module and "other" not in module


def test_setting_a_function_again() -> None:
    """A name keeps its variable when its function is replaced."""
    module = IRModule({"main": function()})
    variable = module.get_global_var("main")
    other = function(1)
    module["main"] = other
    assert module[variable] is other and module.get_global_vars() == [variable]
    replacement = GlobalVar("main")
    module[replacement] = function(2)
    assert module.get_global_vars() == [replacement]


def test_missing_function() -> None:
    """The error of a missing function lists those there are."""
    module = IRModule({"main": function(), "helper": function()})
    with pytest.raises(TilewrightError, match=r"no function 'x'; it has main, helper"):
        module["x"]
    with pytest.raises(TilewrightError, match="no function"):
        module[GlobalVar("x")]


def test_only_functions() -> None:
    """A module holds functions alone."""
    with pytest.raises(ExpressionError, match="holds functions, not Evaluate"):
        IRModule({"main": Evaluate(0)})  # type: ignore[dict-item]


def test_from_expr() -> None:
    """A function stands under its symbol, or under main."""
    assert IRModule.from_expr(function()).get_global_vars()[0].name_hint == "main"
    named = IRModule.from_expr(function().with_attr("global_symbol", "add"), {"helper": function()})
    assert [variable.name_hint for variable in named.get_global_vars()] == ["helper", "add"]
    with pytest.raises(ExpressionError, match="made from a function"):
        IRModule.from_expr(Var("x"))


def test_update() -> None:
    """Functions of another module replace those of the same name and join the rest."""
    module, other = (
        IRModule({"f": function(), "g": function()}),
        IRModule({"g": function(1), "h": function(2)}),
    )
    module.update(other)
    assert [variable.name_hint for variable in module.get_global_vars()] == ["f", "g", "h"]
    assert module["g"] is other["g"]
    variable = module.get_global_var("f")
    module.update_func(variable, other["h"])
    assert module["f"] is other["h"]


def test_map_functions() -> None:
    """Mapping to the same functions gives the same module; None drops a function; the module itself stays."""
    module = IRModule({"f": function(), "g": function()})
    assert module.map_functions(lambda _, each: each) is module

    def drop_f(variable: GlobalVar, each: BaseFunc) -> BaseFunc | None:
        return None if variable.name_hint == "f" else each

    assert [variable.name_hint for variable in module.map_functions(drop_f).get_global_vars()] == ["g"]
    assert len(module.functions) == 2


def test_copy_is_apart() -> None:
    """Changing a copy leaves the original as it was."""
    module = IRModule({"f": function()}, attrs={"a": 1})
    copied = module.copy()
    copied["g"] = function()
    del copied["f"]
    assert "g" not in module and "f" in module and "f" not in copied
    assert copied.get_attr("a") == 1


def test_attributes() -> None:
    """Attributes are set and removed on copies."""
    module = IRModule({"f": function()})
    marked = module.with_attr("runtime", "crt")
    assert marked.get_attr("runtime") == "crt" and module.get_attr("runtime") is None
    assert marked.without_attr("runtime").get_attr("runtime", "none") == "none"


def test_types() -> None:
    """Type definitions are found by name, with their constructors, which have different tags."""
    header = GlobalTypeVar("Maybe")
    nothing, just = Constructor("Nothing", [], header), Constructor("Just", [header], header)
    definition = TypeData(header, [], [nothing, just])
    module = IRModule({}, {header: definition})
    assert module.get_global_type_var("Maybe") is header and module[header] is definition
    found = module.get_type("Maybe")
    assert found[0] is header and [each.name_hint for each in found[1:]] == ["Nothing", "Just"]
    tags = [each.tag for each in definition.constructors]
    assert len(set(tags)) == 2 and module.get_constructor(tags[1]).name_hint == "Just"
    with pytest.raises(TilewrightError, match="no constructor with tag -5"):
        module.get_constructor(-5)
    with pytest.raises(TilewrightError, match="no type 'List'"):
        module.get_global_type_var("List")


def test_expressions_become_functions() -> None:
    """An expression is put as a function of its free variables; ``_add`` replaces only where that is said."""
    x = relay.var("x", shape=(2,))
    module = IRModule()
    module["main"] = x + x
    assert [each.name_hint for each in module["main"].params] == ["x"]
    with pytest.raises(ExpressionError, match="say update=True"):
        module._add("main", x * x)
    module._add("main", x * x, update=True)
    assert module["main"].body.op.name == "multiply"
