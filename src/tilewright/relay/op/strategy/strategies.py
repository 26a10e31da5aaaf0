"""How operators are computed where a target says nothing else: the computation of their definition, and the schedule of
``topi.generic`` that goes with their layout.

Every strategy is a generic function (attrs, inputs, out_type, target) to an ``OpStrategy``; a target registers its own
under a key: ``@conv2d_strategy.register("cuda")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.op import Op
from tilewright.relay.op.nn.convolution_rules import is_multiplied
from tilewright.relay.op.op import OpStrategy
from tilewright.relay.op.strategy.wrapping import wrap_topi_schedule
from tilewright.support.errors import OpNotImplemented
from tilewright.target import override_native_generic_func
from tilewright.target.generic_func import DispatchedFunction
from tilewright.tir.data_layout import Layout
from tilewright.topi.utils import get_const_tuple

TopiSchedule = Callable[[Any], Any]


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
    """True if each channel has kernels of its own."""
    channels = get_conv2d_in_channels(data_shape, data_layout)
    return bool(is_multiplied(groups, channels, get_conv2d_out_channels(kernel_shape, kernel_layout)))


def defined_compute(op_name: str) -> Callable[..., Any]:
    """The computation of an operator's definition."""
    found = Op.get(op_name).get_attr("FTVMCompute")
    if found is None:
        raise OpNotImplemented(f"operator {op_name} has no computation")
    return found  # type: ignore[no-any-return]


def one_implementation(op_name: str, schedule: TopiSchedule, name: str) -> OpStrategy:
    """The computation of the definition, with a schedule."""
    made = OpStrategy()
    made.add_implementation(defined_compute(op_name), wrap_topi_schedule(schedule), name=name)
    return made


def defined_strategy(name: str, op_name: str, schedule: TopiSchedule) -> DispatchedFunction:
    """The strategy, under this name, of an operator whose schedule does not depend on its attributes."""

    def strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
        return one_implementation(op_name, schedule, f"{name.removesuffix('_strategy')}.generic")

    strategy.__name__ = strategy.__qualname__ = name
    strategy.__doc__ = f"The strategy of {op_name}."
    return override_native_generic_func(name)(strategy)


# Convolutions


def _by_layout(schedules: Mapping[str, TopiSchedule], layout: str) -> TopiSchedule:
    return schedules.get(layout, topi.generic.schedule_default)


@override_native_generic_func("conv2d_strategy")
def conv2d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of nn.conv2d: plain, in groups or depthwise, by its layout."""
    layout = attrs.data_layout
    if is_depthwise_conv2d(inputs[0].shape, layout, inputs[1].shape, attrs.kernel_layout, attrs.groups):
        name = f"depthwise_conv2d_{layout.lower()}"
        schedules: dict[str, TopiSchedule] = {
            "NCHW": topi.generic.schedule_depthwise_conv2d_nchw,
            "NHWC": topi.generic.schedule_depthwise_conv2d_nhwc,
        }
    elif attrs.groups == 1:
        name = f"conv2d_{layout.lower()}"
        schedules = {
            "NCHW": topi.generic.schedule_conv2d_nchw,
            "NHWC": topi.generic.schedule_conv2d_nhwc,
            "HWCN": topi.generic.schedule_conv2d_hwcn,
        }
    else:
        name = f"group_conv2d_{layout.lower()}"
        schedules = {
            "NCHW": topi.generic.schedule_group_conv2d_nchw,
            "NHWC": topi.generic.schedule_group_conv2d_nhwc,
        }
    return one_implementation("nn.conv2d", _by_layout(schedules, layout), f"{name}.generic")


@override_native_generic_func("conv1d_strategy")
def conv1d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of nn.conv1d, by its layout."""
    schedules = {"NCW": topi.generic.schedule_conv1d_ncw, "NWC": topi.generic.schedule_conv1d_nwc}
    if attrs.groups > 1:
        schedules = {
            "NCW": topi.generic.schedule_group_conv1d_ncw,
            "NWC": topi.generic.schedule_group_conv1d_nwc,
        }
    name = f"{'group_' if attrs.groups > 1 else ''}conv1d_{attrs.data_layout.lower()}.generic"
    return one_implementation("nn.conv1d", _by_layout(schedules, attrs.data_layout), name)


@override_native_generic_func("conv3d_strategy")
def conv3d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of nn.conv3d, by its layout."""
    schedules = {"NCDHW": topi.generic.schedule_conv3d_ncdhw, "NDHWC": topi.generic.schedule_conv3d_ndhwc}
    name = f"conv3d_{attrs.data_layout.lower()}.generic"
    return one_implementation("nn.conv3d", _by_layout(schedules, attrs.data_layout), name)


@override_native_generic_func("deformable_conv2d_strategy")
def deformable_conv2d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of nn.deformable_conv2d, by its layout."""
    schedules = {
        "NCHW": topi.generic.schedule_deformable_conv2d_nchw,
        "NHWC": topi.generic.schedule_deformable_conv2d_nhwc,
    }
    name = f"deformable_conv2d_{attrs.data_layout.lower()}.generic"
    return one_implementation("nn.deformable_conv2d", _by_layout(schedules, attrs.data_layout), name)


@override_native_generic_func("dilation2d_strategy")
def dilation2d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of image.dilation2d, by its layout."""
    schedules = {
        "NCHW": topi.generic.schedule_dilation2d_nchw,
        "NHWC": topi.generic.schedule_dilation2d_nhwc,
    }
    name = f"dilation2d_{attrs.data_layout.lower()}.generic"
    return one_implementation("image.dilation2d", _by_layout(schedules, attrs.data_layout), name)


@override_native_generic_func("bitserial_conv2d_strategy")
def bitserial_conv2d_strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """The strategy of nn.bitserial_conv2d, by its layout."""
    schedules = {
        "NCHW": topi.generic.schedule_bitserial_conv2d_nchw,
        "NHWC": topi.generic.schedule_bitserial_conv2d_nhwc,
    }
    name = f"bitserial_conv2d_{attrs.data_layout.lower()}.generic"
    return one_implementation("nn.bitserial_conv2d", _by_layout(schedules, attrs.data_layout), name)


conv2d_NCHWc_strategy = defined_strategy(
    "conv2d_NCHWc_strategy", "nn.contrib_conv2d_NCHWc", topi.generic.schedule_conv2d_NCHWc
)
depthwise_conv2d_NCHWc_strategy = defined_strategy(
    "depthwise_conv2d_NCHWc_strategy",
    "nn.contrib_depthwise_conv2d_NCHWc",
    topi.generic.schedule_depthwise_conv2d_NCHWc,
)
conv2d_winograd_without_weight_transfrom_strategy = defined_strategy(
    "conv2d_winograd_without_weight_transfrom_strategy",
    "nn.contrib_conv2d_winograd_without_weight_transform",
    topi.generic.schedule_conv2d_winograd_without_weight_transform,
)
conv2d_gemm_without_weight_transform_strategy = defined_strategy(
    "conv2d_gemm_without_weight_transform_strategy",
    "nn.contrib_conv2d_gemm_without_weight_transform",
    topi.generic.schedule_conv2d_nhwc,
)
conv3d_winograd_without_weight_transfrom_strategy = defined_strategy(
    "conv3d_winograd_without_weight_transfrom_strategy",
    "nn.contrib_conv3d_winograd_without_weight_transform",
    topi.generic.schedule_conv3d_ncdhw,
)
conv1d_transpose_strategy = defined_strategy(
    "conv1d_transpose_strategy", "nn.conv1d_transpose", topi.generic.schedule_conv1d_transpose_ncw
)
conv2d_transpose_strategy = defined_strategy(
    "conv2d_transpose_strategy", "nn.conv2d_transpose", topi.generic.schedule_conv2d_transpose_nchw
)
conv3d_transpose_strategy = defined_strategy(
    "conv3d_transpose_strategy", "nn.conv3d_transpose", topi.generic.schedule_conv3d_transpose_ncdhw
)

# Products, softmax, sparse matrices

matmul_strategy = defined_strategy("matmul_strategy", "nn.matmul", topi.generic.schedule_matmul)
dense_strategy = defined_strategy("dense_strategy", "nn.dense", topi.generic.schedule_dense)
dense_pack_strategy = defined_strategy(
    "dense_pack_strategy", "nn.contrib_dense_pack", topi.generic.schedule_dense
)
batch_matmul_strategy = defined_strategy(
    "batch_matmul_strategy", "nn.batch_matmul", topi.generic.schedule_batch_matmul
)
bitserial_dense_strategy = defined_strategy(
    "bitserial_dense_strategy", "nn.bitserial_dense", topi.generic.schedule_bitserial_dense
)
softmax_strategy = defined_strategy("softmax_strategy", "nn.softmax", topi.generic.schedule_softmax)
fast_softmax_strategy = defined_strategy(
    "fast_softmax_strategy", "nn.fast_softmax", topi.generic.schedule_fast_softmax
)
log_softmax_strategy = defined_strategy(
    "log_softmax_strategy", "nn.log_softmax", topi.generic.schedule_softmax
)
sparse_dense_strategy = defined_strategy(
    "sparse_dense_strategy", "nn.sparse_dense", topi.generic.schedule_sparse_dense
)
sparse_dense_padded_strategy = defined_strategy(
    "sparse_dense_padded_strategy", "nn.internal.sparse_dense_padded", topi.generic.schedule_sparse_dense
)
sparse_add_strategy = defined_strategy("sparse_add_strategy", "nn.sparse_add", topi.generic.schedule_extern)
sparse_conv2d_strategy = defined_strategy(
    "sparse_conv2d_strategy", "nn.sparse_conv2d", topi.generic.schedule_sparse_conv2d
)
correlation_strategy = defined_strategy(
    "correlation_strategy", "nn.correlation", topi.generic.schedule_correlation_nchw
)

# Detection

multibox_prior_strategy = defined_strategy(
    "multibox_prior_strategy", "vision.multibox_prior", topi.generic.schedule_multibox_prior
)
multibox_transform_loc_strategy = defined_strategy(
    "multibox_transform_loc_strategy",
    "vision.multibox_transform_loc",
    topi.generic.schedule_multibox_transform_loc,
)
get_valid_counts_strategy = defined_strategy(
    "get_valid_counts_strategy", "vision.get_valid_counts", topi.generic.schedule_get_valid_counts
)
nms_strategy = defined_strategy("nms_strategy", "vision.non_max_suppression", topi.generic.schedule_nms)
all_class_nms_strategy = defined_strategy(
    "all_class_nms_strategy", "vision.all_class_non_max_suppression", topi.generic.schedule_nms
)
roi_align_strategy = defined_strategy(
    "roi_align_strategy", "vision.roi_align", topi.generic.schedule_roi_align
)
proposal_strategy = defined_strategy("proposal_strategy", "vision.proposal", topi.generic.schedule_proposal)

# Sorting, scattering, scanning, random numbers

sort_strategy = defined_strategy("sort_strategy", "sort", topi.generic.schedule_sort)
argsort_strategy = defined_strategy("argsort_strategy", "argsort", topi.generic.schedule_argsort)
topk_strategy = defined_strategy("topk_strategy", "topk", topi.generic.schedule_topk)
searchsorted_strategy = defined_strategy(
    "searchsorted_strategy", "searchsorted", topi.generic.schedule_searchsorted
)
scatter_strategy = defined_strategy("scatter_strategy", "scatter", topi.generic.schedule_scatter)
scatter_add_strategy = defined_strategy(
    "scatter_add_strategy", "scatter_add", topi.generic.schedule_scatter_add
)
scatter_nd_strategy = defined_strategy("scatter_nd_strategy", "scatter_nd", topi.generic.schedule_scatter_nd)
cumsum_strategy = defined_strategy("cumsum_strategy", "cumsum", topi.generic.schedule_extern)
cumprod_strategy = defined_strategy("cumprod_strategy", "cumprod", topi.generic.schedule_extern)
unique_strategy = defined_strategy("unique_strategy", "unique", topi.generic.schedule_unique)
argwhere_strategy = defined_strategy("argwhere_strategy", "argwhere", topi.generic.schedule_argwhere)
invert_permutation_strategy = defined_strategy(
    "invert_permutation_strategy", "invert_permutation", topi.generic.schedule_invert_permutation
)
einsum_strategy = defined_strategy("einsum_strategy", "einsum", topi.generic.schedule_einsum)
sparse_fill_empty_rows_strategy = defined_strategy(
    "sparse_fill_empty_rows_strategy",
    "sparse_fill_empty_rows",
    topi.generic.schedule_sparse_fill_empty_rows,
)
sparse_reshape_strategy = defined_strategy(
    "sparse_reshape_strategy", "sparse_reshape", topi.generic.schedule_sparse_reshape
)
threefry_generate_strategy = defined_strategy(
    "threefry_generate_strategy", "random.threefry_generate", topi.generic.schedule_extern
)
threefry_split_strategy = defined_strategy(
    "threefry_split_strategy", "random.threefry_split", topi.generic.schedule_extern
)
uniform_strategy = defined_strategy("uniform_strategy", "random.uniform", topi.generic.schedule_extern)
