"""The network that plays Atari (Mnih and others, 2015)."""

from __future__ import annotations

from torch import nn

from models.recipe import Recipe, image, seeded


def dqn() -> nn.Sequential:
    """From four frames of 84x84 to the worth of 18 actions."""
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, 18),
    )


RECIPES = {"dqn": Recipe(lambda: seeded(dqn, image(84, 4)), image(84, 4))}
