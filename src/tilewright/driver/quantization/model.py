"""A model quantised for a user's data, and the files that it is written to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import __version__
from tilewright.driver.quantization.data import Samples
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.frontends import load_model
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.tensors import TensorInfo, module_inputs
from tilewright.relay.backend.onnx_export import to_onnx
from tilewright.relay.quantize.study import FLOAT, Quality, Quantised, Study

OPSET = 13
"""Of the ONNX models that are written: the first with scales per channel."""


@dataclass(frozen=True)
class Options:
    """How a model is quantised."""

    method: str = "mse"
    symmetric: bool = False
    per_channel: bool = True
    budget: float | None = None
    keep: Sequence[str] = ()
    sensitive: str = FLOAT


def parse_budget(text: str | None) -> float | None:
    """A share from a text such as ``0.5%`` or ``0.005``."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if found is None:
        raise TVMCException(f"--budget takes a share such as 0.5% or 0.005, not {text!r}")
    share = float(found[1]) / (100 if found[2] else 1)
    if share > 1:
        raise TVMCException(f"--budget is a share of at most 100%, not {text!r}: did you mean {text}%?")
    return share


def with_batch(model: TVMCModel, path: str, model_format: str | None) -> tuple[TVMCModel, str | None]:
    """The model with an open batch set to one, and a note that says so; an error where other sizes are open."""
    infos = module_inputs(model.mod, model.params)
    if all(one.is_static for one in infos):
        return model, None
    if any(None in one.shape[1:] for one in infos):
        open_ones = "; ".join(one.text() for one in infos if not one.is_static)
        raise TVMCException(
            f"sizes of the model are open, and are needed to quantise it: {open_ones}. Fix them with --dim or "
            "--input-shapes"
        )
    shapes = {one.name: [1 if size is None else size for size in one.shape] for one in infos}
    note = "the batch is open in the model and one in what is written: --dim chooses another"
    return load_model(path, model_format, shapes), note


def quantise(
    model: TVMCModel,
    samples: Samples,
    options: Options,
    labels: np.ndarray[Any, Any] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Quantised:
    """Measure a model on samples, and quantise what may be."""
    study = Study(
        model.mod,
        model.params,
        options.method,
        options.symmetric,
        options.per_channel,
        report,
        options.sensitive,
    )
    study.measure(samples)
    given = None if labels is None else [int(one) for one in labels]
    if given is not None:
        given = given[: samples.count * _rows(samples.inputs)]
    return study.choose(samples, options.budget, given, options.keep)


def _rows(inputs: Sequence[TensorInfo]) -> int:
    return int(inputs[0].shape[0] or 1) if inputs and inputs[0].shape else 1


def write_onnx(found: Quantised, path: Path, name: str) -> None:
    """The model in ONNX's QDQ form, with what other runtimes can compute."""
    to_onnx(found.portable, {}, name, OPSET, str(path), f"quantised by Tilewright {__version__}")


def as_json(found: Quantised) -> dict[str, Any]:
    """For ``--json`` and the report."""

    def quality(one: Quality) -> dict[str, Any]:
        return {"error": one.error if np.isfinite(one.error) else None, "accuracy": one.accuracy}

    return {
        "method": found.method,
        "samples": found.samples,
        "budget": found.budget,
        "within_budget": found.within_budget,
        "loss": found.quality.loss(found.exact),
        "float": quality(found.exact),
        "quantised": quality(found.quality),
        "bias_corrected": found.bias_corrected,
        "layers": [one.as_json() for one in found.layers],
        "first_jump": None if found.jump is None else found.jump.name,
    }
