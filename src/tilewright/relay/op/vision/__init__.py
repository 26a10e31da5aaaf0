"""Operators of object detection."""

from tilewright.relay.op.vision import multibox, nms, rcnn, yolo
from tilewright.relay.op.vision.multibox import multibox_prior, multibox_transform_loc
from tilewright.relay.op.vision.nms import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
)
from tilewright.relay.op.vision.rcnn import proposal, roi_align, roi_pool
from tilewright.relay.op.vision.yolo import yolo_reorg

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox",
    "multibox_prior",
    "multibox_transform_loc",
    "nms",
    "non_max_suppression",
    "proposal",
    "rcnn",
    "roi_align",
    "roi_pool",
    "yolo",
    "yolo_reorg",
]
