"""PyTorch itself, which is imported when a model is read and not before."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import ModelError


def torch_package() -> Any:
    """The ``torch`` package."""
    try:
        import torch
    except ImportError as missing:
        raise ModelError("reading PyTorch models needs the torch package: pip install torch") from missing
    return torch
