"""Caffe's networks: the layers of a text file and the weights of a binary one, old and new forms of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.caffe.messages import SCHEMA
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.common.protobuf_files import read_message
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]
_OLD_NAMES: Final = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "CONCAT": "Concat",
    "CONVOLUTION": "Convolution",
    "DATA": "Data",
    "DECONVOLUTION": "Deconvolution",
    "DROPOUT": "Dropout",
    "ELTWISE": "Eltwise",
    "EXP": "Exp",
    "FLATTEN": "Flatten",
    "IMAGE_DATA": "ImageData",
    "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN",
    "MVN": "MVN",
    "POOLING": "Pooling",
    "POWER": "Power",
    "RELU": "ReLU",
    "SIGMOID": "Sigmoid",
    "SILENCE": "Silence",
    "SLICE": "Slice",
    "SOFTMAX": "Softmax",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "SPLIT": "Split",
    "TANH": "TanH",
    "THRESHOLD": "Threshold",
}
"""What kinds of layers were called before they were texts."""
DATA: Final = ("Data", "ImageData", "MemoryData", "HDF5Data", "WindowData", "DummyData", "AnnotatedData")
"""Layers that read data; a network that is used has inputs in their place."""
_LEFT_OUT: Final = ("Silence", "Accuracy")


@dataclass(frozen=True)
class LayerEntry:
    """A layer: ``params`` is its message, which has its parameters."""

    name: str
    kind: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    params: Message


@dataclass
class Net:
    """A network: its layers for use, not for training, its inputs with their shapes, its weights by layer."""

    name: str = ""
    layers: list[LayerEntry] = field(default_factory=list)
    inputs: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    weights: dict[str, list[Array]] = field(default_factory=dict)

    @property
    def outputs(self) -> list[str]:
        """What is computed and not read."""
        made: dict[str, None] = {}
        for layer in self.layers:
            for name in layer.bottoms:
                made.pop(name, None)
            made.update(dict.fromkeys(layer.tops))
        return list(made)


def _read(source: Any, what: str) -> Message:
    return read_message(SCHEMA, "NetParameter", source, f"{what} is not a network of Caffe")


def read_net(init_net: Any, predict_net: Any) -> Net:
    """A network from its layers and, where there are some, its weights."""
    message = _read(predict_net, "the file of layers")
    listed = [*message.layers, *message.layer]
    if not listed:
        raise ModelError("not a network of Caffe: there are no layers in it")
    net = Net(message.name)
    for place, name in enumerate(message.input):
        if place < len(message.input_shape):
            net.inputs[name] = tuple(message.input_shape[place].dim)
        elif len(message.input_dim) >= 4 * (place + 1):
            net.inputs[name] = tuple(message.input_dim[4 * place : 4 * place + 4])
        else:
            net.inputs[name] = None
    for one in listed:
        entry = _entry(one)
        if _for_training(one) or entry.kind in _LEFT_OUT:
            continue
        if entry.kind == "Input":
            shapes = one.input_param.shape
            for place, name in enumerate(entry.tops):
                chosen = shapes[min(place, len(shapes) - 1)] if shapes else None
                net.inputs[name] = tuple(chosen.dim) if chosen is not None else None
        elif entry.kind in DATA:
            net.inputs.update(dict.fromkeys(entry.tops))
        else:
            net.layers.append(entry)
    if init_net is not None:
        held = _read(init_net, "the file of weights")
        for one in [*held.layers, *held.layer]:
            if one.blobs:
                net.weights[one.name] = [_blob(blob, one.name) for blob in one.blobs]
    for one in listed:
        if one.blobs:
            net.weights.setdefault(one.name, [_blob(blob, one.name) for blob in one.blobs])
    return net


def _entry(one: Message) -> LayerEntry:
    kind = _OLD_NAMES.get(one.type, one.type) if one.kind == "OldLayer" else one.type
    return LayerEntry(one.name, kind, tuple(one.bottom), tuple(one.top), one)


def _for_training(one: Message) -> bool:
    """True for layers that are left out of a network that is used."""
    included = [rule.phase for rule in one.include if rule.has("phase")]
    excluded = [rule.phase for rule in one.exclude if rule.has("phase")]
    alone = one.kind == "Layer" and one.has("phase") and one.phase == "TRAIN"
    return alone or (bool(included) and "TEST" not in included) or "TEST" in excluded


def _blob(blob: Message, layer: str) -> Array:
    shape = list(blob.shape.dim) if blob.has("shape") else [blob.num, blob.channels, blob.height, blob.width]
    values = blob.data if len(blob.data) else blob.double_data
    found = np.asarray(values, "float32")
    if any(size < 0 for size in shape) or found.size != np.prod(shape, dtype="int64"):
        raise ModelError(f"the weights of the layer {layer!r} have {found.size} values and the shape {shape}")
    return found.reshape(shape)
