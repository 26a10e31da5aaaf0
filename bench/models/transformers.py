"""Encoders: ViT-B/16 (Dosovitskiy and others, 2020) and BERT-base (Devlin and others, 2018)."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import SEED, Recipe, image, transformer_weights

WIDTH, HEADS, LAYERS, TOKENS, VOCABULARY = 768, 12, 12, 128, 30522


class Attention(nn.Module):
    """Attention of all positions to all, or to those of the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, given: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        batch, length, _ = given.shape
        heads = [
            layer(given).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        # The scale is said, so that the exported model has it as a number instead of computing it.
        taken = nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask, scale=0.125)
        return self.project(taken.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    """Attention and a dense part; the norm is before each (ViT) or after the sum (BERT)."""

    def __init__(self, before: bool, epsilon: float) -> None:
        super().__init__()
        self.before = before
        self.attention = Attention()
        self.first, self.second = nn.LayerNorm(WIDTH, epsilon), nn.LayerNorm(WIDTH, epsilon)
        self.widen, self.shrink = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def dense(self, value: torch.Tensor) -> torch.Tensor:
        return self.shrink(nn.functional.gelu(self.widen(value)))

    def forward(self, value: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if self.before:
            value = value + self.attention(self.first(value), mask)
            return value + self.dense(self.second(value))
        value = self.first(value + self.attention(value, mask))
        return self.second(value + self.dense(value))


class VisionTransformer(nn.Module):
    """Patches of 16x16 of an image of 224x224."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 16, 16)
        self.mark = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.5)
        self.positions = nn.Parameter(torch.randn(1, 197, WIDTH) * 0.5)
        self.layers = nn.ModuleList(Layer(True, 1e-6) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, 1e-6)
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        value = self.patches(value).flatten(2).transpose(1, 2)
        mark = self.mark if len(value) == 1 else self.mark.expand(len(value), -1, -1)
        value = torch.cat([mark, value], 1) + self.positions
        for layer in self.layers:
            value = layer(value)
        return self.head(self.norm(value)[:, 0])


class Bert(nn.Module):
    """The encoder with its pooled output."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.kinds = nn.Embedding(2, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, TOKENS, WIDTH) * 0.05)
        self.norm = nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer(False, 1e-12) for _ in range(LAYERS))
        self.pool = nn.Linear(WIDTH, WIDTH)

    def forward(
        self, tokens: torch.Tensor, kinds: torch.Tensor, kept: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        value = self.norm(self.words(tokens) + self.kinds(kinds) + self.positions)
        mask = (1.0 - kept.to(value.dtype))[:, None, None, :] * -10000.0
        for layer in self.layers:
            value = layer(value, mask)
        return value, torch.tanh(self.pool(value[:, 0]))


def vit() -> nn.Module:
    """With seeded weights."""
    torch.manual_seed(SEED)
    return transformer_weights(VisionTransformer(), LAYERS)


def bert() -> nn.Module:
    """With seeded weights."""
    torch.manual_seed(SEED)
    return transformer_weights(Bert(), LAYERS)


def sentence() -> dict[str, torch.Tensor]:
    """Two sentences of random words, the last tokens padding."""
    place = torch.arange(TOKENS)[None]
    return {
        "tokens": torch.randint(0, VOCABULARY, (1, TOKENS)),
        "kinds": (place >= 60).to(torch.int64),
        "kept": (place < 120).to(torch.int64),
    }


RECIPES = {
    "vit_b_16": Recipe(vit, image(224)),
    "bert_base": Recipe(bert, sentence, ("hidden", "pooled")),
}
