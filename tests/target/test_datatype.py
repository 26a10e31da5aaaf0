"""The registry of custom data types."""

from types import SimpleNamespace

import pytest

from tilewright.support.errors import InternalError, TargetError
from tilewright.target import datatype


@pytest.fixture
def registry(monkeypatch):
    """An empty registry, and a builder that records the calls it is asked for."""
    for name in ("_code_of_name", "_name_of_code", "_lower_funcs", "_min_funcs"):
        monkeypatch.setattr(datatype, name, {})
    builder = SimpleNamespace(
        call_pure_extern=lambda dtype, name, *args: ("extern", dtype, name, args),
        call_intrin=lambda dtype, name, *args: ("intrin", dtype, name, args),
    )
    monkeypatch.setattr(datatype, "_builder", builder)
    return datatype


def node(kind, **fields):
    """An object whose class has the name of an expression node."""
    return type(kind, (SimpleNamespace,), {})(**fields)


def test_name_and_code_find_each_other(registry):
    """A registered type is found by its name and by its code."""
    registry.register("posites2", 131)
    assert registry.get_type_code("posites2") == 131
    assert registry.get_type_name(131) == "posites2"
    assert registry.get_type_registered(131)
    assert not registry.get_type_registered(132)


def test_registering_again_must_say_the_same(registry):
    """The same pair is accepted again; another partner for either is refused."""
    registry.register("posites2", 131)
    registry.register("posites2", 131)
    with pytest.raises(TargetError, match="already has type code 131"):
        registry.register("posites2", 132)
    with pytest.raises(TargetError, match="already represents 'posites2'"):
        registry.register("other", 131)


@pytest.mark.parametrize(("name", "code"), [("float", 2), ("big", 256), ("two words", 130)])
def test_impossible_registrations_are_refused(registry, name, code):
    """Codes of built-in types, codes beyond a byte and names that are not identifiers are refused."""
    with pytest.raises(TargetError):
        registry.register(name, code)


def test_unknown_names_and_codes_are_errors(registry):
    """Looking up what is not registered says how to register it."""
    with pytest.raises(TargetError, match="not registered"):
        registry.get_type_name(140)
    with pytest.raises(TargetError, match="not registered"):
        registry.get_type_code("nothing")


def test_lowering_functions_are_found_by_operation(registry):
    """Casts are found by both types, calls by the intrinsic, others by the type; what is missing is named."""
    registry.register_op("add", "Add", "llvm", "posit")
    registry.register_op("cast", "Cast", "llvm", "float", "posit")
    registry.register_op("exp", "Call", "llvm", "posit", intrinsic_name="tir.exp")
    assert registry.find_lower_func("Add", "llvm", "posit") == "add"
    assert registry.find_lower_func("Cast", "llvm", "float", "posit") == "cast"
    assert registry.find_lower_func("Call", "llvm", "posit", intrinsic_name="tir.exp") == "exp"
    with pytest.raises(TargetError, match="Sub posit on target 'llvm'"):
        registry.find_lower_func("Sub", "llvm", "posit")
    with pytest.raises(TargetError, match="dest_type_name"):
        registry.register_op("cast", "Cast", "llvm", "float")
    with pytest.raises(TargetError, match="intrinsic_name"):
        registry.register_op("call", "Call", "llvm", "posit")


def test_created_function_calls_the_library(registry):
    """A binary operation, a constant, a call and a cast become external calls on unsigned integers."""
    lower = registry.create_lower_func({32: "PositAdd32"})
    assert lower(node("Add", dtype="custom[posit]32", a="x", b="y")) == (
        "extern",
        "uint32",
        "PositAdd32",
        ("x", "y"),
    )
    assert lower(node("FloatImm", dtype="custom[posit]32", value=2.0)) == (
        "extern",
        "uint32",
        "PositAdd32",
        (2.0,),
    )
    assert lower(node("Call", dtype="custom[posit]32x4", args=("x",))) == (
        "extern",
        "uint32x4",
        "PositAdd32",
        ("x",),
    )
    cast = registry.create_lower_func({(32, 16): "Narrow"})
    value = SimpleNamespace(dtype="float32")
    assert cast(node("Cast", dtype="custom[posit]16", value=value)) == (
        "extern",
        "uint16",
        "Narrow",
        (value,),
    )
    with pytest.raises(TargetError, match="no external function for 64 bits"):
        lower(node("Add", dtype="custom[posit]64", a="x", b="y"))


def test_least_value_and_choice_are_lowered(registry):
    """The least value is a call of its own; a choice keeps its arguments on the storage type."""
    registry.register("posit", 131)
    least = registry.create_min_lower_func({32: "PositMin32"}, "posit")
    registry.register_min_func(least, "posit")
    assert registry.find_min_func("posit")(32) == ("extern", "custom[posit]32", "PositMin32", ())
    with pytest.raises(TargetError, match="64 bits"):
        least(64)
    with pytest.raises(TargetError, match="not registered"):
        registry.register_min_func(least, "unknown")
    chosen = node("Call", dtype="custom[posit]32", args=("c", "x", "y"))
    assert registry.lower_ite(chosen) == ("intrin", "uint32", "tir.if_then_else", ("c", "x", "y"))
    assert registry.lower_call_pure_extern(chosen) == (
        "intrin",
        "uint32",
        "tir.call_pure_extern",
        ("c", "x", "y"),
    )


def test_without_a_builder_lowering_says_so(registry, monkeypatch):
    """The expression layer must have installed itself."""
    monkeypatch.setattr(datatype, "_builder", None)
    with pytest.raises(InternalError, match="builder"):
        registry.create_lower_func({32: "f"})(node("Add", dtype="custom[posit]32", a=1, b=2))
