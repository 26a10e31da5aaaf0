"""The text form of graph-level programs, as it is printed."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.relay.printer import astext, pretty_print


def typed(function: relay.Function) -> relay.Function:
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    return module["main"]


def matrix(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(2, 3))


def test_module_with_types_and_sharing() -> None:
    """A shared call is defined once; calls and constants show their types, functions their result."""
    x = matrix()
    shared = relay.exp(x)
    module = tvm.IRModule.from_expr(relay.Function([x], relay.add(shared, shared * relay.const(2.5))))
    assert relay.transform.InferType()(module).astext() == (
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
        "  %0 = exp(%x) /* ty=Tensor[(2, 3), float32] */;\n"
        "  %1 = multiply(%0, 2.5f /* ty=float32 */) /* ty=Tensor[(2, 3), float32] */;\n"
        "  add(%0, %1) /* ty=Tensor[(2, 3), float32] */\n"
        "}\n"
    )


def test_module_functions_are_independent() -> None:
    """Each function of a module has names and numbers of its own, with an empty line between functions."""
    x, y = matrix(), matrix()
    module = tvm.IRModule({"f": relay.Function([x], relay.exp(relay.exp(x)))})
    module["g"] = relay.Function([y], relay.exp(relay.exp(y)))
    assert str(module) == (
        "def @f(%x: Tensor[(2, 3), float32]) {\n  %0 = exp(%x);\n  exp(%0)\n}\n"
        "\n"
        "def @g(%x: Tensor[(2, 3), float32]) {\n  %0 = exp(%x);\n  exp(%0)\n}\n"
    )


def test_control_flow() -> None:
    """Branches are blocks; what both branches use is defined before them, what one uses inside it."""
    x, c = matrix(), relay.var("c", "bool")
    shared = relay.exp(x)
    only = relay.negative(shared)
    function = relay.Function([c, x], relay.If(c, relay.add(only, only), shared))
    assert pretty_print(function) == (
        "fn (%c: bool, %x: Tensor[(2, 3), float32]) {\n"
        "  %0 = exp(%x);\n"
        "  if (%c) {\n"
        "    %1 = negative(%0);\n"
        "    add(%1, %1)\n"
        "  } else {\n"
        "    %0\n"
        "  }\n"
        "}"
    )


def test_let_chains_and_lets_as_operands() -> None:
    """A chain at the end of a block stays flat; a let that is an operand stands in parentheses."""
    x, a, b, c = matrix(), relay.var("a"), relay.var("b"), relay.var("c")
    inner = relay.Let(c, relay.exp(a), relay.negative(c))
    body = relay.Let(a, relay.exp(x), relay.Let(b, relay.add(inner, a), relay.Tuple([b])))
    assert pretty_print(relay.Function([x], body)) == (
        "fn (%x: Tensor[(2, 3), float32]) {\n"
        "  let %a = exp(%x);\n"
        "  %0 = (\n"
        "    let %c = exp(%a);\n"
        "    negative(%c)\n"
        "  );\n"
        "  let %b = add(%0, %a);\n"
        "  (%b,)\n"
        "}"
    )


def test_functions_as_values() -> None:
    """A function that is called is defined close to its call; attributes stand behind its parameters."""
    x, p = matrix(), matrix("p0")
    kernel = relay.Function([p], relay.exp(p)).with_attr({"Primitive": 1, "Compiler": "dnnl"})
    assert pretty_print(relay.Function([x], relay.Call(kernel, [relay.exp(x)]))) == (
        "fn (%x: Tensor[(2, 3), float32]) {\n"
        "  %0 = exp(%x);\n"
        '  %1 = fn (%p0: Tensor[(2, 3), float32], Primitive=1, Compiler="dnnl") {\n'
        "    exp(%p0)\n"
        "  };\n"
        "  %1(%0)\n"
        "}"
    )


def test_generic_functions_and_data_types() -> None:
    """Type definitions stand before functions; clauses are blocks; a partial match has a question mark."""
    module = tvm.IRModule()
    header, a = relay.GlobalTypeVar("Box"), relay.TypeVar("A")
    full, empty = relay.Constructor("Full", [a], header), relay.Constructor("Empty", [], header)
    module[header] = relay.TypeData(header, [a], [full, empty])
    _, full, empty = module.get_type("Box")
    b = relay.TypeVar("A")
    box, v = relay.var("box", header(b)), relay.var("v", b)
    clauses = [
        relay.Clause(relay.PatternConstructor(full, [relay.PatternVar(v)]), v),
        relay.Clause(relay.PatternWildcard(), relay.Call(relay.GlobalVar("open"), [empty()])),
    ]
    module["open"] = relay.Function([box], relay.Match(box, clauses, complete=False), b, [b])
    assert str(module) == (
        "type Box[A] {\n  Full(A),\n  Empty,\n}\n"
        "\n"
        "def @open[A](%box: Box[A]) -> A {\n"
        "  match? (%box) {\n"
        "    Full(%v: A) => {\n"
        "      %v\n"
        "    },\n"
        "    _ => {\n"
        "      %0 = Empty;\n"
        "      @open(%0)\n"
        "    },\n"
        "  }\n"
        "}\n"
    )


def test_tuples_fields_and_references() -> None:
    """Tuples in parentheses, fields behind a dot, references as calls."""
    x = matrix()
    pair = relay.Tuple([x, relay.Tuple([])])
    written = relay.RefWrite(relay.RefCreate(x), relay.RefRead(relay.RefCreate(relay.TupleGetItem(pair, 0))))
    assert pretty_print(relay.Function([x], written)) == (
        "fn (%x: Tensor[(2, 3), float32]) {\n"
        "  %0 = ref(%x);\n"
        "  %1 = ();\n"
        "  %2 = (%x, %1);\n"
        "  %3 = %2.0;\n"
        "  %4 = ref(%3);\n"
        "  %5 = ref_read(%4);\n"
        "  ref_write(%0, %5)\n"
        "}"
    )


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1, "int32", "1"),
        (-3, "int64", "-3i64"),
        (7, "uint8", "7u8"),
        (1.0, "float32", "1f"),
        (0.1, "float32", "0.1f"),
        (1e-5, "float32", "1e-05f"),
        (0.1, "float64", "0.1f64"),
        (1.5, "float16", "1.5f16"),
        (float("inf"), "float32", "inff"),
        (True, "bool", "True"),
        (False, "bool", "False"),
    ],
)
def test_scalar_constants(value: float, dtype: str, text: str) -> None:
    """A constant without dimensions is a number with the suffix of its type."""
    assert pretty_print(relay.const(value, dtype)) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: relay.sum(x), "sum(%x)"),
        (lambda x: relay.sum(x, axis=[0, 1], keepdims=True), "sum(%x, axis=[0, 1], keepdims=True)"),
        (lambda x: relay.clip(x, 0.0, 6.0), "clip(%x, a_min=0f, a_max=6f)"),
        (lambda x: relay.clip(x, -np.inf, 1e-5), "clip(%x, a_min=-inff, a_max=1e-05f)"),
        (lambda x: relay.cast(x, "int8"), 'cast(%x, dtype="int8")'),
        (lambda x: relay.transpose(x), "transpose(%x)"),
        (lambda x: relay.transpose(x, [1, 0]), "transpose(%x, axes=[1, 0])"),
        (
            lambda x: relay.nn.conv2d(x, relay.var("w"), padding=(1, 1), channels=8, kernel_size=(3, 3)),
            "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3])",
        ),
    ],
)
def test_attributes_that_differ_from_defaults(make: object, text: str) -> None:
    """Attributes are printed by name where they are not as the operator has them by default."""
    assert pretty_print(make(matrix())).splitlines()[-1] == text


def test_other_constants_stand_in_the_metadata() -> None:
    """A constant with dimensions is a reference; the same one is the same reference. Without the section, a note."""
    x, weight = matrix(), relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    function = relay.Function([x], relay.add(relay.add(x, weight), weight))
    assert "%0 = add(%x, meta[relay.Constant][0]);\n  add(%0, meta[relay.Constant][0])" in str(function)
    text = function.astext()
    assert text.splitlines()[-2] == "#[metadata]" and "AAAAAAAAgD8AAABAAABAQAAAgEAAAKBA" in text
    assert function.astext(show_meta_data=False).splitlines()[-1].startswith("/* Constants are left out")


def test_free_variables_are_declared() -> None:
    """A variable that nothing binds is declared at the head of the text."""
    assert (
        pretty_print(relay.exp(relay.var("x", shape=(4,)))) == "free_var %x: Tensor[(4), float32];\nexp(%x)"
    )
    assert pretty_print(relay.var("1")) == "free_var %v1;\n%v1"


def test_names_are_unique_and_quoted_where_needed() -> None:
    """Two variables of one name get different names; a name that is not a word stands in quotes."""
    names = ["x", "x", "layer1.0.weight", "input.1", "a/b:0"]
    variables = [relay.var(name) for name in names]
    assert pretty_print(relay.Function(variables, relay.Tuple(variables))) == (
        'fn (%x, %x1, %layer1.0.weight, %"input.1", %"a/b:0") {\n'
        '  (%x, %x1, %layer1.0.weight, %"input.1", %"a/b:0")\n'
        "}"
    )


def test_annotate_replaces_type_comments() -> None:
    """The user's function says what stands behind each expression."""
    x = matrix()
    function = typed(relay.Function([x], relay.exp(relay.exp(x))))
    text = function.astext(annotate=lambda expr: " /* call */" if isinstance(expr, relay.Call) else "")
    assert "%0 = exp(%x) /* call */;\n  exp(%0) /* call */\n}" in text and "ty=" not in text


def test_type_arguments() -> None:
    """Types that are given to a generic function stand in brackets."""
    x = relay.var("x", "int32")
    call = relay.Call(relay.GlobalVar("id"), [x], None, [x.type_annotation])
    assert pretty_print(relay.Function([x], call)) == "fn (%x: int32) {\n  @id[int32](%x)\n}"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (relay.TensorType((), "float32"), "float32"),
        (relay.TensorType((2,), "int8"), "Tensor[(2), int8]"),
        (relay.TensorType((relay.Any(), 3)), "Tensor[(?, 3), float32]"),
        (relay.TupleType([]), "()"),
        (relay.TupleType([relay.scalar_type("bool")]), "(bool,)"),
        (relay.RefType(relay.scalar_type("int32")), "ref(int32)"),
        (relay.FuncType([relay.scalar_type("int32")], relay.TupleType([])), "fn (int32) -> ()"),
        (relay.GlobalTypeVar("List")(relay.scalar_type("int32")), "List[int32]"),
        (relay.IncompleteType(), "_"),
    ],
)
def test_types(given: relay.Type, text: str) -> None:
    """Each kind of type has its words, in str and below the version in astext."""
    assert str(given) == text and given.astext() == f'#[version = "0.0.5"]\n{text}'


def test_generic_function_type() -> None:
    """Type parameters stand in brackets behind fn."""
    a = relay.TypeVar("A")
    assert str(relay.FuncType([a], a, [a])) == "fn [A](A) -> A"


def test_mixed_module() -> None:
    """A loop-level function within a graph-level module is printed in TVMScript; alone, the module is a script."""
    a = te.placeholder((4,), name="a")
    kernel = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="b")])
    module = tvm.IRModule({"kernel": kernel})
    assert "class Module:" in module.astext()
    x = matrix()
    module["main"] = relay.Function([x], x)
    text = str(module)
    assert (
        "@T.prim_func\ndef kernel(" in text and "def @main(%x: Tensor[(2, 3), float32]) {\n  %x\n}\n" in text
    )


@pytest.mark.parametrize("form", ["calls", "lets"])
def test_depth_does_not_matter(form: str) -> None:
    """A chain of 20,000 calls, or of as many lets, is printed in full."""
    x = matrix()
    body: relay.Expr = x
    if form == "calls":
        for _ in range(20_000):
            body = relay.exp(body)
    else:
        for _ in range(20_000):
            body = relay.Let(relay.var("v"), relay.exp(x), body)
    lines = astext(relay.Function([x], body)).splitlines()
    assert len(lines) == (20_003 if form == "calls" else 20_004)
    last = "  exp(%19998)" if form == "calls" else "  let %v19999 = exp(%x);"
    assert lines[-2 if form == "calls" else -3] == last
