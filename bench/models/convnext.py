"""ConvNeXt-tiny (Liu and others, 2022)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import SEED, Recipe, image, transformer_weights


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the channels of an image."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return super().forward(value.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """Depthwise 7x7, norm, widen, GELU, narrow, with the channels last."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, 1e-6)
        self.widen = nn.Linear(width, 4 * width)
        self.shrink = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.rand(width, 1, 1) + 0.5)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        last = self.depthwise(value).permute(0, 2, 3, 1)
        last = self.shrink(nn.functional.gelu(self.widen(self.norm(last))))
        return value + self.scale * last.permute(0, 3, 1, 2)


def convnext_tiny() -> nn.Module:
    """Stages of 3, 3, 9 and 3 blocks."""
    torch.manual_seed(SEED)
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, 1e-6)]
    inputs = 96
    for width, depth in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != inputs:
            layers += [ChannelNorm(inputs, 1e-6), nn.Conv2d(inputs, width, 2, 2)]
            inputs = width
        layers += [Block(width) for _ in range(depth)]
    layers += [nn.AdaptiveAvgPool2d(1), ChannelNorm(768, 1e-6), nn.Flatten(), nn.Linear(768, 1000)]
    return transformer_weights(nn.Sequential(*layers), 18)


RECIPES = {"convnext_tiny": Recipe(convnext_tiny, image(224))}
