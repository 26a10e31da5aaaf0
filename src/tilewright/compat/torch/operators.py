"""The methods (inputs, input_types) of TVM's ``PyTorchOpConverter``, by the operators that they convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.compat.torch.binding import call_operator

_SAME_NAMES: Final = """
add addcdiv addcmul addmm arange argsort batch_norm bincount bitwise_not bitwise_xor bucketize celu chunk clamp clone
contiguous cumsum dropout elu embedding empty expand expand_as flatten flip frobenius_norm full full_like gather gelu
group_norm gru hardtanh index index_put instance_norm is_floating_point layer_norm leaky_relu linear linspace log1p
log_sigmoid log_softmax logical_and logical_not logical_xor logsumexp lstm masked_fill masked_select matmul mean
meshgrid narrow nll_loss nonzero_numpy norm numel one_hot ones ones_like pixel_shuffle prelu reciprocal relu repeat
repeat_interleave reshape roll rsub scalar_tensor scatter scatter_add searchsorted select selu sigmoid silu slice
softmax softplus sort split split_with_sizes squeeze stack std take threshold topk transpose type_as unbind unsqueeze
view where zeros zeros_like
"""
_OTHER_NAMES: Final = {
    "concatenate": "aten::cat",
    "convolution": "aten::_convolution",
    "deform_conv2d": "torchvision::deform_conv2d",
    "hard_sigmoid": "aten::hardsigmoid",
    "hard_swish": "aten::hardswish",
    "interpolate": "aten::__interpolate",
    "maxpool_1d": "aten::max_pool1d",
    "maxpool_2d": "aten::max_pool2d",
    "maxpool_2d_with_indices": "aten::max_pool2d_with_indices",
    "maxpool_3d": "aten::max_pool3d",
    "nms": "torchvision::nms",
    "roi_align": "torchvision::roi_align",
    "shape_as_tensor": "aten::_shape_as_tensor",
    "to": "aten::to",
    "unique": "aten::_unique2",
    "variance": "aten::var",
}

OPERATORS: Final = {
    **{name: f"aten::{name}" for name in _SAME_NAMES.split()},
    **_OTHER_NAMES,
}
"""The operator that each method converts."""


def method(name: str, operator: str) -> Callable[..., Any]:
    """A method that converts an operator."""

    def convert(self: Any, inputs: Sequence[Any], input_types: Sequence[str]) -> Any:
        return call_operator(self.scope, operator, inputs)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"``{operator}`` of the inputs."
    return convert


class OperatorMethods:
    """One method for each operator."""


for _name, _operator in OPERATORS.items():
    setattr(OperatorMethods, _name, method(_name, _operator))
