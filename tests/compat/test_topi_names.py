"""Functions of ``topi`` by TVM's names that operators do not need themselves: shifts, layouts, hooks for targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

import tilewright as tvm
from tilewright import autotvm, relay, te, topi
from tilewright.topi.utils import InvalidShapeError

GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint8"])
def test_shifts_by_a_number(dtype: str) -> None:
    """To the right the sign of signed integers stays. The number is an int32, which shorter integers become."""
    values = np.array([1, 5, 100, 127] if dtype[0] == "u" else [-100, -1, 5, 77], dtype)
    wide = values.astype("int32") if dtype == "uint8" else values
    for function, expected in (
        (topi.math.left_shift, wide << wide.dtype.type(3)),
        (topi.math.right_shift, wide >> wide.dtype.type(3)),
    ):
        made = apply(function, values, n=3)
        assert made.dtype == wide.dtype
        np.testing.assert_array_equal(made, expected)


def test_shapes_that_do_not_fit() -> None:
    """A ``ValueError`` of a class of its own, which names the operator."""
    data, weight = te.placeholder((1, 3, 8, 8)), te.placeholder((4, 5, 3, 3))
    with pytest.raises(InvalidShapeError) as found:
        topi.nn.conv2d_nchw(data, weight, 1, 0, 1)
    assert isinstance(found.value, ValueError) and isinstance(found.value, tvm.error.TVMError)
    with pytest.raises(InvalidShapeError, match="rows"):
        raise InvalidShapeError("rows and columns")


WORKLOAD = (
    "conv2d_NCHWc.x86",
    ("TENSOR", (1, 32, 15, 20), "float32"),
    ("TENSOR", (48, 32, 3, 3), "float32"),
    (2, 1),
    (1, 1, 1, 1),
    (1, 1),
    "NCHW",
    "NCHW",
    "float32",
)


class Space(dict[str, Any]):
    """A configuration: what tuning chose, by name."""

    def __init__(self, inner: int, outer: int) -> None:
        space = autotvm.ConfigSpace()
        space.define_split("tile_ic", 64, num_outputs=2, filter=lambda one: one.size[-1] == inner)
        space.define_split("tile_oc", 96, num_outputs=2, filter=lambda one: one.size[-1] == outer)
        chosen = space.get(0)
        super().__init__((name, chosen[name]) for name in ("tile_ic", "tile_oc"))


@pytest.mark.parametrize("keys", ["llvm", "cuda"])
def test_layouts_of_tuned_convolutions(keys: str) -> None:
    """The blocks of the configuration, and the shape of the result by padding and strides."""
    depthwise = (
        "depthwise_conv2d_NCHWc.x86",
        WORKLOAD[1],
        ("TENSOR", (32, 2, 3, 3), "float32"),
        *WORKLOAD[3:],
    )
    with tvm.target.Target(keys):
        (before,), (after,) = topi.nn.conv2d_infer_layout(WORKLOAD, Space(16, 8))
        assert before == ((1, 2, 15, 20, 16), "NCHW16c") and after == ((1, 6, 8, 20, 8), "NCHW8c")
        (before,), (after,) = topi.nn.depthwise_conv2d_infer_layout(depthwise, Space(8, 16))
        assert before == ((1, 4, 15, 20, 8), "NCHW8c") and after == ((1, 4, 8, 20, 16), "NCHW16c")
        with pytest.raises(
            tvm.error.OpAttributeInvalid, match=r"conv2d_NCHWc\.x86: .* no blocks of channels"
        ):
            topi.nn.conv2d_infer_layout(WORKLOAD, {})


@pytest.mark.parametrize(
    ("preprocess", "shapes", "strides", "padding", "output_padding"),
    [
        (
            topi.nn.conv2d_transpose_nchw_preprocess,
            [(2, 3, 4, 5), (3, 2, 3, 3)],
            (2, 1),
            (1, 1, 1, 1),
            (1, 0),
        ),
        (
            topi.nn.conv3d_transpose_ncdhw_preprocess,
            [(1, 2, 3, 3, 2), (2, 3, 2, 3, 2)],
            (1, 2, 2),
            (0, 1, 0, 0, 1, 0),
            (0, 1, 0),
        ),
    ],
)
def test_transposed_convolutions_as_plain_ones(
    preprocess: Any, shapes: Any, strides: Any, padding: Any, output_padding: Any
) -> None:
    """The dilated and padded data and the flipped kernel, convolved in steps of one, are the transposed convolution."""
    feeds = inputs(*[GENERATOR.normal(size=shape).astype("float32") for shape in shapes])
    data, kernel = feeds
    flat = len(strides) == 2
    given = (strides, padding, "float32", output_padding)
    ready, flipped = preprocess(data, kernel, *given)
    assert tuple(flipped.shape)[:2] == (shapes[1][1], shapes[1][0])
    plain = topi.nn.conv2d_nchw if flat else topi.nn.conv3d_ncdhw
    whole = topi.nn.conv2d_transpose_nchw if flat else topi.nn.conv3d_transpose_ncdhw
    made, expected = evaluate([plain(ready, flipped, 1, 0, 1), whole(data, kernel, *given)], feeds)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def of(*shapes: tuple[int, ...], dtype: str = "float32") -> list[relay.Var]:
    """A variable for each shape."""
    return [relay.var(f"x{place}", shape=shape, dtype=dtype) for place, shape in enumerate(shapes)]


def sparse(x: relay.Var, *parts: relay.Var) -> relay.Call:
    """A product with a sparse matrix of three values in two rows."""
    return relay.nn.sparse_dense(x, [relay.const(np.ones(3, "float32")), *parts])


CALLS: dict[str, tuple[Callable[..., Any], list[relay.Var]]] = {
    "conv2d_transpose_legalize": (relay.nn.conv2d_transpose, of((1, 3, 4, 4), (3, 2, 3, 3))),
    "conv3d_transpose_legalize": (relay.nn.conv3d_transpose, of((1, 3, 4, 4, 4), (3, 2, 3, 3, 3))),
    "matmul_legalize": (relay.nn.matmul, of((3, 4), (4, 5))),
    "dense_legalize": (relay.nn.dense, of((3, 4), (5, 4))),
    "batch_matmul_legalize": (relay.nn.batch_matmul, of((2, 3, 4), (2, 5, 4))),
    "bitserial_conv2d_legalize": (
        lambda x, w: relay.nn.bitserial_conv2d(x, w, channels=3, kernel_size=3, pack_dtype="uint8"),
        of((1, 8, 4, 5), (3, 8, 3, 3), dtype="uint8"),
    ),
    "conv3d_alter_layout": (relay.nn.conv3d, of((1, 3, 4, 4, 4), (2, 3, 3, 3, 3))),
    "dense_alter_layout": (relay.nn.dense, of((3, 4), (5, 4))),
    "sparse_dense_alter_layout": (
        lambda x: sparse(
            x, relay.const(np.array([0, 2, 1], "int32")), relay.const(np.array([0, 2, 3], "int32"))
        ),
        of((3, 4)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_hooks_for_targets(name: str) -> None:
    """Without a registration there is no replacement; one for a key replaces calls under targets that have it."""
    hook = getattr(topi.nn, name)
    build, variables = CALLS[name]
    call = build(*variables)
    body = relay.transform.InferType()(tvm.IRModule.from_expr(call))["main"].body
    types = [argument.checked_type for argument in body.args]
    is_layout = name.endswith("alter_layout")
    given = (types, body.checked_type) if is_layout else ([*types, body.checked_type],)
    assert hook(body.attrs, list(body.args), *given) is None

    key = f"key_of_{name}"
    seen: list[tuple[Any, ...]] = []

    def replace(attrs: Any, arguments: Any, tinfos: Any, *out_type: Any) -> Any:
        seen.append((attrs, [str(one) for one in tinfos], *map(str, out_type)))
        return relay.Call(body.op, list(arguments), attrs) + relay.const(1, body.checked_type.dtype)

    hook.register(key, replace)
    transform = relay.transform.AlterOpLayout() if is_layout else relay.transform.Legalize()
    module = tvm.IRModule.from_expr(relay.Function(variables, call))
    try:
        for target, replaced in ((f"llvm -keys={key}", True), ("llvm -keys=other", False)):
            with tvm.target.Target(target), tvm.transform.PassContext(opt_level=3):
                made = transform(module)["main"].body
            assert (made.op.name == "add") is replaced
    finally:
        del hook.dispatch_dict[key]
    expected = (
        [[str(one) for one in types], str(body.checked_type)]
        if is_layout
        else [[str(one) for one in given[0]]]
    )
    assert seen == [(body.attrs, *expected)]
