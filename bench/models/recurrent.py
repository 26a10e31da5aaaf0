"""A language model of two LSTM layers of 650, as Zaremba and others (2014) had on the Penn Treebank."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import SEED, Recipe

WORDS, WIDTH, LAYERS, LENGTH = 10000, 650, 2, 35


class LanguageModel(nn.Module):
    """The scores of the next word after each of 35, and the state after them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.recurrent = nn.LSTM(WIDTH, WIDTH, LAYERS)
        self.scores = nn.Linear(WIDTH, WORDS)

    def forward(
        self, tokens: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        value, (hidden, cell) = self.recurrent(self.words(tokens), (hidden, cell))
        return self.scores(value), hidden, cell


def language_model() -> nn.Module:
    """With torch's own distribution of weights, which is the usual one for LSTMs."""
    torch.manual_seed(SEED)
    return LanguageModel().eval()


def text() -> dict[str, torch.Tensor]:
    """Words of one text, and a state in the midst of it."""
    state = {name: torch.rand(LAYERS, 1, WIDTH) - 0.5 for name in ("hidden", "cell")}
    return {"tokens": torch.randint(0, WORDS, (LENGTH, 1)), **state}


RECIPES = {"lstm_language_model": Recipe(language_model, text, ("scores", "next_hidden", "next_cell"))}
