"""A PyTorch model compiled by Tilewright: inference, a changed weight, and training.

Run it:  python examples/torch_compile.py

``torch.compile(model, backend="tilewright")`` is all that is needed where Tilewright is installed: PyTorch finds the
backend by its name. Run from a source tree, which has no installed metadata, the program hands the backend over itself.
"""

from __future__ import annotations

import time

import torch
from torch import nn

from tilewright.driver.torch_backend import tilewright


def network() -> nn.Module:
    """Two convolutions and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def inference() -> None:
    """In inference the weights are constants, packed as the kernels read them, until one of them changes."""
    model = network().eval()
    compiled = torch.compile(model, backend=tilewright)
    image = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        started = time.perf_counter()
        found = compiled(image)
        print(f"compiled in {time.perf_counter() - started:.1f} s")
        torch.testing.assert_close(found, model(image))
        model[0].weight.mul_(2)
        torch.testing.assert_close(compiled(image), model(image))
        print("inference: agrees with eager PyTorch, before and after a weight changed")


def training() -> None:
    """In training the forward and the backward graph are compiled, and the optimiser is PyTorch's."""
    torch.manual_seed(0)
    model = network()
    compiled = torch.compile(model, backend=tilewright)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    images, labels = torch.randn(16, 3, 16, 16), torch.arange(16) % 10
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(compiled(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    print(f"training: loss {losses[0]:.2f} to {losses[-1]:.2f}")


def sizes() -> None:
    """The second size makes the graph one for all sizes."""
    layer = nn.Linear(8, 4)
    compiled = torch.compile(lambda x: layer(x).softmax(-1), backend=tilewright)
    with torch.no_grad():
        for rows in (2, 3, 5, 8):
            value = torch.randn(rows, 8)
            torch.testing.assert_close(compiled(value), layer(value).softmax(-1))
    print("sizes: 2, 3, 5 and 8 rows")


if __name__ == "__main__":
    inference()
    training()
    sizes()
