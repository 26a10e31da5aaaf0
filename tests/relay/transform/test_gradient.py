"""``relay.transform.gradient``: programs of every kind, both modes, gradients of gradients, checkpoints, errors.

The gradient of each operator, by the mode for every program, is compared with finite differences in
``tests/relay/op/test_operators.py``; here by the mode for graphs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.op.test_operators import TABLES, arrays, body, cases, parameters

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.ir.op import Op
from tilewright.relay import transform
from tilewright.relay.prelude import Prelude
from tilewright.relay.testing import check_grad, count_ops
from tilewright.relay.transform import gradient
from tilewright.runtime.container import ADT
from tilewright.support.errors import OpNotImplemented, TilewrightError

MODES = ["first_order", "higher_order"]
DTYPE = "float64"
TYPE = relay.TensorType((2,), DTYPE)
POINT = np.array([0.3, 0.7])

WITH_GRADIENT = """
abs acos acosh add arange asin asinh atan atanh cast cast_like clip collapse_sum_like collapse_sum_to concatenate
contrib_reverse_reshape copy cos cosh divide dyn.ones dyn.reshape dyn.zeros erf exp expand_dims gather_nd less_equal log
log10 log2 max mean multiply negative nn.avg_pool2d nn.batch_flatten nn.batch_matmul nn.bias_add nn.conv2d
nn.cross_entropy nn.cross_entropy_with_logits nn.dense nn.global_avg_pool2d nn.log_softmax nn.matmul nn.max_pool2d
nn.relu nn.softmax not_equal one_hot ones ones_like reshape reshape_like shape_of sigmoid sin sinh sqrt squeeze stack
strided_slice subtract sum take tan tanh transpose variance where zeros zeros_like
"""


def x_of(name: str = "x", shape: tuple[int, ...] = (2,)) -> relay.Var:
    """A variable of float64."""
    return relay.var(name, shape=shape, dtype=DTYPE)


def number(value: float) -> relay.Constant:
    """A scalar of float64."""
    return relay.const(value, DTYPE)


def typed(function: Any) -> Any:
    """The function with its types."""
    return transform.InferType()(tvm.IRModule.from_expr(function))["main"]


def run(function: Any, *arguments: Any, module: Any = None) -> tuple[Any, list[Any]]:
    """The value and the gradients."""
    value, gradients = relay.create_executor("debug", mod=module).evaluate(function)(*arguments)
    return value, [one if isinstance(one, (list, ADT)) else one.numpy() for one in gradients]


def test_the_operators_that_have_gradients() -> None:
    """Those of the inventory have a gradient registered."""
    assert [name for name in WITH_GRADIENT.split() if not Op.get(name).has_attr("FPrimalGradient")] == []


@pytest.mark.parametrize("mode", MODES)
def test_type(mode: str) -> None:
    """The result is a pair of the function's result and a tuple of one gradient a parameter."""
    x, y = x_of(), x_of("y", (3, 2))
    made = typed(gradient(relay.Function([x, y], x * y), mode=mode))
    other = relay.TensorType((3, 2), DTYPE)
    expected = relay.TupleType([other, relay.TupleType([TYPE, other])])
    assert made.checked_type == relay.FuncType([TYPE, other], expected)


@pytest.mark.parametrize("table", TABLES)
def test_every_operator(table: str) -> None:
    """In float64, the gradients of each case of each table that has them are those of finite differences."""
    for case in cases(table):
        if not case.gradient:
            continue
        values = [value.astype(DTYPE) if value.dtype.kind == "f" else value for value in arrays(case)]
        function = relay.Function(*body(case, values, parameters(values)))
        given = [value for position, value in enumerate(values) if position not in case.constants]
        tested = [value for value in given if value.dtype.kind == "f"]
        check_grad(function, inputs=given, test_inputs=tested, mode="first_order")


BODIES: dict[str, tuple[Callable[..., Any], int]] = {
    "identity": (lambda x: x, 1),
    "constant": (lambda x: relay.const(np.array([1.0, 2.0]), "float64"), 1),
    "unused": (lambda x, y: relay.exp(x), 2),
    "sum": (lambda x, y: relay.exp(x) * y + x, 2),
    "shared": (lambda x: (lambda y: y * y + relay.sin(y))(relay.exp(x)), 1),
    "twice": (lambda x: relay.Tuple([x, x, relay.exp(x)]), 1),
    "nested tuple": (lambda x, y: relay.Tuple([relay.Tuple([x * y, x]), y]), 2),
    "field": (lambda x: relay.TupleGetItem(relay.Tuple([x, relay.exp(x)]), 1), 1),
    "concatenate": (lambda x, y: relay.concatenate([x, relay.exp(y)], 0), 2),
    "split": (lambda x: relay.exp(relay.split(x, 2, 0)[1]), 1),
    "split, all": (lambda x: (lambda a: a[0] * a[1])(relay.split(relay.exp(x), 2, 0)), 1),
    "through integers": (lambda x: x * relay.cast(relay.cast(x * number(5), "int32"), DTYPE), 1),
    "chosen by comparison": (lambda x: relay.where(relay.less(x, number(0.5)), relay.exp(x), x * x), 1),
    "reduced": (lambda x: relay.sum(x * x), 1),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BODIES)
def test_graphs(name: str, mode: str) -> None:
    """The gradients of graphs of operators are those of finite differences."""
    build, count = BODIES[name]
    parameters = [x_of(f"x{index}") for index in range(count)]
    values = [POINT + index for index in range(count)]
    check_grad(relay.Function(parameters, build(*parameters)), inputs=values, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_parameters_that_are_tuples(mode: str) -> None:
    """The gradient of a tuple is a tuple; that of integers is zero."""
    given = relay.Var("t", relay.TupleType([TYPE, relay.TensorType((2,), "int32")]))
    body = relay.exp(relay.TupleGetItem(given, 0)) * relay.cast(relay.TupleGetItem(given, 1), DTYPE)
    made = gradient(relay.Function([given], body), mode=mode)
    _, (found,) = run(made, (POINT, np.array([3, 4], "int32")))
    np.testing.assert_allclose(found[0].numpy(), np.exp(POINT) * [3, 4])
    np.testing.assert_array_equal(found[1].numpy(), [0, 0])


@pytest.mark.parametrize("mode", MODES)
def test_lets_and_functions(mode: str) -> None:
    """Variables and functions, of the program and as arguments of others, are seen through."""
    x, y, f, z = x_of(), x_of("y"), relay.Var("f"), relay.Var("z")
    twice = relay.Var("twice")
    apply = relay.Function([f, z], f(f(z)))
    body = relay.Let(twice, apply, twice(relay.Function([y], y * relay.exp(x)), x))
    check_grad(relay.Function([x], body), inputs=[POINT], mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_functions_of_the_module(mode: str) -> None:
    """A variable names the function; functions that it calls are in the module."""
    module = tvm.IRModule()
    x, y = x_of(), x_of("y")
    double, quadruple = relay.GlobalVar("double"), relay.GlobalVar("quadruple")
    module[double] = relay.Function([x], x + x)
    module[quadruple] = relay.Function([y], double(double(y)))
    module = transform.InferType()(module)
    module["made"] = gradient(quadruple, module, mode)
    module = transform.InferType()(module)
    assert module["made"].checked_type.ret_type == relay.TupleType([TYPE, relay.TupleType([TYPE])])
    value, (found,) = run(module["made"], POINT, module=module)
    np.testing.assert_allclose(value.numpy(), 4 * POINT)
    np.testing.assert_allclose(found, [4, 4])


def test_a_second_gradient_replaces_the_functions_of_the_first() -> None:
    """The module does not grow when a gradient is taken again."""
    module = tvm.IRModule()
    x, y = x_of(), x_of("y")
    double, main = relay.GlobalVar("double"), relay.GlobalVar("main")
    module[double] = relay.Function([x], x + x)
    module[main] = relay.Function([y], double(y))
    gradient(main, module)
    names = {name.name_hint for name in module.functions}
    assert names == {"double", "main", "double_grad"}
    gradient(main, module)
    assert {name.name_hint for name in module.functions} == names


def test_branches() -> None:
    """Gradients come from the branch that was taken."""
    x = x_of(shape=())
    function = relay.Function([x], relay.If(relay.less(x, number(0)), x * x, relay.exp(x) + x))
    made = gradient(function)
    assert run(made, np.array(-3.0))[1] == [-6.0]
    assert run(made, np.array(0.0))[1] == [2.0]


def test_recursion() -> None:
    """x to the power of 2 ** n by a function that calls itself."""
    module = tvm.IRModule()
    x, n = x_of(shape=()), relay.var("n", shape=(), dtype="int32")
    power = relay.GlobalVar("power")
    again = power(x * x, n - relay.const(1))
    module[power] = relay.Function([x, n], relay.If(relay.equal(n, relay.const(0)), x, again))
    module = transform.InferType()(module)
    made = gradient(power, module)
    _, (found, rest) = run(made, np.array(1.1), np.array(3, "int32"), module=module)
    np.testing.assert_allclose(found, 8 * 1.1**7)
    assert rest == 0


def test_loops_that_close_over_values() -> None:
    """A let-bound function that calls itself and uses a variable around it."""
    x, start = x_of(), x_of("start")
    loop, n, y = relay.Var("loop"), relay.var("n", shape=(), dtype="int32"), x_of("y")
    again = relay.Call(loop, [n - relay.const(1), y * relay.exp(x)])
    function = relay.Function([n, y], relay.If(relay.equal(n, relay.const(0)), y, again), TYPE)
    body = relay.Let(loop, function, relay.Call(loop, [relay.const(3), start]))
    _, (dx, dstart) = run(gradient(relay.Function([x, start], body)), POINT, POINT + 1)
    np.testing.assert_allclose(dx, 3 * np.exp(3 * POINT) * (POINT + 1))
    np.testing.assert_allclose(dstart, np.exp(3 * POINT))


def test_lists() -> None:
    """Generic data types and functions of the prelude: the product of the squares of a list."""
    module = tvm.IRModule()
    prelude = Prelude(module)
    cons, nil = module.get_type("List")[1:]
    x, element, first, second = x_of(), x_of("e"), x_of("a"), x_of("b")
    squares = prelude.map(relay.Function([element], element * element), cons(x, cons(relay.exp(x), nil())))
    product = relay.Function([first, second], first * second)
    module["main"] = relay.Function([x], prelude.foldl(product, relay.ones((2,), DTYPE), squares))
    module = transform.InferType()(module)
    _, (found,) = run(gradient(module["main"], module), POINT, module=module)
    np.testing.assert_allclose(found, 2 * POINT * np.exp(2 * POINT) * (1 + POINT))


def test_data_types_that_hold_tensors() -> None:
    """A type whose constructors take tensors and functions gets a twin for values with gradients."""
    module = tvm.parser.fromtext(
        """
        #[version = "0.0.5"]
        type Step {
          Scale(Tensor[(2), float64]),
          Apply(fn (Tensor[(2), float64]) -> Tensor[(2), float64]),
          Both(Step, Step),
        }
        def @run(%s: Step, %x: Tensor[(2), float64]) -> Tensor[(2), float64] {
          match (%s) {
            Scale(%f) => { multiply(%f, %x) },
            Apply(%g) => { %g(%x) },
            Both(%a, %b) => { @run(%b, @run(%a, %x)) },
          }
        }
        def @main(%x: Tensor[(2), float64]) -> Tensor[(2), float64] {
          let %square = fn (%y: Tensor[(2), float64]) -> Tensor[(2), float64] { multiply(%y, %y) };
          @run(Both(Scale(exp(%x)), Apply(%square)), %x)
        }
        """
    )
    module = transform.InferType()(module)
    made = gradient(module["main"], module)
    assert {name.name_hint for name in module.type_definitions} == {"Step", "Step_grad"}
    _, (found,) = run(made, POINT, module=module)
    np.testing.assert_allclose(found, 2 * POINT * (1 + POINT) * np.exp(2 * POINT))


def test_references() -> None:
    """What is written to a reference carries its gradient."""
    x, place, done = x_of(), relay.Var("place"), relay.Var("done")
    write = relay.RefWrite(place, relay.RefRead(place) * relay.exp(x))
    body = relay.Let(place, relay.RefCreate(x), relay.Let(done, write, relay.RefRead(place)))
    check_grad(relay.Function([x], body), inputs=[POINT])


SECOND = {
    "exp": (lambda x: relay.exp(x), lambda x: np.exp(x)),
    "multiply": (lambda x: x * x * x, lambda x: 6 * x),
    "dense": (
        lambda x: relay.nn.dense(relay.expand_dims(x * x, 0), relay.const(np.array([[1.0, 2.0]]), "float64")),
        lambda x: np.array([2.0, 4.0]),
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients(name: str, mode: str) -> None:
    """The gradient of a gradient is the second derivative."""
    build, second = SECOND[name]
    x, y = x_of(), x_of("y")
    first = gradient(relay.Function([x], build(x)), mode=mode)
    derivative = relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(first(y), 1), 0))
    _, (found,) = run(gradient(derivative, mode=mode), POINT)
    np.testing.assert_allclose(found, second(POINT))


@pytest.mark.parametrize("mode", MODES)
def test_no_operator_is_computed_twice(mode: str) -> None:
    """One product forward, and one for each argument backward."""
    x, y = x_of("x", (3, 4)), x_of("y", (5, 4))
    product = relay.nn.dense(x, y)
    made = gradient(relay.Function([x, y], relay.Tuple([product, relay.exp(product)])), mode=mode)
    counts = count_ops(made)
    assert (counts["nn.dense"], counts["nn.matmul"], counts["exp"]) == (1, 2, 1)


@pytest.mark.parametrize("mode", MODES)
def test_checkpoints_compute_again(mode: str) -> None:
    """What leads to a checkpoint alone is computed again for the backward part; the values stay the same."""
    x, y = x_of(), x_of("y")
    kept = relay.sin(y)
    body = relay.annotation.checkpoint(relay.exp(x) * relay.cos(relay.exp(x) + kept)) * kept
    function = relay.Function([x, y], body)
    check_grad(function, inputs=[POINT, POINT + 1], mode=mode)
    plain = relay.Function([x, y], relay.exp(x) * relay.cos(kept + x) * kept)
    counts = count_ops(gradient(function, mode=mode))
    # cos has a sine in its gradient.
    assert (counts["exp"], counts["cos"], counts["sin"]) == (4, 3, 2)
    assert count_ops(gradient(plain, mode=mode))["exp"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_checkpoints_in_a_row(mode: str) -> None:
    """Each segment begins at the checkpoint before: three segments are computed twice each, not more."""
    x = x_of()
    body: Any = x
    for _ in range(3):
        body = relay.annotation.checkpoint(relay.tanh(relay.exp(body)))
    function = relay.Function([x], body)
    check_grad(function, inputs=[POINT], mode=mode)
    counts = count_ops(gradient(function, mode=mode))
    assert (counts["exp"], counts["tanh"]) == (6, 6)


def test_checkpoints_survive_the_build() -> None:
    """At the highest level the two computations are not merged, and the annotation copies nothing."""
    x = x_of()
    body = relay.annotation.checkpoint(relay.sin(relay.exp(x) * x))
    made = gradient(relay.Function([x], body), mode="first_order")
    with tvm.transform.PassContext(opt_level=3):
        factory = relay.build(tvm.IRModule.from_expr(made), "llvm")
    nodes = json.loads(factory.get_graph_json())["nodes"]
    kernels = [node["attrs"]["func_name"] for node in nodes if node["op"] != "null"]
    assert kernels.count("__nop") == 2
    assert not any("checkpoint" in name for name in kernels)
    executor = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    executor.run(x=POINT)
    inner = np.exp(POINT) * POINT
    np.testing.assert_allclose(
        executor.get_output(1).numpy(), np.cos(inner) * (inner + np.exp(POINT)), rtol=1e-10
    )
    optimised, _ = relay.optimize(tvm.IRModule.from_expr(made), "llvm")
    assert count_ops(optimised["main"])["exp"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_compiled(mode: str) -> None:
    """A small network's gradient runs as compiled code; references by the virtual machine."""
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    function = relay.Function([x, w], relay.sum(relay.nn.relu(relay.nn.dense(x, w))))
    made = gradient(function, mode=mode)
    generator = np.random.default_rng(0)
    values = [generator.standard_normal(shape).astype("float32") for shape in ((2, 4), (3, 4))]
    kind = "graph" if mode == "first_order" else "vm"
    _, found = relay.create_executor(kind).evaluate(made)(*values)
    _, expected = run(made, *values)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)


@pytest.mark.parametrize(("mode", "length"), [("first_order", 10_000), ("higher_order", 2000)])
def test_long_chains(mode: str, length: int) -> None:
    """Thousands of operators in a row, or of lets."""
    x = x_of()
    body: Any = x
    for _ in range(length):
        body = relay.negative(body)
    _, (found,) = run(gradient(relay.Function([x], body), mode=mode), POINT)
    np.testing.assert_array_equal(found, [1, 1])


def test_the_pass() -> None:
    """FirstOrderGradient replaces every function of the module."""
    x = x_of()
    module = transform.FirstOrderGradient()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    value, (found,) = run(module["main"], POINT)
    np.testing.assert_allclose(found, value.numpy())


def test_after_partial_evaluation() -> None:
    """Partial evaluation and dead code elimination take the references of a gradient away."""
    x, y = x_of(), x_of("y")
    module = tvm.IRModule.from_expr(typed(gradient(relay.Function([x, y], (x * y) * relay.exp(y)))))
    passes = [transform.PartialEvaluate(), transform.DeadCodeElimination()]
    made = transform.InferType()(tvm.transform.Sequential(passes)(module))["main"]
    features = relay.analysis.detect_feature(made)
    assert not features & {
        relay.analysis.Feature.fRefCreate,
        relay.analysis.Feature.fRefRead,
        relay.analysis.Feature.fRefWrite,
    }
    _, (dx, dy) = run(made, POINT, POINT + 1)
    np.testing.assert_allclose(dx, (POINT + 1) * np.exp(POINT + 1))
    np.testing.assert_allclose(dy, POINT * np.exp(POINT + 1) * (POINT + 2))


def _registered(name: str, rule: Any) -> Any:
    op = relay.op.op.register(name)
    op.add_type_rel("same", lambda types, attrs: types[0])
    op.set_num_inputs(1)
    if rule is not None:
        relay.op.op.register_gradient(name, rule)
    return op


def test_mistakes() -> None:
    """Each says what is wrong and what to do."""
    x = x_of()
    branch = relay.Function([x], relay.If(relay.const(True), x, relay.exp(x)))
    with pytest.raises(TilewrightError, match="has a If; use mode='higher_order'"):
        gradient(branch, mode="first_order")
    with pytest.raises(TilewrightError, match="modes of gradient are higher_order and first_order, not 'x'"):
        gradient(branch, mode="x")
    with pytest.raises(TilewrightError, match="gradient takes a function, not Call"):
        gradient(relay.exp(x))
    with pytest.raises(TilewrightError, match="give the module that holds it"):
        gradient(relay.GlobalVar("f"))
    listed = relay.Function([relay.Var("f", relay.FuncType([TYPE], TYPE)), x], x)
    with pytest.raises(TilewrightError, match="a parameter of this function has type fn"):
        gradient(listed)
    for mode in MODES:
        with pytest.raises(OpNotImplemented, match=r"operator cumprod has no gradient; give it one"):
            gradient(relay.Function([x], relay.cumprod(x)), mode=mode)
        # No gradient is asked of what no parameter leads to.
        gradient(relay.Function([x], x * relay.cumprod(relay.const(POINT, DTYPE))), mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_wrong_rules(mode: str) -> None:
    """A rule with the wrong number of gradients, or of the wrong type, is named."""
    x = x_of()
    few = _registered(f"test.few_{mode}", lambda call, grad: [])
    with pytest.raises(TilewrightError, match="gives 0 gradients for 1 arguments"):
        gradient(relay.Function([x], relay.Call(few, [x])), mode=mode)
    flat = _registered(f"test.flat_{mode}", lambda call, grad: [relay.sum(grad)])
    with pytest.raises(TilewrightError, match=r"for argument 0 has type float64, the argument Tensor"):
        gradient(relay.Function([x], relay.Call(flat, [x])), mode=mode)
