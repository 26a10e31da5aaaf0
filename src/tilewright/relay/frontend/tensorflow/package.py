"""TensorFlow itself, which is imported when a model is read and not before."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import ModelError


def tensorflow_package() -> Any:
    """The ``tensorflow`` package."""
    try:
        import tensorflow
    except ImportError as missing:
        raise ModelError(
            "reading TensorFlow models needs the tensorflow package: pip install tensorflow-cpu"
        ) from missing
    return tensorflow
