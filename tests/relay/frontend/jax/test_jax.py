"""JAX programs against JAX itself; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.frontend import registry
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.support.errors import ModelError

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402
from tests.relay.frontend.jax.programs import CASES, floats  # noqa: E402

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def run(module: Any, params: Any, *inputs: Any) -> list[Any]:
    """What the reference interpreter computes."""
    return interpreted(module, params, inputs)


def same(found: list[Any], expected: Any) -> None:
    """The results are those of JAX, in type, shape and value."""
    leaves = [np.asarray(one) for one in jax.tree_util.tree_leaves(expected)]
    assert len(found) == len(leaves)
    for place, (one, other) in enumerate(zip(found, leaves, strict=True)):
        one = np.asarray(one)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), f"result {place}"
        np.testing.assert_allclose(one, other, **TOLERANCE, err_msg=f"result {place}")


@pytest.mark.parametrize("name", list(CASES))
def test_operations(name: str) -> None:
    """Each family, from the function and from its serialized export, which decomposes more."""
    function, arguments = CASES[name]
    expected = jax.jit(function)(*arguments)
    same(run(*relay.frontend.from_jax(function, arguments), *arguments), expected)
    exported = export.export(jax.jit(function))(*arguments)
    same(run(*relay.frontend.from_jax(bytes(exported.serialize())), *arguments), expected)


# Models


def normalized(data: Any, scale: Any, shift: Any) -> Any:
    """Layer normalisation."""
    mean, variance = data.mean(-1, keepdims=True), data.var(-1, keepdims=True)
    return (data - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def transformer(params: Any, tokens: Any) -> Any:
    """A decoder of one block with two heads."""
    hidden = params["embedding"][tokens] + params["positions"]
    length, width = hidden.shape[1:]
    inner = normalized(hidden, *params["first"])
    query, key, value = (
        (inner @ params[name]).reshape(-1, length, 2, width // 2) for name in ("query", "key", "value")
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(width // 2)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value).reshape(hidden.shape)
    hidden = hidden + mixed @ params["joined"]
    inner = normalized(hidden, *params["second"])
    hidden = hidden + jax.nn.gelu(inner @ params["wide"], approximate=False) @ params["narrow"]
    return hidden @ params["embedding"].T


def transformer_params() -> dict[str, Any]:
    """Weights of the decoder."""
    square = {name: floats(8, 8) * 0.3 for name in ("query", "key", "value", "joined")}
    norms = {name: (floats(8) + 1, floats(8)) for name in ("first", "second")}
    more = {
        "embedding": floats(11, 8),
        "positions": floats(5, 8),
        "wide": floats(8, 16),
        "narrow": floats(16, 8),
    }
    return {**square, **norms, **more}


def image_network(params: Any, data: Any) -> Any:
    """Two convolutions, pooling and a classifier; images have their channels last."""
    for weight, bias in params["layers"]:
        data = jax.lax.conv_general_dilated(
            data, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        data = jax.nn.relu(data + bias)
        data = jax.lax.reduce_window(data, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.log_softmax(data.mean((1, 2)) @ params["last"])


def test_a_transformer() -> None:
    """Trees of weights become parameters; the compiled module computes what JAX does."""
    params, tokens = transformer_params(), np.asarray([[1, 4, 10, 0, 7]], "int32")
    module, weights = relay.frontend.from_jax(transformer, (tokens,), params=params)
    assert [one.name_hint for one in module["main"].params][0] == "tokens" and "params.embedding" in weights
    executor = relay.create_executor("graph", module)
    found = executor.evaluate()(tokens, **weights)
    same([found.numpy()], transformer(params, tokens))


def test_an_image_network() -> None:
    """Images stay as they are laid out, at each convolution."""
    params = {
        "layers": [(floats(3, 3, 3, 4), floats(4)), (floats(3, 3, 4, 5), floats(5))],
        "last": floats(5, 6),
    }
    data = floats(1, 8, 8, 3)
    module, weights = relay.frontend.from_jax(image_network, (data,), params=params)
    assert (
        "transpose" not in module.astext().replace('"transpose', "")
        and 'data_layout="NHWC"' in module.astext()
    )
    found = relay.create_executor("graph", module).evaluate()(data, **weights)
    same([found.numpy()], image_network(params, data))


@pytest.mark.parametrize("name", ["scan", "condition", "while"])
def test_control_flow_in_the_virtual_machine(name: str) -> None:
    """Loops and branches are run by compiled code."""
    function, arguments = CASES[name]
    module, params = relay.frontend.from_jax(function, arguments)
    assert not params
    found = relay.create_executor("vm", module).evaluate()(*arguments)
    fields = list(found) if isinstance(jax.jit(function)(*arguments), (tuple, list)) else [found]
    same([one.numpy() for one in fields], jax.jit(function)(*arguments))


def test_flax() -> None:
    """Convolutions, normalisation, attention and dense layers of flax, where that is installed."""
    linen = pytest.importorskip("flax.linen")

    class Network(linen.Module):
        @linen.compact
        def __call__(self, image: Any) -> Any:
            data = linen.Conv(4, (3, 3), strides=2)(image)
            data = linen.BatchNorm(use_running_average=True)(data)
            data = linen.avg_pool(linen.swish(linen.GroupNorm(2)(data)), (2, 2))
            data = data.reshape(data.shape[0], -1, data.shape[-1])
            data = linen.MultiHeadDotProductAttention(2)(linen.LayerNorm()(data))
            return linen.Dense(3)(data.mean(1))

    image = floats(2, 8, 8, 3)
    network = Network()
    variables = network.init(jax.random.key(0), image)
    module, params = relay.frontend.from_jax(network.apply, (image,), params=variables)
    same(run(module, params, image), network.apply(variables, image))


# Inputs, files and errors


def test_dimensions_that_an_export_left_open() -> None:
    """They are fixed by name; without that the error says so."""
    kind = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), "float32")
    exported = export.export(jax.jit(lambda x: (x.reshape(-1), x.sum(0), x / x.shape[0])))(kind)
    data = floats(3, 4)
    module, params = relay.frontend.from_jax(exported, shape={"x": (3, 4)})
    same(run(module, params, data), exported.call(data))
    with pytest.raises(ModelError, match=r"the input 'x' has the shape \(b, 4\): fix it with"):
        relay.frontend.from_jax(exported)


def test_files(tmp_path: Path) -> None:
    """A serialized export and StableHLO's bytecode are read by path; the latter is told by its content."""
    exported = export.export(jax.jit(lambda x, unused: jnp.tanh(x) * 2))(floats(2, 3), floats(1))
    (tmp_path / "model.jax").write_bytes(exported.serialize())
    (tmp_path / "model").write_bytes(exported.mlir_module_serialized)
    assert registry.guess_frontend(str(tmp_path / "model.jax")).name == "jax"
    assert registry.guess_frontend(str(tmp_path / "model")).name == "jax"
    for name in ("model.jax", "model"):
        loaded = tvmc.load(str(tmp_path / name))
        assert [one.name_hint for one in loaded.mod["main"].params][:1] == ["x"]
    described = registry.find_frontend("jax").describe(str(tmp_path / "model.jax"))
    assert described.operators["tanh"] == 1 and described.inputs[0].shape == (2, 3)
    (tmp_path / "broken.jax").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelError, match="not a JAX program"):
        tvmc.load(str(tmp_path / "broken.jax"))


WRITTEN = """
module {
  func.func @main(%x: tensor<3x4xf32>, %which: tensor<i1>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
    %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}}
      : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)
    %1 = "stablehlo.if"(%which) ({
      %2 = stablehlo.negate %0#0 : tensor<3x2xf32>
      stablehlo.return %2 : tensor<3x2xf32>
    }, {
      stablehlo.return %0#0 : tensor<3x2xf32>
    }) : (tensor<i1>) -> tensor<3x2xf32>
    return %1, %0#1 : tensor<3x2xf32>, tensor<3x2xi32>
  }
}
"""


@pytest.mark.parametrize("which", [True, False])
def test_text(which: bool, tmp_path: Path) -> None:
    """StableHLO's text is read too, with what JAX itself does not write any more."""
    (tmp_path / "model.mlir").write_text(WRITTEN, encoding="utf-8")
    data = floats(3, 4)
    values, places = jax.lax.top_k(data, 2)
    found = run(*relay.frontend.from_jax(tmp_path / "model.mlir"), data, which)
    same(found, (-values if which else values, places))


def test_everything_unsupported_is_in_one_error() -> None:
    """Foreign code by the name of its target, and operations without a converter."""
    matrix = floats(3, 3)
    with pytest.raises(UnsupportedOperators) as caught:
        relay.frontend.from_jax(lambda x: (jnp.linalg.cholesky(x), jnp.linalg.eigh(x)), (matrix,))
    names = {one.operator for one in caught.value.operators}
    assert names == {"custom_call lapack_spotrf_ffi", "custom_call lapack_ssyevd_ffi"}


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (lambda x: (x * 1j).real, (floats(3),), "complex numbers"),
        (lambda x: x.astype(jnp.float8_e4m3fn), (floats(3),), "element type f8E4M3FN"),
    ],
)
def test_refusals(function: Any, arguments: Any, message: str) -> None:
    """What cannot be said in the compiler's types is refused in a sentence."""
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_jax(function, arguments)


def test_what_is_no_program() -> None:
    """Other objects, and params that are not the first argument."""
    with pytest.raises(ModelError, match="a int is not a JAX program"):
        relay.frontend.from_jax(3)
    exported = export.export(jax.jit(lambda params, x: params + x))(floats(2), floats(2))
    with pytest.raises(ModelError, match="params has to be the value of its first argument"):
        relay.frontend.from_jax(exported, params=floats(3))


def test_operators_know_where_they_come_from() -> None:
    """Spans name the operation of JAX and the line of the program."""
    module, _ = relay.frontend.from_jax(lambda x: jnp.tanh(x), (floats(2),))
    assert "test_jax.py" in str(module["main"].body.span.source_name.name)
