"""DenseNet-121 (Huang and others, 2016)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded

GROWTH = 32


class Layer(nn.Module):
    """Norm before convolution, 1x1 then 3x3; the input is concatenated with the 32 new channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            *conv_norm(inputs, 4 * GROWTH, 1),
            nn.ReLU(),
            nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False),
        )

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.cat([value, self.new(value)], 1)


def densenet121() -> nn.Sequential:
    """Four dense blocks with halving transitions between them."""
    layers: list[nn.Module] = [*conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for number, depth in enumerate((6, 12, 24, 16)):
        if number:
            convolution = nn.Conv2d(width, width // 2, 1, bias=False)
            layers += [nn.BatchNorm2d(width), nn.ReLU(), convolution, nn.AvgPool2d(2)]
            width //= 2
        for _ in range(depth):
            layers.append(Layer(width))
            width += GROWTH
    layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(width, 1000))


RECIPES = {"densenet121": Recipe(lambda: seeded(densenet121, image(224)), image(224))}
