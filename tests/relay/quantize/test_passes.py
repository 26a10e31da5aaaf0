"""TVM's passes: integers agree with the simulation, shifts round as asked, and conversions can be split off."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.quantize import calibrate, collect_stats, qconfig, quantize
from tilewright.relay.quantize.annotate import annotate
from tilewright.relay.quantize.quantize import prerequisite_optimize
from tilewright.support.errors import ModelError

STEP = 8.0 / 128
"""Of the output, with the default global scale."""


def network():
    """Two convolutions with biases, a residual, a pool and an average."""
    generator = np.random.default_rng(1)
    x = relay.var("x", shape=(1, 8, 10, 10))

    def layer(data):
        weight = relay.const(generator.uniform(-0.25, 0.25, (8, 8, 3, 3)).astype("float32"))
        bias = relay.const(generator.uniform(-1, 1, 8).astype("float32"))
        return relay.nn.bias_add(relay.nn.conv2d(data, weight, padding=(1, 1)), bias)

    first = relay.nn.relu(layer(x))
    body = relay.nn.relu(layer(first) + first)
    body = relay.nn.avg_pool2d(relay.nn.max_pool2d(body, (2, 2), strides=(2, 2)), (5, 5))
    return tvm.IRModule.from_expr(relay.Function([x], body))


def evaluated(mod, data):
    """The result of a compiled program."""
    with tvm.transform.PassContext(opt_level=3):
        return relay.create_executor("graph", mod, tvm.cpu(), "llvm").evaluate()(data).numpy()


def operators(mod):
    """The types of the results of each operator."""
    found = {}

    def look(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            found.setdefault(expr.op.name, set()).add(str(expr.checked_type.dtype))

    relay.analysis.post_order_visit(relay.transform.InferType()(mod)["main"], look)
    return found


@pytest.fixture(scope="module")
def data():
    """One input."""
    return np.random.default_rng(2).uniform(-2, 2, (1, 8, 10, 10)).astype("float32")


@pytest.mark.parametrize("options", [{}, {"rounding": "TONEAREST"}, {"weight_scale": "max"}])
def test_integers_agree_with_their_simulation(data, options):
    """Within a step of the output; and both are near the floats."""
    made = {}
    for simulated in (True, False):
        with (
            tvm.transform.PassContext(opt_level=3),
            qconfig(skip_conv_layers=[], do_simulation=simulated, **options),
        ):
            made[simulated] = quantize(network())
    found = operators(made[False])
    assert found["nn.conv2d"] == {"int32"} and found["nn.max_pool2d"] == {"int8"}
    assert operators(made[True])["nn.conv2d"] == {"float32"}
    exact = evaluated(network(), data)
    simulation, integers = evaluated(made[True], data), evaluated(made[False], data)
    assert np.abs(simulation - integers).max() <= 1.001 * STEP
    assert np.abs(exact - integers).max() <= 3 * STEP
    assert np.abs(exact).max() > 10 * STEP


@pytest.mark.parametrize("mode", ["kl_divergence", "percentile"])
def test_calibration_measures(data, mode):
    """Scales that are measured are nearer to the floats than a global scale that is too large."""
    exact = evaluated(network(), data)
    errors = []
    for options in ({"global_scale": 512.0}, {"calibrate_mode": mode, "calibrate_chunk_by": 2}):
        with tvm.transform.PassContext(opt_level=3), qconfig(skip_conv_layers=[], **options):
            made = quantize(network(), dataset=[{"x": data}])
        errors.append(np.abs(evaluated(made, data) - exact).max())
    assert errors[1] < 0.2 * errors[0]


def test_calibration_without_data_says_so():
    """Measuring needs something to measure."""
    with qconfig(calibrate_mode="percentile"), pytest.raises(ModelError, match="give quantize.. a dataset"):
        quantize(network())


def test_statistics_of_what_is_quantised(data):
    """One array for each tensor, of all samples."""
    with tvm.transform.PassContext(opt_level=3), qconfig(skip_conv_layers=[]):
        mod = annotate()(prerequisite_optimize(network()))
        chunks = list(collect_stats(mod, [{"x": data}, {"x": 2 * data}], chunk_by=1))
    assert all(len(chunk) == 1 for chunk in chunks) and len(chunks) >= 3
    sizes = [chunk[0].size for chunk in chunks]
    assert sizes[0] == 2 * data.size
    np.testing.assert_allclose(np.abs(chunks[0][0]).max(), 2 * np.abs(data).max(), rtol=1e-6)
    assert calibrate().info.name == "QuantizeCalibrate"


def test_conversions_in_functions_of_their_own(data):
    """The same result, and a middle that has integers only."""
    x = relay.var("x", shape=(1, 8, 10, 10))
    weight = relay.const(np.random.default_rng(4).uniform(-1, 1, (4, 8, 1, 1)).astype("float32"))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, weight))))
    with qconfig(skip_conv_layers=[]):
        whole = quantize(mod)
    with qconfig(skip_conv_layers=[], partition_conversions="fully_integral"):
        split = quantize(mod)
    names = {one.name_hint for one in split.get_global_vars()}
    assert names == {"main", "quantize_inputs", "quantized_main", "dequantize_outputs"}
    results = [
        relay.create_executor("vm", one, tvm.cpu(), "llvm").evaluate()(data).numpy() for one in (whole, split)
    ]
    np.testing.assert_array_equal(*results)
    plain = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with (
        qconfig(partition_conversions="fully_integral"),
        pytest.raises(AssertionError, match="not on integers"),
    ):
        quantize(plain)
