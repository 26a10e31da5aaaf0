"""Tensors in files next to the model, and nowhere else.

A file that a model names must be in the model's folder or below it after all links are resolved, be a regular file
without other hard links, and be as long as the tensor says. It is opened without following links, and the opened file
is checked again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import ModelError


def is_external(tensor: Any) -> bool:
    """True if a tensor's data are in a separate file."""
    return bool(tensor.data_location == onnx_package().TensorProto.EXTERNAL)


def inner_tensors(model: Any) -> Iterator[Any]:
    """Every tensor of a model that is not an initializer of its graph: those of attributes, of subgraphs, of functions
    and of sparse initializers."""
    pending = [model.graph, *(info.algorithm for info in model.training_info)]
    pending += [info.initialization for info in model.training_info]
    nodes = [node for function in model.functions for node in function.node]
    first = True
    while pending or nodes:
        if pending:
            graph = pending.pop(0)
            if not first:
                yield from graph.initializer
            first = False
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += graph.node
        while nodes:
            for attribute in nodes.pop().attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                for sparse in (
                    *([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else ()),
                    *attribute.sparse_tensors,
                ):
                    yield from (sparse.values, sparse.indices)
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending += attribute.graphs


def entries_of(tensor: Any) -> dict[str, str]:
    """A tensor's external data entries: location, offset, length."""
    return {entry.key: entry.value for entry in tensor.external_data}


def open_external(tensor: Any, folder: Path | None, length: int) -> tuple[BinaryIO, int]:
    """The file of a tensor of ``length`` bytes, open, and the offset of its data."""
    entries = entries_of(tensor)
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(
            f"tensor {tensor.name!r} is stored in the file {location!r}: load the model by its path"
        )
    where = f"tensor {tensor.name!r} names the file {location!r}"
    path = _checked_path(where, location, folder)
    offset = _checked_offset(where, entries, length)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ModelError(f"{where}, which cannot be read: {error.strerror or error}") from error
    file = os.fdopen(handle, "rb", buffering=0)
    status = os.fstat(handle)
    try:
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise ModelError(f"{where}, which is not a regular file, or has another hard link")
        if offset + length > status.st_size:
            raise ModelError(f"{where}, from {offset} for {length} bytes, but the file has {status.st_size}")
    except ModelError:
        file.close()
        raise
    return file, offset


def _checked_path(where: str, location: str, folder: Path) -> Path:
    """The file, after all links, which has to be in the folder."""
    plain = Path(location) if "\0" not in location else None
    if not location or plain is None or plain.is_absolute() or ".." in plain.parts or "\\" in location:
        raise ModelError(f"{where}, which is not a plain path below the model's folder")
    path = folder / plain
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{where}, which cannot be read: {error}") from error
    if not real.is_relative_to(folder) or path.is_symlink():
        raise ModelError(f"{where}, which is a link out of the model's folder")
    if not real.is_file():
        raise ModelError(f"{where}, which is not a regular file, or has another hard link")
    return real


def _checked_offset(where: str, entries: Mapping[str, str], length: int) -> int:
    try:
        offset, stated = int(entries.get("offset", 0)), int(entries.get("length", length))
    except ValueError:
        raise ModelError(f"{where} at an offset or of a length that is not a number") from None
    if offset < 0 or stated != length:
        raise ModelError(
            f"{where}, from {offset} for {stated} bytes, but its shape and type make {length} bytes"
        )
    return offset
