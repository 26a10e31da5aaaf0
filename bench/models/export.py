"""Writes one model: ``python export.py NAME FOLDER`` makes model.onnx, inputs.npz and about.json.

It is a separate process, so that the programs that use its output do not need torch.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from models import FAMILIES  # noqa: E402

OPSET = 17


def made(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor], tuple[str, ...]]:
    """A model, its inputs by name and its outputs' names; the same ones in every process."""
    recipe = importlib.import_module(f"models.{FAMILIES[name]}").RECIPES[name]
    model = recipe.make()
    torch.manual_seed(7)
    return model, recipe.inputs(), recipe.outputs


def operations(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> int:
    """Floating-point operations of all convolutions and matrix products, a multiply-add being two."""
    # oneDNN's LSTM is one opaque operator; without it the products inside are counted.
    with (
        torch.backends.mkldnn.flags(enabled=False),
        FlopCounterMode(display=False) as counter,
        torch.no_grad(),
    ):
        model(*inputs.values())
    return int(counter.get_total_flops())


def bytes_read(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> int:
    """Bytes of parameters and inputs that one run has to read at least once; an embedding reads only its rows."""
    rows = {
        id(module.weight)
        for name, module in model.named_modules()
        # The last layer of GPT-2 reads all of the table that the first takes its rows from.
        if isinstance(module, torch.nn.Embedding) and not (type(model).__name__ == "Gpt2" and name == "words")
    }
    weights = sum(value.nbytes for value in model.parameters() if id(value) not in rows)
    return weights + sum(value.nbytes for value in inputs.values())


def export(name: str, folder: Path) -> None:
    """Write the model, its inputs and what is known of it."""
    model, inputs, outputs = made(name)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            str(folder / "model.onnx"),
            dynamo=False,
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
        )
    arrays: dict[str, Any] = {key: value.numpy() for key, value in inputs.items()}
    np.savez(folder / "inputs.npz", **arrays)
    about = {
        "name": name,
        "outputs": outputs,
        "operations": operations(model, inputs),
        "bytes": bytes_read(model, inputs),
    }
    (folder / "about.json").write_text(json.dumps(about))


if __name__ == "__main__":
    export(sys.argv[1], Path(sys.argv[2]))
