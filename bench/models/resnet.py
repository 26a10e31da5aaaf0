"""Residual networks (He and others, 2015): ResNet-18 and ResNet-50."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded


class Block(nn.Module):
    """Two 3x3 convolutions, or a bottleneck of 1x1, 3x3 and 1x1, with a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            layers = [
                *conv_norm(inputs, width, 1),
                nn.ReLU(),
                *conv_norm(width, width, 3, stride),
                nn.ReLU(),
                *conv_norm(width, outputs, 1),
            ]
        else:
            layers = [*conv_norm(inputs, width, 3, stride), nn.ReLU(), *conv_norm(width, width, 3)]
        self.residual = nn.Sequential(*layers)
        self.shortcut = (
            nn.Sequential(*conv_norm(inputs, outputs, 1, stride))
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.residual(value) + self.shortcut(value))


def resnet(depths: tuple[int, ...], bottleneck: bool) -> nn.Sequential:
    """The whole network, with these many blocks a stage."""
    layers: list[nn.Module] = [*conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for index in range(depth):
            layers.append(Block(inputs, width, 2 if stage and not index else 1, bottleneck))
            inputs = 4 * width if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


RECIPES = {
    "resnet18": Recipe(lambda: seeded(lambda: resnet((2, 2, 2, 2), False), image(224)), image(224)),
    "resnet50": Recipe(lambda: seeded(lambda: resnet((3, 4, 6, 3), True), image(224)), image(224)),
}
