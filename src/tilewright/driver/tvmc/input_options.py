"""The options ``--dim`` and ``--input-value``: sizes of open dimensions, and inputs with one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.relay.frontend import registry
from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.onnx.inputs import DeclaredInput
from tilewright.relay.frontend.onnx.inputs import declared_inputs as declared_in_onnx
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType


def declared_inputs(path: str, model_format: str | None) -> dict[str, DeclaredInput]:
    """The inputs of a model as its file names them."""
    try:
        found = registry.find_frontend(model_format) if model_format else registry.guess_frontend(path)
    except FormatError as error:
        raise TVMCException(str(error)) from error
    if found.name != "onnx":
        raise TVMCException(f"--dim and --input-value are for ONNX models, not for {found.name}")
    return declared_in_onnx(path)


def dimensions_from_text(given: Sequence[str]) -> dict[str, int]:
    """Sizes by name, from texts such as ``batch=1,seq=128``."""
    sizes: dict[str, int] = {}
    for part in ",".join(given).split(","):
        name, separator, size = (one.strip() for one in part.partition("="))
        if not separator or not name or not size.isdecimal():
            raise TVMCException(f"--dim takes names and sizes, as in batch=1,seq=128, not {part!r}")
        sizes[name] = int(size)
    return sizes


def with_dimensions(
    declared: Mapping[str, DeclaredInput], shapes: Mapping[str, Any], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """The shapes of inputs with these sizes in place of open dimensions; what ``--input-shapes`` gives wins."""
    made = dict(shapes)
    used: set[str] = set()
    known: dict[str, None] = {}
    for name, one in declared.items():
        extents: list[int | None] = []
        for axis, extent in enumerate(one.shape):
            if isinstance(extent, int):
                extents.append(extent)
                continue
            keys = [key for key in (extent, f"{name}.{axis}") if key]
            known |= dict.fromkeys(keys[:1])
            given = next((key for key in keys if key in sizes), None)
            used |= {given} if given else set()
            extents.append(sizes[given] if given else None)
        if any(extent != old for extent, old in zip(extents, one.shape, strict=True)) and name not in shapes:
            made[name] = extents
    unknown = [name for name in sizes if name not in used]
    if unknown:
        raise TVMCException(
            f"the model has no open dimension {', '.join(unknown)}; it has {', '.join(known) or 'none'}"
        )
    return made


def values_from_text(declared: Mapping[str, DeclaredInput], given: Sequence[str]) -> dict[str, Any]:
    """Values of inputs, from texts such as ``sr=16000``."""
    values: dict[str, Any] = {}
    for text in given:
        name, separator, written = (one.strip() for one in text.partition("="))
        if not separator or not written:
            raise TVMCException(f"--input-value takes a name and a value, as in sr=16000, not {text!r}")
        if name not in declared:
            raise TVMCException(f"the model has no input {name!r}; it has {', '.join(declared) or 'none'}")
        one = declared[name]
        values[name] = _value(name, one, written.split(","))
    return values


def _value(name: str, declared: DeclaredInput, words: Sequence[str]) -> np.ndarray[Any, Any]:
    dtype = numpy_dtype(DataType(declared.dtype))
    try:
        if dtype.kind == "b":
            numbers: list[Any] = [
                {"true": True, "1": True, "false": False, "0": False}[word.lower()] for word in words
            ]
        else:
            numbers = [int(word, 0) if dtype.kind in "iu" else float(word) for word in words]
        made = np.asarray(numbers).astype(dtype)
        if dtype.kind in "iu" and made.tolist() != numbers:
            raise ValueError("out of range")
        if not declared.shape:
            return made.reshape(())
        sizes = [extent if isinstance(extent, int) else -1 for extent in declared.shape]
        return made.reshape(sizes if sizes.count(-1) <= 1 else [1] * (len(sizes) - 1) + [-1])
    except (ValueError, KeyError, OverflowError) as problem:
        shape = ", ".join("?" if extent is None else str(extent) for extent in declared.shape)
        raise TVMCException(
            f"{','.join(words)} is not a value for the input {name} {declared.dtype}[{shape}]"
        ) from problem
