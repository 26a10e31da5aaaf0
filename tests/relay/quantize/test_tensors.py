"""What is rounded between quantised layers: once for each tensor, so that kernels hand bytes to each other."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.quantize import Study
from tilewright.relay.quantize.layers import find_layers, prepared
from tilewright.relay.quantize.scheme import activation
from tilewright.relay.quantize.statistics import Statistics
from tilewright.relay.quantize.tensors import Tensors

GENERATOR = np.random.default_rng(8)


def value(*shape):
    """A constant of uniform numbers."""
    return relay.const(GENERATOR.uniform(-0.3, 0.3, shape).astype("float32"))


def convolution(data, inputs, outputs, size=3):
    """With a bias, and the same extent."""
    pad = size // 2
    made = relay.nn.conv2d(
        data,
        value(outputs, inputs, size, size),
        channels=outputs,
        kernel_size=(size, size),
        padding=(pad, pad),
    )
    return relay.nn.bias_add(made, value(outputs))


def skip_connection(x):
    """A tensor that a pool and a concatenation read."""
    first = relay.nn.relu(convolution(x, 16, 16))
    below = convolution(relay.nn.max_pool2d(first, (2, 2), strides=(2, 2)), 16, 16)
    up = relay.image.resize2d(relay.nn.relu(below), (16, 16), method="nearest_neighbor")
    return convolution(relay.concatenate([first, relay.nn.relu(convolution(up, 16, 16))], 1), 32, 16)


def residual(x):
    """Two branches with a layer each, and a sum of their sum."""
    first = relay.nn.relu(convolution(x, 16, 16) + convolution(x, 16, 16, 1))
    return convolution(relay.nn.relu(convolution(first, 16, 16) + first), 16, 16)


def squeeze_and_excite(x):
    """SiLU, and channels that are weighed by what their averages say."""
    first = convolution(x, 16, 16)
    first = first * relay.sigmoid(first)
    weight = relay.sigmoid(convolution(relay.nn.global_avg_pool2d(first), 16, 16, 1))
    return convolution(first * weight, 16, 16)


NETWORKS = [skip_connection, residual, squeeze_and_excite]


def module_of(network):
    """The network as a program."""
    x = relay.var("x", shape=(1, 16, 16, 16))
    return tvm.IRModule.from_expr(relay.Function([x], network(x)))


def calls(module, *names):
    """The calls of operators in a program, of any if none is named."""
    found = []

    def look(expr):
        if isinstance(expr, relay.Call) and (not names or getattr(expr.op, "name", "") in names):
            found.append(expr)

    relay.analysis.post_order_visit(module["main"].body, look)
    return found


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda one: one.__name__)
def found(request):
    """A network, quantised."""
    study = Study(module_of(request.param))
    samples = [{"x": GENERATOR.standard_normal((1, 16, 16, 16)).astype("float32")} for _ in range(4)]
    study.measure(samples)
    return study.choose(samples)


def test_no_tensor_is_rounded_twice(found):
    """Whoever reads a tensor reads the same integers, and the network is as exact as 8 bits are."""
    data = [one.args[0] for one in calls(found.module, "qnn.quantize")]
    assert len(set(data)) == len(data)
    assert all(one.quantised for one in found.layers) and found.quality.error < 0.04
    assert all(1e-4 < one.error_along < 0.04 for one in found.layers)


def test_kernels_hand_bytes_to_each_other(found):
    """Only the last layer writes floats. The weights of the channels in squeeze-and-excite are few."""
    with tvm.transform.PassContext(opt_level=3):
        made, _ = relay.optimize(found.module, "llvm")
        fused = relay.transform.FuseOps(3)(relay.transform.InferType()(made))
    kinds = [
        one.checked_type
        for one in calls(relay.transform.InferType()(fused))
        if isinstance(one.op, relay.Function)
    ]
    large = [str(one.dtype) for one in kinds if np.prod([int(size) for size in one.shape]) > 16]
    last = large.index("float32")
    assert last > 2 and set(large[:last]) == {"uint8"}
    assert len(large) - last <= 2, "the last layer, and its result in another layout"


def tensors_of(network):
    """The layers of a network, and what is rounded between them."""
    main = prepared(module_of(network))["main"]
    return Tensors(main, find_layers(main))


def test_groups():
    """What is concatenated has one scale, and so has what pools pick from it; nothing else has."""
    tensors = tensors_of(skip_connection)
    rounded, _ = tensors.rounded([one.name for one in tensors.layers])
    groups = {}
    for one in rounded:
        groups.setdefault(tensors.group(one), []).append(getattr(getattr(one, "op", None), "name", "x"))
    assert sorted(sorted(names) for names in groups.values()) == [
        ["concatenate", "nn.max_pool2d", "nn.relu", "nn.relu"],
        ["image.resize2d", "nn.relu"],
        ["x"],
    ]


def test_layers_that_stay_in_floats():
    """They read what was not rounded, and their sums are not rounded before they are added."""
    tensors = tensors_of(residual)
    names = [one.name for one in tensors.layers]
    everything, _ = tensors.rounded(names)
    without_last, _ = tensors.rounded(names[:-1])
    assert without_last < everything
    assert tensors.layers[-1].data in everything - without_last
    assert tensors.layers[-2].result in everything - without_last
    assert tensors.rounded([]) == (set(), set())


def test_ranges_for_activations():
    """A tensor that only a SiLU reads is rounded for what the SiLU makes of it; others for themselves."""
    tensors = tensors_of(squeeze_and_excite)
    silu, weight, last = (tensors.layers[place].result for place in (0, 1, 2))
    numbers = np.linspace(-9, 9, 5)
    np.testing.assert_allclose(
        tensors.function_of(silu)(numbers), numbers / (1 + np.exp(-numbers)), atol=1e-6
    )
    np.testing.assert_allclose(tensors.function_of(weight)(numbers), 1 / (1 + np.exp(-numbers)), atol=1e-6)
    assert tensors.function_of(last) is None and tensors.function_of(tensors.layers[0].data) is None
    others = tensors_of(residual)
    assert all(others.function_of(one) is None for one in others.sources())

    found = Statistics()
    found.add(np.linspace(-12, 12, 4801).astype("float32"))
    plain, chosen = activation(found, "mse"), activation(found, "mse", function=tensors.function_of(silu))

    def least(affine):
        return -affine.zero * affine.scale

    def error(affine):
        values = np.linspace(-12, 12, 4801)
        made = np.clip(np.rint(values / affine.scale) + affine.zero, 0, 255) - affine.zero
        return np.square(
            tensors.function_of(silu)(made * affine.scale) - tensors.function_of(silu)(values)
        ).mean()

    assert least(plain) < -11 and -9 < least(chosen) < -4
    assert error(chosen) < 0.7 * error(plain)
    minmax = activation(found, "minmax", function=tensors.function_of(silu))
    assert minmax == activation(found, "minmax")
