"""Operators of PyTorch's that old exporters wrote into ONNX models as they were: ``ATen``, with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright import relay
from tilewright.compat.onnx.base import Attributes, OnnxOpConverter
from tilewright.relay.expr import Constant
from tilewright.support.errors import OpNotImplemented

Inputs = Sequence[Any]


def _number(given: Any, what: str) -> Any:
    if not isinstance(given, Constant):
        raise OpNotImplemented(f"ATen: {what} has to be a constant")
    return given.data.numpy().reshape(-1)[0].item()


def _size(inputs: Inputs, attr: Attributes) -> Any:
    return relay.take(relay.shape_of(inputs[0], "int64"), inputs[1], axis=0, mode="wrap")


def _arange(inputs: Inputs, attr: Attributes) -> Any:
    return relay.arange(inputs[0], inputs[1], inputs[2], dtype="int64")


def _reshape(inputs: Inputs, attr: Attributes) -> Any:
    shape = inputs[1]
    return relay.reshape(inputs[0], shape.data.numpy().tolist() if isinstance(shape, Constant) else shape)


def _index_put(inputs: Inputs, attr: Attributes) -> Any:
    """data, an index for each of the first axes, the values, and whether they are added."""
    data, *indices, values, accumulate = inputs
    mode = "add" if _number(accumulate, "whether values are added") else "update"
    return relay.scatter_nd(data, relay.stack([relay.cast(one, "int64") for one in indices], 0), values, mode)


def _embedding_bag(inputs: Inputs, attr: Attributes) -> Any:
    """The rows of a table that each row of indices names, reduced: added up, averaged or their maximum."""
    reduce = (relay.sum, relay.mean, relay.max)[int(attr.get("mode", 0))]
    return reduce(relay.take(inputs[0], relay.cast(inputs[1], "int64"), axis=0), axis=1)


_OPERATORS: Final[dict[str, Callable[[Inputs, Attributes], Any]]] = {
    "arange": _arange,
    "embedding_bag": _embedding_bag,
    "index_put": _index_put,
    "reshape": _reshape,
    "size": _size,
}


class ATen(OnnxOpConverter):
    """An operator of PyTorch's, whose name is the attribute ``operator``."""

    @classmethod
    def _impl_v1(cls, inputs: Any, attr: Attributes, params: Any) -> Any:
        name = attr.get("operator", "")
        if name not in _OPERATORS:
            raise OpNotImplemented(f"ATen: the operator {name!r} is not one of {', '.join(_OPERATORS)}")
        return _OPERATORS[name](list(inputs), attr)
