"""Operators of single-shot detectors."""

from tilewright.topi.vision.ssd.multibox import multibox_detection, multibox_prior, multibox_transform_loc
