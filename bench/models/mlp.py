"""A multi-layer perceptron for a batch of one row."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from models.recipe import Recipe, seeded


def mlp() -> nn.Sequential:
    """From 784 pixels through three hidden layers to ten classes."""
    sizes = (784, 2048, 2048, 1024, 10)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def row() -> dict[str, torch.Tensor]:
    """One row of noise."""
    return {"input": torch.randn(1, 784)}


RECIPES = {"mlp": Recipe(lambda: seeded(mlp, row), row)}
