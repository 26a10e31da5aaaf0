"""Style transfer with instance norms (Johnson and others, 2016; Ulyanov and others, 2016)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, image, seeded


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Padded by reflection, with an instance norm."""
    return [
        nn.ReflectionPad2d(kernel // 2),
        nn.Conv2d(inputs, outputs, kernel, stride),
        nn.InstanceNorm2d(outputs, affine=True),
    ]


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(*conv(width, width, 3), nn.ReLU(), *conv(width, width, 3))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return value + self.residual(value)


def style_transfer() -> nn.Sequential:
    """Down to a quarter of the size, five blocks, and up again by repeating pixels."""
    return nn.Sequential(
        *[*conv(3, 32, 9), nn.ReLU(), *conv(32, 64, 3, 2), nn.ReLU(), *conv(64, 128, 3, 2), nn.ReLU()],
        *[Block(128) for _ in range(5)],
        *[nn.Upsample(scale_factor=2.0), *conv(128, 64, 3), nn.ReLU()],
        *[nn.Upsample(scale_factor=2.0), *conv(64, 32, 3), nn.ReLU()],
        *[nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9)],
    )


RECIPES = {"style_transfer": Recipe(lambda: seeded(style_transfer, image(224)), image(224))}
