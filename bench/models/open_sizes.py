"""Models with open sizes, and the sizes at which they are measured.

``python open_sizes.py NAME FOLDER`` writes model.onnx, whose axes are open, and about.json; and inputs-0.npz and so on,
for each of the sizes.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from models import FAMILIES  # noqa: E402
from models.export import OPSET  # noqa: E402
from models.recipe import SEED, seeded, transformer_weights  # noqa: E402
from models.transformers import LAYERS, TOKENS, VOCABULARY, Bert  # noqa: E402
from models.yolo import Yolo  # noqa: E402

Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Open:
    """How to make a model and its inputs at a size, which axes are open, and the sizes."""

    make: Callable[[], nn.Module]
    inputs: Callable[[tuple[int, ...]], Inputs]
    axes: dict[str, dict[int, str]]
    sizes: tuple[tuple[int, ...], ...]
    outputs: tuple[str, ...] = ("output",)


class OpenBert(Bert):
    """BERT of sequences up to the length of its table of positions."""

    def forward(
        self, tokens: torch.Tensor, kinds: torch.Tensor, kept: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        value = self.norm(self.words(tokens) + self.kinds(kinds) + self.positions[:, : tokens.shape[1]])
        mask = (1.0 - kept.to(value.dtype))[:, None, None, :] * -10000.0
        for layer in self.layers:
            value = layer(value, mask)
        return value, torch.tanh(self.pool(value[:, 0]))


class Characters(nn.Module):
    """The scores of the next character after each of a text, from a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(96, 64)
        self.recurrent = nn.GRU(64, 128, batch_first=True)
        self.scores = nn.Linear(128, 96)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(self.recurrent(self.characters(text))[0])
        return scores


def image(size: tuple[int, ...]) -> Inputs:
    """Images of normal noise."""
    batch, height, width = size
    return {"input": torch.randn(batch, 3, height, width)}


def sentence(size: tuple[int, ...]) -> Inputs:
    """Words, of which the last are padding."""
    kept = torch.ones(size, dtype=torch.int64)
    kept[:, size[1] * 3 // 4 :] = 0
    return {
        "tokens": torch.randint(0, VOCABULARY, size),
        "kinds": torch.zeros(size, dtype=torch.int64),
        "kept": kept,
    }


def plain(model: Callable[[], nn.Module]) -> nn.Module:
    """With torch's own distribution of weights."""
    torch.manual_seed(SEED)
    return model().eval()


def of_family(name: str) -> Callable[[], nn.Module]:
    """A model of the latency benchmark."""
    made: Callable[[], nn.Module] = importlib.import_module(f"models.{FAMILIES[name]}").RECIPES[name].make
    return made


IMAGE_AXES = {"input": {0: "batch", 2: "height", 3: "width"}}
IMAGES = ((1, 224, 224), (1, 160, 288), (4, 96, 96))
SENTENCES = {name: {0: "batch", 1: "length"} for name in ("tokens", "kinds", "kept")}

MODELS: dict[str, Open] = {
    **{
        name: Open(of_family(name), image, IMAGE_AXES, IMAGES)
        for name in ("resnet18", "mobilenet_v2", "efficientnet_b0", "squeezenet_1_1", "convnext_tiny")
    },
    "unet": Open(of_family("unet"), image, IMAGE_AXES, ((1, 256, 256), (1, 160, 288), (4, 96, 96))),
    "yolo": Open(
        lambda: seeded(Yolo, lambda: image((1, 320, 320))),
        image,
        IMAGE_AXES,
        ((1, 320, 320), (1, 640, 384), (2, 192, 160)),
        ("fine", "middle", "wide"),
    ),
    "bert": Open(
        lambda: transformer_weights(plain(OpenBert), LAYERS),
        sentence,
        SENTENCES,
        ((1, TOKENS), (1, 37), (4, 24)),
        ("sequence", "pooled"),
    ),
    "characters": Open(
        lambda: plain(Characters),
        lambda size: {"text": torch.randint(0, 96, size)},
        {"text": {0: "batch", 1: "length"}},
        ((1, 64), (1, 11), (8, 100)),
    ),
    "mlp": Open(
        lambda: plain(
            lambda: nn.Sequential(
                nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
            )
        ),
        lambda size: {"input": torch.randn(size[0], 256)},
        {"input": {0: "batch"}},
        ((1,), (7,), (64,)),
    ),
}


def export(name: str, folder: Path) -> None:
    """Write the model, its inputs at each size, and what is known of it."""
    recipe = MODELS[name]
    model = recipe.make()
    torch.manual_seed(7)
    given = [recipe.inputs(size) for size in recipe.sizes]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(given[0].values()),
            str(folder / "model.onnx"),
            dynamo=False,
            opset_version=OPSET,
            input_names=list(given[0]),
            output_names=list(recipe.outputs),
            dynamic_axes=recipe.axes,
        )
    for number, inputs in enumerate(given):
        arrays: dict[str, Any] = {key: value.numpy() for key, value in inputs.items()}
        np.savez(folder / f"inputs-{number}.npz", **arrays)
    sizes = ["x".join(str(extent) for extent in size) for size in recipe.sizes]
    (folder / "about.json").write_text(json.dumps({"name": name, "sizes": sizes}))


if __name__ == "__main__":
    export(sys.argv[1], Path(sys.argv[2]))
