"""Normalisation, as models compute it in inference."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import as_scalar, multiplied, reshaped, sizes_of
from tilewright.relay.frontend.torch.dtypes import common_dtype
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import converter

_TRAINING = "batch normalisation in training mode changes its statistics: call model.eval() before exporting"


def _channels(node: TorchNode, data: Expr) -> int:
    found = node.shape(data)[1]
    if found is None:
        raise node.fail("the number of channels is not known")
    return found


def _or_ones(node: TorchNode, given: Expr | None, count: int, dtype: str) -> Expr:
    return relay.ones((count,), dtype) if given is None else given


def _or_zeros(node: TorchNode, given: Expr | None, count: int, dtype: str) -> Expr:
    return relay.zeros((count,), dtype) if given is None else given


def _with_statistics(
    node: TorchNode,
    data: Expr,
    weight: Expr | None,
    bias: Expr | None,
    mean: Expr,
    variance: Expr,
    eps: float,
) -> Expr:
    """Data normalised by statistics of each channel, which is axis 1."""
    count = _channels(node, data)
    dtype, wide = node.dtype(data), node.dtype(mean)
    wide = common_dtype(dtype, wide)
    found = relay.nn.batch_norm(
        node.cast(data, wide),
        node.cast(_or_ones(node, weight, count, wide), wide),
        node.cast(_or_zeros(node, bias, count, wide), wide),
        node.cast(mean, wide),
        node.cast(variance, wide),
        axis=1,
        epsilon=float(eps),
    )[0]
    return node.cast(found, dtype)


def _of_the_batch(
    node: TorchNode, data: Expr, weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    """Data normalised by their own statistics over all axes but that of the channels; with those statistics."""
    rank = node.rank(data)
    axes = [axis for axis in range(rank) if axis != 1]
    mean = relay.mean(data, axes)
    variance = relay.variance(data, axes)
    return _with_statistics(node, data, weight, bias, mean, variance, eps), mean, variance


@converter("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm")
def batch_norm(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Expr:
    """Channels normalised by statistics that were learnt; or by their own, where the layer keeps none."""
    if running_mean is None or running_var is None:
        return _of_the_batch(node, input, weight, bias, eps)[0]
    if training:
        raise node.fail(_TRAINING)
    return _with_statistics(node, input, weight, bias, running_mean, running_var, eps)


def _empty(dtype: str) -> Expr:
    return relay.zeros((0,), dtype)


@converter("aten::native_batch_norm", "aten::_native_batch_norm_legit")
def native_batch_norm(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None = None,
    running_var: Expr | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> list[Expr]:
    """With the mean and the inverse deviation that were saved for gradients."""
    if running_mean is None or running_var is None:
        made, mean, variance = _of_the_batch(node, input, weight, bias, eps)
        inverse = relay.rsqrt(relay.add(variance, node.constant(float(eps), variance)))
        return [made, mean, inverse]
    if training:
        raise node.fail(_TRAINING)
    dtype = node.dtype(running_mean)
    made = _with_statistics(node, input, weight, bias, running_mean, running_var, eps)
    return [made, _empty(dtype), _empty(dtype)]


@converter("aten::_native_batch_norm_legit_functional", "aten::_batch_norm_with_update_functional")
def batch_norm_functional(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> list[Expr]:
    """With the new running statistics as results, which training mode changes."""
    with_reserve = "with_update" in node.op_type
    reserve = [relay.zeros((0,), "uint8")] if with_reserve else []
    if not training:
        made = native_batch_norm(node, input, weight, bias, running_mean, running_var, False, momentum, eps)
        return [*made, *reserve, running_mean, running_var]
    made_of_batch, mean, variance = _of_the_batch(node, input, weight, bias, eps)
    inverse = relay.rsqrt(relay.add(variance, node.constant(float(eps), variance)))
    dtype = node.dtype(running_mean)
    count = multiplied([size for axis, size in enumerate(sizes_of(node, input)) if axis != 1])
    members = as_scalar(count, dtype)
    unbiased = relay.multiply(
        node.cast(variance, dtype),
        relay.divide(members, relay.subtract(members, node.constant(1.0, dtype))),
    )
    new, old = node.constant(momentum, dtype), node.constant(1.0 - momentum, dtype)
    following = [
        relay.add(relay.multiply(new, node.cast(given, dtype)), relay.multiply(old, before))
        for given, before in ((mean, running_mean), (unbiased, running_var))
    ]
    return [made_of_batch, mean, inverse, *reserve, *following]


@converter("aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update")
def batch_norm_no_training(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    momentum: float,
    eps: float,
) -> list[Expr]:
    """The form in inference."""
    made = native_batch_norm(node, input, weight, bias, running_mean, running_var, False, momentum, eps)
    return [*made, relay.zeros((0,), "uint8")] if "no_update" in node.op_type else made


@converter("aten::instance_norm")
def instance_norm(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Expr:
    """Each channel of each sample normalised by itself."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise node.fail("neither statistics of the input nor saved ones are used")
        return _with_statistics(node, input, weight, bias, running_mean, running_var, eps)
    count, dtype = _channels(node, input), node.dtype(input)
    scale, shift = _or_ones(node, weight, count, dtype), _or_zeros(node, bias, count, dtype)
    return relay.nn.instance_norm(input, scale, shift, axis=1, epsilon=float(eps))


def _over_axes(
    node: TorchNode, data: Expr, count: int, weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    """Data normalised over their last axes; with mean and inverse deviation. Half precision is computed as float32."""
    dtype = node.dtype(data)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    rank = node.rank(data)
    axes = list(range(rank - count, rank))
    work = node.cast(data, wide)
    mean = relay.mean(work, axes, keepdims=True)
    apart = relay.subtract(work, mean)
    variance = relay.mean(relay.multiply(apart, apart), axes, keepdims=True)
    inverse = relay.rsqrt(relay.add(variance, node.constant(float(eps), wide)))
    made = relay.multiply(apart, inverse)
    if weight is not None:
        made = relay.multiply(made, node.cast(weight, wide))
    if bias is not None:
        made = relay.add(made, node.cast(bias, wide))
    return node.cast(made, dtype), mean, inverse


@converter("aten::layer_norm")
def layer_norm(
    node: TorchNode,
    input: Expr,
    normalized_shape: Any,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Expr:
    """Data normalised over their last axes."""
    dtype = node.dtype(input)
    size = node.shape(input)[-1] if node.rank(input) else None
    if len(normalized_shape) == 1 and size is not None and dtype not in ("float16", "bfloat16"):
        scale, shift = _or_ones(node, weight, size, dtype), _or_zeros(node, bias, size, dtype)
        return relay.nn.layer_norm(
            input, scale, shift, axis=-1, epsilon=float(eps),
            scale=weight is not None, center=bias is not None,
        )  # fmt: skip
    return _over_axes(node, input, len(normalized_shape), weight, bias, eps)[0]


@converter("aten::native_layer_norm")
def native_layer_norm(
    node: TorchNode,
    input: Expr,
    normalized_shape: Any,
    weight: Expr | None,
    bias: Expr | None,
    eps: float,
) -> list[Expr]:
    """With the mean and the inverse deviation, which seldom have a reader."""
    _, mean, inverse = _over_axes(node, input, len(normalized_shape), None, None, eps)
    return [layer_norm(node, input, normalized_shape, weight, bias, eps), mean, inverse]


@converter("aten::rms_norm", "aten::_fused_rms_norm")
def rms_norm(
    node: TorchNode,
    input: Expr,
    normalized_shape: Any,
    weight: Expr | None = None,
    eps: float | None = None,
) -> Any:
    """Data divided by their root mean square over the last axes."""
    dtype = node.dtype(input)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    epsilons = {"float64": 2.220446049250313e-16}
    small = epsilons.get(wide, 1.1920928955078125e-07) if eps is None else float(eps)
    rank = node.rank(input)
    axes = list(range(rank - len(normalized_shape), rank))
    work = node.cast(input, wide)
    square = relay.mean(relay.multiply(work, work), axes, keepdims=True)
    inverse = relay.rsqrt(relay.add(square, node.constant(small, wide)))
    made: Expr = relay.multiply(work, inverse)
    if weight is not None:
        made = relay.multiply(made, node.cast(weight, wide))
    made = node.cast(made, dtype)
    return [made, inverse] if "_fused" in node.op_type else made


def _in_groups(
    node: TorchNode, data: Expr, groups: int, weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    """Channels of each group and member of the batch normalised together; with mean and inverse deviation."""
    sizes = sizes_of(node, data)
    channels = _channels(node, data)
    grouped = reshaped(node, data, [sizes[0], groups, -1])
    made, mean, inverse = _over_axes(node, grouped, 1, None, None, eps)
    made = reshaped(node, made, sizes)
    outer = [channels] + [1] * (node.rank(data) - 2)
    dtype = node.dtype(data)
    if weight is not None:
        made = relay.multiply(made, relay.reshape(node.cast(weight, dtype), outer))
    if bias is not None:
        made = relay.add(made, relay.reshape(node.cast(bias, dtype), outer))
    return made, relay.squeeze(mean, axis=[2]), relay.squeeze(inverse, axis=[2])


@converter("aten::group_norm")
def group_norm(
    node: TorchNode,
    input: Expr,
    num_groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Expr:
    """Groups of channels normalised together."""
    dtype = node.dtype(input)
    if node.rank(input) < 3 or dtype in ("float16", "bfloat16"):
        return _in_groups(node, input, num_groups, weight, bias, eps)[0]
    count = _channels(node, input)
    scale, shift = _or_ones(node, weight, count, dtype), _or_zeros(node, bias, count, dtype)
    return relay.nn.group_norm(input, scale, shift, num_groups, axis=1, epsilon=float(eps))


@converter("aten::native_group_norm")
def native_group_norm(
    node: TorchNode,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    eps: float,
) -> list[Expr]:
    """With the mean and the inverse deviation."""
    _, mean, inverse = _in_groups(node, input, group, None, None, eps)
    return [group_norm(node, input, group, weight, bias, eps), mean, inverse]


@converter("aten::local_response_norm")
def local_response_norm(
    node: TorchNode, input: Expr, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Expr:
    """Channels divided by a power of the squares around them."""
    return relay.nn.lrn(input, size=size, axis=1, bias=k, alpha=alpha, beta=beta)
