"""Caffe2's networks: the operators that compute, and those that fill the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.common.protobuf import Message, Schema
from tilewright.relay.frontend.common.protobuf_files import read_message
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]
SCHEMA: Final = Schema(
    {
        "NetDef": "name 1 string, op 2 OperatorDef*, external_input 7 string*, external_output 8 string*",
        "OperatorDef": "input 1 string*, output 2 string*, name 3 string, type 4 string, arg 5 Argument*",
        "Argument": "name 1 string, f 2 float, i 3 int, s 4 bytes, floats 5 float*, ints 6 int*, strings 7 bytes*",
    }
)
_DTYPES: Final = {
    1: "float32",
    2: "int32",
    5: "bool",
    6: "uint8",
    7: "int8",
    9: "int16",
    10: "int64",
    13: "float64",
}
"""Element types by the numbers of ``dtype``."""
_FILLS: Final = {
    "GivenTensorFill": "float32",
    "GivenTensorDoubleFill": "float64",
    "GivenTensorIntFill": "int32",
    "GivenTensorInt64Fill": "int64",
    "GivenTensorBoolFill": "bool",
}


@dataclass(frozen=True)
class OperatorEntry:
    """An operator of a network."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Net:
    """A network: its operators, the names of its outputs, and its weights."""

    name: str
    operators: list[OperatorEntry]
    external: list[str]
    outputs: list[str]
    weights: dict[str, Array]

    @property
    def inputs(self) -> list[str]:
        """What is read before it is computed and is not a weight."""
        made: set[str] = set(self.weights)
        found: dict[str, None] = {}
        for one in self.operators:
            found.update(dict.fromkeys(name for name in one.inputs if name not in made))
            made.update(one.outputs)
            made.update(found)
        return list(found)


def _read(source: Any, what: str) -> Message:
    return read_message(SCHEMA, "NetDef", source, f"{what} is not a network of Caffe2")


def _attribute(one: Message) -> Any:
    for name in ("i", "f", "s"):
        if one.has(name):
            return getattr(one, name).decode(errors="replace") if name == "s" else getattr(one, name)
    if one.has("floats"):
        return one.floats
    if one.has("strings"):
        return [text.decode(errors="replace") for text in one.strings]
    return list(one.ints)


def _entry(one: Message) -> OperatorEntry:
    name = one.name or (one.output[0] if one.output else one.type)
    attributes = {argument.name: _attribute(argument) for argument in one.arg}
    return OperatorEntry(one.type, name, tuple(one.input), tuple(one.output), attributes)


def read_net(init_net: Any, predict_net: Any) -> Net:
    """A network from the operators that fill its weights and those that compute."""
    message = _read(predict_net, "the network")
    if not message.op:
        raise ModelError("not a network of Caffe2: there are no operators in it")
    weights: dict[str, Array] = {}
    if init_net is not None:
        for one in _read(init_net, "the network of weights").op:
            entry = _entry(one)
            for name in entry.outputs:
                weights[name] = _filled(entry)
    operators = [_entry(one) for one in message.op]
    outputs = list(message.external_output) or list(operators[-1].outputs[:1])
    return Net(message.name, operators, list(message.external_input), outputs, weights)


def _filled(entry: OperatorEntry) -> Array:
    """The weight that an operator makes."""
    shape = [int(one) for one in entry.attributes.get("shape", [])]
    if entry.kind in _FILLS:
        values = np.asarray(entry.attributes.get("values", [])).astype(_FILLS[entry.kind])
        if values.size != np.prod(shape, dtype="int64"):
            raise ModelError(f"the weight {entry.name!r} has {values.size} values and the shape {shape}")
        return values.reshape(shape)
    if entry.kind == "ConstantFill":
        if entry.inputs:
            raise ModelError(
                f"the weight {entry.name!r} takes its shape from a tensor, which is not supported"
            )
        kind = _DTYPES.get(int(entry.attributes.get("dtype", 1)))
        if kind is None:
            raise ModelError(f"the weight {entry.name!r} has an element type that is not supported")
        return np.full(shape, entry.attributes.get("value", 0.0), kind)
    raise ModelError(
        f"the weight {entry.name!r} is made by {entry.kind}, which is not supported: weights have to be given"
    )
