"""Frontends: importers of other systems' models, one folder each.

A frontend is loaded when one of its names is first used, and its system's package when a model is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tilewright.relay.frontend.registry import Frontend, import_model, register_frontend

if TYPE_CHECKING:
    from tilewright.relay.frontend.caffe import from_caffe
    from tilewright.relay.frontend.caffe2 import from_caffe2
    from tilewright.relay.frontend.coreml import from_coreml
    from tilewright.relay.frontend.darknet import from_darknet
    from tilewright.relay.frontend.jax import from_jax
    from tilewright.relay.frontend.keras import from_keras
    from tilewright.relay.frontend.mxnet import from_mxnet
    from tilewright.relay.frontend.onnx import from_onnx
    from tilewright.relay.frontend.paddle import from_paddle
    from tilewright.relay.frontend.tensorflow import from_tensorflow
    from tilewright.relay.frontend.tflite import from_tflite
    from tilewright.relay.frontend.torch import from_exported_program, from_fx, from_pytorch

__all__ = [
    "Frontend",
    "from_caffe",
    "from_caffe2",
    "from_coreml",
    "from_darknet",
    "from_exported_program",
    "from_fx",
    "from_jax",
    "from_keras",
    "from_mxnet",
    "from_onnx",
    "from_paddle",
    "from_pytorch",
    "from_tensorflow",
    "from_tflite",
    "import_model",
    "register_frontend",
]

_HOMES: Final = {
    "from_caffe": "caffe",
    "from_caffe2": "caffe2",
    "from_coreml": "coreml",
    "from_darknet": "darknet",
    "from_exported_program": "torch",
    "from_fx": "torch",
    "from_jax": "jax",
    "from_keras": "keras",
    "from_mxnet": "mxnet",
    "from_onnx": "onnx",
    "from_paddle": "paddle",
    "from_pytorch": "torch",
    "from_tensorflow": "tensorflow",
    "from_tflite": "tflite",
}
"""The folder that has a function."""
_FOLDERS: Final = frozenset(_HOMES.values())


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        globals()[name] = found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_FOLDERS})
