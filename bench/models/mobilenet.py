"""MobileNet-V2 (Sandler and others, 2018) and V3-large (Howard and others, 2019)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, image, seeded


class SqueezeExcite(nn.Module):
    """Scales each channel by what a small network makes of the mean of all of them."""

    def __init__(self, width: int, squeezed: int, activation: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(width, squeezed, 1),
            activation,
            nn.Conv2d(squeezed, width, 1),
            gate,
        )

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return value * self.scale(value)


class InvertedResidual(nn.Module):
    """Widen with 1x1, a depthwise convolution, narrow with 1x1; a shortcut where the shape stays."""

    def __init__(
        self,
        inputs: int,
        wide: int,
        outputs: int,
        kernel: int,
        stride: int,
        activation: type[nn.Module],
        excite: nn.Module | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if wide != inputs:
            layers += [*conv_norm(inputs, wide, 1), activation()]
        layers += [*conv_norm(wide, wide, kernel, stride, groups=wide), activation()]
        if excite is not None:
            layers.append(excite)
        self.residual = nn.Sequential(*layers, *conv_norm(wide, outputs, 1))
        self.kept = stride == 1 and inputs == outputs

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        changed: torch.Tensor = self.residual(value)
        return value + changed if self.kept else changed


V2_STAGES = (
    # widening, outputs, depth, stride
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)

V3_BLOCKS = (
    # kernel, wide, outputs, squeeze and excite, hard swish, stride
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)


def mobilenet_v2() -> nn.Sequential:
    """Version 2, of full width."""
    layers: list[nn.Module] = [*conv_norm(3, 32, 3, 2), nn.ReLU6()]
    inputs = 32
    for widening, outputs, depth, stride in V2_STAGES:
        for index in range(depth):
            step = 1 if index else stride
            layers.append(InvertedResidual(inputs, widening * inputs, outputs, 3, step, nn.ReLU6))
            inputs = outputs
    layers += [*conv_norm(320, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, 1000))


def mobilenet_v3_large() -> nn.Sequential:
    """Version 3, large."""
    layers: list[nn.Module] = [*conv_norm(3, 16, 3, 2), nn.Hardswish()]
    inputs = 16
    for kernel, wide, outputs, excited, hard, stride in V3_BLOCKS:
        squeezed = (wide // 4 + 4) // 8 * 8
        excite = SqueezeExcite(wide, squeezed, nn.ReLU(), nn.Hardsigmoid()) if excited else None
        activation = nn.Hardswish if hard else nn.ReLU
        layers.append(InvertedResidual(inputs, wide, outputs, kernel, stride, activation, excite))
        inputs = outputs
    layers += [*conv_norm(160, 960, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))


RECIPES = {
    "mobilenet_v2": Recipe(lambda: seeded(mobilenet_v2, image(224)), image(224)),
    "mobilenet_v3_large": Recipe(lambda: seeded(mobilenet_v3_large, image(224)), image(224)),
}
