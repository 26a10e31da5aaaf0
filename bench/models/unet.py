"""A small U-Net (Ronneberger and others, 2015): four halvings from 16 channels, images of 256x256."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded

WIDTHS = (16, 32, 64, 128)


def double(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3x3 convolutions."""
    return nn.Sequential(
        *conv_norm(inputs, outputs, 3), nn.ReLU(), *conv_norm(outputs, outputs, 3), nn.ReLU()
    )


class UNet(nn.Module):
    """The encoder's features at each size are concatenated with the decoder's."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            double(inputs, outputs) for inputs, outputs in zip((3, *WIDTHS), WIDTHS, strict=False)
        )
        self.middle = double(WIDTHS[-1], 2 * WIDTHS[-1])
        self.rise = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in reversed(WIDTHS))
        self.up = nn.ModuleList(double(2 * width, width) for width in reversed(WIDTHS))
        self.last = nn.Conv2d(WIDTHS[0], 2, 1)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        kept = []
        for stage in self.down:
            kept.append(stage(value))
            value = nn.functional.max_pool2d(kept[-1], 2)
        value = self.middle(value)
        for rise, stage in zip(self.rise, self.up, strict=True):
            value = stage(torch.cat([rise(value), kept.pop()], 1))
        return self.last(value)


RECIPES = {"unet": Recipe(lambda: seeded(UNet, image(256)), image(256))}
