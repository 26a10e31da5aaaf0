"""Reading a model: from a path, bytes or a proto, copying each weight at most once.

The large initializers of a path or of bytes are not loaded until they are needed; each is then read directly into the
memory of the parameter that it becomes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.relay.frontend.onnx.checks import check_text
from tilewright.relay.frontend.onnx.external_data import inner_tensors, is_external, open_external
from tilewright.relay.frontend.onnx.low_precision import LOW_PRECISION_TYPES
from tilewright.relay.frontend.onnx.tensors import (
    array_of,
    checked_shape,
    dtype_name,
    onnx_package,
    stored_bytes,
)
from tilewright.relay.frontend.onnx.wire import Bytes, File, Place, Source, without_weights
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import ModelError

_LFS_POINTER = b"version https://git-lfs"


class Model:
    """A model that was read: the proto, and its initializers, which may be elsewhere."""

    def __init__(
        self,
        proto: Any,
        folder: Path | None = None,
        source: Source | None = None,
        places: dict[int, Place] | None = None,
    ) -> None:
        check_text(proto)
        self.proto = proto
        self.folder = folder
        self._source = source
        self._places = places or {}
        for tensor in inner_tensors(proto):
            if is_external(tensor):
                _bring_in(tensor, folder)

    def initializer(self, number: int) -> NDArray:
        """The value of an initializer of the graph, the carrier for low-precision types."""
        tensor = self.proto.graph.initializer[number]
        place = self._places.get(number)
        if is_external(tensor):
            length = stored_bytes(tensor)
            file, offset = open_external(tensor, self.folder, length)
            with file:
                return _read(tensor, File(file, offset + length), Place(offset, length))
        if place is not None and self._source is not None:
            return _read(tensor, self._source, place)
        return ndarray.array(array_of(tensor))

    def close(self) -> None:
        """Close the model's file."""
        if isinstance(self._source, File):
            self._source.file.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _read(tensor: Any, source: Source, place: Place) -> NDArray:
    """Raw data as an array that owns its memory; packed data are copied."""
    shape = checked_shape(tensor, place.length)
    if tensor.data_type in LOW_PRECISION_TYPES:
        copy = onnx_package().TensorProto()
        copy.CopyFrom(tensor)
        copy.ClearField("external_data")
        copy.ClearField("data_location")
        copy.raw_data = source.read(place.offset, place.length)
        return ndarray.array(array_of(copy))
    dtype = dtype_name(tensor.data_type)
    if dtype == "bfloat16":
        # NumPy shares no memory of this type: it goes through a copy.
        plain = np.empty(shape, "uint16")
        source.read_into(place.offset, _bytes_of(plain))
        return ndarray.array(plain.view(numpy_dtype(DataType(dtype))))
    made = ndarray.empty(shape, dtype)
    source.read_into(place.offset, _bytes_of(_shared(made)))
    return made


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of an array that has elements, shared."""
    return array.reshape(-1).view(np.uint8).data


def _shared(array: NDArray) -> np.ndarray[Any, Any]:
    capsule: Any = array
    return np.from_dlpack(capsule)


def view_of(array: NDArray) -> np.ndarray[Any, Any]:
    """The elements of an array, not to be written: shared where NumPy has the type, else copied."""
    if str(array.dtype) == "bfloat16" or 0 in array.shape:
        return array.numpy()
    shared = _shared(array)
    shared.flags.writeable = False
    return shared


def _bring_in(tensor: Any, folder: Path | None) -> None:
    """External data of a tensor that is part of the program become part of the proto."""
    length = stored_bytes(tensor)
    file, offset = open_external(tensor, folder, length)
    with file:
        content = File(file, offset + length).read(offset, length)
    tensor.raw_data = content
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


def read_model(model: Any) -> Model:
    """A model from a ModelProto, the bytes of one, or a path."""
    onnx = onnx_package()
    if isinstance(model, onnx.ModelProto):
        return Model(model)
    if isinstance(model, (bytes, bytearray)):
        source: Source = Bytes(model)
        proto, places = _parsed(source, "the bytes")
        return Model(proto, None, source, places)
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        try:
            file = path.open("rb", buffering=0)
            folder = path.parent.resolve()
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the model {path} cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from error
        try:
            source = File(file, os.fstat(file.fileno()).st_size)
            proto, places = _parsed(source, str(path))
            return Model(proto, folder, source, places)
        except BaseException:
            file.close()
            raise
    raise ModelError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")


def _parsed(source: Source, what: str) -> tuple[Any, dict[int, Place]]:
    onnx = onnx_package()
    proto = onnx.ModelProto()
    if source.read(0, min(len(_LFS_POINTER), source.size)) == _LFS_POINTER:
        raise ModelError(f"{what} is a Git LFS pointer, not the model: fetch it with 'git lfs pull'")
    try:
        content, places = without_weights(source)
        proto.ParseFromString(content)
    except (ModelError, OSError, ValueError, _decode_error()) as error:
        raise ModelError(f"{what} is not an ONNX model: {error}") from error
    if not content:
        raise ModelError(f"{what} is not an ONNX model: it is empty")
    if not proto.ir_version and not proto.graph.node:
        raise ModelError(f"{what} is not an ONNX model: it has neither a version nor a graph")
    return proto, places


def _decode_error() -> type[Exception]:
    """The error that protobuf raises; onnx needs protobuf, so it is there."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    return DecodeError  # type: ignore[no-any-return]
