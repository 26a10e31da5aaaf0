"""What goes into a model and comes out of it: the types of its features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import input_type
from tilewright.relay.frontend.common.description import Tensor
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.support.errors import ModelError

_DTYPES: Final = {
    "FLOAT32": "float32",
    "DOUBLE": "float32",
    "INT32": "int32",
    "FLOAT16": "float16",
    "INT8": "int8",
}
"""Numbers of double precision are computed as float32, as Core ML does."""


def feature_shape(feature: Message, exact: bool) -> tuple[int, ...] | None:
    """The shape that a model declares for an input; None where it does not.

    Images are (1, channels, height, width). Arrays of networks that do not take arrays as they are stand for channels,
    or for channels, height and width, of one image.
    """
    kind = feature.type
    if kind.has("imageType"):
        image = kind.imageType
        channels = 1 if image.colorSpace.startswith("GRAYSCALE") else 3
        return (1, channels, image.height, image.width)
    shape = tuple(kind.multiArrayType.shape)
    if not shape and kind.multiArrayType.has("enumeratedShapes"):
        shape = tuple(kind.multiArrayType.enumeratedShapes.shapes[0].shape)
    if not shape:
        return None
    if exact:
        return shape
    if len(shape) in (1, 3):
        return (1, *shape)
    return shape[1:] if len(shape) == 5 else shape


def feature_dtype(feature: Message) -> str:
    """The element type of an input or output."""
    return _DTYPES.get(feature.type.multiArrayType.dataType, "float32")


def input_variables(features: list[Message], shapes: Mapping[str, Any], exact: bool) -> dict[str, Var]:
    """The inputs of a model by name."""
    made: dict[str, Var] = {}
    for feature in features:
        if not feature.type.which("imageType", "multiArrayType"):
            raise ModelError(
                f"the input {feature.name!r} is neither an image nor an array; text and dictionaries are not supported"
            )
        shape = shapes.get(feature.name)
        if shape is None:
            shape = feature_shape(feature, exact)
        if shape is None:
            raise ModelError(f"the shape of the input {feature.name!r} is not declared: give shape=")
        made[feature.name] = Var(feature.name, input_type(feature.name, shape, feature_dtype(feature)))
    return made


def described(feature: Message, exact: bool) -> Tensor:
    """An input or output as a file declares it."""
    found = feature_shape(feature, exact) if feature.type.which("imageType", "multiArrayType") else None
    return Tensor(feature.name, feature_dtype(feature), found)
