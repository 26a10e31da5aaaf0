"""ShuffleNet-V2 of full width (Ma and others, 2018)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded


def branch(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """1x1, depthwise 3x3, 1x1."""
    return nn.Sequential(
        *conv_norm(inputs, outputs, 1),
        nn.ReLU(),
        *conv_norm(outputs, outputs, 3, stride, groups=outputs),
        *conv_norm(outputs, outputs, 1),
        nn.ReLU(),
    )


def shuffled(value: torch.Tensor) -> torch.Tensor:
    """Channels of the two halves interleaved."""
    batch, channels, height, width = value.shape
    return value.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(value.shape)


class Unit(nn.Module):
    """Half of the channels pass, the other half go through the branch; then they are shuffled."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = branch(width // 2, width // 2, 1)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        kept, changed = value.chunk(2, 1)
        return shuffled(torch.cat([kept, self.branch(changed)], 1))


class Down(nn.Module):
    """Both halves are made from all channels, at half the size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.left = nn.Sequential(
            *conv_norm(inputs, inputs, 3, 2, groups=inputs), *conv_norm(inputs, half, 1), nn.ReLU()
        )
        self.right = branch(inputs, half, 2)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return shuffled(torch.cat([self.left(value), self.right(value)], 1))


def shufflenet_v2() -> nn.Sequential:
    """The network of width 1.0."""
    layers: list[nn.Module] = [*conv_norm(3, 24, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 24
    for width, depth in ((116, 4), (232, 8), (464, 4)):
        layers += [Down(inputs, width), *[Unit(width) for _ in range(depth - 1)]]
        inputs = width
    layers += [*conv_norm(464, 1024, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1024, 1000))


RECIPES = {"shufflenet_v2": Recipe(lambda: seeded(shufflenet_v2, image(224)), image(224))}
