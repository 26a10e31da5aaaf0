"""A recogniser of text lines as PP-OCR's: a small convolutional network, two bidirectional LSTMs, scores by column."""

from __future__ import annotations

import torch
from torch import nn

from models.recipe import Recipe, conv_norm, seeded

WIDTH, SYMBOLS = 48, 6625


def separable(inputs: int, outputs: int, kernel: int, stride: tuple[int, int]) -> list[nn.Module]:
    """Depthwise and 1x1, as in MobileNet-V1."""
    depthwise = nn.Conv2d(inputs, inputs, kernel, stride, kernel // 2, groups=inputs, bias=False)
    pointwise = [*conv_norm(inputs, outputs, 1), nn.Hardswish()]
    return [depthwise, nn.BatchNorm2d(inputs), nn.Hardswish(), *pointwise]


class Recogniser(nn.Module):
    """Scores of the symbols for every eighth column of a line that is 48 pixels high."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [*conv_norm(3, 16, 3, 2), nn.Hardswish()]
        inputs = 16
        for outputs, kernel, stride in (
            *((32, 3, (1, 1)), (64, 3, (2, 1)), (64, 3, (1, 1)), (128, 3, (2, 1)), (128, 3, (1, 1))),
            *((256, 3, (1, 2)), *[(256, 5, (1, 1))] * 5, (512, 5, (2, 1)), (512, 5, (1, 1))),
        ):
            layers += separable(inputs, outputs, kernel, stride)
            inputs = outputs
        self.columns = nn.Sequential(*layers, nn.MaxPool2d(2))
        self.recurrent = nn.LSTM(inputs, WIDTH, 2, bidirectional=True)
        self.scores = nn.Linear(2 * WIDTH, SYMBOLS)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        columns = self.columns(line).squeeze(2).permute(2, 0, 1)
        return torch.softmax(self.scores(self.recurrent(columns)[0]), -1)


def line() -> dict[str, torch.Tensor]:
    """One line of text, 320 pixels wide."""
    return {"input": torch.randn(1, 3, 48, 320)}


RECIPES = {"text_recogniser": Recipe(lambda: seeded(Recogniser, line), line)}
