"""Keras itself, which is imported when a model is read and not before."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import ModelError


def keras_package() -> Any:
    """The ``keras`` package, version 3."""
    try:
        import keras
    except ImportError as missing:
        raise ModelError("reading Keras models needs the keras package: pip install keras") from missing
    if int(str(keras.__version__).partition(".")[0]) < 3:
        raise ModelError(f"Keras {keras.__version__} is too old: pip install 'keras>=3'")
    return keras
