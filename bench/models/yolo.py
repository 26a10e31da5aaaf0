"""A detector in the manner of YOLOv5's smallest: a backbone that halves five times, and heads at three sizes."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import conv_norm

CLASSES, ANCHORS = 80, 3


class Block(nn.Sequential):
    """A convolution with its norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__(*conv_norm(inputs, outputs, kernel, stride, (kernel - 1) // 2), nn.SiLU())


class Split(nn.Module):
    """Half of the channels go through residual blocks, the other half around them."""

    def __init__(self, inputs: int, outputs: int, depth: int, residual: bool = True) -> None:
        super().__init__()
        half = outputs // 2
        self.through, self.around, self.last = (
            Block(inputs, half),
            Block(inputs, half),
            Block(outputs, outputs),
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(Block(half, half), Block(half, half, 3)) for _ in range(depth)
        )
        self.residual = residual

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        through = self.through(value)
        for block in self.blocks:
            through = through + block(through) if self.residual else block(through)
        return self.last(torch.cat([through, self.around(value)], 1))


class Pyramid(nn.Module):
    """Maxima of three sizes beside the value itself."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = Block(channels, channels // 2), Block(2 * channels, channels)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        kept = [self.first(value)]
        for _ in range(3):
            kept.append(nn.functional.max_pool2d(kept[-1], 5, 1, 2))
        return self.last(torch.cat(kept, 1))


class Yolo(nn.Module):
    """Scores of anchors at an eighth, a sixteenth and a thirty-second of the size."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(Block(3, 16, 6, 2), Block(16, 32, 3, 2), Split(32, 32, 1))
        self.eighth = nn.Sequential(Block(32, 64, 3, 2), Split(64, 64, 2))
        self.sixteenth = nn.Sequential(Block(64, 128, 3, 2), Split(128, 128, 3))
        self.last = nn.Sequential(Block(128, 256, 3, 2), Split(256, 256, 1), Pyramid(256))
        self.narrow = nn.ModuleList([Block(256, 128), Block(128, 64)])
        self.up = nn.ModuleList([Split(256, 128, 1, False), Split(128, 64, 1, False)])
        self.down = nn.ModuleList([Block(64, 64, 3, 2), Block(128, 128, 3, 2)])
        self.merge = nn.ModuleList([Split(128, 128, 1, False), Split(256, 256, 1, False)])
        self.heads = nn.ModuleList(nn.Conv2d(width, ANCHORS * (CLASSES + 5), 1) for width in (64, 128, 256))

    def forward(self, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        eighth = self.eighth(self.start(value))
        sixteenth = self.sixteenth(eighth)
        wide = self.narrow[0](self.last(sixteenth))
        middle = self.up[0](torch.cat([nn.functional.interpolate(wide, scale_factor=2.0), sixteenth], 1))
        middle = self.narrow[1](middle)
        fine = self.up[1](torch.cat([nn.functional.interpolate(middle, scale_factor=2.0), eighth], 1))
        middle = self.merge[0](torch.cat([self.down[0](fine), middle], 1))
        wide = self.merge[1](torch.cat([self.down[1](middle), wide], 1))
        return tuple(head(one).sigmoid() for head, one in zip(self.heads, (fine, middle, wide), strict=True))
