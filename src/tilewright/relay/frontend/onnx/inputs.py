"""What an ONNX model says about its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.relay.frontend.onnx.reading import read_model
from tilewright.relay.frontend.onnx.tensors import dtype_name


@dataclass(frozen=True)
class DeclaredInput:
    """The element type of an input, and its dimensions: sizes, names, or None where the model says nothing."""

    dtype: str
    shape: tuple[int | str | None, ...]


def declared_inputs(model: Any) -> dict[str, DeclaredInput]:
    """The inputs of a model that are tensors, without its initializers."""
    with read_model(model) as read:
        graph = read.proto.graph
        constants = {tensor.name for tensor in graph.initializer}
        return {
            info.name: DeclaredInput(
                dtype_name(info.type.tensor_type.elem_type or 1),
                tuple(_dimension(extent) for extent in info.type.tensor_type.shape.dim),
            )
            for info in graph.input
            if info.name not in constants and info.type.WhichOneof("value") in ("tensor_type", None)
        }


def declared_names(tensors: Iterable[Any]) -> dict[str, list[str]]:
    """The names that a model gives to the dimensions of its inputs or outputs; empty for a dimension without one."""
    return {
        info.name: [_name(extent) for extent in info.type.tensor_type.shape.dim]
        for info in tensors
        if info.type.HasField("tensor_type")
    }


def _name(extent: Any) -> str:
    # Some writers call every open dimension "?", which says nothing about their sizes.
    return str(extent.dim_param).strip("? ")


def _dimension(extent: Any) -> int | str | None:
    if extent.HasField("dim_value") and extent.dim_value >= 0:
        return int(extent.dim_value)
    return _name(extent) or None
