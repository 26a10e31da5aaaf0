"""Operators of region-based detectors."""

from tilewright.topi.vision.rcnn.proposal import proposal
from tilewright.topi.vision.rcnn.roi_align import roi_align_nchw, roi_align_nhwc
from tilewright.topi.vision.rcnn.roi_pool import roi_pool_nchw
