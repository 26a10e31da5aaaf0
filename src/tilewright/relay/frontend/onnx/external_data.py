"""Reading the file: from a path, bytes or a proto; with tensors in files beside it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import ModelError


def load_model(model: Any) -> tuple[Any, Path | None]:
    """The ModelProto, and the folder in which its external data lies."""
    onnx = onnx_package()
    if isinstance(model, onnx.ModelProto):
        check_external_data(model, None)
        return model, None
    if isinstance(model, (bytes, bytearray)):
        proto = _parse(bytes(model), "the bytes")
        check_external_data(proto, None)
        return proto, None
    if isinstance(model, (str, Path)):
        path = Path(model)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelError(f"the model {path} cannot be read: {error.strerror or error}") from error
        proto = _parse(content, str(path))
        folder = path.resolve().parent
        check_external_data(proto, folder)
        return proto, folder
    raise ModelError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")


def _parse(content: bytes, what: str) -> Any:
    onnx = onnx_package()
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except Exception as error:
        raise ModelError(f"{what} is no ONNX model: {error}") from error
    if not proto.ir_version and not proto.graph.node:
        raise ModelError(f"{what} is no ONNX model: it has neither a version nor a graph")
    return proto


def tensors(graph: Any) -> Iterator[Any]:
    """Every tensor of a graph and of the graphs inside it."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield from current.initializer
        for sparse in current.sparse_initializer:
            yield sparse.values
            yield sparse.indices
        for node in current.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending += attribute.graphs


def check_external_data(model: Any, folder: Path | None) -> None:
    """Every file that a tensor names lies in the model's own folder, after all links are followed, and is long
    enough."""
    onnx = onnx_package()
    for tensor in tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if folder is None:
            raise ModelError(
                f"tensor {tensor.name!r} is stored in the file {location!r}: load the model by its path"
            )
        _check_location(tensor.name, location, folder, entries)


def _check_location(name: str, location: str, folder: Path, entries: dict[str, str]) -> None:
    where = f"tensor {name!r} names the file {location!r}"
    if (
        not location
        or Path(location).is_absolute()
        or ".." in Path(location).parts
        or "\\" in location
        or "\0" in location
    ):
        raise ModelError(f"{where}, which is not a plain path below the model's folder")
    path = folder / location
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except OSError as error:
        raise ModelError(f"{where}, which cannot be read: {error.strerror or error}") from error
    if not real.is_relative_to(folder) or path.is_symlink():
        raise ModelError(f"{where}, which is a link out of the model's folder")
    if not real.is_file() or status.st_nlink > 1:
        raise ModelError(f"{where}, which is no ordinary file, or has a second name elsewhere")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
    except ValueError:
        raise ModelError(f"{where} at an offset or of a length that is no number") from None
    if offset < 0 or length < 0 or offset + length > status.st_size:
        raise ModelError(f"{where}, from {offset} for {length} bytes, but the file has {status.st_size}")
