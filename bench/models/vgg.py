"""VGG-16 (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from torch import nn

from models.recipe import Recipe, image, seeded

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16() -> nn.Sequential:
    """Thirteen 3x3 convolutions in five stages, and three dense layers."""
    layers: list[nn.Module] = []
    inputs = 3
    for width, depth in STAGES:
        for _ in range(depth):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))


RECIPES = {"vgg16": Recipe(lambda: seeded(vgg16, image(224)), image(224))}
