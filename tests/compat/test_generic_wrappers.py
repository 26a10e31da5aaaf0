"""TVM's wrappers of ``topi`` computations for strategies: each passes inputs and attributes in the function's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.compat.operator_calls import Implementation, cases, check_case

from tilewright import relay, te, topi
from tilewright.compat.named_strategies import STRATEGIES
from tilewright.relay.op.strategy import generic

WRAPPERS = [
    ("deformable_conv2d", topi.nn.deformable_conv2d_nchw, "deformable_conv2d"),
    ("conv1d_transpose", topi.nn.conv1d_transpose_ncw, "conv1d_transpose"),
    ("conv3d_transpose", topi.nn.conv3d_transpose_ncdhw, "conv3d_transpose"),
    ("sparse_dense", topi.nn.sparse_dense, "sparse_dense_csr"),
    ("sparse_dense", topi.nn.sparse_dense, "sparse_dense_first"),
    ("sparse_add", topi.nn.sparse_add, "sparse_add"),
    ("sparse_conv2d", topi.nn.sparse_conv2d, "sparse_conv2d"),
    ("sparse_conv2d", topi.nn.sparse_conv2d, "sparse_conv2d_nchw"),
    ("bitserial_conv2d", topi.nn.bitserial_conv2d_nhwc, "bitserial_conv2d_nhwc"),
    ("bitserial_dense", topi.nn.bitserial_dense, "bitserial_dense_unipolar"),
    ("argsort", topi.argsort, "argsort_ties_descending"),
    ("topk", topi.topk, "topk_axis"),
    ("topk", topi.topk, "topk_values"),
    ("searchsorted", topi.searchsorted, "searchsorted_right"),
    ("multibox_prior", topi.vision.ssd.multibox_prior, "multibox_prior_clipped"),
    ("multibox_transform_loc", topi.vision.ssd.multibox_transform_loc, "multibox_transform_loc"),
    ("get_valid_counts", topi.vision.get_valid_counts, "get_valid_counts_without_class"),
    ("nms", topi.vision.non_max_suppression, "non_max_suppression_forced"),
    ("nms", topi.vision.non_max_suppression, "non_max_suppression_boxes"),
    ("nms", topi.vision.non_max_suppression, "non_max_suppression_to_bottom"),
    (
        "all_class_nms",
        topi.vision.all_class_non_max_suppression,
        "all_class_non_max_suppression_tensorflow",
    ),
    ("roi_align", topi.vision.rcnn.roi_align_nchw, "roi_align_max_2"),
    ("proposal", topi.vision.rcnn.proposal, "proposal_corners"),
    ("sparse_fill_empty_rows", topi.sparse_fill_empty_rows, "sparse_fill_empty_rows"),
    ("sparse_reshape", topi.sparse_reshape, "sparse_reshape"),
    ("scatter", topi.scatter, "scatter_last_wins"),
    ("scatter_nd", topi.scatter_nd, "scatter_nd_add"),
    ("argwhere", topi.argwhere, "argwhere_float"),
    ("threefry_generate", topi.random.threefry_generate, "threefry_generate_new_key"),
    ("threefry_split", topi.random.threefry_split, "threefry_split_full"),
    ("uniform", topi.random.uniform, "uniform_computed_limits"),
    ("unique", topi.unique, "unique_by_appearance"),
    ("invert_permutation", topi.invert_permutation, "invert_permutation"),
    ("einsum", topi.einsum, "einsum_i,j->ij_float32"),
]
"""The end of a wrapper's name, what it wraps, and a case in which attributes are not the defaults."""


def naive(compute: Any) -> list[Implementation]:
    """One implementation, with loops as the computation says."""
    return [(compute, generic.naive_schedule)]


@pytest.mark.parametrize(("name", "topi_compute", "case"), WRAPPERS)
def test_a_wrapped_computation_computes_the_operator(
    name: str, topi_compute: Callable[..., Any], case: str
) -> None:
    """Attributes and inputs arrive where the function of ``topi`` takes them."""
    wrapped = getattr(generic, f"wrap_compute_{name}")(topi_compute)
    check_case(cases()[case], lambda call, inputs: naive(wrapped), STRATEGIES[f"{name}_strategy"])


def test_a_computation_of_the_inputs_only() -> None:
    """Without attributes there is one wrapper for all; what gives one tensor gives a list of it."""
    wrapped = generic.wrap_topi_compute(topi.nn.sparse_add)
    check_case(cases()["sparse_add"], lambda call, inputs: naive(wrapped))
    a, b = te.placeholder((2,), name="a"), te.placeholder((2,), name="b")
    given: list[Sequence[te.Tensor]] = []

    def both(*inputs: te.Tensor) -> tuple[te.Tensor, ...]:
        given.append(inputs)
        return inputs

    assert generic.wrap_topi_compute(both)(None, [a, b], None) == [a, b]
    assert given == [(a, b)]
    assert generic.wrap_topi_compute(lambda only: only)(relay.Call, [a], None) == [a]
