"""Quantised programs of ``torch.export``: integers are multiplied, and results are eager PyTorch's within a step."""

import numpy as np
import pytest
import torch
from tests.relay.frontend.torch.running import check, check_all, leaves, run
from torch import nn

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend import from_exported_program
from tilewright.relay.transform import FakeQuantizationToInteger, SinkDequantize

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def operators_of_quantisation():
    """PyTorch registers them when this module is imported."""
    from torch.ao.quantization.fx import _decomposed  # noqa: F401


PRODUCTS = ("nn.conv2d", "nn.dense", "qnn.conv2d", "qnn.dense")


def operators(module):
    """The names of the operators that a module calls, arguments first."""
    found = []
    relay.analysis.post_order_visit(
        module["main"].body,
        lambda one: (
            found.append(one.op.name)
            if isinstance(one, relay.Call) and isinstance(one.op, tvm.ir.Op)
            else None
        ),
    )
    return found


def factors(module):
    """The element types of what is multiplied in convolutions and products, once a module is compiled."""
    with tvm.transform.PassContext(opt_level=3):
        made, _ = relay.optimize(module, "llvm")
    found = []

    def look(one):
        if isinstance(one, relay.Call) and isinstance(one.op, tvm.ir.Op):
            if any(part in one.op.name for part in ("conv2d", "dense", "matmul")):
                found.append(str(one.args[1].checked_type.dtype))

    relay.analysis.post_order_visit(made["main"], look)
    return found


def numbers(*shape, seed=0):
    """Random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compiled(module, params, inputs):
    """The results of compiled code."""
    with tvm.transform.PassContext(opt_level=3):
        return run(module, params, inputs, "graph")


# Programs of pt2e


class Network(nn.Module):
    """Convolutions with batch norms, a residual, a depthwise convolution, pools and a linear layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))
        self.depthwise = nn.Sequential(nn.Conv2d(16, 16, 3, stride=2, groups=16, padding=1), nn.ReLU())
        self.last = nn.Linear(16, 5)

    def forward(self, x):
        x = self.first(x)
        x = torch.relu(self.second(x) + x)
        x = self.depthwise(nn.functional.max_pool2d(x, 2))
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Rows(nn.Module):
    """Linear layers on rows of rows."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 6))

    def forward(self, x):
        return self.layers(x)


def quantised(model, samples, dynamic=False):
    """A model after ``pt2e``, as a program and as a function of eager PyTorch."""
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")
    inductor = pytest.importorskip("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    quantizer = inductor.X86InductorQuantizer()
    quantizer.set_global(inductor.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
    example = (samples[0],)
    prepared = pt2e.prepare_pt2e(torch.export.export(model.eval(), example).module(), quantizer)
    for sample in samples:
        prepared(sample)
    converted = pt2e.convert_pt2e(prepared)
    return torch.export.export(converted, example), converted


@pytest.mark.parametrize("made", [Network, Rows])
def test_static(made):
    """Every convolution and product is on integers in both passes that bring programs there, and is within a per cent
    of the range of eager PyTorch's results."""
    torch.manual_seed(0)
    shape = (1, 3, 16, 16) if made is Network else (2, 3, 24)
    samples = [numbers(*shape, seed=seed) for seed in range(8)]
    with torch.no_grad():
        program, eager = quantised(made(), samples)
        module, params = from_exported_program(program, freeze_params=True)
        products = ["qnn.conv2d"] * 3 + ["qnn.dense"] if made is Network else ["qnn.dense"] * 2
        sunk, integers = (
            [one for one in operators(relay.transform.InferType()(rewrite(module))) if one in PRODUCTS]
            for rewrite in (SinkDequantize(), FakeQuantizationToInteger())
        )
        assert sunk == products
        # Nobody quantises the results of the last layer, which TVM's pass therefore leaves.
        assert integers == [*products[:-1], "nn.dense"]
        assert set(factors(module)) == {"int8"}
        for sample in samples:
            wanted = eager(sample).numpy()
            (result,) = compiled(module, params, [sample])
            assert np.abs(result - wanted).max() <= 0.01 * np.abs(wanted).max()


def test_dynamic():
    """The scale of the data is the program's own; products are on integers all the same."""
    torch.manual_seed(0)
    samples = [numbers(2, 3, 24, seed=seed) for seed in range(4)]
    with torch.no_grad():
        program, eager = quantised(Rows(), samples, dynamic=True)
        module, params = from_exported_program(program, freeze_params=True)
        found = operators(relay.transform.InferType()(SinkDequantize()(module)))
        assert found.count("qnn.dense") == 2 and "nn.dense" not in found
        assert set(factors(module)) == {"int8"}
        for sample in samples:
            wanted = eager(sample).numpy()
            (result,) = compiled(module, params, [sample])
            assert np.abs(result - wanted).max() <= 0.01 * np.abs(wanted).max()


# Operators


def weight_of(units, features, seed=1):
    """Integers, scales and zero points of a weight, per unit."""
    generator = torch.Generator().manual_seed(seed)
    integers = torch.randint(-127, 128, (units, features), generator=generator, dtype=torch.int8)
    return (
        integers,
        torch.rand(units, generator=generator) * 0.02 + 0.001,
        torch.zeros(units, dtype=torch.int64),
    )


class Tokens(nn.Module):
    """A linear layer whose data are quantised by rows."""

    def __init__(self, symmetric):
        super().__init__()
        self.symmetric = symmetric
        for name, value in zip(("weight", "scales", "zeros"), weight_of(7, 24), strict=True):
            self.register_buffer(name, value)
        self.bias = nn.Parameter(numbers(7, seed=2))

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        choose = ops.choose_qparams_per_token if self.symmetric else ops.choose_qparams_per_token_asymmetric
        scales, zeros = choose(x, torch.int8)
        integers = ops.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        x = ops.dequantize_per_token(integers, scales, zeros, -128, 127, torch.int8, torch.float32)
        weight = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        return nn.functional.linear(x, weight, self.bias)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 24), (1, 24)])
def test_rows_with_scales(shape, symmetric):
    """Products are on integers, and exact up to the rounding of float32."""
    model = Tokens(symmetric)
    x = numbers(*shape) * torch.linspace(0.1, 3, shape[-2])[:, None] + 0.5
    with torch.no_grad():
        program = torch.export.export(model, (x,))
        module, params = from_exported_program(program, freeze_params=True)
        made = relay.transform.InferType()(SinkDequantize()(module))
        assert "qnn.dense" in operators(made) and "nn.dense" not in operators(made)
        wanted = model(x).numpy()
        for found in (run(made, params, [x]), run(module, params, [x]), compiled(module, params, [x])):
            np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-3)


def test_every_operator():
    """Each gives what it gives in eager PyTorch."""
    ops = torch.ops.quantized_decomposed
    int8, uint8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
    scale, zero = torch.tensor(0.07), torch.tensor(12)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 3, -2])
    of_groups, at_groups = torch.rand(3, 2) * 0.1 + 0.05, torch.randint(-5, 5, (3, 2), dtype=torch.int32)

    def there_and_back(x, *limits):
        made = ops.quantize_per_tensor(x, 0.05, 7, *limits)
        return made, ops.dequantize_per_tensor(made, 0.05, 7, *limits)

    def by_range(choose, x, dtype):
        found = choose(x, dtype[0], dtype[1], 1e-6, dtype[2])
        return *found, ops.quantize_per_tensor.tensor(x, *found, *dtype)

    def in_groups(x):
        made = ops.quantize_per_channel_group(x, of_groups, at_groups, *int8, 2)
        return made, ops.dequantize_per_channel_group(made, of_groups, at_groups, *int8, 2, torch.float32)

    functions = {
        "int8": lambda x: there_and_back(x, *int8),
        "uint8": lambda x: there_and_back(x, *uint8),
        "fewer bits": lambda x: there_and_back(x, -8, 7, torch.int8),
        "int16": lambda x: there_and_back(x, -32768, 32767, torch.int16),
        "parameters as tensors": lambda x: ops.quantize_per_tensor.tensor(x, scale, zero, *int8),
        "limits as tensors": lambda x: ops.quantize_per_tensor.tensor2(
            x, scale, zero, torch.tensor(-100), torch.tensor(100), torch.int8
        ),
        "channels": lambda x: ops.quantize_per_channel(x, scales, zeros, 0, -127, 127, torch.int8),
        "channels without zero points": lambda x: ops.dequantize_per_channel(
            ops.quantize_per_tensor(x, 0.05, 7, *int8), scales, None, 0, *int8
        ),
        "other floats": lambda x: ops.dequantize_per_tensor(
            ops.quantize_per_tensor(x, 0.0625, 7, *int8), 0.0625, 7, *int8, out_dtype=torch.float16
        ),
        "fake": lambda x: ops.fake_quant_per_channel(x, scales, zeros, 0, -128, 127),
        "groups": in_groups,
        "range": lambda x: by_range(ops.choose_qparams, x, int8),
        "unsigned range": lambda x: by_range(ops.choose_qparams, x, uint8),
        "symmetric range": lambda x: by_range(ops.choose_qparams_symmetric, x, int8),
        "symmetric unsigned range": lambda x: by_range(ops.choose_qparams_symmetric, x, uint8),
        "type": lambda x: ops.convert_element_type.no_fuse(x, torch.float16),
    }
    check_all(functions, [numbers(3, 4) * 5])


def test_scales_that_a_program_changes_are_not_constants():
    """A buffer that is written to is read anew in every run."""

    class Follows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([0.5, 0.25]))
            self.register_buffer("zero", torch.tensor([0, 0]))

        def forward(self, x):
            made = torch.fake_quantize_per_channel_affine(x, self.scale, self.zero.int(), 0, -128, 127)
            self.scale.mul_(2)
            return made

    model, x = Follows(), numbers(2, 3)
    program = torch.export.export(model, (x,))
    module, params = from_exported_program(program)
    for _ in range(2):
        # First, because the model's buffer is the parameter's memory.
        found = run(module, params, [x])
        with torch.no_grad():
            (wanted,) = leaves(model(x))
        np.testing.assert_allclose(found[0], wanted.numpy(), rtol=1e-6)
        params = {**params, "scale": tvm.nd.array(found[1])}


def test_training_for_integers():
    """Fake quantisation with known scales is on integers as well."""

    class Trained(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(numbers(6, 8, seed=4))

        def forward(self, x):
            x = torch.fake_quantize_per_tensor_affine(x, 0.04, 3, -128, 127)
            weight = torch.fake_quantize_per_tensor_affine(self.weight, 0.02, 0, -127, 127)
            return torch.fake_quantize_per_tensor_affine(nn.functional.linear(x, weight), 0.1, 5, 0, 255)

    module = check(Trained(), [numbers(3, 8)], rtol=0, atol=0.1001)
    found = operators(relay.transform.InferType()(SinkDequantize()(module)))
    assert "qnn.dense" in found and "qnn.requantize" in found
