"""Quantised networks get as much right as they did in float32, within half a point."""

import numpy as np
import onnx
import pytest
from tests.relay.quantize import networks

from tilewright import relay
from tilewright.relay.quantize import Study
from tilewright.support.errors import ModelError

HALF_A_POINT = 0.005


def quantised(model, name, data, classes):
    """The outcome for a model, calibrated on a fifth of the data and judged on all of it."""
    study = Study(*model)
    samples = [{name: one[None]} for one in data]
    study.measure(samples[::5])
    return study.choose(samples, 1.0, [int(one) for one in classes])


def check(found, at_least):
    """All layers are on integers, the network is any good, and it loses no more than half a point."""
    assert all(one.quantised for one in found.layers)
    assert found.exact.accuracy >= at_least
    assert found.exact.accuracy - found.quality.accuracy <= HALF_A_POINT


def test_the_digits_network():
    """The network of the demo, on noisy digits."""
    data, classes = networks.noisy_digits(400, 0.08)
    model = relay.frontend.from_onnx(onnx.load(str(networks.DIGITS_MODEL)))
    check(quantised(model, "image", data, classes), 0.8)


@pytest.mark.slow
def test_a_convolutional_network():
    """Trained here, with batch norms, a depthwise convolution and a residual."""
    torch = pytest.importorskip("torch")
    network = networks.trained(
        torch, networks.convolutional(torch), *networks.noisy_digits(2000, 0.15, 1), 150
    )
    data, classes = networks.noisy_digits(400, 0.15, 2)
    model = networks.imported(torch, network, data[:1], "image")
    check(quantised(model, "image", data, classes), 0.9)


@pytest.mark.slow
def test_digits_of_scikit_learn():
    """The same network on handwritten digits."""
    torch, datasets = pytest.importorskip("torch"), pytest.importorskip("sklearn.datasets")
    data, classes = datasets.load_digits(return_X_y=True)
    data = (data.reshape(-1, 1, 8, 8) / 16).astype("float32")
    network = networks.trained(torch, networks.convolutional(torch), data[:1400], classes[:1400], 200)
    model = networks.imported(torch, network, data[:1], "image")
    check(quantised(model, "image", data[1400:], classes[1400:]), 0.9)


@pytest.mark.slow
def test_a_transformer():
    """Trained here; every dense layer is on integers."""
    torch = pytest.importorskip("torch")
    network = networks.trained(torch, networks.transformer(torch), *networks.sequences(4000, 1), 250)
    data, classes = networks.sequences(400, 2)
    model = networks.imported(torch, network, data[:1], "tokens")
    found = quantised(model, "tokens", data, classes)
    assert len(found.layers) == 9
    check(found, 0.9)


def sensitive_network():
    """Three dense layers, of which the second has a huge outlier in its data, and samples."""
    generator = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 32))
    weights = [generator.standard_normal((32, 32)).astype("float32") / 6 for _ in range(3)]
    # One channel of the first layer is thousands of times larger, and the next weights make it small again.
    weights[0][0] *= 3000
    weights[1][:, 0] /= 3000
    first = relay.nn.relu(relay.nn.dense(x, relay.const(weights[0])))
    wide = relay.nn.dense(first, relay.const(weights[1]))
    body = relay.nn.dense(relay.nn.relu(wide), relay.const(weights[2]))
    samples = [{"x": generator.standard_normal((1, 32)).astype("float32")} for _ in range(20)]
    return relay.IRModule.from_expr(relay.Function([x], body)), samples


def test_sensitive_layers_stay_in_floats_until_the_budget_holds():
    """A layer with a huge outlier in its data costs accuracy; it is found, and kept in floats."""
    module, samples = sensitive_network()
    study = Study(module, {}, method="minmax")
    study.measure(samples)
    found = study.choose(samples, 0.05)
    assert [one.quantised for one in found.layers] == [True, False, True]
    assert "budget" in found.layers[1].why
    assert found.within_budget and found.quality.error < 0.05
    loose = study.choose(samples, 1.0)
    assert all(one.quantised for one in loose.layers) and loose.quality.error > 0.05
    assert loose.jump is not None and loose.jump.name == loose.layers[1].name


def test_sensitive_layers_in_bfloat16():
    """The layer multiplies bfloat16 numbers, its rounding is in the table and counts against the budget. Layers that
    the user keeps are float32, and so is everything that is no integer in what other runtimes get."""
    module, samples = sensitive_network()
    study = Study(module, {}, method="minmax", sensitive="bfloat16")
    study.measure(samples)
    found = study.choose(samples, 0.05)
    assert [one.computed_in for one in found.layers] == ["int8", "bfloat16", "int8"]
    assert products(found.module) == ["float32", "bfloat16", "float32"]
    assert products(found.portable) == ["float32"] * 3
    assert found.within_budget and 0 < found.quality.error < 0.05

    nothing = study.choose(samples, 0.0)
    assert {one.computed_in for one in nothing.layers} == {"bfloat16"}
    assert not nothing.within_budget and 1e-4 < nothing.quality.error < 0.01
    assert all(1e-4 < one.error_along < 0.01 for one in nothing.layers)

    kept = study.choose(samples, 0.05, keep=[found.layers[1].name])
    assert [one.computed_in for one in kept.layers] == ["int8", "float32", "int8"]
    assert kept.portable is kept.module
    with pytest.raises(ModelError, match="float32 or bfloat16, not 'float16'"):
        Study(module, sensitive="float16")


def products(module):
    """The element types of the data of dense layers, first to last."""
    found = []
    relay.analysis.post_order_visit(
        module["main"].body,
        lambda one: (
            found.append(str(one.args[0].checked_type.dtype))
            if isinstance(one, relay.Call) and one.op.name == "nn.dense"
            else None
        ),
    )
    return found
