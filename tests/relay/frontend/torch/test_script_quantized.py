"""Quantised modules: results are PyTorch's, to the step."""

import warnings

import numpy as np
import pytest
import torch
import torch.ao.quantization as quantization
from tests.relay.frontend.torch.script_models import imported, results, scripted, traced
from torch import nn

from tilewright.relay.frontend import from_pytorch
from tilewright.support.errors import ModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not {"fbgemm", "x86", "onednn"} & set(torch.backends.quantized.supported_engines),
        reason="PyTorch has no kernels for quantised tensors here",
    ),
]


class Net(nn.Module):
    """Most of what static quantisation knows."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.last = nn.Linear(16, 5)
        self.add, self.cat, self.mul, self.scale, self.shift = (
            nn.quantized.FloatFunctional() for _ in range(5)
        )
        self.swish, self.gate, self.pool = nn.Hardswish(), nn.Hardsigmoid(), nn.MaxPool2d(2)

    def forward(self, x):
        x = self.conv(self.quant(x))
        y = self.depthwise(x)
        x = self.cat.cat([self.add.add(x, y), y], 1)
        x = self.mul.mul(self.swish(x), self.gate(x))
        x = self.up(self.pool(x))
        x = self.shift.add_scalar(self.scale.mul_scalar(x, -0.3), 0.2)
        x = nn.functional.relu(x[:, :, 1:]).mean([2, 3])
        return self.dequant(self.last(x))


def converted(per_channel):
    """The module after static quantisation."""
    torch.manual_seed(0)
    module = Net().eval()
    quantization.fuse_modules(module.conv, ["0", "1", "2"], inplace=True)
    if per_channel:
        module.qconfig = quantization.get_default_qconfig("fbgemm")
        module.up.qconfig = quantization.default_qconfig
    else:
        module.qconfig = quantization.QConfig(
            activation=quantization.MovingAverageMinMaxObserver.with_args(reduce_range=False),
            weight=quantization.default_weight_observer,
        )
    quantization.prepare(module, inplace=True)
    module(torch.rand(2, 3, 16, 16))
    return quantization.convert(module, inplace=True)


@pytest.mark.parametrize("per_channel", [False, True])
def test_static_quantization(per_channel):
    """Traced and scripted, the output is at most one step away."""
    module = converted(per_channel)
    x = torch.rand(2, 3, 16, 16)
    expected = module(x).numpy()
    for script in (traced(module, x), scripted(module)):
        (found,) = results(script, [x])
        assert np.abs(found - expected).max() <= 1.01 * module.last.scale


def test_quantized_weights_are_kept_where_asked_for():
    """Parameters are then integers."""
    module = converted(True)
    x = torch.rand(2, 3, 16, 16)
    script = traced(module, x)
    _, params = from_pytorch(script, [("x", tuple(x.shape))], keep_quantized_weight=True)
    assert {str(value.dtype) for value in params.values()} == {"int8", "int32"}
    _, params = from_pytorch(script, [("x", tuple(x.shape))])
    assert {str(value.dtype) for value in params.values()} == {"float32"}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True)
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.lstm(x)[0])


def test_dynamic_quantization():
    """Linear and LSTM layers, whose data are quantised by their range."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = quantization.quantize_dynamic(Recurrent(), {nn.LSTM, nn.Linear}, dtype=torch.qint8)
    x = torch.randn(5, 2, 4)
    (found,) = results(traced(module, x), [x])
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_quantized_tensors_cannot_do_is_said():
    """An operator without a quantised form, and an output that is quantised."""

    def cosine(x):
        return torch.cos(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)).dequantize()

    with pytest.raises(
        ModelError, match=r"aten::cos.*not supported for quantised tensors: dequantize before it"
    ):
        imported(scripted(cosine), [torch.rand(3)])

    def quantized_output(x):
        return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)

    with pytest.raises(ModelError, match="output of the model is a quantised tensor"):
        imported(scripted(quantized_output), [torch.rand(3)])
