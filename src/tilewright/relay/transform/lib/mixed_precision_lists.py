"""Which operators benefit from float16 or bfloat16, which tolerate it, and which do not.

An operator whose results have about the magnitude of its arguments tolerates a 16-bit type. One that sums many
elements, or grows fast (an exponential), does not: it would overflow, or lose precision.
"""

from __future__ import annotations

from enum import IntEnum


class Category(IntEnum):
    """What ToMixedPrecision does with calls of an operator."""

    ALWAYS = 0
    """Convert its arguments."""
    FOLLOW = 1
    """Use the narrow type where the arguments have it already."""
    NEVER = 2
    """Convert its arguments back."""


ALWAYS = (
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    "nn.contrib_conv2d_NCHWc",
    "nn.contrib_depthwise_conv2d_NCHWc",
    "nn.dense",
    "nn.contrib_dense_pack",
    "nn.matmul",
    "nn.batch_matmul",
)

FOLLOW = (
    "nn.layer_norm",
    # Data are moved.
    "reshape",
    "reshape_like",
    "contrib_reverse_reshape",
    "dyn.reshape",
    "squeeze",
    "dyn.squeeze",
    "expand_dims",
    "dyn.expand_dims",
    "transpose",
    "layout_transform",
    "nn.batch_flatten",
    "nn.pad",
    "dyn.nn.pad",
    "nn.mirror_pad",
    "concatenate",
    "stack",
    "split",
    "strided_slice",
    "dyn.strided_slice",
    "strided_set",
    "slice_like",
    "take",
    "gather",
    "gather_nd",
    "adv_index",
    "scatter",
    "scatter_nd",
    "reverse",
    "reverse_sequence",
    "repeat",
    "tile",
    "dyn.tile",
    "broadcast_to",
    "broadcast_to_like",
    "dyn.broadcast_to",
    "nn.space_to_depth",
    "nn.depth_to_space",
    "nn.space_to_batch_nd",
    "nn.batch_to_space_nd",
    "nn.dilate",
    "sequence_mask",
    "where",
    "copy",
    "zeros_like",
    "ones_like",
    "full_like",
    "annotation.stop_fusion",
    "annotation.checkpoint",
    "argmax",
    "argmin",
    "argsort",
    "sort",
    "topk",
    "dyn.topk",
    "max",
    "min",
    # Arithmetic whose results have about the size of the arguments.
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "negative",
    "abs",
    "sign",
    "sqrt",
    "clip",
    "floor",
    "ceil",
    "round",
    "nearbyint",
    "trunc",
    "nn.bias_add",
    "nn.batch_norm",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "isnan",
    "isinf",
    "isfinite",
    # Activations that are bounded, or grow no faster than their argument.
    "nn.relu",
    "nn.leaky_relu",
    "nn.prelu",
    "nn.dropout",
    "sigmoid",
    "tanh",
    "fast_tanh",
    "erf",
    "fast_erf",
    # Pooling and resizing.
    *(
        f"nn.{name}_pool{rank}d"
        for name in ("max", "avg", "adaptive_max", "adaptive_avg")
        for rank in (1, 2, 3)
    ),
    "nn.global_max_pool2d",
    "nn.global_avg_pool2d",
    "nn.upsampling",
    "nn.upsampling3d",
    "image.resize1d",
    "image.resize2d",
    "image.resize3d",
)

NEVER = (
    "exp",
    "fast_exp",
    "log",
    "log2",
    "log10",
    "power",
    "rsqrt",
    "mod",
    "floor_mod",
    "floor_divide",
    "sinh",
    "cosh",
    "tan",
    "sin",
    "cos",
    "sum",
    "mean",
    "variance",
    "prod",
    "cumsum",
    "cumprod",
    "cast",
    "cast_like",
    "zeros",
    "ones",
    "full",
    "arange",
    "shape_of",
    "ndarray_size",
    "one_hot",
    "nn.softmax",
    "nn.fast_softmax",
    "nn.log_softmax",
    "nn.group_norm",
    "nn.instance_norm",
    "nn.l2_normalize",
    "nn.lrn",
    "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
    "nn.nll_loss",
    "nn.deformable_conv2d",
    "image.crop_and_resize",
    "image.grid_sample",
    "vision.roi_align",
    "vision.roi_pool",
    "vision.get_valid_counts",
    "vision.non_max_suppression",
)

CATEGORIES = {
    **dict.fromkeys(ALWAYS, Category.ALWAYS),
    **dict.fromkeys(FOLLOW, Category.FOLLOW),
    **dict.fromkeys(NEVER, Category.NEVER),
}
