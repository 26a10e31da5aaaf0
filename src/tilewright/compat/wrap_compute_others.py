"""Computations of ``topi`` beyond neural networks in the form that strategies take; see ``wrap_compute``."""

from __future__ import annotations

from tilewright.compat.wrap_compute import wrapper
from tilewright.relay.op.transform.support import result_shape
from tilewright.relay.op.vision.nms import one_element

wrap_compute_sort = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], attrs.axis, attrs.is_ascend),
    "wrap_compute_sort",
    "(data, axis, is ascend).",
)
wrap_compute_argsort = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], None, attrs.axis, attrs.is_ascend, attrs.dtype),
    "wrap_compute_argsort",
    "(data, no counts, axis, is ascend, dtype).",
)
wrap_compute_topk = wrapper(
    lambda attrs, inputs, out_type: (
        inputs[0],
        attrs.k,
        attrs.axis,
        attrs.ret_type,
        attrs.is_ascend,
        attrs.dtype,
    ),
    "wrap_compute_topk",
    "(data, k, axis, what is given, is ascend, dtype).",
)
wrap_compute_searchsorted = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], inputs[1], attrs.right, attrs.dtype),
    "wrap_compute_searchsorted",
    "(sorted sequence, values, right, dtype).",
)
wrap_compute_multibox_prior = wrapper(
    lambda attrs, inputs, out_type: (
        inputs[0],
        attrs.sizes,
        attrs.ratios,
        attrs.steps,
        attrs.offsets,
        attrs.clip,
    ),
    "wrap_compute_multibox_prior",
    "(data, sizes, ratios, steps, offsets, clip).",
)
wrap_compute_multibox_transform_loc = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.clip, attrs.threshold, attrs.variances),
    "wrap_compute_multibox_transform_loc",
    "(probabilities, predictions, anchors, clip, threshold, variances).",
)
wrap_compute_get_valid_counts = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], one_element(inputs[1]), attrs.id_index, attrs.score_index),
    "wrap_compute_get_valid_counts",
    "(data, score threshold, id index, score index).",
)
wrap_compute_nms = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs[:3],
        one_element(inputs[3]),
        one_element(inputs[4]),
        attrs.force_suppress,
        attrs.top_k,
        attrs.coord_start,
        attrs.score_index,
        attrs.id_index,
        attrs.return_indices,
        attrs.invalid_to_bottom,
    ),
    "wrap_compute_nms",
    "(data, counts, indices, max output size, iou threshold, and the attributes in order).",
)
wrap_compute_all_class_nms = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs[:2],
        *[one_element(number) for number in inputs[2:]],
        attrs.output_format,
    ),
    "wrap_compute_all_class_nms",
    "(boxes, scores, max output boxes per class, iou threshold, score threshold, output format).",
)
wrap_compute_roi_align = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.pooled_size,
        attrs.spatial_scale,
        attrs.mode,
        attrs.sample_ratio,
    ),
    "wrap_compute_roi_align",
    "(data, regions, pooled size, spatial scale, mode, sample ratio).",
)
wrap_compute_proposal = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        attrs.scales,
        attrs.ratios,
        attrs.feature_stride,
        attrs.threshold,
        attrs.rpn_pre_nms_top_n,
        attrs.rpn_post_nms_top_n,
        attrs.rpn_min_size,
        bool(attrs.iou_loss),
    ),
    "wrap_compute_proposal",
    "(probabilities, predictions, image sizes, and the attributes in order).",
)
wrap_compute_sparse_fill_empty_rows = wrapper(
    lambda attrs, inputs, out_type: (
        *inputs,
        *[result_shape(field) for field in out_type.fields],
    ),
    "wrap_compute_sparse_fill_empty_rows",
    "(indices, values, dense shape, default, and the shapes of the results).",
)
wrap_compute_sparse_reshape = wrapper(
    lambda attrs, inputs, out_type: (*inputs, *[result_shape(field) for field in out_type.fields]),
    "wrap_compute_sparse_reshape",
    "(indices, old shape, new shape, and the shapes of the results).",
)
wrap_compute_scatter = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.axis),
    "wrap_compute_scatter",
    "(data, indices, updates, axis).",
)
wrap_compute_scatter_nd = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.mode),
    "wrap_compute_scatter_nd",
    "(data, indices, updates, mode).",
)
wrap_compute_argwhere = wrapper(
    lambda attrs, inputs, out_type: (result_shape(out_type), inputs[0]),
    "wrap_compute_argwhere",
    "(the result's shape, condition).",
)
wrap_compute_threefry_generate = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], attrs.out_shape),
    "wrap_compute_threefry_generate",
    "(generator, shape).",
)
wrap_compute_threefry_split = wrapper(
    lambda attrs, inputs, out_type: (inputs[0],),
    "wrap_compute_threefry_split",
    "(generator).",
)
wrap_compute_uniform = wrapper(
    lambda attrs, inputs, out_type: (*inputs, attrs.out_shape, attrs.out_dtype),
    "wrap_compute_uniform",
    "(generator, low, high, shape, dtype).",
)
wrap_compute_unique = wrapper(
    lambda attrs, inputs, out_type: (inputs[0], attrs.sorted, attrs.return_counts),
    "wrap_compute_unique",
    "(data, is sorted, return counts).",
)
wrap_compute_invert_permutation = wrapper(
    lambda attrs, inputs, out_type: (inputs[0],),
    "wrap_compute_invert_permutation",
    "(data).",
)
wrap_compute_einsum = wrapper(
    lambda attrs, inputs, out_type: (attrs.equation, *inputs),
    "wrap_compute_einsum",
    "(equation, tensors).",
)
