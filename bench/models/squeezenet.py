"""SqueezeNet 1.1 (Iandola and others, 2016)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, image, seeded


class Fire(nn.Module):
    """A 1x1 squeeze, then 1x1 and 3x3 side by side."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.narrow = nn.Conv2d(squeezed, expanded, 1)
        self.broad = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        squeezed = torch.relu(self.squeeze(value))
        return torch.cat([torch.relu(self.narrow(squeezed)), torch.relu(self.broad(squeezed))], 1)


def squeezenet() -> nn.Sequential:
    """Version 1.1."""
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2),
        nn.ReLU(),
        pool(),
        Fire(64, 16, 64),
        Fire(128, 16, 64),
        pool(),
        Fire(128, 32, 128),
        Fire(256, 32, 128),
        pool(),
        Fire(256, 48, 192),
        Fire(384, 48, 192),
        Fire(384, 64, 256),
        Fire(512, 64, 256),
        nn.Conv2d(512, 1000, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


RECIPES = {"squeezenet_1_1": Recipe(lambda: seeded(squeezenet, image(224)), image(224))}
