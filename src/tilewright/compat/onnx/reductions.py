"""Converters of ONNX with a calculation that subclasses call: reductions and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.compat.frontend_attributes import get_relay_op
from tilewright.compat.frontend_common import infer_shape, infer_type
from tilewright.compat.onnx.base import OnnxOpConverter, converts
from tilewright.relay.expr import const


@converts("Unsqueeze")
class Unsqueeze(OnnxOpConverter):
    """New axes of one element."""

    @classmethod
    def run_calculation(cls, tensor: Any, axes: Sequence[int]) -> Any:
        """The tensor with these axes, which are those of the result."""
        for axis in sorted(axes):
            tensor = relay.expand_dims(tensor, axis=axis, num_newaxis=1)
        return tensor


class Reduce(OnnxOpConverter):
    """A reduction; ``name`` is Relay's."""

    name = ""

    @classmethod
    def run_calculation(cls, inputs: Sequence[Any], axis: Any, keepdims: bool) -> Any:
        """The first input, reduced along axes."""
        return get_relay_op(cls.name)(inputs[0], axis=axis, keepdims=bool(keepdims))


@converts("LogSoftmax")
class LogSoftmax(OnnxOpConverter):
    """The logarithm of softmax."""

    @classmethod
    def run_calculation(cls, x: Any, axes: Sequence[int]) -> Any:
        """log(softmax(x)) over several axes together."""
        shifted = x - relay.max(x, list(axes), keepdims=True)
        return shifted - relay.log(relay.sum(relay.exp(shifted), list(axes), keepdims=True))


@converts("NegativeLogLikelihoodLoss")
class NegativeLogLikelihoodLoss(OnnxOpConverter):
    """Minus the logarithm of the probability of the target's class."""

    @classmethod
    def run_calculation(
        cls, input_tensor: Any, target_tensor: Any, weight_tensor: Any, ignore_index: int | None
    ) -> tuple[Any, Any]:
        """The loss of each target, weighted, and the sum of the weights."""
        dtype = str(infer_type(input_tensor).checked_type.dtype)
        if weight_tensor is None:
            weight_tensor = relay.ones((infer_shape(input_tensor)[1],), dtype)
        target_dtype = str(infer_type(target_tensor).checked_type.dtype)
        ignored = None if ignore_index is None else const(ignore_index, target_dtype)
        counted = target_tensor
        if ignored is not None:
            counted = relay.where(
                relay.equal(target_tensor, ignored), relay.zeros_like(target_tensor), target_tensor
            )
        weights = relay.take(weight_tensor, counted, axis=0)
        if ignored is not None:
            weights = weights * relay.cast(relay.not_equal(target_tensor, ignored), dtype)
        chosen = relay.gather(input_tensor, 1, relay.expand_dims(counted, 1))
        return relay.negative(relay.squeeze(chosen, [1])) * weights, relay.sum(weights)
