"""EfficientNet-B0 (Tan and Le, 2019)."""

from __future__ import annotations

from torch import nn

from models.mobilenet import InvertedResidual, SqueezeExcite
from models.recipe import Recipe, conv_norm, image, seeded

STAGES = (
    # widening, outputs, depth, kernel, stride
    (1, 16, 1, 3, 1),
    (6, 24, 2, 3, 2),
    (6, 40, 2, 5, 2),
    (6, 80, 3, 3, 2),
    (6, 112, 3, 5, 1),
    (6, 192, 4, 5, 2),
    (6, 320, 1, 3, 1),
)


def efficientnet_b0() -> nn.Sequential:
    """Inverted residuals with squeeze-and-excite and SiLU throughout."""
    layers: list[nn.Module] = [*conv_norm(3, 32, 3, 2), nn.SiLU()]
    inputs = 32
    for widening, outputs, depth, kernel, stride in STAGES:
        for index in range(depth):
            wide = widening * inputs
            excite = SqueezeExcite(wide, inputs // 4, nn.SiLU(), nn.Sigmoid())
            step = 1 if index else stride
            layers.append(InvertedResidual(inputs, wide, outputs, kernel, step, nn.SiLU, excite))
            inputs = outputs
    layers += [*conv_norm(320, 1280, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, 1000))


RECIPES = {"efficientnet_b0": Recipe(lambda: seeded(efficientnet_b0, image(224)), image(224))}
