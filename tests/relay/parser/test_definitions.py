"""Modules in the text form, as they are read."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.ir import assert_structural_equal
from tilewright.relay.parser import TextFormError, parse_module

HEAD = '#[version = "0.0.5"]\n'


def test_function_definition() -> None:
    """A definition is a function of the module; calls of global names refer to one variable."""
    module = parse_module(HEAD + "def @id[A](%x: A) -> A { %x } def @main(%y: int32) { @id(@id(%y)) }")
    assert [variable.name_hint for variable in module.get_global_vars()] == ["id", "main"]
    call = module["main"].body
    assert call.op is module.get_global_var("id") and call.args[0].op is call.op
    assert module["id"].type_params[0].name_hint == "A"


def test_recursion_and_any_order() -> None:
    """Functions and types may be used before their definition."""
    module = tvm.parser.parse(
        """
        def @main(%xs: Chain) -> int32 { @length(%xs) }
        def @length(%xs: Chain) -> int32 {
          match (%xs) { Link(_, %rest) => { 1 + @length(%rest) }, End => { 0 } }
        }
        type Chain { Link(Item, Chain), End }
        type Item { Item(float32) }
        """
    )
    chain = module.get_global_type_var("Chain")
    assert module["main"].params[0].type_annotation == chain()
    assert module["main"].body.checked_type == relay.scalar_type("int32")


def test_type_definitions() -> None:
    """Type parameters, constructors with and without arguments, a last comma or none, and types from outside."""
    module = parse_module(
        "type List[A] { Cons(A, List[A]), Nil, } type Empty { } "
        "type One { Only(Tensor[(?, 1), uint16]) } extern type T[A]"
    )
    header, cons, nil = module.get_type("List")
    a = module[header].type_vars[0]
    assert cons.inputs == (a, header(a)) and nil.inputs == () and cons.tag != nil.tag
    assert module.get_type("Empty")[1:] == () and module.get_type("T")[1:] == ()
    assert str(module.get_type("One")[1].inputs[0]) == "Tensor[(?, 1), uint16]"
    assert [variable.name_hint for variable in module[module.get_global_type_var("T")].type_vars] == ["A"]


def test_init_module_and_meta_table() -> None:
    """A text may use the functions of a module and the values of a table; the module itself does not change."""
    first = tvm.parser.parse(HEAD + "def @f(%y: Tensor[(2, 3), float32]) { negative(%y) }")
    weight = relay.const(np.ones((2, 3), "float32"))
    both = tvm.parser.parse(
        HEAD + "def @main(%y: Tensor[(2, 3), float32]) { add(@f(%y), meta[relay.Constant][0]) }",
        "from_string",
        first,
        {"relay.Constant": [weight]},
    )
    assert {variable.name_hint for variable in both.functions} == {"f", "main"} and "main" not in first
    assert_structural_equal(both["main"].body.args[1], weight)
    assert both["main"].ret_type == relay.TensorType((2, 3))


def test_module_attributes() -> None:
    """Attributes of the module stand below the version."""
    module = (
        tvm.IRModule({"f": relay.Function([], relay.const(1))})
        .with_attr("level", 3)
        .with_attr("names", ("a", "b"))
    )
    text = module.astext()
    assert text.splitlines()[1] == '#[attributes = {"level": 3, "names": ["a", "b"]}]'
    assert_structural_equal(parse_module(text), module)


def test_loop_level_functions() -> None:
    """A function in TVMScript within the text is a function of the module."""
    a = te.placeholder((4,), name="a")
    kernel = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="b")])
    module = tvm.IRModule({"kernel": kernel, "main": relay.Function([], relay.const(1))})
    found = parse_module(module.astext())
    assert_structural_equal(found["kernel"].body, kernel.body, map_free_vars=True)
    assert_structural_equal(found["main"], module["main"])


def test_parse_infers_types() -> None:
    """``parse`` and ``fromtext`` give a module whose expressions have types; a wrong type is an error with a place."""
    module = tvm.parser.fromtext("def @main(%x: Tensor[(2, 3), float32]) { sum(%x, axis=[1]) }")
    assert module["main"].body.checked_type == relay.TensorType((2,))
    with pytest.raises(tvm.error.DiagnosticError, match=r"bad\.rly:1"):
        tvm.parser.parse("def @main(%x: Tensor[(2, 3), float32]) { %x + 1i64 }", "bad.rly")


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("def @a() { 1 } def @a() { 2 }", "the function @a is defined twice", 20),
        ("def @a() { @b() }", "the function @b is not defined in the module", 12),
        ("type A { B } type A { C }", "the type A is defined twice", 19),
        ("type A { B, B }", "the constructor B is defined twice", 13),
        ("type A { B } type C { B }", "the constructor B is defined twice", 23),
        ("type A { exp }", "a constructor cannot have the name exp", 10),
        ("type fn { B }", "a type cannot have the name fn", 6),
        ("type A[T, T] { B }", "the type parameter T occurs twice", 11),
        ("def @a() { 1", "the definition does not end", 1),
        ("def a() { 1 }", "expected a global name such as @main, found 'a'", 5),
        ("exp(1f)", "expected a definition (def, type or extern type), found 'exp'", 1),
        ('#[version = "0.0.1"] def @a() { 1 }', "the text is of another version", 1),
        ("def @a() { 1 }\n#[metadata]\n{}", "the metadata section cannot be read", 1),
        ("#[attributes = 1] def @a() { 1 }", "the attributes of a module are a mapping", 1),
    ],
)
def test_errors_name_the_place(text: str, message: str, column: int) -> None:
    """What is wrong in a definition is said, with its place."""
    with pytest.raises(TextFormError) as caught:
        parse_module(text)
    assert message in str(caught.value) and caught.value.span.column == column


def test_imports(tmp_path: object) -> None:
    """A file is added to a module; importing it again changes nothing; its names cannot be defined otherwise."""
    path = tmp_path / "lib.rly"
    path.write_text("type Box { Box(int32) } def @open(%b: Box) -> int32 { match (%b) { Box(%x) => %x } }")
    module = tvm.IRModule()
    module.import_(str(path))
    first = module["open"]
    module.import_(str(path))
    assert module["open"] is first and len(module.type_definitions) == 1
    other = tvm.IRModule({"open": relay.Function([], relay.const(1))})
    with pytest.raises(TextFormError, match="@open is defined twice"):
        other.import_(str(path))
    assert not other.type_definitions


def test_imports_that_cannot_be_read() -> None:
    """A file that is not there is an error that says what there is."""
    with pytest.raises(
        tvm.TVMError, match="the standard library has core.rly, gradient.rly, nat.rly, prelude.rly"
    ):
        tvm.IRModule().import_from_std("nothing.rly")
