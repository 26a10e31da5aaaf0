"""The generator of DCGAN (Radford and others, 2015): transposed convolutions up to 64x64."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, seeded


def generator() -> nn.Sequential:
    """From 100 numbers to an image."""
    layers: list[nn.Module] = [
        nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False),
        nn.BatchNorm2d(512),
        nn.ReLU(),
    ]
    for width in (512, 256, 128):
        layers += [
            nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width // 2),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


def noise() -> dict[str, torch.Tensor]:
    """The generator's input."""
    return {"input": torch.randn(1, 100, 1, 1)}


RECIPES = {"dcgan": Recipe(lambda: seeded(generator, noise), noise)}
