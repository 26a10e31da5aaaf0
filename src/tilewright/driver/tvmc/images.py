"""Images as inputs: PNG, JPEG and every other format that Pillow reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.tensors import TensorInfo

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class ImageOptions:
    """How pixels become numbers: ``(pixel - mean) * scale``, of 0 to 255; one number, or one for each channel."""

    layout: str | None = None
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)


def parse_numbers(text: str | None, default: float, option: str) -> tuple[float, ...]:
    """The numbers of ``0.5,1/255``."""
    if text is None:
        return (default,)
    try:
        return tuple([float(Fraction(part.strip())) for part in text.split(",")])
    except (ValueError, ZeroDivisionError):
        raise TVMCException(
            f"{option} takes numbers separated by commas, such as 1/255, not {text!r}"
        ) from None


def read_images(paths: Sequence[Path], tensor: TensorInfo, options: ImageOptions) -> np.ndarray[Any, Any]:
    """As many images as the input's batch has, resized to its height and width."""
    batch, channels, height, width, layout = _sizes(tensor, options.layout)
    if batch is not None and len(paths) != batch:
        raise TVMCException(
            f"the input {tensor.text()} takes {batch} images, and {len(paths)} are given: repeat --inputs"
        )
    for name, values in (("--mean", options.mean), ("--scale", options.scale)):
        if len(values) not in (1, channels):
            raise TVMCException(
                f"{name} has {len(values)} numbers, and the images have {channels} channels: give 1 or {channels}"
            )
    pixels = np.stack([_pixels(path, channels, height, width) for path in paths])
    if tensor.array_dtype.kind not in "iub" or options.mean != (0.0,) or options.scale != (1.0,):
        pixels = (pixels - np.asarray(options.mean)) * np.asarray(options.scale)
    if layout == "NCHW":
        pixels = pixels.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pixels.astype(tensor.array_dtype))


def _sizes(tensor: TensorInfo, wanted: str | None) -> tuple[int | None, int, int | None, int | None, str]:
    """Batch, channels, height, width and layout of an input."""
    if len(tensor.shape) != 4:
        raise TVMCException(f"the input {tensor.text()} is not an image: it does not have four dimensions")
    if wanted is not None:
        layout = wanted
    elif tensor.shape[1] in _MODES:
        layout = "NCHW"
    elif tensor.shape[3] in _MODES:
        layout = "NHWC"
    else:
        raise TVMCException(f"the layout of {tensor.text()} is not clear from its shape: pass --image-layout")
    batch = tensor.shape[0]
    channels, height, width = (
        tensor.shape[place] for place in ((1, 2, 3) if layout == "NCHW" else (3, 1, 2))
    )
    if channels not in _MODES:
        raise TVMCException(
            f"in the layout {layout}, {tensor.text()} has {channels} channels, and images have 1, 3 or 4"
        )
    return batch, channels, height, width, layout


def _pixels(path: Path, channels: int, height: int | None, width: int | None) -> np.ndarray[Any, Any]:
    """Height, width, channels."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise TVMCException(
            f'reading the image {path} needs Pillow: pip install "tilewright[images]"'
        ) from None
    try:
        with Image.open(path) as opened:
            image = opened.convert(_MODES[channels])
    except FileNotFoundError:
        raise TVMCException(f"there is no image {path}") from None
    except (UnidentifiedImageError, OSError, ValueError) as problem:
        raise TVMCException(f"the image {path} cannot be read: {problem}") from problem
    size = (width or image.width, height or image.height)
    if image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(image, dtype="uint8").reshape(size[1], size[0], channels)
