"""Matches as functions of their own."""

from typing import Any

from tests.relay.programs import call

from tilewright.ir.op import Op
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, Tuple, TupleGetItem, Var, const, var
from tilewright.relay.analysis import well_formed
from tilewright.relay.dataflow_pattern import (
    FunctionPattern,
    dominates,
    is_constant,
    is_op,
    is_tuple,
    partition,
    wildcard,
)

for name in (
    "add",
    "subtract",
    "multiply",
    "nn.relu",
    "nn.conv2d",
    "nn.bias_add",
    "nn.leaky_relu",
    "sigmoid",
):
    Op.register(name)
x, w, b = (var(name, shape=(4,)) for name in "xwb")


def made_function(body: Any, inputs: list[Any], name: str, **attrs: Any) -> Any:
    """A call of the function that a partition makes."""
    return Function(inputs, body, attrs={"PartitionedFromPattern": name, **attrs})


def convolution(data: Any, weight: Any) -> Any:
    return call("nn.conv2d", data, weight)


def test_a_match_becomes_a_function_of_its_inputs() -> None:
    """In the order in which the pattern meets them, named after its operators."""
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    expr = call("nn.relu", call("nn.bias_add", convolution(x, w), b))
    p, q, r = Var("p"), Var("q"), Var("r")
    body = call("nn.relu", call("nn.bias_add", convolution(p, q), r))
    expected = made_function(body, [p, q, r], "nn.conv2d_nn.bias_add_nn.relu_")(x, w, b)
    found = pattern.partition(expr)
    assert_structural_equal(found, expected)
    assert found.op.params[0].name_hint == "FunctionVar_0_0"  # type: ignore[attr-defined]


def test_matches_one_after_another() -> None:
    """The input of one is the result of another."""
    pattern = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    expr = call("nn.relu", convolution(call("nn.relu", convolution(x, w)), b))
    p, q, r, s = (Var(name) for name in "pqrs")
    inner = made_function(call("nn.relu", convolution(p, q)), [p, q], "nn.conv2d_nn.relu_")
    outer = made_function(call("nn.relu", convolution(r, s)), [r, s], "nn.conv2d_nn.relu_")
    assert_structural_equal(pattern.partition(expr), outer(inner(x, w), b))


def test_the_parts_of_an_option_that_is_not_there_are_no_inputs() -> None:
    """Only what matched counts."""
    pattern = is_op("nn.conv2d")(wildcard(), wildcard()).optional(
        lambda it: is_op("nn.bias_add")(it, wildcard())
    )
    p, q = Var("p"), Var("q")
    expected = made_function(convolution(p, q), [p, q], "nn.conv2d_")(x, w)
    assert_structural_equal(pattern.partition(convolution(x, w)), expected)


def test_an_input_that_two_patterns_match_is_one() -> None:
    """It becomes one parameter."""
    p = Var("p")
    expected = made_function(call("add", p, p), [p], "add_")(x)
    assert_structural_equal((wildcard() + wildcard()).partition(call("add", x, x)), expected)


def test_constants_stay_inside_where_the_pattern_names_them() -> None:
    """A wildcard takes them as inputs."""
    expr = call("add", x, const(1.0))
    p, q = Var("p"), Var("q")
    inside = made_function(call("add", p, const(1.0)), [p], "add_")(x)
    assert_structural_equal((wildcard() + is_constant()).partition(expr), inside)
    outside = made_function(call("add", p, q), [p, q], "add_")(x, const(1.0))
    assert_structural_equal((wildcard() + wildcard()).partition(expr), outside)


def test_checks_and_attributes() -> None:
    """Only roots that pass; attributes are added."""
    pattern = wildcard() + wildcard()
    expr = call("multiply", call("add", x, w), call("add", x, b))
    found = partition(pattern, expr, {"Composite": "sum"}, lambda root: root.args[1] is w)  # type: ignore[attr-defined]
    p, q = Var("p"), Var("q")
    function = made_function(call("add", p, q), [p, q], "add_", Composite="sum")
    assert_structural_equal(found, call("multiply", function(x, w), call("add", x, b)))


def test_a_value_that_is_used_elsewhere_keeps_the_match_out() -> None:
    """Its computation cannot be hidden in a function."""
    inner = convolution(x, w)
    expr = Tuple([call("nn.relu", inner), inner])
    assert is_op("nn.relu")(is_op("nn.conv2d")(None)).partition(expr) is expr


def test_a_use_that_ends_in_the_root_does_no_harm() -> None:
    """The sigmoid outside gets its own copy of what it uses."""
    pattern = (wildcard() + wildcard()) * wildcard()
    total = call("add", x, w)
    expr = call("multiply", total, call("sigmoid", total))
    found = pattern.partition(expr)
    p, q, r = Var("p"), Var("q"), Var("r")
    function = made_function(call("multiply", call("add", p, q), r), [p, q, r], "add_multiply_")
    assert_structural_equal(found, function(x, w, call("sigmoid", call("add", x, w))))


def test_dominated_regions() -> None:
    """All between the parent and the child is in the function, the path's inputs are not."""
    step = (is_op("nn.relu") | is_op("nn.leaky_relu"))(wildcard())
    pattern = dominates(
        is_op("nn.conv2d")(wildcard(), wildcard()), step, is_op("add")(wildcard(), wildcard())
    )

    def region(data: Any, weight: Any) -> Any:
        root = convolution(data, weight)
        return call("add", call("nn.relu", call("nn.relu", root)), call("nn.leaky_relu", root))

    p, q, r, s = (Var(name) for name in "pqrs")
    name = "nn.conv2d_nn.relu_nn.relu_nn.leaky_relu_add_"
    found = pattern.partition(region(region(x, w), b))
    assert_structural_equal(
        found, made_function(region(r, s), [r, s], name)(made_function(region(p, q), [p, q], name)(x, w), b)
    )


def test_functions_are_part_of_the_match() -> None:
    """Their parameters and bodies are not inputs."""
    a, c = Var("a"), Var("c")
    inner = Function([a, c], call("add", a, c))
    pattern = FunctionPattern(None, wildcard() + wildcard())(wildcard(), wildcard())
    p, q = Var("p"), Var("q")
    expected = made_function(inner(p, q), [p, q], "Function_Call_")(x, w)
    assert_structural_equal(pattern.partition(inner(x, w)), expected)


def test_tuples_with_any_fields() -> None:
    """The fields are the inputs."""
    pattern = is_op("concatenate")(is_tuple(None))
    expr = call("concatenate", Tuple([x, w, b]))
    p, q, r = Var("p"), Var("q"), Var("r")
    expected = made_function(call("concatenate", Tuple([p, q, r])), [p, q, r], "Tuple_concatenate_")(x, w, b)
    assert_structural_equal(pattern.partition(expr), expected)


Op.register("concatenate")


def test_what_was_partitioned_is_not_matched_again() -> None:
    """A second run changes nothing."""
    pattern = wildcard() + wildcard()
    once = pattern.partition(Function([x, w], call("multiply", call("add", x, w), w)))
    assert pattern.partition(once) is once
    assert well_formed(once)


def test_a_chain_of_ten_thousand() -> None:
    """Every second operator is the root of a match."""
    expr: Any = x
    for _ in range(5_000):
        expr = call("nn.relu", call("add", expr, w))
    found = is_op("nn.relu")(wildcard() + wildcard()).partition(Function([x, w], expr))
    assert well_formed(found)
    count, current = 0, found.body  # type: ignore[attr-defined]
    while current is not x:
        assert isinstance(current.op, Function)
        count, current = count + 1, current.args[0]
    assert count == 5_000


def test_fields_of_tuples_have_names() -> None:
    """With their index."""
    pattern = wildcard() + wildcard()
    pair = Tuple([x, w])
    from_pair = pattern.partition(call("add", TupleGetItem(pair, 0), TupleGetItem(pair, 1)))
    assert from_pair.op.attrs["PartitionedFromPattern"] == "add_"  # type: ignore[attr-defined]
