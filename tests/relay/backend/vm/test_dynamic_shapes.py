"""Programs whose shapes are known when they run: kernels over unknown dimensions, and shapes that are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.backend.vm.programs import machine, module, plain, random, same

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay.op.definition import OpPattern, define
from tilewright.support.errors import LoweringError, RuntimeFailure

Any_ = relay.Any


def unknown(*extents: int | None, name: str = "x", dtype: str = "float32") -> relay.Var:
    """A variable; None is a dimension that is not known."""
    return relay.var(name, shape=[Any_() if one is None else one for one in extents], dtype=dtype)


def check_each(function: relay.Function, *calls: tuple[Any, ...], rtol: float = 1e-5) -> None:
    """One compiled program gives what the interpreter gives, for arguments of several shapes."""
    found = machine(module(function), 3)
    reference = relay.create_executor("debug").evaluate(function)
    for arguments in calls:
        same(plain(found.run(*arguments)), plain(reference(*arguments)), rtol)


def test_elementwise() -> None:
    """A chain of operators on any shape is one kernel."""
    x = unknown(None, None)
    function = relay.Function([x], relay.tanh(relay.exp(x) * relay.const(0.5)))
    check_each(function, (random(2, 3),), (random(5, 1),), (random(1, 7),), (random(0, 4),))


@pytest.mark.parametrize(("first", "second"), [(3, 3), (1, 5), (5, 1), (1, 1), (0, 1), (1, 0), (0, 0)])
def test_broadcast_of_two_unknown_dimensions(first: int, second: int) -> None:
    """As NumPy does it, empty tensors included; one kernel for all."""
    x, y = unknown(None, 4), unknown(None, 4, name="y")
    check_each(
        relay.Function([x, y], relay.Tuple([x + y, relay.maximum(x, y)])),
        (random(first, 4), random(second, 4)),
    )


def test_broadcast_with_a_constant_dimension() -> None:
    """The unknown dimension is one, or the other's."""
    x, y = unknown(None, 1), unknown(4, 6, name="y")
    check_each(relay.Function([x, y], x * y), (random(1, 1), random(4, 6)), (random(4, 1), random(4, 6)))


@pytest.mark.parametrize(("first", "second"), [((2, 4), (3, 4)), ((3, 4), (0, 4))])
def test_dimensions_that_do_not_meet(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """An error that names the operator, before anything is computed."""
    x, y = unknown(None, 4), unknown(None, 4, name="y")
    found = machine(module(relay.Function([x, y], x + y)))
    with pytest.raises(RuntimeFailure, match="add: dimensions that are neither equal nor one"):
        found.run(random(*first), random(*second))


def test_dimensions_that_do_not_meet_where_the_result_is_constant() -> None:
    """The kernel checks what no shape function looked at."""
    x, y = unknown(None), unknown(4, name="y")
    found = machine(module(relay.Function([x, y], x + y)))
    with pytest.raises(RuntimeFailure, match="add: dimensions that are neither equal nor one"):
        found.run(random(2), random(4))


def test_products() -> None:
    """Dense, batched and plain products with unknown rows, and with an unknown sum."""
    x, w = unknown(None, None), relay.const(random(5, 8))
    check_each(relay.Function([x], relay.nn.dense(x, w)), (random(3, 8),), (random(1, 8),), rtol=1e-4)
    y = unknown(None, None, None, name="y")
    z = unknown(None, None, None, name="z")
    product = relay.Function([y, z], relay.nn.batch_matmul(y, z))
    shapes = [((2, 3, 4), (2, 5, 4)), ((1, 1, 6), (1, 2, 6)), ((1, 2, 3), (3, 2, 3)), ((3, 2, 3), (1, 2, 3))]
    check_each(product, *[(random(*one), random(*other)) for one, other in shapes], rtol=1e-4)


def test_sums_of_different_lengths() -> None:
    """Both sides of a product must agree on the dimension that is summed over."""
    x, w = unknown(None, None), unknown(None, None, name="w")
    found = machine(module(relay.Function([x, w], relay.nn.dense(x, w))))
    with pytest.raises(RuntimeFailure, match=r"nn\.dense"):
        found.run(random(2, 4), random(3, 5))


def test_convolution_of_any_batch_and_size() -> None:
    """Bias and activation fused; one kernel for all sizes."""
    x = unknown(None, 3, None, None)
    weight, bias = relay.const(random(8, 3, 3, 3)), relay.const(random(8))
    made = relay.nn.conv2d(x, weight, strides=(2, 2), padding=(1, 1))
    function = relay.Function([x], relay.nn.relu(relay.nn.bias_add(made, bias)))
    check_each(function, (random(1, 3, 8, 8),), (random(2, 3, 5, 9),), rtol=1e-3)
    with pytest.raises(
        RuntimeFailure, match="argument x of @main has the extent 4 in dimension 1; 3 is expected"
    ):
        machine(module(function)).run(random(1, 4, 8, 8))


def test_a_window_that_does_not_fit() -> None:
    """Pooling over less than a window is an error, not an empty result."""
    x = unknown(1, 2, None, None)
    found = machine(module(relay.Function([x], relay.nn.max_pool2d(x, (3, 3)))))
    assert found.run(random(1, 2, 3, 4)).shape == (1, 2, 1, 2)
    with pytest.raises(RuntimeFailure, match=r"nn\.max_pool2d: a window"):
        found.run(random(1, 2, 2, 4))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int | None, ...]], list[list[tuple[int, ...]]]]] = {
    "concatenate": (
        lambda x, y: relay.concatenate([x, y, x], 0),
        [(None, 3), (None, 3)],
        [[(2, 3), (4, 3)], [(1, 3), (0, 3)]],
    ),
    "reshape": (lambda x: relay.reshape(x, (0, -1)), [(None, 4, None)], [[(2, 4, 3)], [(1, 4, 5)]]),
    "flatten": (lambda x: relay.nn.batch_flatten(x), [(None, None, 2)], [[(2, 3, 2)], [(4, 1, 2)]]),
    "strided_slice": (
        lambda x: relay.strided_slice(x, [0, 1], [10, -1], [2, 1]),
        [(None, None)],
        [[(5, 4)], [(12, 3)]],
    ),
    "transpose": (lambda x: relay.transpose(x, (1, 0)) + relay.const(1.0), [(None, None)], [[(2, 5)], [(3, 1)]]),
    "split": (lambda x: relay.split(x, 2, 1)[1], [(None, 6)], [[(3, 6)], [(1, 6)]]),
    "take": (lambda x: relay.take(x, relay.const(np.array([1, 0])), 0), [(None, 3)], [[(4, 3)], [(2, 3)]]),
    "sum": (lambda x: relay.sum(x, 0, keepdims=True), [(None, None)], [[(4, 3)], [(1, 2)], [(0, 2)]]),
    "mean_and_variance": (
        lambda x: relay.Tuple([relay.mean(x, 1), relay.variance(x, 1)]),
        [(None, None)],
        [[(4, 3)], [(2, 7)]],
    ),
    "softmax": (lambda x: relay.nn.softmax(x), [(None, None)], [[(4, 3)], [(2, 7)]]),
    "layer_norm": (
        lambda x: relay.nn.layer_norm(x, relay.const(random(6)), relay.const(random(6))),
        [(None, 6)],
        [[(4, 6)], [(1, 6)]],
    ),
    "pad": (lambda x: relay.nn.pad(x, ((0, 0), (1, 2))), [(None, None)], [[(2, 3)], [(1, 1)]]),
    "stack": (lambda x, y: relay.stack([x, y], 1), [(None,), (None,)], [[(3,), (3,)]]),
    "where": (
        lambda x, y: relay.where(relay.greater(x, y), x, y),
        [(None, 3), (None, 3)],
        [[(2, 3), (2, 3)]],
    ),
    "shape_of": (lambda x: relay.shape_of(x, "int64") * relay.const(2, "int64"), [(None, 3)], [[(7, 3)]]),
    "upsampling": (lambda x: relay.nn.upsampling(x, 2, 2), [(1, 2, None, None)], [[(1, 2, 3, 4)]]),
    "argsort": (lambda x: relay.argsort(x, 1), [(None, None)], [[(2, 5)], [(3, 4)]]),
    "topk": (lambda x: relay.topk(x, 2, ret_type="values"), [(None, None)], [[(2, 5)], [(3, 4)]]),
    "expand_and_tile": (lambda x: relay.tile(relay.expand_dims(x, 0), (2, 1, 3)), [(None, 2)], [[(3, 2)]]),
    "cumsum": (lambda x: relay.cumsum(x, 0), [(None, 3)], [[(4, 3)]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    """Shapes by the operators' relations; one compiled program for several shapes."""
    build, shapes, calls = CASES[name]
    variables = [unknown(*shape, name=f"x{place}") for place, shape in enumerate(shapes)]
    function = relay.Function(variables, build(*variables))
    check_each(function, *[tuple(random(*shape) for shape in shapes) for shapes in calls], rtol=1e-4)


def test_sizes_that_do_not_divide() -> None:
    """-1 in a reshape needs a number of elements that divides."""
    x = unknown(None)
    found = machine(module(relay.Function([x], relay.exp(relay.reshape(x, (-1, 4))))))
    assert found.run(random(8)).shape == (2, 4)
    with pytest.raises(RuntimeFailure, match="reshape: .* do not divide by 4"):
        found.run(random(6))


REFUSED: dict[str, tuple[Callable[..., Any], list[tuple[int | None, ...]], list[tuple[int, ...]], str]] = {
    "split": (lambda x: relay.split(x, 2)[0], [(None,)], [(3,)], "has not 2 equal parts"),
    "layout_transform": (
        lambda x: relay.layout_transform(x, "NCHW", "NCHW4c"),
        [(1, None, 2, 2)],
        [(1, 6, 2, 2)],
        "does not divide by 4",
    ),
    "space_to_depth": (
        lambda x: relay.nn.space_to_depth(x, 2),
        [(1, 2, None, 4)],
        [(1, 2, 3, 4)],
        "does not fall into blocks of 2",
    ),
    "broadcast_to_like": (relay.broadcast_to_like, [(None, 4), (None, 4)], [(2, 4), (3, 4)], "does not fit"),
    "reshape_like": (relay.reshape_like, [(None, 4), (None, 2)], [(2, 4), (3, 2)], "do not fit into"),
    "concatenate": (
        lambda x, y: relay.concatenate([x, y], 0),
        [(2, None), (3, None)],
        [(2, 4), (3, 5)],
        "dimension 1 of argument 1 .* is 5, expected 4",
    ),
    "max_of_nothing": (lambda x: relay.max(x, 0), [(None, 3)], [(0, 3)], "has no elements"),
    "slice_like": (relay.slice_like, [(None, 4), (None, 4)], [(2, 4), (3, 4)], "is 3, expected 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_shapes_that_an_operator_cannot_take(name: str) -> None:
    """What inference refuses for constants is refused when the program runs, with the operator's name."""
    build, shapes, given, message = REFUSED[name]
    variables = [unknown(*shape, name=f"x{place}") for place, shape in enumerate(shapes)]
    found = machine(module(relay.Function(variables, build(*variables))))
    with pytest.raises(RuntimeFailure, match=message) as failure:
        found.run(*[random(*shape) for shape in given])
    assert name.split("_of_")[0] in str(failure.value)


def test_a_reshape_takes_no_copy() -> None:
    """It is the same memory in another shape, also where the shape is computed."""
    x = unknown(None, 4)
    function = relay.Function([x], relay.reshape(x, (-1,)))
    compiled = relay.vm.compile(module(function), "llvm")
    assert "reshape_tensor" in compiled.bytecode
    assert all(name.startswith("shape_func") for name in compiled.primitive_ops)
    check_each(function, (random(3, 4),), (random(1, 4),))


# Shapes that depend on values


def test_argwhere_and_unique() -> None:
    """As many results as there are elements that are not zero, or different ones."""
    x = unknown(None, None)
    check_each(
        relay.Function([x], relay.argwhere(relay.greater(x, relay.const(0.0)))),
        (random(4, 5),),
        (random(2, 2),),
    )
    y = relay.var("y", shape=(Any_(),), dtype="int32")
    values, *_ = relay.unique(y)
    check_each(relay.Function([y], values), (np.array([3, 1, 3, 2], "int32"),), (np.array([5], "int32"),))


def test_boxes_that_are_kept() -> None:
    """Non-maximum suppression, and a slice of as many as it kept."""
    boxes = relay.var("boxes", shape=(1, Any_(), 6))
    counts, data, indices = relay.vision.get_valid_counts(boxes, 0.1, 0, 1)
    kept = relay.vision.non_max_suppression(
        data, counts, indices, max_output_size=-1, iou_threshold=0.5, return_indices=False
    )
    given = np.abs(random(1, 7, 6))
    given[..., 0] = [0, 1, 0, 1, 0, 0, 1]
    check_each(relay.Function([boxes], kept), (given,), (given[:, :3],))


def test_a_computed_number_of_elements() -> None:
    """A shape, an end and a number that the program computes."""
    x, n = unknown(None, 4), relay.var("n", shape=(), dtype="int64")
    rows = relay.strided_slice(
        x,
        relay.const([0, 0], "int64"),
        relay.stack([n, relay.const(4, "int64")], 0),
        relay.const([1, 1], "int64"),
    )
    check_each(
        relay.Function([x, n], rows * relay.const(2.0)),
        (random(5, 4), np.int64(3)),
        (random(2, 4), np.int64(1)),
    )
    count = relay.arange(relay.const(0, "int64"), n, relay.const(1, "int64"), "int64")
    check_each(relay.Function([n], count), (np.int64(4),), (np.int64(0),))
    wanted = relay.topk(x, relay.reshape(n, (1,)), ret_type="values")
    check_each(relay.Function([x, n], wanted), (random(2, 4), np.int64(3)))
    shape = relay.var("shape", shape=(2,), dtype="int64")
    check_each(relay.Function([x, shape], relay.reshape(x, shape)), (random(2, 4), np.array([4, 2])))


def test_a_loop_whose_tensor_grows() -> None:
    """Each turn gives the next one a longer tensor."""
    i, x = relay.var("i", shape=(), dtype="int32"), unknown(None)
    loop = relay.loops.while_loop(
        lambda i, x: relay.less(i, relay.const(5)),
        [i, x],
        lambda i, x: (i + relay.const(1), relay.concatenate([x, relay.const(np.ones(1, "float32"))], 0)),
    )
    start = relay.var("start", shape=(1,))
    grown = relay.TupleGetItem(loop(relay.const(0), start), 1)
    found = machine(module(relay.Function([start], grown)))
    np.testing.assert_array_equal(found.run(np.zeros(1, "float32")).numpy(), [0, 1, 1, 1, 1, 1])


# What cannot be compiled, and what goes wrong when it runs


def test_an_operator_without_a_shape_function() -> None:
    """Where neither relation nor shape function tells the shape, compilation says which operator it is."""
    name = "test.vm_some_of"
    if name not in Op.registry or not Op.get(name).has_attr("TypeRelation"):
        define(
            name,
            arguments=("x",),
            relation=lambda types, attrs: relay.TensorType([Any_()], types[0].dtype),
            compute=lambda attrs, inputs, out_type: [inputs[0]],
            reference=None,
            kind=OpPattern.OPAQUE,
        )
    x = relay.var("x", shape=(4,))
    with pytest.raises(LoweringError, match=r"the shape of test\.vm_some_of cannot be computed"):
        relay.vm.compile(module(relay.Function([x], relay.Call(Op.get(name), [x]))), "llvm")


def test_arguments_of_other_types() -> None:
    """Rank, element type and known dimensions of an argument are those of the parameter."""
    found = machine(module(relay.Function([x := unknown(None, 4)], relay.exp(x))))
    with pytest.raises(RuntimeFailure, match="the argument x of @main has 1 dimensions; 2 are expected"):
        found.run(random(4))
    with pytest.raises(RuntimeFailure, match="the argument x of @main is float64; float32 is expected"):
        found.run(random(2, 4).astype("float64"))
    with pytest.raises(RuntimeFailure, match="@main takes 1 arguments, 2 were given"):
        found.run(random(2, 4), random(2, 4))


def test_symbolic_dimensions_of_types() -> None:
    """A dimension that is a variable of the program's types is unknown like any other."""
    n = tvm.te.var("n")
    x, y = relay.var("x", shape=(n, 3)), relay.var("y", shape=(n, 3))
    check_each(
        relay.Function([x, y], relay.exp(x) + y), (random(2, 3), random(2, 3)), (random(5, 3), random(5, 3))
    )
