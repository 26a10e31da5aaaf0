"""GPT-2 small (Radford and others, 2019): one token with a cache of 128, and a prompt of 128 tokens."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import SEED, Recipe, transformer_weights

WIDTH, HEADS, LAYERS, VOCABULARY, POSITIONS, LENGTH = 768, 12, 12, 50257, 1024, 128
HEAD = WIDTH // HEADS


class Layer(nn.Module):
    """Attention to what came before, which the cache holds, and a dense part."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.shrink = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(
        self, given: torch.Tensor, past: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length, _ = given.shape
        query, key, value = (
            part.reshape(batch, length, HEADS, HEAD).transpose(1, 2)
            for part in self.attend(self.first(given)).split(WIDTH, 2)
        )
        mask = None
        if past is None:
            # Added to the scores: a number for each pair, known when the model is exported.
            mask = torch.full((length, length), -10000.0).triu(1)
        else:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        taken = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=HEAD**-0.5
        )
        given = given + self.project(taken.transpose(1, 2).reshape(batch, length, WIDTH))
        dense = nn.functional.gelu(self.widen(self.second(given)), approximate="tanh")
        return given + self.shrink(dense), key, value


class Gpt2(nn.Module):
    """The scores of the next token, and the cache for the one after."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        value = self.words(tokens) + self.positions(positions)
        cache = []
        for number, layer in enumerate(self.layers):
            held = (past[2 * number], past[2 * number + 1]) if past else None
            value, *new = layer(value, held)
            cache += new
        return nn.functional.linear(self.norm(value[:, -1]), self.words.weight), *cache


def gpt2() -> nn.Module:
    """With seeded weights."""
    torch.manual_seed(SEED)
    return transformer_weights(Gpt2(), LAYERS)


def prompt() -> dict[str, torch.Tensor]:
    """The first tokens of a text."""
    return {"tokens": torch.randint(0, VOCABULARY, (1, LENGTH)), "positions": torch.arange(LENGTH)[None]}


def token() -> dict[str, torch.Tensor]:
    """One token after as many that the cache holds."""
    start = {"tokens": torch.randint(0, VOCABULARY, (1, 1)), "positions": torch.tensor([[LENGTH]])}
    return start | {name: torch.randn(1, HEADS, LENGTH, HEAD) for name in cache_names("past")}


def cache_names(prefix: str) -> tuple[str, ...]:
    """The names of all layers' keys and values."""
    return tuple(f"{prefix}_{number}_{part}" for number in range(LAYERS) for part in ("key", "value"))


OUTPUTS = ("scores", *cache_names("present"))
RECIPES = {"gpt2_token": Recipe(gpt2, token, OUTPUTS), "gpt2_prompt": Recipe(gpt2, prompt, OUTPUTS)}
