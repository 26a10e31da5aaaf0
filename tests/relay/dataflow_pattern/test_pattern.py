"""Which expressions patterns match."""

from typing import Any

import pytest
from tests.relay.programs import call

from tilewright.ir.op import Op
from tilewright.relay import Function, If, Let, TensorType, Tuple, TupleGetItem, Var, const, var
from tilewright.relay.dataflow_pattern import (
    CallPattern,
    FunctionPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    register_df_node,
    wildcard,
)
from tilewright.relay.dataflow_pattern.pattern import PATTERN_CLASSES
from tilewright.support.errors import ExpressionError, OpError

for name in ("add", "subtract", "multiply", "divide", "nn.relu", "nn.leaky_relu", "nn.conv2d", "exp", "tanh"):
    Op.register(name)
x, y, z = (var(name, shape=(4,)) for name in "xyz")


def relu(value: Any) -> Any:
    return call("nn.relu", value)


def conv(data: Any, weight: Any) -> Any:
    return call("nn.conv2d", data, weight)


def test_leaves() -> None:
    """Variables by name or any, constants, equal expressions, operators, anything."""
    assert is_var().match(x) and is_var("x").match(x) and not is_var("y").match(x)
    assert is_constant().match(const(1)) and not is_constant().match(x)
    assert is_expr(call("add", x, const(1.0))).match(call("add", x, const(1.0)))
    assert not is_expr(x).match(y)
    assert is_op("add").match(Op.get("add")) and not is_op("add").match(Op.get("subtract"))
    assert wildcard().match(relu(x))
    with pytest.raises(OpError):
        is_op("no.such.operator")


def test_calls() -> None:
    """The operator and every argument must match; any arguments where they are not given."""
    assert is_op("subtract")(is_var("x"), wildcard()).match(call("subtract", x, y))
    assert not is_op("subtract")(is_var("y"), wildcard()).match(call("subtract", x, y))
    assert not is_op("subtract")(wildcard()).match(call("subtract", x, y))
    assert is_op("subtract")(None).match(call("subtract", x, y))
    assert not is_op("subtract")(None).match(x)
    assert wildcard()(wildcard()).match(Function([z], z)(x))
    with pytest.raises(ExpressionError, match="a part of a pattern is a pattern"):
        CallPattern(is_op("exp"), [x])  # type: ignore[list-item]


def test_infix_operators_make_calls() -> None:
    """Of the four arithmetic operators."""
    a, b = is_var("x"), is_var("y")
    assert (a + b).match(call("add", x, y))
    assert (a - b).match(call("subtract", x, y)) and not (a - b).match(call("subtract", y, x))
    assert (a * b).match(call("multiply", x, y))
    assert (a / b).match(call("divide", x, y)) and not (a / b).match(call("divide", y, x))


def test_sums_and_products_commute() -> None:
    """At every depth."""
    pattern = is_op("add")(is_op("multiply")(is_var("x"), is_var("y")), is_var("z"))
    assert pattern.match(call("add", z, call("multiply", y, x)))
    assert not pattern.match(call("add", z, call("multiply", y, z)))


def test_the_order_of_arguments_is_reconsidered() -> None:
    """The first order that fits an inner call may not fit what comes after."""
    a, b = wildcard(), wildcard()
    pattern = is_op("subtract")(a + b, a)
    assert pattern.match(call("subtract", call("add", x, y), x))
    assert pattern.match(call("subtract", call("add", x, y), y))
    assert not pattern.match(call("subtract", call("add", x, y), z))


def test_alternatives_are_reconsidered() -> None:
    """The left one fits the argument, but only the right one fits together with the rest."""
    a = wildcard()
    pattern = is_op("subtract")(is_op("exp")(a) | is_op("exp")(is_op("exp")(a)), a)
    twice = call("exp", call("exp", x))
    assert pattern.match(call("subtract", twice, x))
    assert pattern.match(call("subtract", twice, twice.args[0]))
    assert not pattern.match(call("subtract", twice, y))
    assert (is_op("add") | is_op("subtract")).match(Op.get("subtract"))


def test_products_and_quotients_reassociate() -> None:
    """a * b / c matches however it is written."""
    a, b, c = is_var("x"), is_var("y"), is_var("z")
    pattern = a * b / c
    assert pattern.match(call("divide", call("multiply", x, y), z))
    assert pattern.match(call("multiply", x, call("divide", y, z)))
    assert pattern.match(call("multiply", y, call("divide", x, z)))
    assert pattern.match(call("multiply", call("divide", x, z), y))
    assert not pattern.match(call("multiply", call("divide", z, x), y))
    assert (a * (b / c)).match(call("divide", call("multiply", y, x), z))
    assert ((b / c) * a).match(call("divide", call("multiply", x, y), z))
    assert not (a * (b / c)).match(call("divide", call("multiply", z, x), y))


def test_a_pattern_stands_for_one_expression() -> None:
    """Wherever it is used."""
    same = wildcard()
    assert is_op("subtract")(same, same).match(call("subtract", x, x))
    assert not is_op("subtract")(same, same).match(call("subtract", x, y))


def test_options() -> None:
    """What is matched with or without something around it."""
    pattern = is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda it: is_op("nn.relu")(it))
    assert pattern.match(conv(x, y)) and pattern.match(relu(conv(x, y)))
    assert not pattern.match(relu(relu(conv(x, y)))) and not pattern.match(relu(x))
    twice = pattern.optional(lambda it: is_op("tanh")(it))
    for expr in (conv(x, y), relu(conv(x, y)), call("tanh", conv(x, y)), call("tanh", relu(conv(x, y)))):
        assert twice.match(expr)
    assert not twice.match(relu(call("tanh", conv(x, y))))


def test_tuples_and_fields() -> None:
    """By number and contents; any fields, any index where they are not given."""
    pair = Tuple([x, relu(y)])
    assert is_tuple([is_var("x"), wildcard()]).match(pair)
    assert not is_tuple([wildcard()]).match(pair)
    assert is_tuple(None).match(pair) and not is_tuple(None).match(x)
    assert is_tuple_get_item(wildcard(), 1).match(TupleGetItem(pair, 1))
    assert not is_tuple_get_item(wildcard(), 0).match(TupleGetItem(pair, 1))
    assert is_tuple_get_item(is_tuple(None)).match(TupleGetItem(pair, 1))
    pattern = is_tuple([wildcard(), wildcard()])
    assert pattern[1].match(TupleGetItem(pair, 1))
    with pytest.raises(IndexError):
        pattern[2]
    with pytest.raises(TypeError):
        pattern.astype("int32")


def test_functions_lets_and_conditionals() -> None:
    """Part by part."""
    p, q = Var("p"), Var("q")
    function = Function([p, q], call("add", p, q))
    assert FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard()).match(function)
    assert not FunctionPattern([wildcard()], wildcard()).match(function)
    assert FunctionPattern(None, wildcard() + wildcard()).match(function)
    assert not FunctionPattern(None, wildcard() - wildcard()).match(function)
    let = Let(Var("v"), const(1), x)
    assert is_let(is_var("v"), is_constant(), is_var("x")).match(let)
    assert not is_let(is_var("w"), wildcard(), wildcard()).match(let)
    c = var("c", shape=(), dtype="bool")
    assert is_if(is_var("c"), is_var("x"), is_var("y")).match(If(c, x, y))
    assert not is_if(is_var("c"), is_var("y"), wildcard()).match(If(c, x, y))


def test_types() -> None:
    """Of expressions with or without types; what has none that can be found does not match."""
    expr = call("exp", var("t", shape=(10, 10), dtype="float32"))
    assert wildcard().has_type(TensorType((10, 10), "float32")).match(expr)
    assert not has_type(TensorType((10, 11), "float32")).match(expr)
    assert has_dtype("float32", is_op("exp")(wildcard())).match(expr) and not has_dtype("int8").match(expr)
    assert has_shape((10, 10)).match(expr) and not has_shape((10,)).match(expr)
    assert not has_shape((10, 1)).match(expr)
    assert not has_dtype("float32").match(Tuple([x, x]))
    assert not has_dtype("float32").match(Var("unknown"))


def test_attributes() -> None:
    """Of operators, of calls, of functions; all that are given must be there and equal."""
    Op.register("test.strided").reset_attr("TestKind")
    Op.get("test.strided").set_attr("TestKind", 3)
    expr = call("test.strided", x, axes=[1, 2], mode="n")
    assert is_op("test.strided").has_attr({"TestKind": 3})(wildcard()).match(expr)
    assert not is_op("test.strided").has_attr({"TestKind": 4})(wildcard()).match(expr)
    assert not wildcard().has_attr({"NoSuchKind": 3})(wildcard()).match(expr)
    assert has_attr({"axes": (1, 2), "mode": "n"}).match(expr)
    assert not has_attr({"axes": (1, 3)}).match(expr)
    assert not has_attr({"other": 1}).match(expr) and not has_attr({"axes": 1}).match(x)
    function = Function([x], x, attrs={"Composite": "dense"})
    assert has_attr({"Composite": "dense"}).match(function)
    assert not has_attr({"Composite": "sparse"}).match(function)


def diamond() -> Any:
    """A convolution whose results are all added up, with elementwise operators on the way."""
    step = (is_op("nn.relu") | is_op("nn.leaky_relu"))(wildcard())
    return dominates(is_op("nn.conv2d")(wildcard(), wildcard()), step, is_op("add")(wildcard(), wildcard()))


def test_a_dominator_matches_all_ways() -> None:
    """Of any length, through the path alone."""
    root = conv(x, y)
    assert diamond().match(call("add", relu(relu(root)), call("nn.leaky_relu", root)))
    assert diamond().match(call("add", root, relu(root)))


def test_a_dominator_fails_where_a_way_leads_elsewhere() -> None:
    """Another parent, an operator that is not on the path, an input that is not the parent's, no parent."""
    root, other = conv(x, y), conv(x, z)
    leaky = call("nn.leaky_relu", root)
    assert not diamond().match(call("add", relu(other), leaky))
    assert not diamond().match(call("add", call("add", relu(root), relu(root)), leaky))
    assert not diamond().match(call("add", relu(x), leaky))
    assert not diamond().match(call("add", relu(x), call("tanh", x)))


def test_a_parent_that_is_used_elsewhere_is_not_dominated() -> None:
    """Something else needs its value."""
    root = conv(x, y)
    total = call("add", relu(root), call("nn.leaky_relu", root))
    assert diamond().match(total)
    assert not is_tuple([diamond(), wildcard()]).match(Tuple([total, root]))


def test_other_inputs_beside_the_parent() -> None:
    """An operator that takes the parent may take a bias too, in either order."""
    step = is_op("nn.bias_add")(None) | is_op("add")(None) | is_op("nn.relu")(None)
    pattern = is_op("exp")(wildcard()).dominates(is_op("nn.conv2d")(wildcard(), wildcard()), step)
    assert pattern.match(call("exp", relu(call("nn.bias_add", conv(x, y), z))))
    assert pattern.match(call("exp", relu(call("add", z, conv(x, y)))))


Op.register("nn.bias_add")


def test_deep_patterns_and_expressions() -> None:
    """Neither needs recursion."""
    pattern: Any = wildcard()
    expr: Any = x
    for _ in range(10_000):
        pattern, expr = is_op("exp")(pattern), call("exp", expr)
    assert match(pattern, expr)
    assert not match(pattern, expr.args[0])


def test_classes_are_registered() -> None:
    """By type key; a user may add one."""
    assert PATTERN_CLASSES["relay.dataflow_pattern.CallPattern"] is CallPattern

    @register_df_node("test.Mine")
    class Mine:
        pass

    assert PATTERN_CLASSES.pop("test.Mine") is Mine
