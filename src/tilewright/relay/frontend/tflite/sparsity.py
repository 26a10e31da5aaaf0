"""Sparse weights of TFLite models, stored as the values that are not zero and where they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.tflite.flatbuffer import Table
from tilewright.support.errors import ModelError

_VECTORS: Final = {1: "int32", 2: "uint16", 3: "uint8"}
_DENSE: Final = 0


def _places(table: Table, kind: int, field: int) -> np.ndarray[Any, Any]:
    which = table.number(kind, "uint8", 0)
    inner = table.table(field)
    found = None if inner is None or which not in _VECTORS else inner.vector(0, _VECTORS[which])
    if found is None:
        raise ModelError("the TFLite model is damaged: a sparse axis has no indices")
    return np.asarray(found, "int64")


def dense_values(
    name: str, stored: np.ndarray[Any, Any], shape: tuple[int, ...], table: Table
) -> np.ndarray[Any, Any]:
    """All elements. Axes are traversed in a given order; the last of them may be blocks of others."""
    order = [int(axis) for axis in _required(table.vector(0, "int32"))]
    mapped = table.vector(1, "int32")
    blocks = [] if mapped is None else [int(axis) for axis in mapped]
    levels = table.tables(2)
    if len(order) != len(levels) or len(order) != len(shape) + len(blocks):
        raise ModelError(f"the TFLite model is damaged: the sparse tensor {name!r} has {len(levels)} axes")
    # Positions along each level of every value, level by level.
    coordinates = np.zeros((1, 0), "int64")
    parents = np.zeros(1, "int64")
    for level in levels:
        if level.number(0, "int8", 0) == _DENSE:
            count = int(level.number(1, "int32", 0))
            places = np.tile(np.arange(count), len(parents))
            rows = np.repeat(np.arange(len(parents)), count)
            parents = np.repeat(parents, count) * count + places
        else:
            segments, indices = _places(level, 2, 3), _places(level, 4, 5)
            lengths = segments[parents + 1] - segments[parents]
            rows = np.repeat(np.arange(len(parents)), lengths)
            parents = np.concatenate(
                [np.arange(segments[one], segments[one + 1]) for one in parents] or [np.zeros(0, "int64")]
            ).astype("int64")
            places = indices[parents]
        coordinates = np.concatenate([coordinates[rows], places[:, None]], axis=1)
    sizes = [
        int(levels[order.index(len(shape) + place)].number(1, "int32", 1)) for place in range(len(blocks))
    ]
    target = np.zeros((len(coordinates), len(shape)), "int64")
    for depth, axis in enumerate(order):
        if axis < len(shape):
            factor = sizes[blocks.index(axis)] if axis in blocks else 1
            target[:, axis] += coordinates[:, depth] * factor
        else:
            target[:, blocks[axis - len(shape)]] += coordinates[:, depth]
    if len(stored) < len(target) or (target >= np.asarray(shape)).any():
        raise ModelError(f"the TFLite model is damaged: the sparse tensor {name!r} does not fit its shape")
    made = np.zeros(shape, stored.dtype)
    made[tuple(target.T)] = stored[parents]
    return made


def _required(found: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    if found is None:
        raise ModelError("the TFLite model is damaged: a sparse tensor has no order of axes")
    return found
