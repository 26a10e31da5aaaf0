"""The names of ``topi.generic``'s schedules, and the operators that each one is for.

A schedule that a user registers under one of these names for a target's key is used for those operators:
``@topi.generic.schedule_dense.register("cuda")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.relay.op.nn.convolution_rules import is_multiplied
from tilewright.tir.data_layout import Layout
from tilewright.topi.utils import get_const_tuple


@dataclass(frozen=True)
class Calls:
    """The calls of an operator, or of a kind of operators: all, or those of a layout and of a form of convolution
    (plain, group, depthwise)."""

    operator: str
    layout: str | None = None
    form: str | None = None

    def applies(self, attrs: Any, inputs: Sequence[Any]) -> bool:
        """True for a call with these attributes and inputs."""
        if self.layout is not None and attrs.data_layout != self.layout:
            return False
        return self.form is None or self.form == _form(attrs, inputs)


def _form(attrs: Any, inputs: Sequence[Any]) -> str:
    if attrs.groups == 1:
        return "plain"
    layouts = (attrs.data_layout, attrs.kernel_layout)
    channels = (
        _extent(inputs[0].shape, layouts[0], "C"),
        _extent(inputs[1].shape, layouts[1], "O"),
    )
    is_depthwise = "H" in attrs.data_layout and is_multiplied(attrs.groups, *channels)
    return "depthwise" if is_depthwise else "group"


def _extent(shape: Sequence[Any], layout: str, axis: str) -> Any:
    """The whole extent of an axis of a tensor in a layout; an int where it is constant."""
    found = Layout(layout)
    (extent,) = get_const_tuple([shape[found.index_of(axis)]])
    factor = found.factor_of(axis)
    return extent if factor < 0 else extent * factor


def get_conv2d_in_channels(data_shape: Sequence[Any], data_layout: str) -> Any:
    """The channels of a convolution's data."""
    return _extent(data_shape, data_layout, "C")


def get_conv2d_out_channels(kernel_shape: Sequence[Any], kernel_layout: str) -> Any:
    """The output channels of a convolution's weight."""
    return _extent(kernel_shape, kernel_layout, "O")


def is_depthwise_conv2d(
    data_shape: Sequence[Any], data_layout: str, kernel_shape: Sequence[Any], kernel_layout: str, groups: int
) -> bool:
    """True for a depthwise convolution."""
    channels = get_conv2d_in_channels(data_shape, data_layout)
    return bool(is_multiplied(groups, channels, get_conv2d_out_channels(kernel_shape, kernel_layout)))


def _by_layout(prefix: str, operator: str, layouts: str, form: str | None = None) -> dict[str, list[Calls]]:
    return {f"{prefix}_{layout.lower()}": [Calls(operator, layout, form)] for layout in layouts.split()}


def _each(*operators: str) -> list[Calls]:
    return [Calls(operator) for operator in operators]


POOLS: Final = _each(*(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)))
POOL_GRADIENTS: Final = _each("nn.max_pool2d_grad", "nn.avg_pool2d_grad")
ADAPTIVE_POOLS: Final = _each(
    *(f"nn.global_{kind}_pool2d" for kind in ("max", "avg")),
    *(f"nn.adaptive_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
)
WEIGHT_TRANSFORMS: Final = {
    "conv2d_winograd_weight_transform": _each("nn.contrib_conv2d_winograd_weight_transform"),
    "conv2d_winograd_nnpack_weight_transform": [],
    "conv2d_gemm_weight_transform": _each("nn.contrib_conv2d_gemm_weight_transform"),
    "conv3d_winograd_weight_transform": _each("nn.contrib_conv3d_winograd_weight_transform"),
}

OPERATORS: Final[dict[str, list[Calls]]] = {
    # Kinds of operators.
    "injective": [Calls("injective"), *_each("concatenate", "transpose")],
    "elemwise": [],
    "broadcast": [],
    "concatenate": [],
    "reduce": [Calls("reduce")],
    # Convolutions.
    **_by_layout("conv1d", "nn.conv1d", "NCW NWC", "plain"),
    **_by_layout("group_conv1d", "nn.conv1d", "NCW NWC", "group"),
    **_by_layout("conv2d", "nn.conv2d", "NCHW NHWC HWCN", "plain"),
    **_by_layout("group_conv2d", "nn.conv2d", "NCHW NHWC", "group"),
    **_by_layout("depthwise_conv2d", "nn.conv2d", "NCHW NHWC", "depthwise"),
    **_by_layout("conv3d", "nn.conv3d", "NCDHW NDHWC"),
    **_by_layout("deformable_conv2d", "nn.deformable_conv2d", "NCHW NHWC"),
    **_by_layout("dilation2d", "image.dilation2d", "NCHW NHWC"),
    **_by_layout("bitserial_conv2d", "nn.bitserial_conv2d", "NCHW NHWC"),
    "conv2d_nhwc_pack": [],
    "conv2d_NCHWc": _each("nn.contrib_conv2d_NCHWc"),
    "conv2d_NCHWc_int8": [],
    "depthwise_conv2d_NCHWc": _each("nn.contrib_depthwise_conv2d_NCHWc"),
    "conv2d_winograd_without_weight_transform": _each("nn.contrib_conv2d_winograd_without_weight_transform"),
    **WEIGHT_TRANSFORMS,
    "conv1d_transpose_ncw": _each("nn.conv1d_transpose"),
    "conv2d_transpose_nchw": _each("nn.conv2d_transpose"),
    "group_conv2d_transpose_nchw": [],
    "conv3d_transpose_ncdhw": _each("nn.conv3d_transpose"),
    "correlation_nchw": _each("nn.correlation"),
    # Products, softmax, normalisation, pooling.
    "matmul": _each("nn.matmul"),
    "dense": _each("nn.dense", "nn.contrib_dense_pack"),
    "batch_matmul": _each("nn.batch_matmul"),
    "bitserial_dense": _each("nn.bitserial_dense"),
    "binarize_pack": [],
    "binary_dense": [],
    "sparse_dense": _each("nn.sparse_dense", "nn.internal.sparse_dense_padded"),
    "sparse_transpose": _each("nn.sparse_transpose"),
    "sparse_conv2d": _each("nn.sparse_conv2d"),
    "softmax": _each("nn.softmax", "nn.log_softmax"),
    "fast_softmax": _each("nn.fast_softmax"),
    "pool": POOLS,
    "pool_grad": POOL_GRADIENTS,
    "adaptive_pool": ADAPTIVE_POOLS,
    "lrn": _each("nn.lrn"),
    "l2_normalize": [],
    "batch_norm": [],
    # Functions written as statements, sorting, searching, detection.
    "extern": _each(
        "nn.sparse_add",
        "cumsum",
        "cumprod",
        "random.threefry_generate",
        "random.threefry_split",
        "random.uniform",
    ),
    **{
        name: _each(name)
        for name in (
            *("einsum", "sort", "argsort", "topk", "searchsorted", "argwhere", "scatter", "scatter_add"),
            *("scatter_nd", "unique", "sparse_fill_empty_rows", "sparse_reshape", "invert_permutation"),
        )
    },
    "scan": [],
    "reorg": [],
    "multibox_detection": [],
    **{
        name: _each(f"vision.{name}")
        for name in (
            *("get_valid_counts", "multibox_prior", "multibox_transform_loc"),
            *("roi_align", "roi_pool", "proposal"),
        )
    },
    "nms": _each("vision.non_max_suppression", "vision.all_class_non_max_suppression"),
}
OPERATORS["conv2d_nhwc"] += _each("nn.contrib_conv2d_gemm_without_weight_transform")
OPERATORS["conv3d_ncdhw"] += _each("nn.contrib_conv3d_winograd_without_weight_transform")

OF_X86: Final = (
    *("injective", "elemwise", "broadcast", "concatenate", "reduce", "softmax", "pool", "adaptive_pool"),
    *("conv1d_ncw", "conv1d_nwc", "group_conv1d_ncw", "group_conv1d_nwc", "conv2d_nchw", "conv2d_nhwc"),
    *("conv2d_NCHWc", "conv2d_nchw_int8", "conv2d_NCHWc_int8", "conv2d_transpose_nchw"),
    *("conv2d_transpose_NCHWc", "conv2d_winograd_NCHWc", "conv3d_ncdhw", "conv3d_ndhwc"),
    *("conv3d_transpose_ncdhw", "group_conv2d_nchw", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc"),
    *("depthwise_conv2d_NCHWc", "matmul", "dense_nopack", "dense_pack", "batch_matmul", "sparse_dense"),
    *("sparse_conv2d", "binarize_pack", "binary_dense", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc"),
    *("bitserial_dense", "conv2d_nhwc_pack_int8"),
)
"""The names of ``topi.x86``'s schedules."""
