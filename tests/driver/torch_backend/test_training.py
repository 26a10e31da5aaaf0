"""Training: the forward and the backward graph are compiled, and gradients are eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tilewright.driver.torch_backend.convolution_gradient import convolution_backward  # noqa: E402


def test_steps_of_training(compiled: Callable[..., Any]) -> None:
    """Losses, running statistics and parameters go the same way for several steps."""
    layers = [
        nn.Conv2d(3, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 3),
    ]
    model = nn.Sequential(*layers)
    twin = copy.deepcopy(model)
    call = compiled(model)
    value, wanted = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 1])
    optimizers = [torch.optim.SGD(one.parameters(), 0.1) for one in (model, twin)]
    for _ in range(3):
        losses = []
        for function, optimizer in zip((call, twin), optimizers, strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(function(value), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        torch.testing.assert_close(*losses)
    for found, expected in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_dropout_draws_from_the_generator_of_pytorch(compiled: Callable[..., Any]) -> None:
    """Random operators are left to PyTorch, so that a seed gives what it gives in eager."""
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Tanh())
    value = torch.randn(3, 8)
    call = compiled(model, {"fallback": True})
    torch.manual_seed(5)
    with pytest.warns(UserWarning, match="leaves to PyTorch: aten::native_dropout"):
        found = call(value)
    torch.manual_seed(5)
    torch.testing.assert_close(found, model(value))
    found.sum().backward()
    assert model[0].weight.grad is not None


@pytest.mark.parametrize(
    ("channels", "results", "groups", "kernel", "stride", "padding", "dilation"),
    [(4, 6, 1, 3, 1, 1, 1), (4, 6, 2, 3, 2, 1, 1), (4, 4, 4, 3, 2, 0, 2), (3, 5, 1, 4, 3, 2, 1)],
)
def test_gradients_of_a_convolution(
    channels: int, results: int, groups: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    data = torch.randn(2, channels, 9, 10, dtype=torch.float64)
    weight = torch.randn(results, channels // groups, kernel, kernel, dtype=torch.float64)
    options = ([stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups)
    grad = torch.randn_like(torch.ops.aten.convolution(data, weight, None, *options))
    found = convolution_backward(grad, data, weight, [results], *options, [True] * 3)
    wanted = torch.ops.aten.convolution_backward(grad, data, weight, [results], *options, [True] * 3)
    for have, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(have, want)
