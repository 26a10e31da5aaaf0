"""The kernels that TVM's ``topi.vision`` writes as hybrid scripts, under their names: boxes in, boxes out.

``one``, ``zero``, ``batch_size`` and ``num_anchors`` say what the tensors know; they are there for TVM's calls.
"""

from __future__ import annotations

from typing import Any

from tilewright.te.tensor import Tensor
from tilewright.topi.vision.nms import compact_boxes, compact_indices, get_valid_counts, suppress_boxes
from tilewright.topi.vision.ssd.multibox import multibox_prior, multibox_transform_loc


def _plain(value: Any) -> Any:
    """Python's number for a constant expression; what is computed stays."""
    return getattr(value, "value", value)


def hybrid_rearrange_box_out(data: Tensor, one: Any, batch_size: Any, num_anchors: Any) -> Tensor:
    """The boxes whose first value is not negative, moved to the front; -1 after them."""
    return compact_boxes(data)


def hybrid_rearrange_indices_out(data: Tensor, one: Any, batch_size: Any, num_anchors: Any) -> list[Tensor]:
    """The indices that are not negative, moved to the front, and how many there are."""
    return compact_indices(data)


def hybrid_get_valid_counts(
    data: Tensor,
    score_threshold: Any,
    id_index: Any,
    score_index: Any,
    one: Any,
    batch_size: Any,
    num_anchors: Any,
) -> list[Tensor]:
    """How many boxes have a score above the threshold, those boxes in front, and where they were."""
    return get_valid_counts(data, score_threshold, int(_plain(id_index)), int(_plain(score_index)))


def hybrid_nms(
    data: Tensor,
    sorted_index: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    batch_size: Any,
    num_anchors: Any,
    max_output_size: Any,
    iou_threshold: Any,
    force_suppress: Any,
    top_k: Any,
    coord_start: Any,
    score_index: Any,
    id_index: Any,
    return_indices: Any,
    zero: Any,
    one: Any,
) -> list[Tensor]:
    """The boxes in the order of ``sorted_index``, -1 in the place of those that overlap a better one, and where they
    came from."""
    return suppress_boxes(
        data,
        sorted_index,
        valid_count,
        indices,
        max_output_size,
        iou_threshold,
        bool(_plain(force_suppress)),
        int(_plain(top_k)),
        int(_plain(coord_start)),
        int(_plain(score_index)),
        int(_plain(id_index)),
        bool(_plain(return_indices)),
    )


def hybrid_multibox_prior(data: Tensor, sizes: Any, ratios: Any, steps: Any, offsets: Any) -> Tensor:
    """Boxes around each pixel of a feature map, in parts of the image."""
    return multibox_prior(data, list(sizes), list(ratios), list(steps), list(offsets))


def hybrid_multibox_transform_loc(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: Any, threshold: Any, variances: Any
) -> list[Tensor]:
    """Boxes decoded from anchors, and how many count."""
    return multibox_transform_loc(
        cls_prob, loc_pred, anchor, bool(_plain(clip)), float(_plain(threshold)), list(variances)
    )
