"""Inception-V3 (Szegedy and others, 2015), without the auxiliary head."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded


def conv(inputs: int, outputs: int, kernel: Any, stride: int = 1, padding: Any = 0) -> nn.Sequential:
    """A convolution with norm and activation."""
    return nn.Sequential(*conv_norm(inputs, outputs, kernel, stride, padding), nn.ReLU())


class Branches(nn.Module):
    """The results of several branches on one value, concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(value) for branch in self.branches], 1)


def pooled(inputs: int, outputs: int) -> nn.Sequential:
    """The branch that averages its neighbourhood."""
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(inputs, outputs, 1))


def split(inputs: int, outputs: int) -> Branches:
    """1x3 and 3x1 side by side."""
    return Branches(conv(inputs, outputs, (1, 3), 1, (0, 1)), conv(inputs, outputs, (3, 1), 1, (1, 0)))


def block_a(inputs: int, pool: int) -> Branches:
    """At 35x35."""
    return Branches(
        conv(inputs, 64, 1),
        nn.Sequential(conv(inputs, 48, 1), conv(48, 64, 5, 1, 2)),
        nn.Sequential(conv(inputs, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 1, 1)),
        pooled(inputs, pool),
    )


def block_b(inputs: int) -> Branches:
    """From 35x35 to 17x17."""
    deep = nn.Sequential(conv(inputs, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 2))
    return Branches(conv(inputs, 384, 3, 2), deep, nn.MaxPool2d(3, 2))


def block_c(inputs: int, width: int) -> Branches:
    """At 17x17, with 7x7 taken apart into 1x7 and 7x1."""
    row = lambda a, b: conv(a, b, (1, 7), 1, (0, 3))
    column = lambda a, b: conv(a, b, (7, 1), 1, (3, 0))
    return Branches(
        conv(inputs, 192, 1),
        nn.Sequential(conv(inputs, width, 1), row(width, width), column(width, 192)),
        nn.Sequential(
            conv(inputs, width, 1),
            column(width, width),
            row(width, width),
            column(width, width),
            row(width, 192),
        ),
        pooled(inputs, 192),
    )


def block_d(inputs: int) -> Branches:
    """From 17x17 to 8x8."""
    return Branches(
        nn.Sequential(conv(inputs, 192, 1), conv(192, 320, 3, 2)),
        nn.Sequential(
            conv(inputs, 192, 1),
            conv(192, 192, (1, 7), 1, (0, 3)),
            conv(192, 192, (7, 1), 1, (3, 0)),
            conv(192, 192, 3, 2),
        ),
        nn.MaxPool2d(3, 2),
    )


def block_e(inputs: int) -> Branches:
    """At 8x8."""
    return Branches(
        conv(inputs, 320, 1),
        nn.Sequential(conv(inputs, 384, 1), split(384, 384)),
        nn.Sequential(conv(inputs, 448, 1), conv(448, 384, 3, 1, 1), split(384, 384)),
        pooled(inputs, 192),
    )


def inception_v3() -> nn.Sequential:
    """The whole network."""
    return nn.Sequential(
        conv(3, 32, 3, 2),
        conv(32, 32, 3),
        conv(32, 64, 3, 1, 1),
        nn.MaxPool2d(3, 2),
        conv(64, 80, 1),
        conv(80, 192, 3),
        nn.MaxPool2d(3, 2),
        block_a(192, 32),
        block_a(256, 64),
        block_a(288, 64),
        block_b(288),
        block_c(768, 128),
        block_c(768, 160),
        block_c(768, 160),
        block_c(768, 192),
        block_d(768),
        block_e(1280),
        block_e(2048),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )


RECIPES = {"inception_v3": Recipe(lambda: seeded(inception_v3, image(299)), image(299))}
