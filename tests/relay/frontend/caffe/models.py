"""Caffe's files made by hand: layers as text, weights in the encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.relay.frontend.common.messages import encoded
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.relay.frontend.caffe.messages import SCHEMA

Array = np.ndarray[Any, Any]


def weights_file(weights: Mapping[str, Sequence[Array]]) -> bytes:
    """The content of a .caffemodel with the weights of layers."""
    layers = [
        {
            "name": name,
            "type": "Any",
            "blobs": [{"shape": {"dim": list(one.shape)}, "data": one.reshape(-1)} for one in values],
        }
        for name, values in weights.items()
    ]
    return encoded(SCHEMA, "NetParameter", {"name": "net", "layer": layers})


def inputs_text(inputs: Mapping[str, Array]) -> str:
    """Layers that are the inputs of a network."""
    made = ""
    for name, value in inputs.items():
        sizes = " ".join(f"dim: {size}" for size in value.shape)
        made += (
            f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {sizes} }} }} }}\n'
        )
    return made


def layer_text(
    kind: str, bottoms: Sequence[str], tops: Sequence[str], params: str = "", name: str = "layer"
) -> str:
    """A layer."""
    ends = " ".join([f'bottom: "{one}"' for one in bottoms] + [f'top: "{one}"' for one in tops])
    return f'layer {{ name: "{name}" type: "{kind}" {ends} {params} }}\n'


def run(weights: Any, layers: Any, inputs: Mapping[str, Array], **options: Any) -> list[Array]:
    """What the reference interpreter computes for inputs by name."""
    module, params = relay.frontend.from_caffe(weights, layers, **options)
    return interpreted(module, params, inputs)


def single(
    kind: str, inputs: Mapping[str, Array], params: str = "", weights: Sequence[Array] = (), tops: int = 1
) -> list[Array]:
    """The results of a network of one layer."""
    names = [f"top{place}" for place in range(tops)]
    text = inputs_text(inputs) + layer_text(kind, list(inputs), names, params)
    return run(weights_file({"layer": weights}), text, inputs)
