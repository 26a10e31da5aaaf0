"""The passes together: at every level a network computes what its reference does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import operators

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.op.calls import call

GENERATOR = np.random.default_rng(11)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """These tests compile into a cache of their own."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("TILEWRIGHT_CACHE_DIR", str(folder))
    yield folder
    patch.undo()


def weight(*shape: int) -> relay.Constant:
    """Random numbers around zero, smaller where more are added up."""
    scale = 1 / np.sqrt(max(1, np.prod(shape[1:])))
    return relay.const((GENERATOR.standard_normal(shape) * scale).astype("float32"))


def norm(value: Any, channels: int, axis: int = 1) -> Any:
    """A batch norm."""
    vectors = [relay.const((GENERATOR.random(channels) + 0.5).astype("float32")) for _ in range(4)]
    return relay.nn.batch_norm(value, *vectors, axis=axis)[0]


def residual() -> Any:
    """Convolutions with batch norm, a shortcut, pooling and a classifier."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    stem = relay.nn.relu(norm(relay.nn.conv2d(x, weight(8, 4, 3, 3), padding=(1, 1)), 8))
    inner = relay.nn.relu(norm(relay.nn.conv2d(stem, weight(8, 8, 3, 3), padding=(1, 1)), 8))
    outer = norm(relay.nn.conv2d(inner, weight(8, 8, 1, 1)), 8)
    pooled = relay.nn.global_avg_pool2d(relay.nn.relu(outer + stem))
    flat = relay.nn.batch_flatten(relay.nn.dropout(pooled))
    return relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(flat, weight(5, 8)), weight(5)))


def separable() -> Any:
    """Depthwise and pointwise convolutions, channels last."""
    x = relay.var("x", shape=(1, 8, 8, 4))
    layers = {"data_layout": "NHWC", "padding": (1, 1)}
    depthwise = relay.nn.conv2d(
        relay.nn.pad(x, ((0, 0), (0, 0), (0, 0), (0, 0))),
        weight(3, 3, 4, 1),
        groups=4,
        kernel_size=(3, 3),
        kernel_layout="HWOI",
        **layers,
    )
    clipped = relay.clip(norm(depthwise, 4, axis=3), 0.0, 6.0)
    return norm(
        relay.nn.conv2d(
            clipped, weight(1, 1, 4, 8), kernel_size=(1, 1), kernel_layout="HWIO", data_layout="NHWC"
        ),
        8,
        axis=3,
    )


def branches() -> Any:
    """Three convolutions of one tensor, joined."""
    x = relay.var("x", shape=(1, 4, 6, 6))
    parts = [relay.nn.relu(relay.nn.conv2d(x, weight(n, 4, 1, 1)) + weight(n, 1, 1)) for n in (2, 3, 4)]
    return relay.concatenate(parts, 1)


def attention() -> Any:
    """One block of a transformer."""
    x = relay.var("x", shape=(6, 8))
    normal = relay.nn.layer_norm(x, weight(8), weight(8))
    query, key, content = (relay.reshape(relay.nn.dense(normal, weight(8, 8)), (6, 2, 4)) for _ in range(3))
    heads = [relay.transpose(each, (1, 0, 2)) for each in (query, key, content)]
    scores = relay.nn.softmax(relay.nn.batch_matmul(heads[0], heads[1]) * relay.const(0.5))
    mixed = relay.nn.batch_matmul(scores, heads[2], transpose_b=False)
    joined = relay.reshape(relay.reshape(relay.transpose(mixed, (1, 0, 2)), (6, 4, 2)), (6, 8))
    return x + relay.nn.dense(joined, weight(8, 8))


def shapes() -> Any:
    """Shapes that are computed from shapes."""
    x = relay.var("x", shape=(2, 3, 4))
    flat = call("dyn.reshape", x, relay.const(np.array([2, -1], "int64")))
    ones = call("dyn.ones", relay.shape_of(flat, "int64"), dtype="float32")
    return relay.cast(relay.cast(flat * ones - relay.zeros_like(flat), "float64"), "float32")


def groups() -> Any:
    """Normalisations over groups, instances and lengths."""
    x = relay.var("x", shape=(2, 4, 3, 3))
    made = relay.nn.group_norm(x, weight(4), weight(4), num_groups=2)
    return relay.nn.l2_normalize(relay.nn.instance_norm(made, weight(4), weight(4)), 1e-6, [1])


NETWORKS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (residual, separable, branches, attention, shapes, groups)
}


LEVELS = {
    "residual": (0, 2, 3),
    "separable": (3,),
    "branches": (4,),
    "attention": (3, 4),
    # Shapes that are data are for the virtual machine, below the level at which they become static.
    "shapes": (2,),
    "groups": (2,),
}


@pytest.mark.parametrize(("name", "level"), [(name, level) for name in NETWORKS for level in LEVELS[name]])
def test_every_level_computes_the_same(name: str, level: int) -> None:
    """The compiled network and the reference."""
    body = NETWORKS[name]()
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    shape = [int(extent) for extent in module["main"].params[0].type_annotation.shape]
    data = GENERATOR.standard_normal(shape).astype("float32")
    expected = relay.create_executor("debug", module).evaluate()(data).numpy()
    with tvm.transform.PassContext(opt_level=level):
        library = relay.build(module, "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.set_input("x", data)
    model.run()
    tolerance = 1e-3 if level == 4 else 1e-4
    np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=tolerance, atol=tolerance / 10)


def optimized(name: str, level: int) -> list[str]:
    """The operators that are left of a network, for a target that has no layouts of its own."""
    return optimized_operators(NETWORKS[name](), level)


def optimized_operators(body: Any, level: int) -> list[str]:
    """As ``optimized``, of any expression."""
    module = tvm.IRModule.from_expr(body)
    with tvm.transform.PassContext(opt_level=level, disabled_pass=["AlterOpLayout"]):
        made, _ = relay.optimize(module, "llvm")
    return operators(made["main"])


def test_batch_norms_are_biases() -> None:
    """Factors are in the weights, and no layer of training is left."""
    found = optimized("residual", 3)
    assert not {"nn.batch_norm", "nn.dropout", "multiply", "sqrt", "expand_dims"} & set(found)
    assert found.count("nn.conv2d") == 3


def test_channels_last_too() -> None:
    """The empty padding is gone as well."""
    assert sorted(set(optimized("separable", 3))) == ["add", "clip", "nn.conv2d"]


def test_parallel_layers_are_one_at_level_four() -> None:
    """And apart below it."""
    assert optimized("branches", 3).count("nn.conv2d") == 3
    assert optimized("branches", 4).count("nn.conv2d") == 1


def test_computed_shapes_are_gone() -> None:
    """One reshape is left."""
    assert optimized("shapes", 3) == ["reshape"]


def test_a_bias_and_a_batch_norm_are_one_sum() -> None:
    """Their constants are added at compile time."""
    x = relay.var("x", shape=(1, 4, 6, 6))
    biased = relay.nn.bias_add(relay.nn.conv2d(x, weight(8, 4, 3, 3)), weight(8))
    assert optimized_operators(relay.nn.relu(norm(biased, 8)), 3) == ["nn.conv2d", "add", "nn.relu"]
