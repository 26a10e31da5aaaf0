"""Operators of object detection, compiled to loops."""

from tilewright.topi.vision import rcnn, ssd
from tilewright.topi.vision.nms import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from tilewright.topi.vision.rcnn import proposal, roi_align_nchw, roi_align_nhwc, roi_pool_nchw
from tilewright.topi.vision.reorg import reorg
from tilewright.topi.vision.ssd import multibox_detection, multibox_prior, multibox_transform_loc
