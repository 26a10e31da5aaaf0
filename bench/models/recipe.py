"""The description of a benchmark model, and initial weights with plausible values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SEED = 20


@dataclass(frozen=True)
class Recipe:
    """How to make a model (with its weights) and its inputs by name, and what its outputs are called."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]
    outputs: tuple[str, ...] = ("output",)


def image(size: int, channels: int = 3) -> Callable[[], dict[str, torch.Tensor]]:
    """One square image of normal noise, as a normalised photograph would be spread."""
    return lambda: {"input": torch.randn(1, channels, size, size)}


def seeded(model: Callable[[], nn.Module], example: Callable[[], dict[str, torch.Tensor]]) -> nn.Module:
    """A model with Kaiming weights whose batch norms have the statistics of a batch that went through it.

    Without the statistics the activations of an untrained network grow or fade from layer to layer, and comparing
    the outputs of two runtimes would say nothing.
    """
    torch.manual_seed(SEED)
    made = model()
    for module in made.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.02)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.6, 1.0)
            nn.init.normal_(module.bias, std=0.1)
    norms = [module for module in made.modules() if isinstance(module, nn.BatchNorm2d)]
    if norms:
        made.train()
        for norm in norms:
            # No momentum: the running statistics become those of this one batch.
            norm.momentum = 1.0
        batch = [torch.cat([value, example()[name]]) for name, value in example().items()]
        with torch.no_grad():
            made(*batch)
    return made.eval()


def transformer_weights(made: nn.Module, layers: int) -> nn.Module:
    """Weights as transformers start with: small, and smaller still where a sum over layers takes them up."""
    for name, module in made.named_modules():
        if isinstance(module, (nn.Linear, nn.Embedding, nn.Conv2d)):
            shrunk = (2 * layers) ** -0.5 if name.endswith(("project", "shrink")) else 1.0
            nn.init.normal_(module.weight, std=0.05 * shrunk)
            if not isinstance(module, nn.Embedding) and module.bias is not None:
                nn.init.normal_(module.bias, std=0.02)
        if isinstance(module, nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.8, 1.2)
            nn.init.normal_(module.bias, std=0.02)
    return made.eval()


def conv_norm(
    inputs: int, outputs: int, kernel: Any, stride: int = 1, padding: Any = None, groups: int = 1
) -> list[nn.Module]:
    """A convolution without a bias, and its batch norm; padded to keep the size unless told otherwise."""
    if padding is None:
        padding = kernel // 2
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
