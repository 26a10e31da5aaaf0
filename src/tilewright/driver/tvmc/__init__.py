"""From a model file to results, with the API of TVM's ``tvmc``.

    from tilewright.driver import tvmc

    model = tvmc.load("model.onnx", shape_dict={"image": [1, 3, 224, 224]})
    package = tvmc.compile(model, target="llvm")
    result = tvmc.run(package, device="cpu")

Its parts load on first use: importing the package is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.driver.tvmc import (
        autotuner,
        common,
        compiler,
        composite_target,
        export,
        frontends,
        images,
        inspection,
        model,
        runner,
        tensors,
        validation,
    )
    from tilewright.driver.tvmc.autotuner import tune_model as tune
    from tilewright.driver.tvmc.common import TVMCException
    from tilewright.driver.tvmc.compiler import compile_model as compile
    from tilewright.driver.tvmc.frontends import load_model as load
    from tilewright.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult
    from tilewright.driver.tvmc.runner import run_module as run

__all__ = ["TVMCException", "TVMCModel", "TVMCPackage", "TVMCResult", "compile", "load", "run", "tune"]

_PARTS = (
    "autotuner",
    "common",
    "compiler",
    "composite_target",
    "export",
    "frontends",
    "images",
    "inspection",
    "model",
    "runner",
    "tensors",
    "validation",
)
_NAMES = {
    "load": ("frontends", "load_model"),
    "compile": ("compiler", "compile_model"),
    "run": ("runner", "run_module"),
    "tune": ("autotuner", "tune_model"),
    "TVMCModel": ("model", "TVMCModel"),
    "TVMCPackage": ("model", "TVMCPackage"),
    "TVMCResult": ("model", "TVMCResult"),
    "TVMCException": ("common", "TVMCException"),
}


def __getattr__(name: str) -> Any:
    """Load a part when it is first named."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        part, own = _NAMES[name]
        return getattr(importlib.import_module(f"{__name__}.{part}"), own)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS, *_NAMES})
