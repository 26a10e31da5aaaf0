"""What unit tests of dataflow patterns ask: matching, rewriting and partitioning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.dataflow_pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPatternCallback,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
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
    rewrite,
    wildcard,
)
from tilewright.relay.testing import run_opt_pass

K_ELEMWISE = 0


def same(made: Any, expected: Any) -> bool:
    """Structurally equal once both have their types."""
    infer = relay.transform.InferType()
    return tvm.ir.structural_equal(run_opt_pass(made, infer), run_opt_pass(expected, infer))


def test_construction() -> None:
    """Each maker gives its kind of pattern."""
    ep = is_expr(relay.var("x", shape=(4, 1)))
    assert isinstance(ep, ExprPattern) and isinstance(ep.expr, relay.Var)
    vp = is_var("x")
    assert isinstance(vp, VarPattern) and vp.name == "x"
    assert isinstance(is_constant(), ConstantPattern)
    assert isinstance(wildcard(), WildcardPattern)
    call = is_op("add")(wildcard(), wildcard())
    assert isinstance(call, CallPattern)
    assert isinstance(call.args[0], WildcardPattern) and isinstance(call.args[1], WildcardPattern)
    a, b = wildcard(), wildcard()
    function = FunctionPattern([a, b], is_op("add")(a, b))
    assert isinstance(function.params[0], WildcardPattern)
    assert isinstance(function.body, CallPattern)
    tup = is_tuple([wildcard(), wildcard()])
    assert isinstance(tup, TuplePattern) and isinstance(tup.fields[0], WildcardPattern)
    item = is_tuple_get_item(is_tuple([wildcard(), wildcard()]))
    assert isinstance(item, TupleGetItemPattern) and isinstance(item.tuple, TuplePattern)
    alt = is_op("add") | is_op("multiply")
    assert isinstance(alt, AltPattern) and isinstance(alt.left, ExprPattern)
    typed = has_type(relay.TensorType((10, 10), "float32"))
    assert isinstance(typed, TypePattern) and typed.type == relay.TensorType((10, 10), "float32")
    dtype = has_dtype("float16")
    assert isinstance(dtype, DataTypePattern) and dtype.dtype == "float16"
    shape = has_shape([10, 10])
    assert isinstance(shape, ShapePattern) and tuple(shape.shape) == (10, 10)
    attr = is_op("add").has_attr({"TOpPattern": K_ELEMWISE})
    assert isinstance(attr, AttrPattern) and attr.attrs["TOpPattern"] == K_ELEMWISE
    branch = is_if(is_var("cond"), is_op("add")(is_var(), is_var()), is_op("subtract")(is_var(), is_var()))
    assert isinstance(branch, IfPattern) and isinstance(branch.cond, VarPattern)
    let = is_let(is_var("let"), is_op("add")(is_var(), is_var()), is_var("let"))
    assert isinstance(let, LetPattern) and isinstance(let.value, CallPattern)
    assert isinstance(has_attr({"x": 1}), AttrPattern)


def test_dominator_construction() -> None:
    """A dominator keeps its three patterns."""
    d = DominatorPattern(
        parent=is_op("nn.conv2d")(wildcard(), wildcard()),
        path=is_op("nn.relu")(wildcard()),
        child=wildcard() + wildcard(),
    )
    assert isinstance(d, DominatorPattern) and isinstance(d.parent, CallPattern)
    assert isinstance(d.child, CallPattern) and isinstance(d.path, CallPattern)


def test_match_op_and_commutative() -> None:
    """Operators, alternatives, and the commutativity of sum and product alone."""
    assert is_op("add").match(relay.op.op.get("add"))
    assert not is_op("add").match(relay.op.op.get("subtract"))
    either = is_op("add") | is_op("subtract")
    assert either.match(relay.op.op.get("add")) and either.match(relay.op.op.get("subtract"))
    x, y = relay.var("x"), relay.var("y")
    add = is_op("add")(is_var("x"), is_var("y"))
    assert add.match(x + y) and add.match(y + x)
    mul = is_op("multiply")(is_var("x"), is_var("y"))
    assert mul.match(x * y) and mul.match(y * x)
    sub = is_op("subtract")(is_var("x"), is_var("y"))
    assert sub.match(x - y) and not sub.match(y - x)
    nested = is_op("add")(is_op("multiply")(is_var("x"), is_var("y")), is_var("z"))
    z = relay.var("z")
    for expr in ((x * y) + z, (y * x) + z, z + (y * x), z + (x * y)):
        assert nested.match(expr)
    assert not nested.match((x + y) * z)


def test_operators_of_patterns() -> None:
    """Arithmetic on patterns makes patterns of calls."""
    a, b = relay.var("a"), relay.var("b")
    assert (is_var("a") + is_var("b")).match(a + b)
    assert (is_var("a") - is_var("b")).match(a - b)
    assert (is_var("a") * is_var("b")).match(a * b)
    assert (is_var("a") / is_var("b")).match(a / b)
    assert is_op("nn.relu")(wildcard()).optional(lambda x: is_op("exp")(x)).match(relay.exp(relay.nn.relu(a)))
    assert is_op("nn.relu")(wildcard()).optional(lambda x: is_op("exp")(x)).match(relay.nn.relu(a))


def test_match_function_tuple_if_let() -> None:
    """The other nodes of the language."""
    x, y = relay.var("x"), relay.var("y")
    wc1, wc2 = wildcard(), wildcard()
    assert FunctionPattern([wc1, wc2], wc1 + wc2).match(relay.Function([x, y], x + y))
    assert not FunctionPattern([wc1, wc2], wc1 + wc2).match(relay.Function([x, y], x - y))
    assert FunctionPattern(None, wildcard()).match(relay.Function([x, y], x + y))
    z = relay.op.op.get("add")
    tup = relay.Tuple((x, y, z))
    assert is_tuple((is_var("x"), wildcard(), is_op("add"))).match(tup)
    assert not is_tuple((is_var("x"), wildcard(), is_op("subtract"))).match(tup)
    assert is_tuple(None).match(tup)
    p = is_tuple((is_var("x"), wildcard(), is_op("add")))
    assert is_tuple_get_item(p, 1).match(relay.TupleGetItem(tup, 1))
    assert not is_tuple_get_item(p, 1).match(relay.TupleGetItem(tup, 2))
    assert is_tuple_get_item(p).match(relay.TupleGetItem(tup, 2))
    cond = relay.var("cond")
    assert is_if(
        is_var("cond"), is_op("add")(is_var("x"), is_var("y")), is_op("subtract")(is_var("x"), is_var("y"))
    ).match(relay.If(cond, x + y, x - y))
    v, b = relay.var("v"), relay.var("b")
    assert is_let(
        is_var("v"), is_op("add")(is_var("x"), is_var("y")), is_op("multiply")(is_var("v"), is_var("b"))
    ).match(relay.Let(v, x + y, v * b))


def test_match_types_and_attributes() -> None:
    """Types, shapes, data types; attributes of operators and of calls; attributes that are not there."""
    x = relay.var("x", shape=(10, 10), dtype="float32")
    ty = relay.TensorType((10, 10), "float32")
    assert has_type(ty).match(x)
    assert not has_type(relay.TensorType((10, 10), "float16")).match(x)
    assert has_dtype("float32").match(x) and not has_dtype("int8").match(x)
    assert has_shape([10, 10]).match(x) and not has_shape([10]).match(x)
    y = relay.var("y", shape=(10, 10))
    op = is_op("add").has_attr({"TOpPattern": K_ELEMWISE})
    # A sum broadcasts: its kind is the next one.
    assert not op.match(relay.op.op.get("add"))
    assert is_op("add").has_attr({"TOpPattern": 1}).match(relay.op.op.get("add"))
    conv = relay.nn.conv2d(x, y, strides=[1, 1], padding=[1, 1], kernel_size=(3, 3), data_layout="NCHW")
    assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"data_layout": "NCHW"}).match(conv)
    assert not is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"data_layout": "NHWC"}).match(conv)
    assert not is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"RandomAttr": "x"}).match(conv)
    assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"kernel_size": [3, 3]}).match(conv)
    fn = relay.Function([x], x + x).with_attr("Composite", "add")
    assert wildcard().has_attr({"Composite": "add"}).match(fn)
    assert not wildcard().has_attr({"Composite": "relu"}).match(fn)
    relu = is_op("nn.relu")(has_shape((10, 10)))
    assert relu.match(relay.nn.relu(x))


def test_match_call_with_any_number_of_arguments() -> None:
    """``None`` for arguments matches all."""
    x = relay.var("x")
    assert CallPattern(is_op("nn.relu"), None).match(relay.nn.relu(x))
    assert CallPattern(wildcard(), None).match(relay.concatenate([x, x], 0))


def test_match_fake_diamond_and_dominators() -> None:
    """All ways from the parent to the child follow the path."""
    data, w = relay.var("data"), relay.var("w")
    conv = relay.nn.conv2d(data, w)
    out = relay.nn.relu(conv) + relay.nn.leaky_relu(conv, alpha=0)
    is_conv2d = is_op("nn.conv2d")(wildcard(), wildcard())
    elementwise = is_op("nn.relu")(wildcard()) | is_op("nn.leaky_relu")(wildcard())
    reduction = is_op("add")(wildcard(), wildcard())
    diamond = dominates(is_conv2d, elementwise, reduction)
    assert diamond.match(out)
    # The second summand does not come from the same convolution.
    fake = relay.nn.relu(relay.nn.conv2d(data, w)) + relay.nn.leaky_relu(relay.nn.conv2d(data, w), alpha=0)
    assert not diamond.match(fake)


def test_match_dominator_by_operator_kind() -> None:
    """``TOpPattern`` as an attribute of the operator decides the path."""
    is_conv2d = is_op("nn.conv2d")(wildcard(), wildcard())
    is_unary_elemwise = (wildcard().has_attr({"TOpPattern": K_ELEMWISE}))(wildcard())
    reduction = is_op("add")(wildcard(), wildcard())
    diamond = dominates(is_conv2d, is_unary_elemwise, reduction)
    inp, weight = relay.var("input"), relay.var("weight")
    conv2d = relay.op.nn.conv2d(inp, weight)
    relu = relay.op.nn.relu(conv2d)
    relu = relay.op.nn.relu(relu)
    leaky_relu = relay.op.nn.leaky_relu(conv2d, alpha=0)
    assert diamond.match(relu + leaky_relu)
    out = relay.op.nn.relu(relay.op.nn.relu(conv2d)) + relay.op.tensor.exp(
        relay.op.nn.leaky_relu(conv2d, alpha=0)
    )
    assert diamond.match(out)


def test_rewrite() -> None:
    """A sum becomes a difference, everywhere."""
    x, y = relay.var("x"), relay.var("y")

    class TestRewrite(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return post.args[0] - post.args[1]

    assert tvm.ir.structural_equal(rewrite(TestRewrite(), x + y), x - y)
    assert tvm.ir.structural_equal(rewrite([TestRewrite()], (x + y) * y), (x - y) * y)
    fn = relay.Function([x, y], x + y)
    assert tvm.ir.structural_equal(rewrite(TestRewrite(), fn).body, x - y)


class BatchnormCallback(DFPatternCallback):
    """Batch norm written out, as one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.var, self.mean = wildcard(), wildcard(), wildcard()
        self.beta, self.gamma, self.eps = wildcard(), wildcard(), is_constant()
        self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        x, var, mean = node_map[self.x][0], node_map[self.var][0], node_map[self.mean][0]
        beta, gamma, eps = node_map[self.beta][0], node_map[self.gamma][0], node_map[self.eps][0]
        return relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]


def test_fuse_batchnorm() -> None:
    """The tutorial's pattern, its terms in either order, and twice in a row."""
    x, var, mean, beta, gamma = (relay.var(name) for name in ("x", "var", "mean", "beta", "gamma"))
    expected = relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=1e-5)[0]
    bn = gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5)) + beta
    assert tvm.ir.structural_equal(rewrite(BatchnormCallback(), bn), expected)
    assert BatchnormCallback().pattern.match(bn)
    other = beta + gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5))
    assert tvm.ir.structural_equal(rewrite(BatchnormCallback(), other), expected)
    again = gamma * (bn - mean) / relay.op.sqrt(var + relay.const(1e-5)) + beta
    twice = relay.op.nn.batch_norm(expected, gamma, beta, mean, var, epsilon=1e-5)[0]
    assert tvm.ir.structural_equal(rewrite(BatchnormCallback(), again), twice)


def test_no_match_leaves_the_expression() -> None:
    """An expression without a match is given back as it was."""
    x, var, mean, beta, gamma = (relay.var(name) for name in ("x", "var", "mean", "beta", "gamma"))
    fake = gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5)) - beta
    assert tvm.ir.structural_equal(rewrite(BatchnormCallback(), fake), fake)


def test_algebraic_simplify() -> None:
    """Several callbacks together, to the fixed point."""
    zero = is_expr(relay.const(0)) | is_expr(relay.const(0.0))
    one = is_expr(relay.const(1)) | is_expr(relay.const(1.0))

    class ElwiseNull(DFPatternCallback):
        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return node_map[self.x][0]

    class Add(ElwiseNull):
        def __init__(self) -> None:
            super().__init__()
            self.x = wildcard()
            self.pattern = self.x + zero

    class Sub(ElwiseNull):
        def __init__(self) -> None:
            super().__init__()
            self.x = wildcard()
            self.pattern = self.x - zero

    class Mul(ElwiseNull):
        def __init__(self) -> None:
            super().__init__()
            self.x = wildcard()
            self.pattern = self.x * one

    class Zero(ElwiseNull):
        def __init__(self) -> None:
            super().__init__()
            self.x = zero
            self.pattern = self.x * wildcard() | zero / wildcard()

    class Div(ElwiseNull):
        def __init__(self) -> None:
            super().__init__()
            self.x = wildcard()
            self.pattern = self.x / one

    callbacks = [Add(), Sub(), Mul(), Div(), Zero()]
    x, y = relay.Var("x"), relay.Var("y")
    assert tvm.ir.structural_equal(rewrite(callbacks, x + relay.const(0.0)), x)
    assert tvm.ir.structural_equal(rewrite(callbacks, relay.const(0.0) + x), x)
    assert tvm.ir.structural_equal(rewrite(callbacks, x - relay.const(0)), x)
    assert tvm.ir.structural_equal(rewrite(callbacks, relay.const(1) * x), x)
    assert tvm.ir.structural_equal(rewrite(callbacks, x * relay.const(0.0)), relay.const(0.0))
    assert tvm.ir.structural_equal(rewrite(callbacks, relay.const(0.0) / x), relay.const(0.0))
    mixed = (x + relay.const(0.0) * y) * relay.const(1.0) + (y - relay.const(0.0)) / relay.const(1.0)
    assert tvm.ir.structural_equal(rewrite(callbacks, mixed), x + y)


def test_rewrite_once_and_require_type() -> None:
    """``rewrite_once`` stops after one; ``require_type`` gives the callback its types."""
    x, y = relay.var("x", shape=(5,)), relay.var("y", shape=(5,))

    class Once(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(rewrite_once=True)
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return post + relay.const(1.0)

    assert tvm.ir.structural_equal(rewrite(Once(), x + y), x + y + relay.const(1.0))

    class Typed(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(require_type=True)
            self.pattern = is_op("add")(wildcard(), wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            shape = post.args[0].checked_type.shape
            return relay.reshape(post.args[0] - post.args[1], [int(d) for d in shape])

    made = rewrite(Typed(), relay.Function([x, y], x + y))
    assert same(made, relay.Function([x, y], relay.reshape(x - y, (5,))))


def test_partition() -> None:
    """A match becomes a function of its inputs, marked and counted; a check may refuse it."""
    pattern = is_op("add")(is_op("multiply")(wildcard(), wildcard()), wildcard())
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    made = pattern.partition(x * y + z)
    assert isinstance(made, relay.Call) and isinstance(made.op, relay.Function)
    assert made.op.attrs["PartitionedFromPattern"] == "multiply_add_"
    assert len(made.op.params) == 3
    named = pattern.partition(x * y + z, {"Composite": "fma"})
    assert named.op.attrs["Composite"] == "fma"
    assert pattern.partition(x * y + z, check=lambda pre: False).op == relay.op.op.get("add")


def test_partition_constant_is_inside() -> None:
    """Constants that the pattern names go into the function; others are inputs... or are not split."""
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    conv2d = relay.op.nn.conv2d(x, w)
    relu = relay.op.nn.relu(relay.op.nn.bias_add(conv2d, b))
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    x1, w1, b1 = relay.var("x"), relay.var("w"), relay.var("b")
    inner = relay.Function(
        [x1, w1, b1], relay.op.nn.relu(relay.op.nn.bias_add(relay.op.nn.conv2d(x1, w1), b1))
    )
    inner = inner.with_attr("PartitionedFromPattern", "nn.conv2d_nn.bias_add_nn.relu_")
    assert tvm.ir.structural_equal(pattern.partition(relu), inner(x, w, b))


def test_match_through_dropout_outputs_used_outside() -> None:
    """A partition whose inner value is used outside is not made."""
    conv_relu = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    x, w = relay.var("x"), relay.var("w")
    conv = relay.nn.conv2d(x, w)
    out = relay.nn.relu(conv) + conv
    made = conv_relu.partition(out)
    assert tvm.ir.structural_equal(made, out)


def test_expr_pattern_with_constants() -> None:
    """Constants are compared by value."""
    assert is_expr(relay.const(1.0)).match(relay.const(1.0))
    assert not is_expr(relay.const(1.0)).match(relay.const(2.0))
    assert is_constant().match(relay.const(np.ones((2, 2), "float32")))
    assert not is_constant().match(relay.var("x"))


def test_bad_rewrite_result() -> None:
    """A callback that gives no expression is an error."""
    x = relay.var("x")

    class Bad(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = is_op("nn.relu")(wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return "nothing"

    with pytest.raises((tvm.TVMError, TypeError)):
        rewrite(Bad(), relay.nn.relu(x))
