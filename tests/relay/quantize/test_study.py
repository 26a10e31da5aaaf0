"""Studies of models: layers that are found, errors of what cannot be quantised, and integers that others read."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend.onnx_export import to_onnx
from tilewright.relay.quantize import Study
from tilewright.relay.quantize.layers import find_layers, prepared
from tilewright.relay.quantize.sensitivity import first_jump
from tilewright.support.errors import ModelError


def network():
    """A convolution with a batch norm, one with a residual, a pool, and a dense layer with a bias."""
    generator = np.random.default_rng(5)

    def value(*shape):
        return relay.const(generator.uniform(-0.3, 0.3, shape).astype("float32"))

    x = relay.var("x", shape=(1, 3, 8, 8))
    first = relay.nn.conv2d(x, value(8, 3, 3, 3), padding=(1, 1))
    variance = relay.const(generator.uniform(0.5, 2, 8).astype("float32"))
    first = relay.nn.relu(relay.nn.batch_norm(first, value(8), value(8), value(8), variance)[0])
    second = relay.nn.bias_add(relay.nn.conv2d(first, value(8, 8, 3, 3), padding=(1, 1)), value(8))
    pooled = relay.nn.max_pool2d(relay.nn.relu(second + first), (2, 2), strides=(2, 2))
    body = relay.add(relay.nn.dense(relay.nn.batch_flatten(pooled), value(10, 128)), value(10))
    function = relay.Function([x], body).with_attr("output_tensor_names", ["scores"])
    return tvm.IRModule.from_expr(function)


@pytest.fixture(scope="module")
def samples():
    """Images."""
    generator = np.random.default_rng(6)
    return [{"x": generator.standard_normal((1, 3, 8, 8)).astype("float32")} for _ in range(12)]


@pytest.fixture(scope="module")
def found(samples):
    """The network, quantised."""
    study = Study(network())
    study.measure(samples)
    return study.choose(samples)


def program(mod, params=None):
    """A compiled program as a function of its input."""
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, "llvm", params=params)
    executor = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu()))

    def run(value):
        executor.run(x=value)
        return executor.get_output(0).numpy()

    return run


def test_layers_have_their_biases():
    """Batch norms are folded, and whatever is added per channel is a bias."""
    layers = find_layers(prepared(network())["main"])
    assert [one.operator for one in layers] == ["conv2d", "conv2d", "dense"]
    assert all(one.bias is not None for one in layers)
    assert layers[0].multiplications == 8 * 64 * 27


def test_the_report(found):
    """Signal to noise, the error of the outputs, and what each layer is computed in."""
    assert found.within_budget and all(one.quantised for one in found.layers)
    for one in found.layers:
        assert 30 < one.decibels < 70 and 0 < one.output_error < 0.03
        assert one.as_json()["name"] == one.name
    assert found.quality.error < 0.03 and found.exact.error == 0.0


def test_layers_run_on_integers(found):
    """Nothing but int8 factors in convolutions and products, once it is compiled."""
    with tvm.transform.PassContext(opt_level=3):
        made, _ = relay.optimize(found.module, "llvm")
    kinds = set()

    def look(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op) and len(expr.args) > 1:
            if "conv2d" in expr.op.name or "dense" in expr.op.name:
                kinds.add(str(expr.args[1].checked_type.dtype))

    relay.analysis.post_order_visit(made["main"], look)
    assert kinds == {"int8"}


def test_onnx_runtime_and_the_importer_get_the_same(found, samples, tmp_path):
    """The written model gives in ONNX Runtime what ours does within a step, and is read back to the same integers."""
    path = tmp_path / "quantised.onnx"
    model = to_onnx(found.module, {}, "quantised", 13, str(path))
    assert {one.op_type for one in model.graph.node} >= {"QuantizeLinear", "DequantizeLinear", "Conv", "Gemm"}
    assert all(len(one.input) == 3 for one in model.graph.node if one.op_type in ("Conv", "Gemm"))
    ours, again = program(found.module), program(*relay.frontend.from_onnx(model))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["scores"]
    step = max(one.data.scale * one.weight.scale.max() for one in found.schemes.values()) * 128
    for sample in samples:
        wanted = ours(sample["x"])
        np.testing.assert_array_equal(again(sample["x"]), wanted)
        assert np.abs(session.run(None, sample)[0] - wanted).max() <= step


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "power2"])
def test_methods(samples, method):
    """All of them are within a few per cent on data without outliers."""
    study = Study(network(), method=method, symmetric=method == "power2", per_channel=method != "percentile")
    study.measure(samples)
    made = study.choose(samples, 1.0)
    assert made.quality.error < 0.06
    assert {one.data.dtype for one in made.schemes.values()} == {"int8" if method == "power2" else "uint8"}


def test_biases_are_not_fitted_to_one_sample(samples):
    """With one sample the mean error of a dense layer's channels is its error: correcting it would say that nothing is
    lost."""
    study = Study(network())
    study.measure(samples[:1])
    made = study.choose(samples[:1], 1.0)
    assert all(not one.correction.any() for one in made.schemes.values() if one.correction is not None)
    assert all(one.error_along > 1e-3 for one in made.layers)


def test_layers_that_a_user_keeps(samples, found):
    """By name; a wrong name is an error with the right one."""
    study = Study(network())
    study.measure(samples)
    name = found.layers[1].name
    made = study.choose(samples, keep=[name])
    assert [one.quantised for one in made.layers] == [True, False, True]
    assert "asked" in made.layers[1].why
    with pytest.raises(ModelError, match="no layer .* to keep"):
        study.choose(samples, keep=["nonsense"])


def test_what_cannot_be_quantised(found):
    """A model without layers, one that is quantised already, wrong methods, and no data."""
    x = relay.var("x", shape=(2, 2))
    with pytest.raises(ModelError, match="nothing to quantise"):
        Study(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    with pytest.raises(ModelError, match="quantised already"):
        Study(found.module)
    with pytest.raises(ModelError, match="did you mean .minmax"):
        Study(network(), method="minmaxx")
    with pytest.raises(ModelError, match="no samples"):
        Study(network()).measure([])
    with pytest.raises(ModelError, match="lacks the input x"):
        Study(network()).measure([{"y": np.zeros((1, 3, 8, 8), "float32")}])


def test_where_errors_jump():
    """Slow growth and small errors are no jump."""
    assert first_jump([0.001, 0.002, 0.004]) is None
    assert first_jump([0.01, 0.02, 0.03, 0.05]) is None
    assert first_jump([0.004, 0.005, 0.2, 0.9]) == 2
    assert first_jump([0.5]) == 0
