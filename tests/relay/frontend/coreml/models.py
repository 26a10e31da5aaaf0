"""Core ML models made by hand: networks layer by layer, and programs operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.relay.frontend.common.messages import encoded
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.relay.frontend.coreml.model import SCHEMA

Array = np.ndarray[Any, Any]
_KINDS = {"float32": "FLOAT32", "int32": "INT32", "bool": "BOOL", "float16": "FLOAT16", "uint8": "UINT8"}


def weights(value: Any) -> dict[str, Any]:
    """Weights of floating point."""
    return {"floatValue": np.asarray(value, "float32").reshape(-1)}


def array_feature(name: str, shape: Sequence[int]) -> dict[str, Any]:
    """An input or output that is an array."""
    return {"name": name, "type": {"multiArrayType": {"shape": list(shape), "dataType": "FLOAT32"}}}


def image_feature(name: str, height: int, width: int, colours: str) -> dict[str, Any]:
    """An input that is an image."""
    image = {"width": width, "height": height, "colorSpace": colours}
    return {"name": name, "type": {"imageType": image}}


def layer(kind: str, inputs: Sequence[str], outputs: Sequence[str], **params: Any) -> dict[str, Any]:
    """A layer of a network."""
    return {"name": f"{kind}_layer", "input": list(inputs), "output": list(outputs), kind: params}


def network(
    inputs: Sequence[dict[str, Any]],
    layers: Sequence[dict[str, Any]],
    outputs: Sequence[str],
    exact: bool = False,
    preprocessing: Sequence[dict[str, Any]] = (),
) -> bytes:
    """A model that is a neural network."""
    mapping = "EXACT_ARRAY_MAPPING" if exact else "RANK5_ARRAY_MAPPING"
    described = {"input": inputs, "output": [array_feature(name, ()) for name in outputs]}
    net = {"layers": layers, "preprocessing": preprocessing, "arrayInputShapeMapping": mapping}
    return encoded(
        SCHEMA, "Model", {"specificationVersion": 4, "description": described, "neuralNetwork": net}
    )


def _type(dtype: str, shape: Sequence[int]) -> dict[str, Any]:
    dimensions = [{"constant": {"size": size}} for size in shape]
    return {"tensorType": {"dataType": _KINDS[dtype], "rank": len(shape), "dimensions": dimensions}}


def value(held: Any) -> dict[str, Any]:
    """A value of a program: a text or an array."""
    if isinstance(held, str):
        kind = {"tensorType": {"dataType": "STRING"}}
        return {"type": kind, "immediateValue": {"tensor": {"strings": {"values": [held]}}}}
    array = np.asarray(held)
    array = array.astype("float32") if array.dtype == "float64" else array
    array = array.astype("int32") if array.dtype == "int64" else array
    field = {"float32": "floats", "int32": "ints", "bool": "bools", "uint8": "bytes", "float16": "bytes"}
    which = field[str(array.dtype)]
    listed = array.tobytes() if which == "bytes" else array.reshape(-1).tolist()
    tensor = {which: {"values": listed}}
    return {"type": _type(str(array.dtype), array.shape), "immediateValue": {"tensor": tensor}}


def operation(
    kind: str, result: str | Sequence[str], tensors: Mapping[str, Any], **constants: Any
) -> dict[str, Any]:
    """An operation: tensors by name, or lists of names, and constants."""
    results = [result] if isinstance(result, str) else list(result)
    inputs: dict[str, Any] = {
        name: {"arguments": [{"name": one} for one in ([given] if isinstance(given, str) else given)]}
        for name, given in tensors.items()
    }
    for name, held in constants.items():
        inputs[name] = {"arguments": [{"value": value(held)}]}
    outputs = [{"name": one, "type": _type("float32", ())} for one in results]
    return {"type": kind, "inputs": inputs, "outputs": outputs}


def constant(name: str, held: Any) -> dict[str, Any]:
    """An operation that holds a value."""
    return {"type": "const", "outputs": [{"name": name}], "attributes": {"val": value(held)}}


def program(
    inputs: Mapping[str, Array], operations: Sequence[dict[str, Any]], outputs: Sequence[str]
) -> bytes:
    """A model that is an ML program."""
    features = [array_feature(name, array.shape) for name, array in inputs.items()]
    named = [{"name": name, "type": _type(str(one.dtype), one.shape)} for name, one in inputs.items()]
    block = {"operations": operations, "outputs": list(outputs)}
    main = {"inputs": named, "opset": "CoreML5", "block_specializations": {"CoreML5": block}}
    content = {
        "specificationVersion": 6,
        "description": {"input": features, "output": [array_feature(name, ()) for name in outputs]},
        "mlProgram": {"version": 1, "functions": {"main": main}},
    }
    return encoded(SCHEMA, "Model", content)


def run(model: Any, inputs: Mapping[str, Array], shape: Any = None) -> list[Array]:
    """What the reference interpreter computes for inputs by name."""
    module, params = relay.frontend.from_coreml(model, shape)
    return interpreted(module, params, inputs)
