"""TVM's generic strategies and schedules of the graph level: what they give computes what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.compat.operator_calls import CPU, Implementation, cases, check_case
from tests.relay.op.cases import Case, Input

import tilewright as tvm
from tilewright import relay, te
from tilewright.compat.named_strategies import STRATEGIES as OPERATORS
from tilewright.relay.op.strategy import generic

STRATEGIES = [
    ("conv1d_strategy", "conv1d"),
    ("conv2d_strategy", "conv2d"),
    ("conv2d_NCHWc_strategy", "contrib_conv2d_nchwc"),
    ("depthwise_conv2d_NCHWc_strategy", "contrib_depthwise_conv2d_nchwc"),
    ("conv2d_winograd_without_weight_transfrom_strategy", "conv2d_winograd"),
    ("conv2d_gemm_without_weight_transform_strategy", "conv2d_gemm"),
    ("conv3d_strategy", "conv3d"),
    ("conv3d_winograd_without_weight_transfrom_strategy", "conv3d_winograd"),
    ("conv1d_transpose_strategy", "conv1d_transpose"),
    ("conv2d_transpose_strategy", "conv2d_transpose"),
    ("conv3d_transpose_strategy", "conv3d_transpose"),
    ("deformable_conv2d_strategy", "deformable_conv2d"),
    ("dilation2d_strategy", "dilation2d"),
    ("correlation_strategy", "correlation"),
    ("bitserial_conv2d_strategy", "bitserial_conv2d"),
    ("bitserial_dense_strategy", "bitserial_dense"),
    ("dense_strategy", "dense"),
    ("dense_pack_strategy", "contrib_dense_pack"),
    ("matmul_strategy", "matmul"),
    ("batch_matmul_strategy", "batch_matmul_of_one"),
    ("softmax_strategy", "softmax"),
    ("fast_softmax_strategy", "fast_softmax"),
    ("log_softmax_strategy", "log_softmax"),
    ("sparse_dense_strategy", "sparse_dense_bsr"),
    ("sparse_add_strategy", "sparse_add"),
    ("sparse_conv2d_strategy", "sparse_conv2d"),
    ("sparse_fill_empty_rows_strategy", "sparse_fill_empty_rows"),
    ("sparse_reshape_strategy", "sparse_reshape"),
    ("sort_strategy", "sort"),
    ("argsort_strategy", "argsort_ties"),
    ("topk_strategy", "topk"),
    ("searchsorted_strategy", "searchsorted"),
    ("multibox_prior_strategy", "multibox_prior"),
    ("multibox_transform_loc_strategy", "multibox_transform_loc"),
    ("get_valid_counts_strategy", "get_valid_counts"),
    ("nms_strategy", "non_max_suppression_indices"),
    ("all_class_nms_strategy", "all_class_non_max_suppression_onnx"),
    ("roi_align_strategy", "roi_align_avg_2"),
    ("proposal_strategy", "proposal_centres"),
    ("scatter_strategy", "scatter"),
    ("scatter_add_strategy", "scatter_add"),
    ("scatter_nd_strategy", "scatter_nd_add"),
    ("argwhere_strategy", "argwhere"),
    ("threefry_generate_strategy", "threefry_generate"),
    ("threefry_split_strategy", "threefry_split"),
    ("uniform_strategy", "uniform_limits"),
    ("cumsum_strategy", "cumsum_exclusive"),
    ("cumprod_strategy", "cumprod_exclusive"),
    ("unique_strategy", "unique"),
    ("invert_permutation_strategy", "invert_permutation"),
    ("einsum_strategy", "einsum_ij,jk->ik_float32"),
]
"""A case for each strategy."""


@pytest.mark.parametrize(("name", "case"), STRATEGIES)
def test_a_strategy_gives_implementations_that_compute_the_operator(name: str, case: str) -> None:
    """Every implementation that applies, with its own schedule."""
    strategy = getattr(generic, name)

    def implement(call: relay.Call, inputs: Sequence[te.Tensor]) -> list[Implementation]:
        made = strategy(call.attrs, inputs, call.checked_type, CPU)
        (always,) = made.specializations
        return [(one.compute, one.schedule) for one in always.implementations]

    check_case(cases()[case], implement, OPERATORS[name])


SEVERAL = [
    (
        "conv2d_strategy",
        lambda x, w: relay.nn.conv2d(x, w, padding=1),
        [(1, 16, 6, 6), (32, 16, 3, 3)],
        ["conv2d_nchw_packed.cpu", "nn.conv2d"],
    ),
    ("dense_strategy", relay.nn.dense, [(16, 8), (32, 8)], ["dense_packed.cpu", "nn.dense"]),
    (
        "batch_matmul_strategy",
        relay.nn.batch_matmul,
        [(2, 16, 8), (2, 12, 8)],
        ["batch_matmul_transposed.cpu", "nn.batch_matmul"],
    ),
    (
        "depthwise_conv2d_NCHWc_strategy",
        lambda x, w: relay.nn.contrib_depthwise_conv2d_nchwc(
            x,
            w,
            padding=1,
            groups=16,
            channels=16,
            kernel_size=(3, 3),
            data_layout="NCHW8c",
            kernel_layout="OIHW1i8o",
            out_layout="NCHW8c",
        ),
        [(1, 2, 5, 24, 8), (2, 1, 3, 3, 1, 8)],
        ["depthwise_conv2d_NCHWc_unpadded.cpu", "nn.contrib_depthwise_conv2d_NCHWc"],
    ),
]
"""Calls that have several implementations, the preferred one first."""


@pytest.mark.parametrize(("name", "build", "shapes", "implementations"), SEVERAL)
def test_every_implementation_computes_the_same(
    name: str, build: Callable[..., Any], shapes: list[tuple[int, ...]], implementations: list[str]
) -> None:
    """Those of the table for the target, then the operator's definition."""

    def implement(call: relay.Call, inputs: Sequence[te.Tensor]) -> list[Implementation]:
        made = getattr(generic, name)(call.attrs, inputs, call.checked_type, CPU)
        assert [one.name for one in made.implementations] == implementations
        return [(one.compute, one.schedule) for one in made.implementations]

    check_case(Case(name, build, [Input(shape) for shape in shapes]), implement)


@pytest.mark.parametrize("case", ["sparse_dense_bsr", "sparse_dense_first"])
def test_the_strategy_of_padded_sparse_weights(case: str) -> None:
    """The operator that GPU layouts make, which users do not call, is a sparse dense layer too."""
    plain = cases()[case]

    def build(*inputs: relay.Var) -> relay.Call:
        call = plain.build(*inputs)
        return relay.Call(relay.op.get("nn.internal.sparse_dense_padded"), call.args, call.attrs)

    def implement(call: relay.Call, inputs: Sequence[te.Tensor]) -> list[Implementation]:
        made = generic.sparse_dense_padded_strategy(call.attrs, inputs, call.checked_type, CPU)
        return [(one.compute, one.schedule) for one in made.specializations[0].implementations]

    check_case(replace(plain, build=build), implement)


SCHEDULES = [
    ("injective", "exp", "exp"),
    ("injective", "repeat", "repeat"),
    ("reduce", "sum_float32_two", "sum"),
    ("concatenate", "concatenate", "concatenate"),
    ("transpose", "transpose_axes", "transpose"),
    ("pool", "max_pool2d", "nn.max_pool2d"),
    ("pool", "avg_pool3d", "nn.avg_pool3d"),
    ("pool_grad", "max_pool2d_grad", "nn.max_pool2d_grad"),
    ("pool_grad", "avg_pool2d_grad", "nn.avg_pool2d_grad"),
    ("adaptive_pool", "adaptive_avg_pool2d", "nn.adaptive_avg_pool2d"),
    ("adaptive_pool", "global_max_pool2d", "nn.global_max_pool2d"),
    ("lrn", "lrn", "nn.lrn"),
    ("bitpack", "bitpack", "nn.bitpack"),
    ("roi_pool", "roi_pool", "vision.roi_pool"),
    ("sparse_transpose", "sparse_transpose", "nn.sparse_transpose"),
    ("conv2d_winograd_weight_transform", "conv2d_winograd", "nn.contrib_conv2d_winograd_weight_transform"),
    # NNPACK's transform is another matrix in the same expression.
    (
        "conv2d_winograd_nnpack_weight_transform",
        "conv2d_winograd",
        "nn.contrib_conv2d_winograd_weight_transform",
    ),
    ("conv2d_gemm_weight_transform", "conv2d_gemm", "nn.contrib_conv2d_gemm_weight_transform"),
    ("conv3d_winograd_weight_transform", "conv3d_winograd", "nn.contrib_conv3d_winograd_weight_transform"),
]
"""A case, and which of its operators to schedule."""


@pytest.mark.parametrize(("name", "case", "operator"), SCHEDULES)
def test_a_schedule_leaves_what_is_computed(name: str, case: str, operator: str) -> None:
    """The computation of the operator's definition, in the loops of the named schedule."""
    schedule = getattr(generic, f"schedule_{name}")
    check_case(cases()[case], lambda call, inputs: [(call.op.get_attr("FTVMCompute"), schedule)], operator)


@pytest.mark.parametrize(("name", "case", "operator"), SCHEDULES[:6])
def test_a_schedule_is_the_targets(name: str, case: str, operator: str) -> None:
    """Under another target, the same name binds loops to threads."""
    schedule, cuda = getattr(generic, f"schedule_{name}"), tvm.target.Target("cuda")
    texts: list[str] = []

    def implement(call: relay.Call, inputs: Sequence[te.Tensor]) -> list[Implementation]:
        compute = call.op.get_attr("FTVMCompute")
        outs = compute(call.attrs, inputs, call.checked_type)
        with cuda:
            made = schedule(call.attrs, outs, cuda)
            texts.append(str(tvm.lower(made, [*inputs, *outs], simple_mode=True)))
        return [(compute, schedule)]

    check_case(cases()[case], implement, operator)
    assert "threadIdx.x" in texts[0]


def test_channels_of_convolutions() -> None:
    """In any layout, blocks included; depthwise convolutions have a group for each channel."""
    assert generic.get_conv2d_in_channels((1, 12, 7, 7), "NCHW") == 12
    assert generic.get_conv2d_in_channels((1, 7, 7, 12), "NHWC") == 12
    assert generic.get_conv2d_in_channels((1, 3, 7, 7, 4), "NCHW4c") == 12
    assert generic.get_conv2d_out_channels((6, 12, 3, 3), "OIHW") == 6
    assert generic.get_conv2d_out_channels((3, 3, 12, 6), "HWIO") == 6
    assert generic.get_conv2d_out_channels((2, 3, 3, 3, 4, 8), "OIHW4i8o") == 16
    depthwise = ((1, 12, 7, 7), "NCHW", (12, 1, 3, 3), "OIHW")
    assert generic.is_depthwise_conv2d(*depthwise, 12)
    assert not generic.is_depthwise_conv2d(*depthwise, 4)
    assert not generic.is_depthwise_conv2d((1, 12, 7, 7), "NCHW", (12, 12, 3, 3), "OIHW", 1)
    assert generic.is_depthwise_conv2d((1, 3, 7, 7, 4), "NCHW4c", (3, 1, 3, 3, 1, 4), "OIHW1i4o", 12)
